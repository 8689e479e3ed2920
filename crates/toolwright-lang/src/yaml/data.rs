//! YAML files that hold data and no tools, such as a saved conversation, read as PyYAML reads them.

use std::borrow::Cow;

use serde_json::Value;

use super::{Budget, Data, Include, parse};
use crate::diag::{LoadError, Place, Problems};

/// Reads a YAML file of data as PyYAML reads it: `y` and `1e3` are texts, and nothing is included. It may be larger and
/// deeper than a file of tools. The name is for messages.
///
/// ```
/// let value = toolwright_lang::read_data("a.yaml", "answer: y\ncommit: 8123e45\nport: 8080\n").unwrap();
/// assert_eq!(value, serde_json::json!({"answer": "y", "commit": "8123e45", "port": 8080}));
/// ```
pub fn read_data(name: &str, text: &str) -> Result<Value, LoadError> {
    let mut problems = Problems::default();
    let file = problems.sources.add(name, &old_breaks(text));
    let node = parse(&mut problems, &mut Budget::for_data(), &mut Nothing, file);
    match problems.as_error() {
        Some(error) => Err(error),
        None => Ok(node.map_or(Value::Null, |node| node.to_json())),
    }
}

/// Data includes no other files.
pub(super) struct Nothing;

impl Include for Nothing {
    fn include(
        &mut self,
        problems: &mut Problems,
        _budget: &mut Budget,
        _path: &str,
        _required: bool,
        place: Place,
    ) -> Option<Data> {
        problems.error(place, "a file of data includes no other file");
        None
    }
}

/// The text with the line breaks of YAML 1.1 as the scanner, which knows those of YAML 1.2, reads them to the same end.
/// PyYAML writes U+0085, U+2028 and U+2029 into quoted texts as ends of lines: the first is one like any other; the others
/// stay in the text, and the blanks around them, which only indent, do not.
fn old_breaks(text: &str) -> Cow<'_, str> {
    const OLD: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];
    if !text.contains(OLD) {
        return Cow::Borrowed(text);
    }
    let text = text.replace('\u{85}', "\n");
    let mut read = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(OLD) {
        let (before, after) = rest.split_at(at);
        read.push_str(before.trim_end_matches([' ', '\t']));
        let line = after.trim_start_matches([' ', '\t', '\n', '\u{2028}', '\u{2029}']);
        let breaks = after.get(..after.len() - line.len()).unwrap_or_default();
        let mut folds = true;
        for found in breaks.chars() {
            match found {
                // One that stands alone would be read as a blank.
                '\n' if std::mem::take(&mut folds) => read.push_str("\n\n"),
                '\n' => read.push('\n'),
                ' ' | '\t' => {}
                kept => {
                    read.push(kept);
                    folds = true;
                }
            }
        }
        rest = line;
    }
    read.push_str(rest);
    Cow::Owned(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_may_be_deep_and_hold_anything() {
        let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
        assert!(read_data("a", &deep).is_ok());
        assert_eq!(read_data("a", r#"a: "x\0y\e""#).unwrap(), json!({"a": "x\0y\u{1b}"}));
        assert!(read_data("a", "a: !include b").unwrap_err().to_string().contains("includes no other file"));
        assert!(read_data("a", &"[".repeat(100_000)).is_err());
    }

    #[test]
    fn line_breaks_of_the_older_yaml_are_read_as_pyyaml_reads_them() {
        // Each as PyYAML 6 reads it.
        for (text, want) in [
            ("'ls\u{2028}  x'", "ls\u{2028}x"),
            ("'a \u{2029}\u{2029}    b'", "a\u{2029}\u{2029}b"),
            ("'a\u{2028}\n  b'", "a\u{2028}\nb"),
            ("'a\u{2028}\n\n  b'", "a\u{2028}\n\nb"),
            ("'a\n\n\u{2028}  b'", "a\n\u{2028}b"),
            ("'nel\u{85}  x'", "nel x"),
            ("'nel\u{85}\u{85}  x'", "nel\nx"),
            ("\"a\\L  b\"", "a\u{2028}  b"),
        ] {
            assert_eq!(read_data("a", text).unwrap(), json!(want), "{text:?}");
        }
    }
}
