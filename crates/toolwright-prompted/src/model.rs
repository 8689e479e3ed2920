//! Any model as one that calls tools: they are described in the prompt, and calls are read from the reply.

use serde_json::{Map, Value as Json, json};
use toolwright_core::{
    AssistantMessage, BoxFuture, Content, DeltaSink, ErrorKind, Message, Model, ModelDelta, ModelError,
    ModelOptions, ModelReply, ModelRequest, StopReason, ToolCall, ToolChoice, ToolResult, ToolSpec, Usage,
};

use crate::parse::{Reading, extract};

/// How tools and calls are written in the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PromptFormat {
    /// `<function_calls>` with one tag for each argument; large models know it.
    #[default]
    Xml,
    /// One JSON object between `<tool_call>` tags; small models know it.
    Json,
}

/// A model without a tool API, used as one with it.
///
/// The loop does not notice: tools, choices, results, errors and pictures go in and out as with every other model.
///
/// ```
/// use serde_json::json;
/// use toolwright_core::{Message, ToolDef, ToolSpec, Toolset};
/// use toolwright_models::{Reply, ScriptedModel};
/// use toolwright_prompted::{PromptFormat, Prompted};
/// use toolwright_runtime::{Loop, Run};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let ping = ToolDef::dynamic(ToolSpec::new("ping", "Answers."), |_, _| async { "pong" });
/// let run = Run::builder(Toolset::new().with(ping)?).build()?;
/// let call = r#"<tool_call>{"name": "ping", "arguments": {}}</tool_call>"#;
/// let model = ScriptedModel::new([Reply::text(call), Reply::text("It says pong.").expecting("pong")]);
/// let model = Prompted::new(model).format(PromptFormat::Json);
/// let outcome = run.generate_loop(&model, vec![Message::user("Ping!")], &Loop::default()).await?;
/// assert_eq!(outcome.completion(), "It says pong.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Prompted<M> {
    model: M,
    format: PromptFormat,
}

impl<M: Model> Prompted<M> {
    /// Uses `model` through the prompt.
    pub fn new(model: M) -> Self {
        Prompted { model, format: PromptFormat::default() }
    }

    /// Writes tools and calls in this way.
    #[must_use]
    pub fn format(mut self, format: PromptFormat) -> Self {
        self.format = format;
        self
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        sink: DeltaSink<'_>,
        stream: bool,
    ) -> Result<ModelReply, ModelError> {
        let messages = self.format.conversation(&request);
        let mut options: ModelOptions = request.options.clone();
        if !request.tools.is_empty() {
            options.stop.push(self.format.end().to_owned());
        }
        let inner = ModelRequest {
            messages: &messages,
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &options,
        };
        let turn = request.messages.len();
        // Words are passed on as they come, up to where a call begins.
        let mut words = Words::new(self.format.begin());
        let mut reply = if stream {
            let mut hear = |delta: ModelDelta<'_>| match delta {
                ModelDelta::Text(text) => words.hear(text, sink),
                other => sink(other),
            };
            self.model.generate_streaming(inner, &mut hear).await?
        } else {
            self.model.generate(inner).await?
        };
        if stream {
            words.end(sink);
        }
        if request.tools.is_empty() {
            return Ok(reply);
        }
        self.format.read(&mut reply.message, turn, request.tools);
        if !reply.message.tool_calls.is_empty()
            && matches!(reply.stop, StopReason::EndTurn | StopReason::StopSequence)
        {
            reply.stop = StopReason::ToolCalls;
        }
        reply.message.tool_calls.iter().for_each(|call| sink(ModelDelta::Call { name: &call.name }));
        Ok(reply)
    }
}

impl<M: Model> Model for Prompted<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.model.cost(usage)
    }

    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move { self.ask(request, &mut |_| {}, false).await })
    }

    fn generate_streaming<'a>(
        &'a self,
        request: ModelRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.ask(request, sink, true))
    }
}

