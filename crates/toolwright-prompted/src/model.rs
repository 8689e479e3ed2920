//! Any model as one that calls tools: they are described in the prompt, and calls are read from the reply.

use serde_json::{Map, Value as Json, json};
use toolwright_core::{
    AssistantMessage, Content, DeltaSink, ErrorKind, Message, Model, ModelDelta, ModelError, ModelOptions,
    ModelReply, ModelRequest, StopReason, ToolCall, ToolChoice, ToolResult, ToolSpec, Usage,
};

use crate::calls::{self, ParsedCall};
use crate::media::media;
use crate::message::without_tags;
use crate::stops::{self, Stops};

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
/// The loop does not notice: tools, choices, results, errors and pictures go in and out as with every other
/// model.
///
/// ```
/// use serde_json::json;
/// use toolwright_core::{Message, ToolDef, ToolSpec, Toolset};
/// use toolwright_models::{Reply, ScriptedModel};
/// use toolwright_prompted::{PromptFormat, Prompted};
/// use toolwright_runtime::{LoopOptions, Run};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let ping = ToolDef::dynamic(ToolSpec::new("ping", "Answers."), |_, _| async { "pong" });
/// let run = Run::builder(Toolset::new().with(ping)?).build()?;
/// let call = r#"<tool_call>{"name": "ping", "arguments": {}}</tool_call>"#;
/// let model = ScriptedModel::new([Reply::text(call), Reply::text("It says pong.").expecting("pong")]);
/// let model = Prompted::new(model).format(PromptFormat::Json);
/// let outcome = run.generate_loop(&model, vec![Message::user("Ping!")], &LoopOptions::default()).await?;
/// assert_eq!(outcome.completion(), "It says pong.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Prompted<M> {
    model: M,
    format: PromptFormat,
    stops: Stops,
}

impl<M: Model> Prompted<M> {
    /// Uses `model` through the prompt.
    pub fn new(model: M) -> Self {
        Prompted { model, format: PromptFormat::default(), stops: Stops::default() }
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
        let wanted = if request.tools.is_empty() { &[][..] } else { &[self.format.end()] };
        let mut stops = self.stops.to_send(wanted);
        let turn = request.messages.len();
        // Text is streamed as it comes, up to where a call begins.
        let mut words = TextBeforeCalls::new(self.format.begin());
        let mut reply = loop {
            let mut options: ModelOptions = request.options.clone();
            options.stop.extend(stops.iter().map(|text| (*text).to_owned()));
            let inner = ModelRequest {
                messages: &messages,
                tools: &[],
                tool_choice: &ToolChoice::None,
                options: &options,
            };
            let reply = if stream {
                let mut hear = |delta: ModelDelta<'_>| match delta {
                    ModelDelta::Text(text) => words.hear(text, sink),
                    other => sink(other),
                };
                self.model.generate_streaming(inner, &mut hear).await
            } else {
                self.model.generate(inner).await
            };
            match reply {
                Err(error) if !stops.is_empty() && self.stops.are_refused(&error) => stops = &[],
                reply => break reply?,
            }
        };
        if stops.is_empty() && stops::cut(&mut reply.message, self.format.begin(), wanted).is_some() {
            // Where the model stopped by itself is beyond the end.
            reply.stop = StopReason::StopSequence;
            words.shorten(&reply.message);
        }
        let calls = match request.tools.is_empty() {
            true => None,
            false => self.format.read(&mut reply.message, turn, request.tools),
        };
        words.end(calls, sink);
        // Servers end answers with unknown stop reasons, or without one; a call that is not whole has been
        // found to be a mistake.
        if !reply.message.tool_calls.is_empty()
            && matches!(reply.stop, StopReason::EndTurn | StopReason::StopSequence | StopReason::Other)
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

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.ask(request, &mut |_| {}, false).await
    }

    async fn generate_streaming(
        &self,
        request: ModelRequest<'_>,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.ask(request, sink, true).await
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
                 Texts are written as they are, with nothing escaped; numbers, lists and objects as JSON. The results follow in \
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
                format!("<function_results>\n{}</function_results>", element("system", reason))
            }
            PromptFormat::Json => response(&json!({"error": reason})),
        }
    }

    /// A result as the user tells it; pictures and the like follow the text. What a tool says does not leave
    /// its place, or it would be taken for the user's own words: links and documents that are text stand
    /// there too.
    fn result(self, result: &ToolResult, into: &mut Vec<Content>) {
        let (name, text, facts) = (&*result.name, words(result), result.explanation());
        into.push(Content::text(match self {
            PromptFormat::Xml => {
                let said = element(if result.is_error() { "error" } else { "stdout" }, &text);
                let facts = facts.map(|facts| facts.as_str().map_or_else(|| facts.to_string(), str::to_owned));
                let facts = facts.map(|facts| element("metadata", &facts)).unwrap_or_default();
                format!(
                    "<function_results>\n<result>\n<tool_name>{name}</tool_name>\n{said}{facts}</result>\n</function_results>"
                )
            }
            PromptFormat::Json => {
                let mut told = Map::from_iter([("name".to_owned(), name.into()), ("content".to_owned(), text.into())]);
                told.extend(facts.map(|facts| ("metadata".to_owned(), facts)));
                response(&Json::Object(told))
            }
        }));
        let mut media = result.content.iter().filter_map(media).peekable();
        if media.peek().is_some() {
            into.push(Content::text(format!("[content of the result of `{name}`]")));
        }
        into.extend(media);
    }

    /// Moves the calls from a reply's text to where calls belong, and says where in the text the first began.
    /// Text that only looks like a call stays text. What was meant as a call and cannot be read becomes one
    /// that the runtime refuses; its message keeps what the model wrote and what is wrong with it, and that
    /// is what the model reads.
    fn read(self, message: &mut AssistantMessage, turn: usize, tools: &[ToolSpec]) -> Option<usize> {
        let mut text = message.text();
        let (begin, calls) = match self {
            PromptFormat::Xml => calls::xml(&text, tools),
            PromptFormat::Json => calls::in_json(&text),
        }?;
        let before = text.get(..begin).unwrap_or_default().to_owned();
        if self == PromptFormat::Xml && text.rfind(self.begin()) > text.rfind(self.end()) {
            // The stop text is not part of the reply.
            text.push_str(self.end());
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
                    ParsedCall::Call(name, arguments) => ToolCall::new(id, name, arguments),
                    ParsedCall::Mistake(name, reason) => {
                        // Text that begins as an object and is not one: no tool is called with it.
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
        Some(begin)
    }
}

/// All that words can hold of a result, then its error.
fn words(result: &ToolResult) -> String {
    let error = result.error.as_ref().map(|error| error.to_json().to_string().into());
    let parts: Vec<_> = result.content.iter().filter_map(Content::in_words).chain(error).collect();
    parts.join("\n")
}

/// Text between tags of this name, which it cannot end.
fn element(tag: &str, text: &str) -> String {
    let end = format!("</{tag}>");
    let text = without_tags(text, &[&end, "<function_results>", "</function_results>"]);
    format!("<{tag}>\n{text}\n{end}\n")
}

/// A value between tags, which no text in it can end.
fn response(value: &Json) -> String {
    let value = value.to_string().replace("</tool_response>", "<\\/tool_response>");
    format!("<tool_response>{value}</tool_response>")
}

/// Who keeps what a model wrote.
const FROM: &str = "prompted";

/// What is kept of a message that holds a mistake: all the model wrote, and what is wrong, by the ids of its
/// calls.
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

/// What is wrong with the call this answers; `None` when it failed for another reason, such as a limit.
fn reason<'a>(mistakes: &'a Map<String, Json>, result: &ToolResult) -> Option<&'a str> {
    result.error.as_ref().filter(|error| error.kind == ErrorKind::Parsing)?;
    mistakes.get(&*result.call_id)?.as_str()
}

