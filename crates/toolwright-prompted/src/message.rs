//! The structured messages of anthropic-tools: reading, checking and writing them as a prompt.
//!
//! The texts of errors are those of the original, because programs may look at them; `(sic)` marks its slips.

use std::ops::Range;

use serde_json::{Value as Json, json};
use toolwright_expr::Value;

use crate::error::{PromptError, PromptErrorKind};

/// One message.
#[derive(Debug, Clone)]
pub enum PromptMessage {
    /// What the user says.
    User {
        /// The text.
        content: String,
    },
    /// What the model says.
    Assistant {
        /// The text.
        content: String,
    },
    /// The model asks for tools.
    ToolInputs {
        /// What it says before.
        content: String,
        /// What it asks for.
        tool_inputs: Vec<ToolInput>,
    },
    /// The results of what it asked for, or what it did wrong.
    ToolOutputs(Result<Vec<ToolOutcome>, String>),
}

/// A call: a tool and its arguments, in order.
#[derive(Debug, Clone)]
pub struct ToolInput {
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub tool_arguments: Vec<(String, Value)>,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub struct ToolOutcome {
    /// The tool.
    pub tool_name: String,
    /// What it returned.
    pub tool_result: Value,
}

impl PartialEq for PromptMessage {
    /// Equal when they are the same JSON.
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl PromptMessage {
    /// Reads a list of messages.
    pub fn list_from_json(json: &Json) -> Result<Vec<Self>, PromptError> {
        Self::list_from_value(&Value::from_json(json))
    }

    /// Reads a list of messages from Python data.
    pub fn list_from_value(value: &Value) -> Result<Vec<Self>, PromptError> {
        match value {
            Value::List(list) if !list.is_empty() => list.snapshot().iter().map(Self::from_value).collect(),
            _ => Err(PromptError::messages("Messages must be a list of length > 0.")),
        }
    }

    fn from_value(value: &Value) -> Result<Self, PromptError> {
        let Value::Dict(fields) = value else {
            return Err(PromptError::messages("All messages in messages list should be dictionaries."));
        };
        let Some(role) = fields.get("role") else {
            return Err(PromptError::messages("All messages must have a 'role' key."));
        };
        match role.as_str() {
            Some("user") => Ok(PromptMessage::User { content: spoken(fields)? }),
            Some("assistant") => Ok(PromptMessage::Assistant { content: spoken(fields)? }),
            Some("tool_inputs") => inputs(fields),
            Some("tool_outputs") => outputs(fields),
            _ => Err(PromptError::messages(format!(
                "{role} is not a valid role. Valid roles are ['user', 'assistant', 'tool_inputs', 'tool_outputs']"
            ))),
        }
    }

    /// The message as JSON. What JSON lacks is written as text.
    pub fn to_json(&self) -> Json {
        match self {
            PromptMessage::User { content } => json!({"role": "user", "content": content}),
            PromptMessage::Assistant { content } => json!({"role": "assistant", "content": content}),
            PromptMessage::ToolInputs { content, tool_inputs } => {
                let inputs = tool_inputs.iter().map(|input| {
                    let arguments = input.tool_arguments.iter().map(|(name, value)| (name.clone(), plain(value)));
                    json!({"tool_name": input.tool_name, "tool_arguments": arguments.collect::<serde_json::Map<_, _>>()})
                });
                json!({"role": "tool_inputs", "content": content, "tool_inputs": inputs.collect::<Vec<_>>()})
            }
            PromptMessage::ToolOutputs(Ok(outcomes)) => {
                let outcomes = outcomes.iter().map(|outcome| {
                    json!({"tool_name": outcome.tool_name, "tool_result": plain(&outcome.tool_result)})
                });
                json!({"role": "tool_outputs", "tool_outputs": outcomes.collect::<Vec<_>>(), "tool_error": null})
            }
            PromptMessage::ToolOutputs(Err(error)) => {
                json!({"role": "tool_outputs", "tool_outputs": null, "tool_error": error})
            }
        }
    }
}

fn plain(value: &Value) -> Json {
    value.to_json().unwrap_or_else(|_| Json::String(value.to_string()))
}

type Fields = toolwright_expr::Dict;

fn spoken(fields: &Fields) -> Result<String, PromptError> {
    let Some(content) = fields.get("content") else {
        return Err(PromptError::messages(
            "All messages with user or assistant roles must have a 'content' key.",
        ));
    };
    let text = content.as_str().map(str::to_owned);
    text.ok_or_else(|| {
        PromptError::messages("For messages with role='user' or role='assistant', content must be a string.")
    })
}

fn inputs(fields: &Fields) -> Result<PromptMessage, PromptError> {
    let Some(inputs) = fields.get("tool_inputs") else {
        return Err(PromptError::messages(
            "All messages with tool_inputs roles must have a 'tool_inputs' key.",
        ));
    };
    let inputs = match inputs {
        Value::List(list) if !list.is_empty() => list.snapshot(),
        _ => {
            return Err(PromptError::messages(
                "For messages with role='tool_inputs', tool_inputs must be a list of length > 0.",
            ));
        }
    };
    let inputs = inputs.iter().map(|input| {
        let found = match input {
            Value::Dict(input) => input.get("tool_name").zip(input.get("tool_arguments")),
            _ => None,
        };
        let Some((name, arguments)) = found else {
            return Err(PromptError::messages(
                "All elements of tool_inputs must be dictionaries with keys 'tool_name' and 'tool_arguments'.",
            ));
        };
        let Value::Dict(arguments) = arguments else {
            return Err(PromptError::messages("'tool_arguments' must be a dictionary."));
        };
        let arguments = arguments.entries().into_iter().map(|(name, value)| (name.to_string(), value));
        Ok(ToolInput { tool_name: name.to_string(), tool_arguments: arguments.collect() })
    });
    let tool_inputs = inputs.collect::<Result<_, _>>()?;
    // The original asks for the content only when it writes the prompt.
    let Some(content) = fields.get("content") else {
        return Err(PromptError::messages("All messages with tool_inputs roles must have a 'content' key."));
    };
    Ok(PromptMessage::ToolInputs { content: content.to_string(), tool_inputs })
}

fn outputs(fields: &Fields) -> Result<PromptMessage, PromptError> {
    if fields.get("content").is_some() {
        return Err(PromptError::messages("tool_outputs should not have a 'content' key/value pair"));
    }
    let missing =
        |key: &str| PromptError::messages(format!("a tool_outputs message must have a '{key}' key"));
    let error = fields.get("tool_error").ok_or_else(|| missing("tool_error"))?;
    let outputs = fields.get("tool_outputs").ok_or_else(|| missing("tool_outputs"))?;
    match (error, outputs) {
        (Value::None, Value::None) => Err(PromptError::messages(
            // (sic)
            "For messages with role='tool_putput' you must provide one of tool_outputs or tool_error.",
        )),
        (Value::None, Value::List(list)) => {
            let outcomes = list.snapshot().iter().map(outcome).collect::<Result<_, _>>()?;
            Ok(PromptMessage::ToolOutputs(Ok(outcomes)))
        }
        // (sic): the text speaks of the other key.
        (Value::None, _) => Err(PromptError::messages("tool_error must be str or None.")),
        (Value::Str(error), Value::None) => Ok(PromptMessage::ToolOutputs(Err(error.as_str().to_owned()))),
        (_, Value::None) => Err(PromptError::messages("tool_error must be str or None.")),
        _ => Err(PromptError::messages(
            "Only one of tool_outputs and tool_error should be provided, the other should be None. Both are currently \
             not None.",
        )),
    }
}

fn outcome(value: &Value) -> Result<ToolOutcome, PromptError> {
    let found = match value {
        Value::Dict(fields) => fields.get("tool_name").zip(fields.get("tool_result")),
        _ => None,
    };
    let Some((name, tool_result)) = found else {
        return Err(PromptError::messages(
            "All elements of tool_outputs must be dictionaries with keys 'tool_name' and 'tool_result'.",
        ));
    };
    Ok(ToolOutcome { tool_name: name.to_string(), tool_result })
}

/// The conversation as one prompt, without the system prompt before it.
pub fn render(messages: &[PromptMessage]) -> Result<String, PromptError> {
    render_marked(messages).map(|(prompt, _)| prompt)
}

/// The same, and where the results of tools stand in it.
pub(crate) fn render_marked(messages: &[PromptMessage]) -> Result<(String, Vec<Range<usize>>), PromptError> {
    let (mut prompt, mut results) = (String::new(), Vec::new());
    let mut before: Option<&PromptMessage> = None;
    for message in messages {
        let after_user = matches!(before, None | Some(PromptMessage::User { .. }));
        match message {
            PromptMessage::User { content } => {
                let opens = !matches!(before, Some(PromptMessage::User { .. }));
                say(&mut prompt, if opens { "\n\nHuman: " } else { "\n\n" }, content)?;
            }
            PromptMessage::Assistant { content } => {
                say(&mut prompt, if after_user { "\n\nAssistant: " } else { "\n\n" }, content)?;
            }
            PromptMessage::ToolInputs { content, tool_inputs } => {
                let before = match (after_user, content.is_empty()) {
                    (true, _) => "\n\nAssistant:",
                    (false, true) => "",
                    (false, false) => "\n\n",
                };
                say(&mut prompt, before, content)?;
                prompt.push_str(&format!("\n\n{}", calls(tool_inputs)));
            }
            PromptMessage::ToolOutputs(outcome) => {
                prompt.push_str(if after_user { "\n\nAssistant:\n\n" } else { "\n\n" });
                let start = prompt.len();
                prompt.push_str(&match outcome {
                    Ok(outcomes) => inject_success(outcomes),
                    Err(error) => inject_error(error),
                });
                results.push(start..prompt.len());
            }
        }
        before = Some(message);
    }
    Ok((prompt, results))
}

fn calls(inputs: &[ToolInput]) -> String {
    let invokes = inputs.iter().map(|input| {
        let arguments = input.tool_arguments.iter();
        let arguments = arguments.map(|(name, value)| format!("<{name}>{value}</{name}>"));
        format!(
            "<invoke>\n<tool_name>{}</tool_name>\n<parameters>\n{}\n</parameters>\n</invoke>",
            input.tool_name,
            arguments.collect::<Vec<_>>().join("\n")
        )
    });
    tame(format!("<function_calls>\n{}\n</function_calls>", invokes.collect::<Vec<_>>().join("\n\n")))
}

/// The results of calls, as text for the model.
pub fn inject_success(outcomes: &[ToolOutcome]) -> String {
    let results = outcomes.iter().map(|outcome| {
        format!(
            "<result>\n<tool_name>{}</tool_name>\n<stdout>\n{}\n</stdout>\n</result>",
            outcome.tool_name,
            inside(&outcome.tool_result.to_string())
        )
    });
    tame(format!("<function_results>\n{}\n</function_results>", results.collect::<Vec<_>>().join("\n")))
}

/// The message about a mistake of the model.
pub fn inject_error(message: &str) -> String {
    tame(format!("<function_results>\n<system>\n{}\n</system>\n</function_results>", inside(message)))
}

/// The markers that begin a speaker's turn.
pub(crate) const HUMAN: &str = "\n\nHuman:";
pub(crate) const ASSISTANT: &str = "\n\nAssistant:";

/// Adds what a speaker says after `before`, unless the two together would begin another speaker's turn.
fn say(prompt: &mut String, before: &str, text: &str) -> Result<(), PromptError> {
    let from = prompt.len() + before.trim_end_matches('\n').len();
    prompt.push_str(before);
    prompt.push_str(text);
    let said = prompt.get(from..).unwrap_or_default();
    match [HUMAN, ASSISTANT].iter().find(|marker| said.contains(**marker)) {
        None => Ok(()),
        Some(marker) => Err(PromptError::new(
            PromptErrorKind::Forged,
            format!(
                "a message holds {marker:?}, which would begin another speaker's turn; write it otherwise"
            ),
        )),
    }
}

/// A block of the format in which nothing begins another speaker's turn.
pub(crate) fn tame(block: String) -> String {
    block.replace(HUMAN, "\n\n Human:").replace(ASSISTANT, "\n\n Assistant:")
}

/// What a tool says, which cannot end the place it stands in and go on as something else.
fn inside(text: &str) -> String {
    without_tags(text, &["</stdout>", "</system>", "<function_results>", "</function_results>"])
}

/// Text in which these tags are only words.
pub(crate) fn without_tags(text: &str, tags: &[&str]) -> String {
    tags.iter().fold(text.to_owned(), |text, tag| text.replace(tag, &tag.replacen('<', "&lt;", 1)))
}
