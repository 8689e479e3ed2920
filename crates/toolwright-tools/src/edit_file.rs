//! `edit_file`: one text for another, where it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{Structured, ToolContext, ToolError, WorkspacePath, tool};

use crate::options::{Call, Options, within_time};
use crate::{patch, paths, read_file, text};

#[derive(Debug, Serialize, JsonSchema, PartialEq, Eq)]
struct Done {
    replacements: u64,
}

/// Replace a piece of text in a file.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = within_time)]
pub async fn edit_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to change.
    #[tool(alias = "file_path")]
    path: WorkspacePath,
    /// The text to replace, character for character.
    #[tool(alias("old_str", "search"))]
    old_string: String,
    /// The text to put in its place.
    #[tool(alias("new_str", "replace"))]
    new_string: String,
    /// Replace it wherever it is; otherwise it must be there once.
    #[tool(default)]
    replace_all: bool,
    /// How often it must occur.
    expected_count: Option<u64>,
) -> Result<Structured<Done>, ToolError> {
    let call = &Call::new(context, options);
    let text = read_file::read(call, &path).await?;
    let extent = if replace_all { Extent::All } else { Extent::First };
    let (text, replacements) = edit(&path, &text, [&old_string, &new_string], extent, expected_count)?;
    paths::write(call, &path, text.as_bytes()).await?;
    Ok(Structured(Done { replacements }))
}

/// The file with the second text in place of the first, and how often that was there.
fn edit(
    path: &str,
    file: &str,
    [old_string, new_string]: [&str; 2],
    extent: Extent,
    expected_count: Option<u64>,
) -> Result<(String, u64), ToolError> {
    if old_string.is_empty() {
        return Err(ToolError::new("`old_string` is empty; it is the text to replace"));
    }
    let (old, new) = (text::fit(file, old_string), text::fit(file, new_string));
    let found = file.matches(old.as_str()).count() as u64;
    if found == 0 {
        return Err(ToolError::new(format!("`old_string` is not in {path}"))
            .hint("it must be there character for character, white space included"));
    }
    if let Some(expected) = expected_count
        && expected != found
    {
        return Err(ToolError::new(format!(
            "`old_string` was expected {expected} times in {path}, and is there {found} times"
        ))
        .hint("nothing was changed; give `expected_count` the right number, or leave it out"));
    }
    if found > 1 && extent != Extent::All {
        return Err(ToolError::new(format!("`old_string` is in {path} {found} times"))
            .hint("set `replace_all` to true, or add text around it until it is unique"));
    }
    Ok((text::replace(path, file, &old, &new, found as usize)?, found))
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Changes {
    Diff(String),
    Replace(Replace),
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Replace {
    /// The text to look for.
    search: String,
    /// The text to put in its place.
    replace: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Changed {
    success: bool,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hunks_applied: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hunks_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<usize>,
    /// Lines of a diff that are taken out or put in, or the number of replacements that were made.
    pub(crate) lines_changed: usize,
    dry_run: bool,
    /// For a dry run: the lines that would go and come.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
    /// How the place of a diff was found: line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy_used: Option<&'static str>,
    /// None: what is doubtful is refused.
    warnings: Vec<String>,
}

/// How many occurrences of a text are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    First,
    All,
}

/// Makes the changes, or only says what they would be.
pub(crate) async fn change(
    call: &Call<'_>,
    path: &str,
    changes: Changes,
    extent: Extent,
    dry_run: bool,
) -> Result<Changed, ToolError> {
    let file = read_file::read(call, path).await?;
    let mut done = Changed {
        success: true,
        path: path.to_owned(),
        hunks_applied: None,
        hunks_total: None,
        replacements: None,
        lines_changed: 0,
        dry_run,
        preview: None,
        strategy_used: None,
        warnings: Vec::new(),
    };
    let after = match changes {
        Changes::Diff(diff) => {
            let hunks = patch::parse_bare_hunks(unfenced(&diff))?;
            (done.hunks_applied, done.hunks_total) = (Some(hunks.len()), Some(hunks.len()));
            done.lines_changed = hunks.iter().map(patch::Hunk::changed).sum();
            done.strategy_used = Some("exact_match");
            done.preview = dry_run.then(|| unfenced(&diff).to_owned());
            patch::apply(path, &file, &hunks)?
        }
        Changes::Replace(Replace { search, replace }) => {
            let (search, replace) = (text::fit(&file, &search), text::fit(&file, &replace));
            let found = if search.is_empty() { 0 } else { file.matches(search.as_str()).count() };
            if found == 0 {
                return Err(ToolError::new(format!("the text to look for is not in {path}")));
            }
            let most = if extent == Extent::All { found } else { 1 };
            done.replacements = Some(most);
            done.preview = dry_run.then(|| [marked('-', &search), marked('+', &replace)].concat());
            done.lines_changed = if dry_run { 0 } else { most };
            text::replace(path, &file, &search, &replace, most)?
        }
    };
    if !dry_run {
        paths::write(call, path, after.as_bytes()).await?;
    }
    Ok(done)
}

/// The lines of a text, each with a mark before it.
fn marked(mark: char, text: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}\n")).collect()
}

/// A diff without the fence that models like to put around it.
fn unfenced(diff: &str) -> &str {
    let inner = diff.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|rest| rest.split_once('\n')).map_or(diff, |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_changes() {
        let edit = |file: &str, old: &str, new: &str| {
            let edited = super::edit("f", file, [old, new], Extent::All, None);
            edited.map(|(text, _)| text).unwrap_or_default()
        };
        assert_eq!(edit("\ta\r\n\tb\r\nc", "b", "x\ny"), "\ta\r\n\tx\r\ny\r\nc");
        assert_eq!(edit("aa aa", "aa", "é"), "é é");
        assert_eq!(edit("a\r\nb\n", "a\r\nb", "q"), "q\n");
        assert_eq!(unfenced("```diff\n-a\n+b\n```\n"), "-a\n+b\n");
        assert_eq!(unfenced("-a\n+```\n"), "-a\n+```\n");
    }
}
