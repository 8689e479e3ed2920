//! A model whose replies are data.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwright_core::{
    AssistantMessage, Content, DataError, Error, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest,
    StopReason, ToolCall, ToolChoice, Usage, read_data,
};
use toolwright_util::lock;
use toolwright_yaml::YamlDocument;

/// One answer of a [`ScriptedModel`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// The text of the reply.
    pub text: String,
    /// The tools it asks for.
    pub calls: Vec<ScriptedCall>,
    /// Tokens it claims to have used.
    pub usage: Usage,
    /// Why it stops; worked out from the calls when left out.
    pub stop: Option<StopReason>,
    /// A text the last message must contain, else the script has gone astray.
    pub expect: Option<String>,
}

/// One call that a [`Reply`] asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool.
    pub tool: String,
    /// The arguments: an object, or text as a model might write it.
    #[serde(default = "no_arguments")]
    pub arguments: Value,
    /// The call's id; `call_1`, `call_2` and so on when left out.
    #[serde(default)]
    pub id: Option<String>,
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

impl Reply {
    /// A reply of text only.
    pub fn text(text: impl Into<String>) -> Self {
        Reply { text: text.into(), ..Reply::default() }
    }

    /// An answer that asks for one tool.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Reply::default().and_call(tool, arguments)
    }

    /// The answer with one more call.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(ScriptedCall { tool: tool.into(), arguments, id: None });
        self
    }

    /// The answer with a claim of tokens read and written.
    #[must_use]
    pub fn with_usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        self
    }

    /// The answer, given only when the last message contains this text.
    #[must_use]
    pub fn expecting(mut self, text: impl Into<String>) -> Self {
        self.expect = Some(text.into());
        self
    }
}

/// A model with prepared replies.
///
/// ```
/// use serde_json::json;
/// use toolwright_models::{Reply, ScriptedModel};
///
/// let model = ScriptedModel::new([Reply::call("add", json!({"x": 1, "y": 2})), Reply::text("It is 3.").expecting("3")]);
/// let same = ScriptedModel::from_yaml(r#"
/// - calls: [{tool: add, arguments: {x: 1, y: 2}}]
/// - text: It is 3.
///   expect: "3"
/// "#)?;
/// assert_eq!(model.left(), same.left());
/// # Ok::<(), toolwright_models::ScriptError>(())
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    replies: Vec<Reply>,
    repeats: bool,
    state: Mutex<ScriptState>,
}

#[derive(Debug, Default)]
struct ScriptState {
    next: usize,
    calls: u64,
    seen: Vec<OfferedTools>,
}

/// The tools a request offered, for tests to look at.
#[derive(Debug, Clone, PartialEq)]
struct OfferedTools {
    tools: Vec<String>,
    choice: ToolChoice,
}

