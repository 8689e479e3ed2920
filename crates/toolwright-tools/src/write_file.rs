//! `write_file`: a file as a whole, or more at its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ErrorKind, Structured, ToolContext, ToolError, WorkspacePath, tool};

use crate::options::{Call, Options, within_time};
use crate::paths::{self, FileKind};

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfExists {
    #[default]
    Fail,
    Append,
    Overwrite,
    // Another word for `overwrite`.
    Write,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct WriteReport {
    success: bool,
    bytes_written: usize,
}

/// Write a text file.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = within_time)]
pub async fn write_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to write. Its folder is made when it is not there.
    #[tool(alias("file_path", "filename"))]
    path: WorkspacePath,
    /// What to write.
    #[tool(alias("file_text", "text"))]
    content: String,
    /// What to do when the file is there already; `write` is another word for `overwrite`.
    #[tool(default, alias = "mode")]
    if_exists: IfExists,
) -> Result<Structured<WriteReport>, ToolError> {
    let bytes_written = content.len();
    put(&Call::new(context, options), &path, content, if_exists).await?;
    Ok(Structured(WriteReport { success: true, bytes_written }))
}

/// Writes a file, or more at its end.
pub(crate) async fn put(
    call: &Call<'_>,
    path: &str,
    content: String,
    if_exists: IfExists,
) -> Result<(), ToolError> {
    let mut contents = content.into_bytes();
    // Where a sandbox holds the place of a protected file, writing is refused, and says why.
    let there = paths::find(call, path).await?.about.filter(|about| !about.is_placeholder(path));
    match (there.map(|about| about.kind), if_exists) {
        (Some(FileKind::Folder), _) => {
            return Err(ToolError::of(ErrorKind::IsADirectory, format!("{path} is a folder, not a file")));
        }
        (Some(_), IfExists::Fail) => {
            return Err(ToolError::new(format!("{path} already exists"))
                .hint("set `if_exists` to `overwrite` or `append`"));
        }
        (Some(FileKind::File), IfExists::Append) => {
            let mut all = paths::read(call, path).await?;
            all.append(&mut contents);
            contents = all;
        }
        _ => {}
    }
    paths::write(call, path, &contents).await
}
