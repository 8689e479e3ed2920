//! `edit_file`: one text for another, where it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ToolDef, ToolError};

use crate::options::{Call, Effect, Options, define, finish};
use crate::{read_file, text};

#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// The file to change.
    path: String,
    /// The text to replace, character for character.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace it wherever it is; otherwise it must be there once.
    #[serde(default)]
    replace_all: bool,
    /// How often it must be there; nothing changes when it is not.
    #[serde(default)]
    expected_count: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema, PartialEq, Eq)]
struct Done {
    replacements: u64,
}

/// The tool `edit_file`. `file_path` is accepted for `path`, `old_str` and `search` for `old_string`, `new_str` and
/// `replace` for `new_string`.
pub fn edit_file(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "edit_file",
        "Replace a piece of text in a file. The rest of the file stays as it is, byte for byte.",
        |call: Call, arguments: EditFile| async move {
            let text = read_file::read(&call, &arguments.path).await?;
            let (text, replacements) = edit(&text, &arguments)?;
            call.sandbox()?.write_file(&arguments.path, text.as_bytes()).await?;
            Ok::<_, ToolError>(toolwright_core::Json(Done { replacements }))
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
        return Err(ToolError::new(format!("{expected} occurrences were expected in {path}, and there are {found}")));
    }
    if found > 1 && !replace_all {
        return Err(ToolError::new(format!("`old_string` is in {path} {found} times"))
            .hint("set `replace_all` to true, or add text around it until it is unique"));
    }
    Ok((file.replace(old.as_str(), &new), found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_changes() {
        let edit = |file: &str, old: &str, new: &str| {
            let (old_string, new_string) = (old.to_owned(), new.to_owned());
            let path = "f".to_owned();
            super::edit(file, &EditFile { path, old_string, new_string, replace_all: true, expected_count: None })
                .map(|(text, _)| text)
                .unwrap_or_default()
        };
        assert_eq!(edit("\ta\r\n\tb\r\nc", "b", "x\ny"), "\ta\r\n\tx\r\ny\r\nc");
        assert_eq!(edit("aa aa", "aa", "é"), "é é");
        assert_eq!(edit("a\r\nb\n", "a\r\nb", "q"), "q\n");
    }
}