impl ScriptedModel {
    /// Gives these answers, in order; then it is an error to ask.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = replies.into_iter().collect();
        ScriptedModel {
            name: "scripted/replies".to_owned(),
            replies,
            repeats: false,
            state: Mutex::default(),
        }
    }

    /// Gives these answers, in order, again and again.
    pub fn repeating(replies: impl IntoIterator<Item = Reply>) -> Self {
        ScriptedModel { repeats: true, ..Self::new(replies) }
    }

    /// Reads answers from YAML or JSON: a list of replies.
    pub fn from_yaml(text: &str) -> Result<Self, ScriptError> {
        let document = YamlDocument::read_plain("script", text).map_err(|error| {
            let first = error.into_iter().next().map(DataError::from);
            ScriptError(first.unwrap_or_else(|| DataError::new("it cannot be read")))
        })?;
        let replies: Option<Vec<Reply>> = read_data(&document.to_json()).map_err(|misfit| {
            ScriptError(match document.line_of(&misfit.path) {
                Some(line) => misfit.about(format_args!("line {line}")),
                None => misfit,
            })
        })?;
        Ok(Self::new(replies.unwrap_or_default()))
    }

    /// The same model under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many answers are left; a repeating model never runs out.
    pub fn left(&self) -> usize {
        self.replies.len().saturating_sub(self.lock().next)
    }

    /// What each request offered so far: tool names, and whether one had to be called.
    pub fn offered(&self) -> Vec<(Vec<String>, ToolChoice)> {
        self.lock().seen.iter().map(|seen| (seen.tools.clone(), seen.choice.clone())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ScriptState> {
        lock(&self.state)
    }

    fn answer(&self, request: &ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let mut state = self.lock();
        let tools = request.tools.iter().map(|tool| tool.name.to_string()).collect();
        state.seen.push(OfferedTools { tools, choice: request.tool_choice.clone() });
        let index = if self.repeats { state.next % self.replies.len().max(1) } else { state.next };
        let Some(reply) = self.replies.get(index) else {
            let text = format!("the script has {} replies, and one more was asked for", self.replies.len());
            return Err(ModelError::new(ModelErrorKind::Script, text));
        };
        state.next += 1;
        let last = request.messages.last().map(|message| match message {
            toolwright_core::Message::Tool(result) => result.to_text(),
            other => other.text(),
        });
        let last = last.unwrap_or_default();
        if let Some(expected) = reply.expect.as_deref().filter(|expected| !last.contains(*expected)) {
            let last = toolwright_core::text::clip(&last, 300);
            let text =
                format!("reply {} expects {expected:?} in the last message, which is {last:?}", index + 1);
            return Err(ModelError::new(ModelErrorKind::Script, text));
        }
        let calls = reply.calls.iter().map(|call| {
            state.calls += 1;
            let id = call.id.clone().unwrap_or_else(|| format!("call_{}", state.calls));
            ToolCall::new(id, call.tool.as_str(), call.arguments.clone())
        });
        let mut message = AssistantMessage::calls(calls);
        if !reply.text.is_empty() {
            message.content.push(Content::text(&reply.text));
        }
        let mut answer = ModelReply::from(message);
        answer.usage = reply.usage;
        answer.stop = reply.stop.unwrap_or(answer.stop);
        Ok(answer)
    }
}

impl Model for ScriptedModel {
    /// A script is free.
    fn cost(&self, _usage: &Usage) -> Option<f64> {
        Some(0.0)
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.answer(&request)
    }
}

/// Why a script cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError(DataError);

impl ScriptError {
    /// What to do about it, when that is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

/// A script is a file, or a text like one.
impl From<ScriptError> for Error {
    fn from(error: ScriptError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Error::file(error).with_hint(hint)
    }
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the script is not a list of replies: {}", self.0.message)
    }
}

impl std::error::Error for ScriptError {}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::{Message, ModelOptions};

    async fn ask(model: &ScriptedModel, last: &str) -> Result<ModelReply, ModelError> {
        let messages = [Message::user(last)];
        let options = ModelOptions::default();
        let request = ModelRequest {
            messages: &messages,
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &options,
        };
        model.generate(request).await
    }

    #[tokio::test]
    async fn replies_come_in_order_and_then_run_out() {
        let model = ScriptedModel::new([
            Reply::call("t", serde_json::json!({})).and_call("t", serde_json::json!({})),
            Reply::text("b"),
        ]);
        let first = ask(&model, "x").await.unwrap();
        assert_eq!(
            first.message.tool_calls.iter().map(|call| &*call.id).collect::<Vec<_>>(),
            ["call_1", "call_2"]
        );
        assert_eq!(first.stop, StopReason::ToolCalls);
        assert_eq!(ask(&model, "x").await.unwrap().message.text(), "b");
        assert_eq!(ask(&model, "x").await.unwrap_err().kind(), ModelErrorKind::Script);
    }

    #[tokio::test]
    async fn a_model_that_cannot_stream_tells_everything_at_the_end() {
        let model = ScriptedModel::new([Reply::text("Let me see.").and_call("look", serde_json::json!({}))]);
        let (messages, options) = ([Message::user("x")], ModelOptions::default());
        let request = ModelRequest {
            messages: &messages,
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &options,
        };
        let mut told = Vec::new();
        let reply = model.generate_streaming(request, &mut |delta| told.push(format!("{delta:?}"))).await;
        assert_eq!(told, ["Text(\"Let me see.\")", "Call { name: \"look\" }"]);
        assert_eq!(reply.unwrap().message.text(), "Let me see.");
    }

    #[tokio::test]
    async fn a_script_that_goes_astray_says_so() {
        let model = ScriptedModel::new([Reply::text("a").expecting("needle")]);
        let error = ask(&model, "hay").await.unwrap_err();
        assert!(error.to_string().contains("needle") && error.to_string().contains("hay"));
        assert!(ScriptedModel::from_yaml("- {txt: a}").is_err());
    }
}
