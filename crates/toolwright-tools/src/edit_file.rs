//! `edit_file`: one text for another, where it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{RootedPath, Structured, ToolDef, ToolError, WorkspacePath};

use crate::marsys::place;
use crate::options::{Call, Effect, Options, define, finish};
use crate::{patch, paths, read_file, text};

#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// The file to change.
    path: WorkspacePath,
    /// The text to replace, character for character.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace it wherever it is; otherwise it must be there once.
    #[serde(default)]
    replace_all: bool,
    /// How often it must be there; nothing changes when it is not.
    expected_count: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema, PartialEq, Eq)]
struct Done {
    replacements: u64,
}

/// The tool `edit_file`. `file_path` is accepted for `path`, `old_str` and `search` for `old_string`,
/// `new_str` and `replace` for `new_string`.
pub fn edit_file(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "edit_file",
        "Replace a piece of text in a file. The rest of the file stays as it is, byte for byte.",
        |call: Call, arguments: EditFile| async move {
            let text = read_file::read(&call, &arguments.path).await?;
            let (text, replacements) = edit(&text, &arguments)?;
            paths::write(&call, &arguments.path, text.as_bytes()).await?;
            Ok::<_, ToolError>(toolwright_core::Structured(Done { replacements }))
        },
    );
    let aliases = [
        ("file_path", "path"),
        ("old_str", "old_string"),
        ("search", "old_string"),
        ("new_str", "new_string"),
        ("replace", "new_string"),
    ];
    finish(tool, "files", Effect::Writes, &aliases)
}

fn edit(file: &str, arguments: &EditFile) -> Result<(String, u64), ToolError> {
    let EditFile { path, old_string, new_string, replace_all, expected_count } = arguments;
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
        && *expected != found
    {
        return Err(ToolError::new(format!(
            "`old_string` was expected {expected} times in {path}, and is there {found} times"
        ))
        .hint("nothing was changed; give `expected_count` the right number, or leave it out"));
    }
    if found > 1 && !replace_all {
        return Err(ToolError::new(format!("`old_string` is in {path} {found} times"))
            .hint("set `replace_all` to true, or add text around it until it is unique"));
    }
    Ok((text::replace(path, file, &old, &new, found as usize)?, found))
}

#[derive(Deserialize, JsonSchema)]
struct EditWithChanges {
    /// The file to change.
    path: RootedPath,
    /// A unified diff, or the text to look for and the text to put in its place.
    changes: Changes,
    /// What the changes are, when it is to be checked: their form shows it anyway.
    edit_format: Option<Format>,
    /// Only say whether it would fit.
    #[serde(default)]
    dry_run: bool,
    /// Replace the text wherever it is; otherwise the first is replaced.
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Changes {
    Diff(String),
    Replace(Replace),
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[serde(alias = "diff")]
    UnifiedDiff,
    SearchReplace,
    LineBased,
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

/// `edit_file` as MARSYS has it, with the context of a diff checked.
pub(crate) fn edit_file_changes(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "edit_file",
        "Change a file by a unified diff, or by replacing a text. A diff must fit line by line.",
        |call: Call, arguments: EditWithChanges| async move {
            let EditWithChanges { path, changes, edit_format, dry_run, replace_all } = arguments;
            let path = place(&path)?;
            if edit_format == Some(Format::UnifiedDiff) && matches!(changes, Changes::Replace(_)) {
                return Err(ToolError::invalid(
                    "`edit_format` says unified_diff, and `changes` is not a text",
                ));
            }
            let extent = if replace_all { Extent::All } else { Extent::First };
            Ok::<_, ToolError>(Structured(change(&call, &path, changes, extent, dry_run).await?))
        },
    );
    finish(tool, "files", Effect::Writes, &[("file_path", "path"), ("diff", "changes")])
}

/// How many occurrences of a text are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    First,
    All,
}

/// Makes the changes, or only says what they would be.
pub(crate) async fn change(
    call: &Call,
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
            let (old_string, new_string) = (old.to_owned(), new.to_owned());
            let path = WorkspacePath::from("f");
            super::edit(
                file,
                &EditFile { path, old_string, new_string, replace_all: true, expected_count: None },
            )
            .map(|(text, _)| text)
            .unwrap_or_default()
        };
        assert_eq!(edit("\ta\r\n\tb\r\nc", "b", "x\ny"), "\ta\r\n\tx\r\ny\r\nc");
        assert_eq!(edit("aa aa", "aa", "é"), "é é");
        assert_eq!(edit("a\r\nb\n", "a\r\nb", "q"), "q\n");
        assert_eq!(unfenced("```diff\n-a\n+b\n```\n"), "-a\n+b\n");
        assert_eq!(unfenced("-a\n+```\n"), "-a\n+```\n");
    }
}
