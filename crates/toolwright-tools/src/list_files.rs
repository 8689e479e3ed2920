//! `list_files` and `list_directory`: what is in a folder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{Structured, ToolDef, ToolError, WorkspacePath, glob_match};

use crate::options::{Call, Effect, Options, count, define, finish};
use crate::paths::{self, FileKind};
use crate::walk::{Hidden, walk};

#[derive(Deserialize, JsonSchema)]
struct ListFiles {
    /// The folder to list.
    #[serde(default = "here")]
    path: WorkspacePath,
    /// How deep to go; 1 is the folder alone, and left out means all the way down.
    depth: Option<i64>,
}

fn here() -> WorkspacePath {
    ".".into()
}

/// The tool `list_files`: every path below a folder, hidden ones too, one a line. `directory` is accepted for
/// `path`.
pub fn list_files(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "list_files",
        "List the files and folders in a folder, however deep, one path a line.",
        |call: Call, ListFiles { path, depth }| async move {
            let depth = depth.map(|depth| count("depth", depth)).transpose()?;
            if paths::find(&call, &path).await?.about.is_none() {
                return Err(paths::missing(&call, &path)
                    .await
                    .with_kind(toolwright_core::ErrorKind::Unknown));
            }
            let items = walk(&call, &path, depth, Hidden::Shown).await?;
            if items.is_empty() {
                return Ok(format!("there are no files in {path}"));
            }
            let lines: Vec<String> = items.iter().map(|item| inside(&path, &item.path)).collect();
            Ok::<_, ToolError>(lines.join("\n"))
        },
    );
    finish(tool, "files", Effect::Reads, &[("directory", "path"), ("dir", "path")])
}

/// As `find` would print it: with the folder in front, also when it is `.`.
fn inside(folder: &str, name: &str) -> String {
    if folder.ends_with('/') { format!("{folder}{name}") } else { format!("{folder}/{name}") }
}

#[derive(Deserialize, JsonSchema)]
struct ListFolder {
    /// The folder to list.
    #[serde(default = "here")]
    path: WorkspacePath,
}

/// `list_files` as llm-workers has it: the files and the folders of one folder, apart and counted.
pub(crate) fn list_files_and_dirs(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "list_files",
        "List the files and the folders in a folder, hidden ones too.",
        |call: Call, ListFolder { path }| async move {
            look_for_folder(&call, &path).await?;
            let items = walk(&call, &path, Some(1), Hidden::Shown).await?;
            let (mut files, mut dirs) = (Vec::new(), Vec::new());
            for item in &items {
                if item.is_folder { &mut dirs } else { &mut files }.push(format!("- {}\n", item.path));
            }
            let list = |title: &str, lines: &[String]| {
                format!("{title}:\n{}total {} entries", lines.concat(), lines.len())
            };
            Ok::<_, ToolError>(format!("{}\n\n{}", list("files", &files), list("dirs", &dirs)))
        },
    );
    finish(tool, "files", Effect::Reads, &[("directory", "path")])
}

/// A folder, or the tool's own error for what is there instead.
async fn look_for_folder(call: &Call, path: &str) -> Result<(), ToolError> {
    match paths::find(call, path).await?.about.map(|about| about.kind) {
        Some(FileKind::Folder) => Ok(()),
        Some(_) => Err(ToolError::new(format!("{path} is not a folder"))),
        None => Err(ToolError::new(format!("there is no folder {path}"))),
    }
}

#[derive(Deserialize, JsonSchema)]
struct ListDirectory {
    /// The folder to list.
    #[serde(default = "here")]
    path: WorkspacePath,
    /// Only names that match, for example *.md.
    pattern: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    name: String,
    /// `file`, `dir`, `link` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
}

/// The tool `list_directory`: the entries of one folder with type and size. `directory` is accepted for
/// `path`.
pub fn list_directory(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "list_directory",
        "List one folder: name, type (file, dir, link or other) and size of each entry.",
        |call: Call, ListDirectory { path, pattern }| async move {
            paths::folder(&call, &path).await?;
            let mut items = walk(&call, &path, Some(1), Hidden::Shown).await?;
            items.retain(|item| pattern.as_deref().is_none_or(|pattern| glob_match(pattern, &item.path)));
            let listed = items.into_iter().map(|item| Listed {
                kind: match &item {
                    item if item.is_link => "link",
                    item if item.is_folder => "dir",
                    item if item.is_file => "file",
                    _ => "other",
                },
                size: item.size,
                name: item.path,
            });
            Ok::<_, ToolError>(Structured(listed.collect::<Vec<_>>()))
        },
    );
    finish(tool, "files", Effect::Reads, &[("directory", "path")])
}
