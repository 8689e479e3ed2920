//! `write_file`: a file as a whole, or more at its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ErrorKind, ToolDef, ToolError, WorkspacePath};

use crate::options::{Call, Effect, Options, define, finish};
use crate::paths::{self, FileKind};

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The file to write. Its folder is made when it is not there.
    path: WorkspacePath,
    /// What to write.
    content: String,
    /// What to do when the file is there already; `write` is another word for `overwrite`.
    #[serde(default)]
    if_exists: IfExists,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfExists {
    #[default]
    Fail,
    Append,
    Overwrite,
    /// Another word for `overwrite`.
    Write,
}

/// Whether the folder of a new file is made.
#[derive(Clone, Copy, PartialEq)]
enum Folder {
    Made,
    Expected,
}

/// The tool `write_file`. `file_path` is accepted for `path`, `file_text` and `text` for `content`, `mode`
/// for `if_exists`.
pub fn write_file(options: &Options) -> ToolDef {
    writer(options, Folder::Made, "Write a text file.")
}

/// `write_file` as llm-workers has it: the folder must be there.
pub(crate) fn write_file_in_folder(options: &Options) -> ToolDef {
    writer(options, Folder::Expected, "Write a text file in a folder that is there.")
}

fn writer(options: &Options, folder: Folder, description: &str) -> ToolDef {
    let tool =
        define(options, "write_file", description, move |call: Call, arguments: WriteFile| async move {
            write(&call, arguments, folder).await
        });
    let aliases = [
        ("file_path", "path"),
        ("filename", "path"),
        ("file_text", "content"),
        ("text", "content"),
        ("mode", "if_exists"),
    ];
    finish(tool, "files", Effect::Writes, &aliases)
}

async fn write(call: &Call, arguments: WriteFile, folder: Folder) -> Result<(), ToolError> {
    let WriteFile { path, content, if_exists } = arguments;
    if folder == Folder::Expected && paths::find(call, &path).await?.real.is_none() {
        return Err(ToolError::of(ErrorKind::FileNotFound, format!("the folder of {path} does not exist")));
    }
    put(call, &path, content, if_exists).await
}

/// Writes a file, or more at its end.
pub(crate) async fn put(
    call: &Call,
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
