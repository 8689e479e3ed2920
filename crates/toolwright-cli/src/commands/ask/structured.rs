//! Answers that follow a JSON Schema: the model's instructions, how its answer is read, and the correction
//! when it does not fit.

use std::path::Path;

use serde_json::Value;
use toolwright::tool::schema::{MAX_DEPTH, Schema, depth};
use toolwright_core::text::clip;

use crate::report::Usage;

/// How often the model may answer before it is given up.
pub const TRIES: usize = 3;

/// The largest schema that is read.
const MOST: u64 = 1 << 20;

/// The longest description of what is wrong that goes back to the model.
const MOST_PROBLEMS: usize = 2000;

/// The schema of an answer.
pub struct AnswerSchema(Schema);

impl AnswerSchema {
    /// Reads a schema: a file, or JSON that begins with a brace.
    pub fn read(given: &str) -> anyhow::Result<Self> {
        let (whose, text) = match given.trim_start().starts_with('{') {
            true => ("--schema".to_owned(), given.to_owned()),
            false => (format!("`{given}`"), file(Path::new(given))?),
        };
        let wrong = |why: &dyn std::fmt::Display| Usage::new(format!("{whose} is not a JSON Schema: {why}"));
        let json: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        if !json.is_object() || depth(&json) > MAX_DEPTH {
            return Err(wrong(&"it must be a JSON object, nested at most 100 deep").into());
        }
        let schema = Schema::compile_any(&json).map_err(|error| wrong(&error))?;
        Ok(AnswerSchema(schema))
    }

    /// The schema as JSON.
    pub fn json(&self) -> &Value {
        self.0.json()
    }

    /// The instruction for the model, beside its others.
    pub fn instruction(&self) -> String {
        format!(
            "Your final answer must be one JSON value that follows this JSON Schema, and nothing else:\n{}",
            self.json()
        )
    }

    /// The value in an answer, or what is wrong with it, for the model.
    pub fn value(&self, answer: &str) -> Result<Value, String> {
        let Some(value) = candidates(answer).find_map(|text| serde_json::from_str::<Value>(text).ok()) else {
            return Err("the answer holds no JSON value".to_owned());
        };
        match self.0.problems(&value) {
            problems if problems.is_empty() => Ok(value),
            problems => Err(clip(&problems.join("\n"), MOST_PROBLEMS)),
        }
    }
}

/// What is said to a model whose answer does not fit.
pub fn correction(problem: &str) -> String {
    format!("This answer does not follow the schema:\n{problem}\n\nAnswer again with the JSON value alone.")
}

/// Parts of an answer that may be the value: all of it, a fenced block, what is between the outer brackets.
fn candidates(answer: &str) -> impl Iterator<Item = &str> {
    let whole = answer.trim();
    let fenced = whole.split("```").nth(1).map(|block| {
        let (word, rest) = block.split_once('\n').unwrap_or(("", block));
        if word.trim().chars().all(char::is_alphanumeric) { rest.trim() } else { block.trim() }
    });
    let between = ['{', '['].into_iter().filter_map(move |open| {
        let close = if open == '{' { '}' } else { ']' };
        whole.get(whole.find(open)?..=whole.rfind(close)?)
    });
    std::iter::once(whole).chain(fenced).chain(between)
}

fn file(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let size = std::fs::metadata(path).map(|found| found.len());
    if size.is_ok_and(|size| size > MOST) {
        return Err(Usage::new(format!("the schema `{shown}` has more than 1 MiB")).into());
    }
    std::fs::read_to_string(path)
        .map_err(|error| Usage::new(format!("cannot read the schema `{shown}`: {error}")).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_value_is_found_in_what_models_write_around_it() -> anyhow::Result<()> {
        let schema = AnswerSchema::read(
            r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#,
        )?;
        for answer in [
            r#"{"n": 4}"#,
            " {\"n\": 4}\n",
            "Here it is:\n```json\n{\"n\": 4}\n```\nDone.",
            "```\n{\"n\": 4}\n```",
            "The answer is {\"n\": 4}, as you see.",
        ] {
            assert_eq!(schema.value(answer), Ok(json!({"n": 4})), "{answer}");
        }
        for (answer, problem) in [("four", "no JSON"), ("{\"n\": \"x\"}", "`n`"), ("{}", "`n`"), ("[1]", "")]
        {
            assert!(schema.value(answer).is_err_and(|error| error.contains(problem)), "{answer}");
        }
        Ok(())
    }

    #[test]
    fn what_is_not_a_schema_is_refused() {
        for (given, reason) in [
            ("{\"type\": 3}", "--schema is not a JSON Schema"),
            ("{", "--schema is not a JSON Schema"),
            ("no-such-file.json", "cannot read the schema `no-such-file.json`"),
        ] {
            let error = AnswerSchema::read(given).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|error| error.contains(reason)), "{given}: {error:?}");
        }
    }
}
