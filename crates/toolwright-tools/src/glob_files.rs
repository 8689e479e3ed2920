//! `glob_files`: files by pattern, newest first.

use toolwright_core::{Structured, ToolContext, ToolError, WorkspacePath, glob_match, tool};

use crate::options::{Call, Options, count, within_time};
use crate::paths;
use crate::walk::{Hidden, WalkEntry, walk};

/// Find files by a pattern such as src/**/*.rs; the newest come first.
#[tool(category = "search", sandboxed, read_only, finish = within_time)]
pub async fn glob_files(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The pattern: `*` and `?` stay within a name, `[ab]` is one of these, `**` is any number of folders.
    pattern: String,
    /// The folder to look in.
    #[tool(default = ".", alias = "directory")]
    path: WorkspacePath,
    /// The most files to name.
    #[tool(default = 100)]
    max_results: i64,
    /// Also files inside folders whose name starts with a dot. A wildcard never stands for a leading dot.
    #[tool(default)]
    include_hidden: bool,
) -> Result<Structured<Vec<String>>, ToolError> {
    let most = count("max_results", max_results)?;
    let hidden = if include_hidden { Hidden::Shown } else { Hidden::Skipped };
    let call = &Call::new(context, options);
    let mut files = files(call, &paths::join(&path, &pattern), hidden).await?;
    files.sort_by(|a, b| b.modified.total_cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    Ok(Structured(files.into_iter().take(most).map(|file| file.path).collect()))
}

/// True when a pattern has wildcards.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', ']'])
}

/// The files that match, with their whole paths, sorted by path.
pub(crate) async fn files(
    call: &Call<'_>,
    pattern: &str,
    hidden: Hidden,
) -> Result<Vec<WalkEntry>, ToolError> {
    paths::check(pattern)?;
    let (root, parts) = split(pattern);
    if paths::find(call, root).await?.about.is_none() {
        return Ok(Vec::new());
    }
    let depth = if parts.contains(&"**") { None } else { Some(parts.len()) };
    // Hidden names are walked only when a part of the pattern can name them.
    let names_hidden = parts.iter().any(|part| part.starts_with('.'));
    let walked = if names_hidden || hidden == Hidden::Shown { Hidden::Shown } else { Hidden::Skipped };
    let mut items = walk(call, root, depth, walked).await?;
    items.retain(|item| {
        let names: Vec<&str> = item.path.split('/').collect();
        let shown = hidden == Hidden::Shown || !names.iter().any(|name| name.starts_with('.'));
        item.is_file && shown && matches(&parts, &names)
    });
    for item in &mut items {
        item.path = paths::join(root, &item.path);
    }
    Ok(items)
}

/// Whether a path matches a pattern, part by part.
pub(crate) fn path_matches(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    matches(&parts, &path.split('/').collect::<Vec<_>>())
}

/// The folders a pattern begins with, and the parts that have to be matched.
fn split(pattern: &str) -> (&str, Vec<&str>) {
    let first =
        pattern.split('/').take_while(|part| !is_pattern(part)).map(|part| part.len() + 1).sum::<usize>();
    // Without any wildcard the last part is still a name to match.
    let cut = if first > pattern.len() { pattern.rfind('/').map_or(0, |at| at + 1) } else { first };
    let (root, rest) = pattern.split_at_checked(cut).unwrap_or(("", pattern));
    let root = match root {
        "" => ".",
        "/" => "/",
        root => root.trim_end_matches('/'),
    };
    (root, rest.split('/').filter(|part| !part.is_empty()).collect())
}

/// Whether the names of a path match the parts of a pattern. Never slower than their product.
fn matches(parts: &[&str], names: &[&str]) -> bool {
    // `reach[n]` says whether the parts so far match the first `n` names.
    let mut reach = vec![false; names.len() + 1];
    if let Some(start) = reach.first_mut() {
        *start = true;
    }
    for part in parts {
        let mut next = vec![false; names.len() + 1];
        let mut open = false;
        for (index, slot) in next.iter_mut().enumerate() {
            let before = index.checked_sub(1);
            let name = before.and_then(|before| names.get(before));
            if *part == "**" {
                // A hidden folder ends what `**` stands for.
                open = reach.get(index) == Some(&true)
                    || (open && name.is_some_and(|name| !name.starts_with('.')));
                *slot = open;
            } else if let (Some(before), Some(name)) = (before, name) {
                *slot = reach.get(before) == Some(&true) && name_matches(part, name);
            }
        }
        reach = next;
        if !reach.contains(&true) {
            return false;
        }
    }
    // `**` at the end stands for files as well.
    reach.last() == Some(&true)
}

fn name_matches(part: &str, name: &str) -> bool {
    (!name.starts_with('.') || part.starts_with('.')) && glob_match(part, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let check = |pattern: &str, path: &str| {
            matches(&pattern.split('/').collect::<Vec<_>>(), &path.split('/').collect::<Vec<_>>())
        };
        for (pattern, path, wanted) in [
            ("*.py", "a.py", true),
            ("*.py", "d/a.py", false),
            ("**/*.py", "a.py", true),
            ("**/*.py", "d/e/a.py", true),
            ("**/*.py", ".d/a.py", false),
            ("**", "d/a", true),
            ("d/**/a", "d/a", true),
            ("*", ".hidden", false),
            (".*", ".hidden", true),
            ("**/**/**/x", "a/b/c/d/e/f/g", false),
        ] {
            assert_eq!(check(pattern, path), wanted, "{pattern} {path}");
        }
    }

    #[test]
    fn the_walk_begins_as_far_down_as_it_can() {
        assert_eq!(split("src/*.py"), ("src", vec!["*.py"]));
        assert_eq!(split("*.py"), (".", vec!["*.py"]));
        assert_eq!(split("/etc/**/x"), ("/etc", vec!["**", "x"]));
        assert_eq!(split("../a/b"), ("../a", vec!["b"]));
        assert_eq!(split("plain"), (".", vec!["plain"]));
        assert_eq!(split("/*"), ("/", vec!["*"]));
    }
}
