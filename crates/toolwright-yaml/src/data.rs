//! YAML files that hold data and no tools, such as a saved conversation, read as PyYAML reads them.

use std::borrow::Cow;

use serde_json::Value;

use toolwright_core::PathSegment;

use crate::diag::{FileSpan, LoadError, Problems};
use crate::node::{Data, Node};
use crate::read::{Budget, Include, WordRules, parse};

/// Reads a YAML file of data as PyYAML reads it: `y` and `1e3` are texts, and nothing is included. It may be
/// larger and deeper than a file of tools. The name is for messages.
///
/// ```
/// let value = toolwright_yaml::read_data("a.yaml", "answer: y\ncommit: 8123e45\nport: 8080\n").unwrap();
/// assert_eq!(value, serde_json::json!({"answer": "y", "commit": "8123e45", "port": 8080}));
/// ```
pub fn read_data(name: &str, text: &str) -> Result<Value, LoadError> {
    data(name, &old_breaks(text), WordRules::PyYaml)
}

/// Reads such a file as YAML 1.2 has it: only `true` and `false` are booleans, and keys are text.
///
/// ```
/// let value = toolwright_yaml::read_plain_data("a.yaml", "on: [on, true]\n200: no\n").unwrap();
/// assert_eq!(value, serde_json::json!({"on": ["on", true], "200": "no"}));
/// ```
pub fn read_plain_data(name: &str, text: &str) -> Result<Value, LoadError> {
    data(name, text, WordRules::PlainBooleans)
}

fn data(name: &str, text: &str, words: WordRules) -> Result<Value, LoadError> {
    let mut problems = Problems::default();
    let file = problems.sources.add(name, text);
    let node = parse(&mut problems, &mut Budget::for_data(words), &mut Nothing, file);
    match problems.as_error() {
        Some(error) => Err(error),
        None => Ok(node.map_or(Value::Null, |node| node.to_json())),
    }
}

/// A short document that a program reads with its own types, such as a list of rules. Keys are text however
/// they are written.
///
/// ```
/// use toolwright_yaml::YamlDocument;
///
/// let rules = YamlDocument::read("rules.yaml", "- tools: a\n- {tools: b, on: yes}\n")?;
/// assert_eq!(rules.to_json(), serde_json::json!([{"tools": "a"}, {"tools": "b", "on": true}]));
/// assert_eq!(rules.line_of(&[1.into(), "on".into()]), Some(2));
/// # Ok::<(), toolwright_yaml::LoadError>(())
/// ```
#[derive(Debug)]
pub struct YamlDocument {
    problems: Problems,
    root: Option<Node>,
}

impl YamlDocument {
    /// Reads a document; `yes`, `no`, `on` and `off` are booleans, as they are for PyYAML. The name is for
    /// messages.
    pub fn read(name: &str, text: &str) -> Result<YamlDocument, LoadError> {
        Self::read_with(name, text, WordRules::TextKeys)
    }

    /// Like [`read`](Self::read); only `true` and `false` are booleans.
    pub fn read_plain(name: &str, text: &str) -> Result<YamlDocument, LoadError> {
        Self::read_with(name, text, WordRules::PlainBooleans)
    }

    fn read_with(name: &str, text: &str, words: WordRules) -> Result<YamlDocument, LoadError> {
        let mut problems = Problems::default();
        let file = problems.sources.add(name, text);
        let root = parse(&mut problems, &mut Budget::for_document(words), &mut Nothing, file);
        match problems.as_error() {
            Some(error) => Err(error),
            None => Ok(YamlDocument { problems, root }),
        }
    }

    /// The document as JSON.
    pub fn to_json(&self) -> Value {
        self.root.as_ref().map_or(Value::Null, Node::to_json)
    }

    /// The line of what a path leads to, or of the last thing on the way that is there.
    pub fn line_of(&self, path: &[PathSegment]) -> Option<usize> {
        let (mut node, mut place) = (self.root.as_ref()?, None);
        for step in path {
            let found = match (step, &node.data) {
                (PathSegment::Key(key), Data::Map(entries)) => {
                    let entry = entries.iter().find(|(name, _)| name.is_key(key));
                    entry.map(|(name, value)| (value, name.place))
                }
                (PathSegment::Index(index), Data::List(items)) => {
                    items.get(*index).map(|item| (item, item.place))
                }
                _ => None,
            };
            let Some((next, at)) = found else { break };
            (node, place) = (next, Some(at));
        }
        place.map(|place| self.problems.sources.line_of(place))
    }
}

/// Data includes no other files.
pub(crate) struct Nothing;

impl Include for Nothing {
    fn include(
        &mut self,
        problems: &mut Problems,
        _budget: &mut Budget,
        _path: &str,
        _required: bool,
        place: FileSpan,
    ) -> Option<Data> {
        problems.error(place, "a file of data includes no other file");
        None
    }
}

/// The text with the line breaks of YAML 1.1 as the scanner, which knows those of YAML 1.2, reads them to the
/// same end. PyYAML writes U+0085, U+2028 and U+2029 into quoted texts as ends of lines: the first is one
/// like any other; the others stay in the text, and the blanks around them, which only indent, do not.
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
    fn a_path_into_a_document_ends_at_a_line() {
        let text = "# rules\n- tools: a\n  decision: ask\n- tools: b\n  when:\n    x: 1\n    y: 2\n";
        let document = YamlDocument::read("a", text).unwrap();
        let line = |path: &[PathSegment]| document.line_of(path);
        let (first, second) = (PathSegment::from(0), PathSegment::from(1));
        assert_eq!(line(&[]), None);
        assert_eq!(line(std::slice::from_ref(&first)), Some(2));
        assert_eq!(line(&[first, "decision".into()]), Some(3));
        assert_eq!(line(std::slice::from_ref(&second)), Some(4));
        assert_eq!(line(&[second.clone(), "when".into(), "y".into()]), Some(7));
        assert_eq!(line(&[second.clone(), "when".into(), "z".into()]), Some(5), "as far as there is a way");
        assert_eq!(line(&[second, "zzz".into()]), Some(4));
    }

    #[test]
    fn words_are_words_and_bombs_are_errors() {
        let plain = |text: &str| YamlDocument::read_plain("a", text).map(|document| document.to_json());
        let words = |text: &str| YamlDocument::read("a", text).map(|document| document.to_json());
        assert_eq!(plain("[y, no, on, true]").unwrap(), json!(["y", "no", "on", true]));
        assert_eq!(
            words("{a: [y, N, no, On, yEs, 'off', True], yes: OFF, on: [ ], n: oN}").unwrap(),
            json!({"a": ["y", "N", false, true, "yEs", "off", true], "yes": false, "on": [], "n": "oN"})
        );
        let bomb = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
            let before = level - 1;
            format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "))
        });
        for text in ["{a: 1, a: 2}", "a: [", &bomb, &"[".repeat(10_000)] {
            assert!(plain(text).is_err() && words(text).is_err());
        }
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