impl PromptFormat {
    /// What begins a call.
    fn begin(self) -> &'static str {
        match self {
            PromptFormat::Xml => "<function_calls>",
            PromptFormat::Json => "<tool_call>",
        }
    }

    /// What ends the calls, so that the model does not go on and invent results.
    fn end(self) -> &'static str {
        match self {
            PromptFormat::Xml => "</function_calls>",
            PromptFormat::Json => "<tool_response>",
        }
    }

    /// The conversation without tools: they are described first, and calls and results are text.
    fn conversation(self, request: &ModelRequest<'_>) -> Vec<Message> {
        let mut messages = Vec::with_capacity(request.messages.len() + 1);
        if !request.tools.is_empty() {
            messages.push(Message::system(self.instructions(request.tools, request.tool_choice)));
        }
        let mut results: Vec<Content> = Vec::new();
        let mut mistakes = None;
        for message in request.messages {
            if let Message::Tool(result) = message {
                match mistakes.and_then(|mistakes| reason(mistakes, result)) {
                    Some(reason) => results.push(Content::text(self.mistake(reason))),
                    None => self.result(result, &mut results),
                }
                continue;
            }
            mistakes = written(message);
            if !results.is_empty() {
                messages.push(Message::User { content: std::mem::take(&mut results) });
            }
            messages.push(match message {
                Message::Assistant(said) if !said.tool_calls.is_empty() => self.asked(said),
                other => other.clone(),
            });
        }
        if !results.is_empty() {
            messages.push(Message::User { content: results });
        }
        messages
    }

    fn instructions(self, tools: &[ToolSpec], choice: &ToolChoice) -> String {
        let described = tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
                .to_string()
        });
        let described = described.collect::<Vec<_>>().join("\n");
        let how = match self {
            PromptFormat::Xml => {
                "To call tools, end your answer with one block of this form, with one <invoke> for each call:\n\
                 <function_calls>\n<invoke>\n<tool_name>NAME</tool_name>\n<parameters>\n<PARAMETER>VALUE</PARAMETER>\n\
                 </parameters>\n</invoke>\n</function_calls>\n\
                 Texts are written as they are; numbers, lists and objects as JSON. The results follow in \
                 <function_results>."
            }
            PromptFormat::Json => {
                "To call tools, end your answer with one line for each call, of this form:\n\
                 <tool_call>{\"name\": \"NAME\", \"arguments\": {\"PARAMETER\": VALUE}}</tool_call>\n\
                 The results follow in <tool_response>."
            }
        };
        let must = match choice {
            ToolChoice::Any => "\nYou must call a tool now.".to_owned(),
            ToolChoice::Tool(name) => format!("\nYou must call the tool `{name}` now."),
            ToolChoice::Auto | ToolChoice::None => String::new(),
        };
        format!(
            "You can use these tools, each described by the JSON schema of its parameters:\n<tools>\n{described}\n</tools>\n{how}{must}"
        )
    }

    /// The model's own calls, as it wrote them.
    fn asked(self, said: &AssistantMessage) -> Message {
        if let Some(text) = mark(said).and_then(|mark| mark.get("wrote")?.as_str()) {
            return Message::assistant(text);
        }
        let mut text = said.text();
        if !text.is_empty() {
            text.push('\n');
        }
        match self {
            PromptFormat::Xml => {
                let invokes = said.tool_calls.iter().map(|call| {
                    let arguments = call.arguments.as_object().into_iter().flatten().map(|(name, value)| {
                        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        format!("<{name}>{value}</{name}>\n")
                    });
                    let arguments: String = arguments.collect();
                    format!(
                        "<invoke>\n<tool_name>{}</tool_name>\n<parameters>\n{arguments}</parameters>\n</invoke>\n",
                        call.name
                    )
                });
                text.push_str(&format!("<function_calls>\n{}</function_calls>", invokes.collect::<String>()));
            }
            PromptFormat::Json => {
                let calls = said.tool_calls.iter().map(|call| {
                    format!(
                        "<tool_call>{}</tool_call>",
                        json!({"name": call.name, "arguments": call.arguments})
                    )
                });
                text.push_str(&calls.collect::<Vec<_>>().join("\n"));
            }
        }
        Message::assistant(text)
    }

    /// What the user says to something that was meant to be a call.
    fn mistake(self, reason: &str) -> String {
        match self {
            PromptFormat::Xml => {
                format!("<function_results>\n<system>\n{reason}\n</system>\n</function_results>")
            }
            PromptFormat::Json => format!("<tool_response>{}</tool_response>", json!({"error": reason})),
        }
    }

    /// A result as the user tells it; pictures and the like follow the text.
    fn result(self, result: &ToolResult, into: &mut Vec<Content>) {
        let text = result.to_text();
        into.push(Content::text(match self {
            PromptFormat::Xml => {
                let name = &result.name;
                let kind = if result.is_error() { "error" } else { "stdout" };
                format!(
                    "<function_results>\n<result>\n<tool_name>{name}</tool_name>\n<{kind}>\n{text}\n</{kind}>\n</result>\n</function_results>"
                )
            }
            PromptFormat::Json => {
                format!("<tool_response>{}</tool_response>", json!({"name": result.name, "content": text}))
            }
        }));
        into.extend(result.content.iter().filter(|block| block.as_text().is_none()).cloned());
        into.extend(result.explanation().map(|facts| match facts {
            Json::String(note) => Content::text(note),
            facts => Content::json(facts),
        }));
    }

    /// Moves the calls from a reply's text to where calls belong. Text that only looks like a call stays text. What was
    /// meant as a call and is none becomes one that the runtime refuses; its message keeps what the model wrote and what
    /// is wrong with it, and that is what the model reads.
    fn read(self, message: &mut AssistantMessage, turn: usize, tools: &[ToolSpec]) {
        let mut text = message.text();
        let (begun, ended) = (text.rfind(self.begin()), text.rfind(self.end()));
        if self == PromptFormat::Xml && begun.is_some() && begun > ended {
            // The stop text is not part of the reply.
            text.push_str(self.end());
        }
        let (before, calls) = match self {
            PromptFormat::Xml => xml_calls(&text, tools),
            PromptFormat::Json => json_calls(&text),
        };
        if calls.is_empty() {
            return;
        }
        message.content.retain(|block| block.as_text().is_none());
        let before = before.trim();
        if !before.is_empty() {
            message.content.push(Content::text(before));
        }
        let calls = calls.into_iter().enumerate();
        message.calls_after.clear();
        let mut mistakes = Map::new();
        message.tool_calls = calls
            .map(|(at, found)| {
                let id = format!("call_{turn}_{at}");
                match found {
                    Found::Call(name, arguments) => ToolCall::new(id, name, arguments),
                    Found::Mistake(name, reason) => {
                        // Text that begins as an object and is none: no tool is called with it.
                        let arguments = format!("{{{reason}}}");
                        mistakes.insert(id.clone(), reason.into());
                        ToolCall::new(id, name, arguments)
                    }
                }
            })
            .collect();
        if !mistakes.is_empty() {
            let opaque = json!({"from": FROM, "wrote": text, "mistakes": mistakes});
            message.content.push(Content::Reasoning { text: String::new(), opaque });
        }
    }
}

