//! `list_files` and `list_directory`: what is in a folder.

use schemars::JsonSchema;
use serde::Serialize;
use toolwright_core::{ErrorKind, Structured, ToolContext, ToolError, WorkspacePath, glob_match, tool};

use crate::options::{Call, Options, count, within_time};
use crate::paths;
use crate::walk::{Hidden, walk};

/// List the files and folders in a folder, however deep, one path a line.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub async fn list_files(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The folder to list.
    #[tool(default = ".", alias("directory", "dir"))]
    path: WorkspacePath,
    /// How deep to go; 1 is the folder alone, and left out means all the way down.
    depth: Option<i64>,
) -> Result<String, ToolError> {
    let call = &Call::new(context, options);
    let depth = depth.map(|depth| count("depth", depth)).transpose()?;
    if paths::find(call, &path).await?.about.is_none() {
        return Err(paths::missing(call, &path).await.with_kind(ErrorKind::Unknown));
    }
    let items = walk(call, &path, depth, Hidden::Shown).await?;
    if items.is_empty() {
        return Ok(format!("there are no files in {path}"));
    }
    let lines: Vec<String> = items.iter().map(|item| inside(&path, &item.path)).collect();
    Ok(lines.join("\n"))
}

/// As `find` would print it: with the folder in front, also when it is `.`.
fn inside(folder: &str, name: &str) -> String {
    if folder.ends_with('/') { format!("{folder}{name}") } else { format!("{folder}/{name}") }
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    name: String,
    /// `file`, `dir`, `link` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
}

/// List one folder: name, type (file, dir, link or other) and size of each entry.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub async fn list_directory(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The folder to list.
    #[tool(default = ".", alias = "directory")]
    path: WorkspacePath,
    /// Only names that match, for example *.md.
    pattern: Option<String>,
) -> Result<Structured<Vec<Listed>>, ToolError> {
    let call = &Call::new(context, options);
    paths::folder(call, &path).await?;
    let mut items = walk(call, &path, Some(1), Hidden::Shown).await?;
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
    Ok(Structured(listed.collect()))
}
