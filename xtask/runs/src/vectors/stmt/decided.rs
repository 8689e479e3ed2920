//! Records whose outcome was decided otherwise; each decision has its line in `docs/divergences.md`. They do
//! not count as passed. They are run all the same, and fail when they do not do what was decided.

use std::fmt;

use serde_json::{Value as Json, json};
use toolwright_lang::{class_of, load};

use super::{Tally, Verdict, call, files, host, plain, source, worker};

/// Why a record is not scored.
#[derive(Clone, Copy)]
pub(super) enum Why {
    Accident,
    Decided,
    NotPossible,
}

/// How many records were not scored, and why.
#[derive(Default)]
pub(super) struct Skipped {
    accidents: usize,
    decided: usize,
    not_possible: usize,
}

impl Skipped {
    pub(super) fn skip(&mut self, tally: &mut Tally, why: Why) {
        match why {
            Why::Accident => self.accidents += 1,
            Why::Decided => self.decided += 1,
            Why::NotPossible => self.not_possible += 1,
        }
        tally.skip();
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Skipped { accidents, decided, not_possible } = self;
        write!(
            f,
            "skipped: {accidents} marked as accidents, {decided} decided otherwise and seen to do what was decided, \
             {not_possible} not possible here"
        )
    }
}

/// What was decided about a record.
pub(super) enum Decision {
    /// The file is refused there. Here it loads, and its tool reads its arguments.
    Loads,
    /// `read_file` needs `lines` there. Here it gives the whole file.
    WholeFile,
    /// The error ends the turn there. Here the model is told, and the loop goes on.
    TellsModel,
    /// When no call is approved, the turn ends there. Here the model is told, and the loop goes on.
    Rejected,
    /// A call that nobody was asked about is cancelled there with those that were refused. Here it is made.
    Unasked,
    /// Integers beyond 64 bits do not fit into JSON as we read it.
    NotPossible,
}

/// The decision about a record, if there is one.
pub(super) fn decision(vector: &Json) -> Option<Decision> {
    let message = vector.pointer("/expect/error/message").and_then(Json::as_str).unwrap_or_default();
    let yaml = vector.get("yaml").and_then(Json::as_str).unwrap_or_default();
    let schema_word = ["string", "integer", "number", "boolean", "object", "array", "any"]
        .iter()
        .any(|word| message.ends_with(&format!("Unknown type: {word}")));
    let matching = message.contains("Must contain one of ['if'") && yaml.contains("matchers:");
    let described = message.contains("CustomTool") && message.contains("\ndescription\n");
    let undescribed = message.starts_with("1 validation error")
        && message.contains("<custom_tool definition>.input")
        && message.contains(".description\n  Field required");
    let top_level_tools = message.starts_with("1 validation error for WorkersConfig\ntools\n");
    let older_transport = message.contains("Input tag 'sse' found using 'transport'");
    if schema_word || matching || described || undescribed || top_level_tools || older_transport {
        return Some(Decision::Loads);
    }
    if message.contains("ReadFileToolSchema\nlines\n  Field required") {
        return Some(Decision::WholeFile);
    }
    if vector.get("kind").is_some_and(|kind| kind == "worker") && vector.pointer("/expect/error").is_some() {
        return Some(Decision::TellsModel);
    }
    if vector.get("kind").is_some_and(|kind| kind == "worker") {
        if worker::cancels_unasked(vector) {
            return Some(Decision::Unasked);
        }
        if worker::ends_rejected(vector) {
            return Some(Decision::Rejected);
        }
    }
    let large = vector.get("input").is_some_and(|input| input.to_string().contains("\"$int\""));
    large.then_some(Decision::NotPossible)
}

impl Decision {
    /// Runs the record and looks whether it does what was decided.
    pub(super) async fn holds(&self, vector: &Json, files: &files::Files) -> Verdict {
        match self {
            Decision::Loads => loads(vector).await,
            Decision::WholeFile => {
                let path = vector.pointer("/input/path").and_then(Json::as_str).unwrap_or_default();
                let mut decided = vector.clone();
                decided["expect"] = json!({"ok": files.get(path)});
                files::run(&decided, files).await
            }
            Decision::TellsModel | Decision::Rejected => worker::goes_on(vector).await,
            Decision::Unasked => worker::makes_unasked(vector).await,
            Decision::NotPossible => Ok(()),
        }
    }
}

async fn loads(vector: &Json) -> Verdict {
    let wanted = || "a tool that loads, and gives a value or refuses its arguments".to_owned();
    let loaded = load(source(vector), &host()).map_err(|problems| (wanted(), format!("{problems}")))?;
    let name = vector.get("tool").and_then(Json::as_str).unwrap_or_default();
    let input = vector.get("input").map_or_else(|| json!({}), plain);
    match call(&loaded, name, input, None).await.0 {
        Err(error) if class_of(&error) != "ValidationError" => Err((wanted(), format!("{error:?}"))),
        _ => Ok(()),
    }
}
