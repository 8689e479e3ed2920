//! `list_files`: a folder with what there is to know of each entry.

use schemars::JsonSchema;
use serde::Serialize;
use toolwright_core::{RootedPath, Structured, ToolContext, ToolError, glob_match, tool};

use super::place;
use crate::glob_files::path_matches;
use crate::options::{Call, Options, within_time};
use crate::paths;
use crate::walk::{Hidden, WalkEntry, walk};

#[derive(Serialize, JsonSchema)]
struct Listing {
    path: String,
    files: Vec<ListedFile>,
    file_count: usize,
    directory_count: usize,
    total_size: u64,
    pattern: Option<String>,
    recursive: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
struct ListedFile {
    path: String,
    name: String,
    size: u64,
    size_human: String,
    /// Seconds since 1970.
    modified: f64,
    is_file: bool,
    is_directory: bool,
    is_symlink: bool,
    extension: String,
}

impl ListedFile {
    fn new(folder: &str, item: WalkEntry) -> ListedFile {
        let name = item.path.rsplit('/').next().unwrap_or_default().to_owned();
        let extension = match name.trim_start_matches('.').rsplit_once('.') {
            Some((_, ending)) if item.is_file => ending.to_owned(),
            _ => String::new(),
        };
        ListedFile {
            path: paths::join(folder, &item.path),
            size: item.size,
            size_human: human(item.size),
            modified: item.modified,
            is_file: item.is_file,
            is_directory: item.is_folder,
            is_symlink: item.is_link,
            name,
            extension,
        }
    }
}

/// A size as people write it.
fn human(size: u64) -> String {
    let mut size = size as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if size < 1024.0 {
            return format!("{size:.1} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.1} TB")
}

/// List what is in a folder: names, sizes, times and kinds.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub(crate) async fn list_files(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The folder to list.
    #[tool(default = ".", alias = "directory")]
    path: RootedPath,
    /// Only names that match, for example *.md.
    pattern: Option<String>,
    /// Also what is in the folders below.
    #[tool(default)]
    recursive: bool,
) -> Result<Structured<Listing>, ToolError> {
    let call = &Call::new(context, options);
    let folder = place(&path)?;
    paths::folder(call, &folder).await?;
    // A pattern with folders in it is one of paths; with `recursive` they may begin anywhere.
    let of_paths = pattern.as_deref().filter(|pattern| pattern.contains('/'));
    let of_paths = of_paths.map(|one| if recursive { format!("**/{one}") } else { one.to_owned() });
    let depth = match &of_paths {
        Some(pattern) if !pattern.contains("**") => Some(pattern.split('/').count()),
        Some(_) => None,
        None => (!recursive).then_some(1),
    };
    let items = walk(call, &folder, depth, Hidden::Shown).await?;
    let fits = |item: &WalkEntry| match (&of_paths, pattern.as_deref()) {
        (Some(pattern), _) => path_matches(pattern, &item.path),
        (None, Some(pattern)) => glob_match(pattern, item.path.rsplit('/').next().unwrap_or_default()),
        (None, None) => true,
    };
    let files: Vec<ListedFile> =
        items.into_iter().filter(fits).map(|item| ListedFile::new(&folder, item)).collect();
    Ok(Structured(Listing {
        path: if folder == "." { "/".to_owned() } else { format!("/{folder}") },
        file_count: files.iter().filter(|entry| entry.is_file).count(),
        directory_count: files.iter().filter(|entry| entry.is_directory).count(),
        total_size: files.iter().filter(|entry| entry.is_file).map(|entry| entry.size).sum(),
        files,
        pattern,
        recursive,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_people_read() {
        for (size, wanted) in [(12, "12.0 B"), (4096, "4.0 KB"), (3 << 30, "3.0 GB"), (5 << 40, "5.0 TB")] {
            assert_eq!(human(size), wanted);
        }
    }
}