/// Who keeps what a model wrote.
const FROM: &str = "prompted";

/// What is kept of a message that holds a mistake: all the model wrote, and what is wrong, by the ids of its calls.
fn mark(said: &AssistantMessage) -> Option<&Map<String, Json>> {
    said.content.iter().find_map(|block| match block {
        Content::Reasoning { opaque, .. } if opaque.get("from")?.as_str()? == FROM => opaque.as_object(),
        _ => None,
    })
}

fn written(message: &Message) -> Option<&Map<String, Json>> {
    match message {
        Message::Assistant(said) => mark(said)?.get("mistakes")?.as_object(),
        _ => None,
    }
}

/// What is wrong with the call this answers. When something else came in between, say a limit, that is told.
fn reason<'a>(mistakes: &'a Map<String, Json>, result: &ToolResult) -> Option<&'a str> {
    result.error.as_ref().filter(|error| error.kind == ErrorKind::Parsing)?;
    mistakes.get(&*result.call_id)?.as_str()
}

/// What was found in a reply.
enum Found {
    /// A tool and its arguments.
    Call(String, Json),
    /// The tool that was meant, and what is wrong.
    Mistake(String, String),
}

type Calls = Vec<Found>;

fn xml_calls(text: &str, tools: &[ToolSpec]) -> (String, Calls) {
    match extract(text) {
        Reading::Words => (String::new(), Vec::new()),
        Reading::Calls { prefix, invokes } => {
            let calls = invokes.into_iter().map(|invoke| {
                let name = invoke.tool_name.trim().to_owned();
                let tool = tools.iter().find(|tool| *tool.name == *name);
                let values = invoke.parameters.into_iter().map(|(parameter, text)| {
                    let value = typed(tool, &parameter, text);
                    (parameter, value)
                });
                let arguments: Map<String, Json> = values.collect();
                Found::Call(name, Json::Object(arguments))
            });
            (prefix, calls.collect())
        }
        // Only what was plainly meant as a call is treated as one.
        Reading::Mistake(reason) if text.contains("<function_calls>") => {
            let prefix = text.split("<function_calls>").next().unwrap_or_default().to_owned();
            let name = between(text, "<tool_name>", "</tool_name>").unwrap_or("function_calls").trim();
            (prefix, vec![Found::Mistake(name.to_owned(), reason)])
        }
        Reading::Mistake(_) => (String::new(), Vec::new()),
    }
}

