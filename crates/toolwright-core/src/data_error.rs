//! Data that does not fit what it is read into: where it stands, what is wrong with it, and what was likely
//! meant. Serde's own words are put into those of people who write files.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::error::ToolError;
use crate::nearest::nearest;

/// One step on the way into data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    /// To the value of a key.
    Key(String),
    /// To an item of a list, counting from 0.
    Index(usize),
}

impl From<&str> for PathSegment {
    fn from(key: &str) -> Self {
        PathSegment::Key(key.to_owned())
    }
}

impl From<usize> for PathSegment {
    fn from(index: usize) -> Self {
        PathSegment::Index(index)
    }
}

/// Why data cannot be used: the problem and its path in the data, from which the reader of a file finds the
/// line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataError {
    /// The way to the place, from the outside.
    pub path: Vec<PathSegment>,
    /// What is wrong.
    pub message: String,
    /// What to write instead, when that is known.
    pub hint: Option<String>,
}

impl DataError {
    /// Something wrong with all of the data.
    pub fn new(message: impl Into<String>) -> Self {
        DataError { path: Vec::new(), message: message.into(), hint: None }
    }

    /// What serde says about the data at a place, in words for people who write files.
    pub fn from_serde(path: Vec<PathSegment>, told: &str) -> Self {
        let key = last_key(&path);
        let plain = |message: String| DataError { path: path.clone(), message, hint: None };
        if let Some((word, known)) = unknown("unknown field `", told) {
            let hint = likely(word, &known, "the keys are");
            return DataError { hint, ..plain(format!("unknown key `{word}`")) };
        }
        if let Some((word, known)) = unknown("unknown variant `", told) {
            let hint = likely(word, &known, "the words are");
            let message = match key {
                Some(key) => format!("`{key}` cannot be `{word}`"),
                None => format!("unknown word `{word}`"),
            };
            return DataError { hint, ..plain(message) };
        }
        let missing = told.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
        let message = match missing {
            Some(missing) => format!("the key `{missing}` is missing"),
            None => expected_in_words(told),
        };
        plain(match key {
            Some(key) => format!("`{key}`: {message}"),
            None => message,
        })
    }

    /// The same, of data that stands inside other data.
    #[must_use]
    pub fn inside(mut self, step: impl Into<PathSegment>) -> Self {
        self.path.insert(0, step.into());
        self
    }

    /// The same, with something before the message that says what it is about.
    #[must_use]
    pub fn about(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

/// What is wrong, and what to write instead.
impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for DataError {}

impl From<DataError> for ToolError {
    fn from(DataError { message, hint, .. }: DataError) -> Self {
        let error = ToolError::invalid(message);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// Reads data that a person wrote into a type.
///
/// ```
/// use serde_json::json;
/// use toolwright_core::{PathSegment, read_data};
///
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Rule {
///     decision: String,
/// }
///
/// let error = read_data::<Vec<Rule>>(&json!([{"decision": "ask"}, {"decison": "ask"}])).unwrap_err();
/// assert_eq!(error.path, [PathSegment::Index(1), PathSegment::from("decison")]);
/// assert_eq!(error.to_string(), "unknown key `decison`; did you mean `decision`?");
/// ```
pub fn read_data<T: DeserializeOwned>(data: &Value) -> Result<T, DataError> {
    let error = match T::deserialize(data) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // Reading again tells where it was; the first reading costs less, and mostly it is enough.
    let Err(located) = serde_path_to_error::deserialize::<_, T>(data) else {
        return Err(DataError::from_serde(Vec::new(), &error.to_string()));
    };
    let path = located.path().iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(PathSegment::Index(*index)),
        Segment::Map { key } => Some(PathSegment::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    Err(DataError::from_serde(path.collect(), &located.inner().to_string()))
}

/// The key that a value stands under, when the way to it ends with one.
fn last_key(path: &[PathSegment]) -> Option<&str> {
    path.iter().rev().find_map(|step| match step {
        PathSegment::Key(key) => Some(key.as_str()),
        PathSegment::Index(_) => None,
    })
}

/// The word that is not known, and those that are.
fn unknown<'t>(beginning: &str, told: &'t str) -> Option<(&'t str, Vec<&'t str>)> {
    let (word, rest) = told.strip_prefix(beginning)?.split_once("`, ")?;
    let known = rest.strip_prefix("expected ").unwrap_or_default();
    let known = known.strip_prefix("one of ").unwrap_or(known);
    let known = known.split(", ").flat_map(|words| words.split(" or ")).map(|word| word.trim_matches('`'));
    Some((word, known.filter(|word| !word.is_empty()).collect()))
}

fn likely(word: &str, known: &[&str], all: &str) -> Option<String> {
    match nearest(word, known.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if known.is_empty() => None,
        None => Some(format!("{all}: {}", known.join(", "))),
    }
}

/// The names that Rust has for types, in words.
fn expected_in_words(told: &str) -> String {
    let Some((before, expected)) = told.rsplit_once(", expected ") else { return told.to_owned() };
    let words = match expected {
        "f64" | "f32" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        _ if expected.starts_with("struct ") => "a map",
        other => other,
    };
    format!("{before}, expected {words}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what cannot be read is of interest")]
    struct Model {
        name: String,
        #[serde(default)]
        price: Option<Price>,
        #[serde(default)]
        kind: Option<Kind>,
        #[serde(default)]
        stop: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what cannot be read is of interest")]
    struct Price {
        input: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Process,
        Local,
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place_and_what_was_meant() {
        let check = |data: Value, path: &[PathSegment], told: &str| {
            let misfit = read_data::<Vec<Model>>(&json!([{"name": "fine"}, data])).unwrap_err();
            assert_eq!(
                (misfit.path.first(), misfit.path.get(1..)),
                (Some(&PathSegment::Index(1)), Some(path))
            );
            assert_eq!(misfit.to_string(), told);
        };
        let key = |key: &str| PathSegment::from(key);
        check(json!({"nmae": "a"}), &[key("nmae")], "unknown key `nmae`; did you mean `name`?");
        check(
            json!({"name": "a", "zzzzzz": 1}),
            &[key("zzzzzz")],
            "unknown key `zzzzzz`; the keys are: name, price, kind, stop",
        );
        check(
            json!({"name": "a", "price": {"inptu": 1}}),
            &[key("price"), key("inptu")],
            "unknown key `inptu`; did you mean `input`?",
        );
        check(
            json!({"name": "a", "price": {"input": "1e300"}}),
            &[key("price"), key("input")],
            "`input`: invalid type: string \"1e300\", expected a number",
        );
        check(json!({"name": "a", "price": {}}), &[key("price")], "`price`: the key `input` is missing");
        check(json!({}), &[], "the key `name` is missing");
        check(
            json!({"name": "a", "kind": "procss"}),
            &[key("kind")],
            "`kind` cannot be `procss`; did you mean `process`?",
        );
        check(
            json!({"name": "a", "kind": "perhaps"}),
            &[key("kind")],
            "`kind` cannot be `perhaps`; the words are: process, local",
        );
        check(
            json!({"name": "a", "stop": ["x", 7]}),
            &[key("stop"), PathSegment::Index(1)],
            "`stop`: invalid type: integer `7`, expected text",
        );
        check(json!("a"), &[], "invalid type: string \"a\", expected a map");
    }
}