/// Streams text until a call may begin. A possible beginning of the mark is held back until it is decided;
/// text that turns out not to be a call is sent at the end.
struct TextBeforeCalls {
    begin: &'static str,
    heard: String,
    told: usize,
    over: bool,
}

impl TextBeforeCalls {
    fn new(begin: &'static str) -> Self {
        TextBeforeCalls { begin, heard: String::new(), told: 0, over: false }
    }

    fn hear(&mut self, text: &str, sink: DeltaSink<'_>) {
        self.heard.push_str(text);
        if self.over {
            return;
        }
        let untold = self.heard.get(self.told..).unwrap_or_default();
        let begin = untold.find(self.begin);
        self.over = begin.is_some();
        let started = || {
            let longest = self.begin.len().min(untold.len());
            let starts =
                |length: &usize| self.begin.get(..*length).is_some_and(|start| untold.ends_with(start));
            untold.len() - (1..=longest).rev().find(starts).unwrap_or(0)
        };
        let words = self.told + begin.unwrap_or_else(started);
        self.tell(words, sink);
    }

    /// Forgets what was cut off from the message.
    fn shorten(&mut self, message: &AssistantMessage) {
        let lengths = message.content.iter().map(|block| match block {
            Content::Text { text, .. } => text.len(),
            _ => 0,
        });
        let length = self.heard.floor_char_boundary(lengths.sum());
        self.heard.truncate(length);
    }

    /// Sends the rest of the text, up to where the first call begins.
    fn end(&mut self, calls: Option<usize>, sink: DeltaSink<'_>) {
        self.tell(calls.unwrap_or(self.heard.len()), sink);
    }

    fn tell(&mut self, until: usize, sink: DeltaSink<'_>) {
        if let Some(words) = self.heard.get(self.told..until).filter(|words| !words.is_empty()) {
            sink(ModelDelta::Text(words));
            self.told = until;
        }
    }
}