/// A value as its schema wants it: text stays text where text fits, everything else is JSON when it can be read as such.
fn typed(tool: Option<&ToolSpec>, parameter: &str, text: String) -> Json {
    let schema = tool.and_then(|tool| tool.parameters.get("properties")).and_then(|all| all.get(parameter));
    if schema.is_none_or(takes_text) {
        return Json::String(text);
    }
    serde_json::from_str(text.trim()).unwrap_or(Json::String(text))
}

fn takes_text(schema: &Json) -> bool {
    let branches = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array());
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(kind) => kind == "string",
        None => branches.clone().next().is_none() || branches.flatten().any(takes_text),
    }
}

fn json_calls(text: &str) -> (String, Calls) {
    let mut calls = Vec::new();
    let mut pieces = text.split("<tool_call>");
    let before = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let piece = piece.split("</tool_call>").next().unwrap_or_default().trim();
        match serde_json::from_str(piece) {
            // Some models write all calls between one pair of tags.
            Ok(Json::Array(list)) if !list.is_empty() => calls.extend(list.into_iter().map(json_call)),
            Ok(call) => calls.push(json_call(call)),
            Err(problem) => calls.push(no_call(&format!("is not JSON ({problem})"))),
        }
    }
    (before, calls)
}

fn json_call(call: Json) -> Found {
    let Json::Object(mut call) = call else { return no_call("is no object") };
    let arguments = call.shift_remove("arguments").or_else(|| call.shift_remove("parameters"));
    match call.get("name").and_then(Json::as_str) {
        Some(name) => Found::Call(name.to_owned(), arguments.unwrap_or_else(|| json!({}))),
        None => no_call("has no `name`"),
    }
}

fn no_call(problem: &str) -> Found {
    let form = r#"{"name": "NAME", "arguments": {"PARAMETER": VALUE}}"#;
    let reason = format!("What stands between <tool_call> and </tool_call> {problem}. Write {form}.");
    Found::Mistake("tool_call".to_owned(), reason)
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split_once(close).map(|(inside, _)| inside)
}

/// Passes words on until a call begins. What may be the beginning of one is held back until that is known.
struct Words {
    begin: &'static str,
    held: String,
    over: bool,
}

impl Words {
    fn new(begin: &'static str) -> Self {
        Words { begin, held: String::new(), over: false }
    }

    fn hear(&mut self, text: &str, sink: DeltaSink<'_>) {
        if self.over {
            return;
        }
        self.held.push_str(text);
        if let Some((words, _)) = self.held.split_once(self.begin) {
            tell(words, sink);
            self.over = true;
            return;
        }
        let longest = self.begin.len().min(self.held.len());
        let kept = (1..=longest)
            .rev()
            .find(|length| self.begin.get(..*length).is_some_and(|start| self.held.ends_with(start)));
        let words = self.held.len() - kept.unwrap_or(0);
        let rest = self.held.split_off(words);
        tell(&std::mem::replace(&mut self.held, rest), sink);
    }

    fn end(&mut self, sink: DeltaSink<'_>) {
        if !self.over {
            tell(&std::mem::take(&mut self.held), sink);
        }
    }
}

fn tell(words: &str, sink: DeltaSink<'_>) {
    if !words.is_empty() {
        sink(ModelDelta::Text(words));
    }
}
