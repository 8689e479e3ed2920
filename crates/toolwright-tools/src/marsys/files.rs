//! `write_file` and `create_directory`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{RootedPath, Structured, ToolDef, ToolError};

use super::{place, yes};
use crate::options::{Call, Effect, Options, define, finish};
use crate::paths::{self, FileKind};
use crate::write_file::{self, IfExists};

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The file to write. Its folder is made when it is not there.
    path: RootedPath,
    /// What to write.
    content: String,
    /// Write the whole file anew, or append to it.
    #[serde(default)]
    mode: WriteMode,
}

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

/// `write_file` as MARSYS has it: a file that is there is written over.
pub(crate) fn write_file(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "write_file",
        "Write a text file, or append to one.",
        |call: Call, WriteFile { path, content, mode }| async move {
            let path = place(&path)?;
            let (bytes_written, lines_changed) = (content.len(), content.matches('\n').count() + 1);
            let if_exists = match mode {
                WriteMode::Write => IfExists::Overwrite,
                WriteMode::Append => IfExists::Append,
            };
            write_file::put(&call, &path, content, if_exists).await?;
            Ok::<_, ToolError>(Structured(Written { success: true, path, bytes_written, lines_changed }))
        },
    );
    finish(tool, "files", Effect::Writes, &[("file_path", "path")])
}

#[derive(Deserialize, JsonSchema)]
struct CreateDirectory {
    /// The folder to make.
    path: RootedPath,
    /// Also make the folders above it that are not there.
    #[serde(default = "yes")]
    parents: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Made")]
struct CreatedFolder {
    success: bool,
    path: String,
    already_existed: bool,
}

/// The tool `create_directory`. An existing folder is not an error.
pub(crate) fn create_directory(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "create_directory",
        "Make a folder, and the folders above it.",
        |call: Call, CreateDirectory { path, parents }| async move {
            let path = place(&path)?;
            match paths::find(&call, &path).await?.about.map(|about| about.kind) {
                Some(FileKind::Folder) => {
                    return Ok(Structured(CreatedFolder { success: true, path, already_existed: true }));
                }
                Some(_) => return Err(ToolError::new(format!("{path} is there and is not a folder"))),
                None => {}
            }
            let command: &[&str] =
                if parents { &["mkdir", "-p", "--", &path] } else { &["mkdir", "--", &path] };
            let result = call.helper(command).await?;
            if result.success() {
                return Ok(Structured(CreatedFolder { success: true, path, already_existed: false }));
            }
            Err::<_, ToolError>(ToolError::of(
                paths::kind_of(&result.stderr),
                format!("{path} could not be made: {}", result.stderr.trim()),
            ))
        },
    );
    finish(tool, "files", Effect::Writes, &[])
}
