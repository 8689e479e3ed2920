//! `write_file` and `create_directory`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{RootedPath, Structured, ToolContext, ToolError, tool};

use super::place;
use crate::options::{Call, Options, within_time};
use crate::paths::{self, FileKind};
use crate::write_file::{self, IfExists};

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    #[default]
    Write,
    Append,
}

#[derive(Serialize, JsonSchema)]
struct Written {
    success: bool,
    path: String,
    bytes_written: usize,
    lines_changed: usize,
}

/// Write a text file, or append to one.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = within_time)]
pub(crate) async fn write_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to write. Its folder is made when it is not there.
    #[tool(alias = "file_path")]
    path: RootedPath,
    /// What to write.
    content: String,
    /// Write the whole file anew, or append to it.
    #[tool(default)]
    mode: WriteMode,
) -> Result<Structured<Written>, ToolError> {
    let path = place(&path)?;
    let (bytes_written, lines_changed) = (content.len(), content.matches('\n').count() + 1);
    let if_exists = match mode {
        WriteMode::Write => IfExists::Overwrite,
        WriteMode::Append => IfExists::Append,
    };
    write_file::put(&Call::new(context, options), &path, content, if_exists).await?;
    Ok(Structured(Written { success: true, path, bytes_written, lines_changed }))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Made")]
struct CreatedFolder {
    success: bool,
    path: String,
    already_existed: bool,
}

/// Make a folder, and the folders above it.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = within_time)]
pub(crate) async fn create_directory(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The folder to make.
    path: RootedPath,
    /// Also make the folders above it that are not there.
    #[tool(default = true)]
    parents: bool,
) -> Result<Structured<CreatedFolder>, ToolError> {
    let call = &Call::new(context, options);
    let path = place(&path)?;
    match paths::find(call, &path).await?.about.map(|about| about.kind) {
        // An existing folder is not an error.
        Some(FileKind::Folder) => {
            return Ok(Structured(CreatedFolder { success: true, path, already_existed: true }));
        }
        Some(_) => return Err(ToolError::new(format!("{path} is there and is not a folder"))),
        None => {}
    }
    let command: &[&str] = if parents { &["mkdir", "-p", "--", &path] } else { &["mkdir", "--", &path] };
    let result = call.helper(command).await?;
    if result.success() {
        return Ok(Structured(CreatedFolder { success: true, path, already_existed: false }));
    }
    let kind = paths::kind_of(&result.stderr);
    Err(ToolError::of(kind, format!("{path} could not be made: {}", result.stderr.trim())))
}
