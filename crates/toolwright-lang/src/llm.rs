//! Tools that ask a model: `build_llm_tool`, and taking JSON out of an answer.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolwright_core::{
    DynModel, Message, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolSpec, Toolset,
};

use crate::cli::write_json;
use crate::host::Models;

/// How often the model may answer before the call ends.
const MAX_TURNS: u64 = 50;

/// A tool that asks a model, which may use tools of its own.
pub(crate) struct LlmTool {
    pub(crate) spec: ToolSpec,
    pub(crate) policy: ToolPolicy,
    pub(crate) model_ref: String,
    /// What the file says the reference stands for; the reference itself when it says nothing.
    pub(crate) model_name: String,
    pub(crate) system_message: Option<String>,
    pub(crate) tools: Toolset,
    pub(crate) extract: ExtractJson,
    pub(crate) models: Option<Models>,
}

impl LlmTool {
    pub(crate) fn spec(name: &str, description: Option<&str>) -> ToolSpec {
        let mut spec = ToolSpec::new(name, description.unwrap_or("Asks a language model."));
        spec.parameters = json!({
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "What to ask the model."},
                "system_message": {"type": "string", "description": "Instructions in place of the usual ones."}
            },
            "required": ["prompt"]
        });
        spec
    }

    fn model(&self, context: &ToolContext) -> Result<Arc<DynModel>, ToolError> {
        match self.models.as_ref().and_then(|models| models(&self.model_name)) {
            Some(model) => model,
            None if self.model_ref == "default" && context.scope().model.is_some() => context.model(),
            None => Err(ToolError::new(format!("there is no model `{}`", self.model_ref))
                .hint("name it under `models` in the file, or write `vendor/model`")),
        }
    }

    async fn ask(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        let text = |key: &str| arguments.get(key).and_then(Json::as_str).map(str::to_owned);
        let model = self.model(context)?;
        let mut messages = Vec::new();
        if let Some(system) = text("system_message").or_else(|| self.system_message.clone()) {
            messages.push(Message::system(system));
        }
        messages.push(Message::user(text("prompt").unwrap_or_default()));
        let added = context.host().converse(context, &*model, &self.tools, messages, MAX_TURNS).await?;
        let (mut said, mut confidential) = (Vec::new(), false);
        for message in &added {
            let Message::Assistant(answer) = message else { continue };
            confidential |= answer.confidential;
            said.push(answer.text());
        }
        said.retain(|text| !text.is_empty());
        let output = ToolOutput::json(self.extract.value(&said.join("\n")));
        Ok(ToolOutput { confidential, ..output })
    }
}

impl Tool for LlmTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    async fn call(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        self.ask(context, arguments).await
    }
}

/// Which JSON of an answer is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtractJson {
    /// None: the whole text.
    #[default]
    None,
    /// The first fenced block.
    First,
    /// The last fenced block.
    Last,
    /// All fenced blocks, as a list of texts.
    All,
}

impl ExtractJson {
    /// Reads the setting: `true` and `first`, `last`, `all`; anything else means the whole text.
    pub fn from_json(setting: &Json) -> Self {
        match setting {
            Json::Bool(true) => ExtractJson::First,
            Json::String(word) => match word.as_str() {
                "first" => ExtractJson::First,
                "last" => ExtractJson::Last,
                "all" => ExtractJson::All,
                _ => ExtractJson::None,
            },
            _ => ExtractJson::None,
        }
    }

    /// The text that is meant: a block, a JSON list of blocks, or the whole when there is none.
    ///
    /// ```
    /// use toolwright_lang::ExtractJson;
    ///
    /// let answer = "Here:\n```json\n{\"a\": 1}\n```\nDone.";
    /// assert_eq!(ExtractJson::First.text(answer), "{\"a\": 1}");
    /// assert_eq!(ExtractJson::None.text(answer), answer);
    /// ```
    pub fn text(self, answer: &str) -> String {
        let blocks = if self == ExtractJson::None { Vec::new() } else { json_blocks(answer) };
        match (self, blocks.as_slice()) {
            (ExtractJson::First, [first, ..]) => (*first).to_owned(),
            (ExtractJson::Last, [.., last]) => (*last).to_owned(),
            (ExtractJson::All, [_, ..]) => write_json(&json!(blocks), None),
            _ => answer.to_owned(),
        }
    }

    /// The value that is meant: the text read as JSON, or the text itself when it is not JSON.
    pub fn value(self, answer: &str) -> Json {
        let text = self.text(answer);
        if self == ExtractJson::None {
            return Json::String(text);
        }
        serde_json::from_str(&text).unwrap_or(Json::String(text))
    }
}

/// The contents of the blocks fenced with three backticks and `json` at the start of a line. A block's
/// closing line ends it for good, so a block that follows on the very next line does not count.
fn json_blocks(text: &str) -> Vec<&str> {
    const OPEN: &str = "```json";
    const CLOSE: &str = "\n```";
    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(OPEN)) {
        let open = at + found;
        let starts_line =
            open == 0 || open > at && text.get(..open).is_some_and(|before| before.ends_with('\n'));
        let after = open + OPEN.len();
        match starts_line.then(|| block(text, after, CLOSE)).flatten() {
            Some((content, end)) => {
                blocks.push(content.trim());
                at = end;
            }
            None => at = after,
        }
    }
    blocks
}

/// The content that begins after the blank rest of the opening line, and where the text goes on after the
/// closing line.
fn block<'t>(text: &'t str, after: usize, close: &str) -> Option<(&'t str, usize)> {
    let rest = text.get(after..)?;
    let blank = rest.len() - rest.trim_start().len();
    let breaks = rest.get(..blank)?.rmatch_indices('\n').map(|(at, _)| after + at + 1);
    for start in breaks {
        let mut from = start;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(close)) {
            let (end, next) = (from + found, from + found + close.len());
            let tail = text.get(next..).unwrap_or_default();
            if tail.is_empty() || tail.starts_with('\n') {
                return Some((text.get(start..end)?, next + usize::from(!tail.is_empty())));
            }
            from = next;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_at_line_starts_only() {
        assert_eq!(
            json_blocks("pre\n```json\n{\"a\": 1}\n```\npost\n```json\n[2]\n```\n"),
            ["{\"a\": 1}", "[2]"]
        );
        assert_eq!(json_blocks("pre ```json\n1\n```"), Vec::<&str>::new());
        assert_eq!(json_blocks("```\n{}\n```"), Vec::<&str>::new());
        assert_eq!(json_blocks("```json\n\n```"), [""]);
        assert_eq!(json_blocks("```json\n1\n```\n```json\n2\n```"), ["1"]);
        assert_eq!(json_blocks("```json\nnever closed"), Vec::<&str>::new());
    }

    #[test]
    fn answers_are_read_as_json_when_they_can_be() {
        assert_eq!(ExtractJson::First.value("```json\n{\"a\": 1}\n```"), json!({"a": 1}));
        assert_eq!(ExtractJson::First.value("[1, 2]"), json!([1, 2]));
        assert_eq!(ExtractJson::First.value("no json"), json!("no json"));
        assert_eq!(ExtractJson::None.value("[1]"), json!("[1]"));
    }
}
