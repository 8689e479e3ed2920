//! Reading calls from what a model wrote.
//!
//! The rules are those of anthropic-tools, with one difference: a tag's name is compared as text, never as a
//! pattern.

use toolwright_expr::Value;

use crate::message::ToolInput;
use crate::python::{convert, truth};
use crate::tool::{BOOLEAN, PromptTool};

/// What a model wrote, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedReply {
    /// No call.
    Text,
    /// Calls, and what was said before them.
    Calls {
        /// What was said before.
        prefix: String,
        /// The calls.
        invokes: Vec<Invoke>,
    },
    /// A malformed call; the text explains to the model what is wrong.
    Mistake(String),
}

/// One call, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoke {
    /// The tool.
    pub tool_name: String,
    /// Names and values, in order.
    pub parameters: Vec<(String, String)>,
}

const TAGS: [&str; 4] = ["function_calls", "invoke", "tool_name", "parameters"];

/// Reads what a model wrote.
pub fn extract(completion: &str) -> ParsedReply {
    if !TAGS.iter().any(|tag| completion.contains(&open(tag)) || completion.contains(&close(tag))) {
        return ParsedReply::Text;
    }
    read(completion).unwrap_or_else(|reason| ParsedReply::Mistake(reason.to_owned()))
}

fn read(completion: &str) -> Result<ParsedReply, &'static str> {
    let no_block = "No valid <function_calls></function_calls> tags present in your query.";
    let (prefix, rest) = completion.split_once("<function_calls>").ok_or(no_block)?;
    // From the first opening tag to the last closing one: several blocks are read as one.
    let (block, _) = rest.rsplit_once("</function_calls>").ok_or(no_block)?;
    let invokes = between(block, "<invoke>", "</invoke>");
    if invokes.is_empty() {
        return Err("Missing <invoke></invoke> tags inside of <function_calls></function_calls> tags.");
    }
    let invokes = invokes.into_iter().map(read_invoke).collect::<Result<_, _>>()?;
    Ok(ParsedReply::Calls { prefix: prefix.to_owned(), invokes })
}

fn read_invoke(invoke: &str) -> Result<Invoke, &'static str> {
    let tool_name = match between(invoke, "<tool_name>", "</tool_name>").as_slice() {
        [] => return Err("Missing <tool_name></tool_name> tags inside of <invoke></invoke> tags."),
        [name] => name.replace("<tool_name>", ""),
        _ => return Err("More than one tool_name specified inside single set of <invoke></invoke> tags."),
    };
    let parameters = match between(invoke, "<parameters>", "</parameters>").as_slice() {
        // The slip in the tag is the original's.
        [] => return Err("Missing <parameters></paraeters> tags inside of <invoke></invoke> tags."),
        [parameters] => *parameters,
        _ => {
            return Err(
                "More than one set of <parameters></parameters> tags specified inside single set of <invoke></invoke> \
                 tags.",
            );
        }
    };
    Ok(Invoke { tool_name, parameters: read_parameters(parameters)? })
}

fn read_parameters(text: &str) -> Result<Vec<(String, String)>, &'static str> {
    // The tag of the block itself, repeated inside, is not a parameter; in a value it is kept.
    let tags = text.replace("<parameters>", "");
    let names = between(&tags, "<", ">");
    if !names.len().is_multiple_of(2) {
        return Err("Imbalanced tags inside <parameters></parameters> tags.");
    }
    let pairs = names.chunks_exact(2).map(|pair| match pair {
        [name, end] if end.strip_prefix('/') == Some(name) => {
            Ok(((*name).to_owned(), first_value(text, name)))
        }
        _ => Err("Non-matching opening and closing tags inside <parameters></parameters> tags."),
    });
    pairs.collect()
}

/// The value of a name; when it is given more than once, all mean the first.
fn first_value(text: &str, name: &str) -> String {
    let after = text.split_once(&open(name)).map_or("", |(_, after)| after);
    after.split_once(&close(name)).map_or(after, |(value, _)| value).to_owned()
}

/// The texts between each opening and the next closing mark.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        let Some((inside, after)) = after.split_once(close) else { break };
        found.push(inside);
        rest = after;
    }
    found
}

fn open(tag: &str) -> String {
    format!("<{tag}>")
}

fn close(tag: &str) -> String {
    format!("</{tag}>")
}

/// What a model wants, checked against the tools there are.
#[derive(Debug, Clone)]
pub enum CheckedRequest {
    /// Nothing more.
    Nothing,
    /// These calls; all of them can be made.
    Calls {
        /// What it said before.
        prefix: String,
        /// The calls.
        calls: Vec<ToolInput>,
    },
    /// It made a mistake; the text tells it which.
    Mistake(String),
}

/// Reads what a model wrote and checks its calls. Nothing is asked for unless every call is in order.
pub fn check(completion: &str, tools: &[PromptTool]) -> CheckedRequest {
    match extract(completion) {
        ParsedReply::Text => CheckedRequest::Nothing,
        ParsedReply::Mistake(reason) => CheckedRequest::Mistake(reason),
        ParsedReply::Calls { prefix, invokes } => {
            match invokes.iter().map(|invoke| check_invoke(invoke, tools)).collect() {
                Ok(calls) => CheckedRequest::Calls { prefix, calls },
                Err(reason) => CheckedRequest::Mistake(reason),
            }
        }
    }
}

fn check_invoke(invoke: &Invoke, tools: &[PromptTool]) -> Result<ToolInput, String> {
    let name = &invoke.tool_name;
    let Some(tool) = tools.iter().find(|tool| tool.name == *name) else {
        return Err(format!("No tool named <tool_name>{name}</tool_name> available."));
    };
    let declared = |name: &str| tool.parameters.iter().find(|parameter| parameter.name == name);
    let mut unknown: Vec<&str> = invoke.parameters.iter().map(|(name, _)| &**name).collect();
    unknown.retain(|name| declared(name).is_none());
    unknown.sort_unstable();
    unknown.dedup();
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.iter().map(|name| format!("{:?}", Value::str(*name))).collect();
        return Err(format!(
            "Invalid parameters {{{}}} for <tool_name>{name}</tool_name>.",
            names.join(", ")
        ));
    }
    let given = |name: &str| invoke.parameters.iter().any(|(given, _)| given == name);
    if !tool.parameters.iter().all(|parameter| given(&parameter.name)) {
        let all = Value::list(tool.parameters.iter().map(|parameter| Value::str(&*parameter.name)).collect());
        return Err(format!("Missing required parameters {all} for <tool_name>{name}</tool_name>."));
    }
    let mut tool_arguments: Vec<(String, Value)> = Vec::new();
    for (name, text) in &invoke.parameters {
        let kind = declared(name).map_or("str", |parameter| &parameter.kind);
        let value = if kind == BOOLEAN { Ok(truth(text)) } else { convert(text, kind) };
        let value = value.map_err(|error| format!("Invalid value for parameter {name}: {error}."))?;
        if !tool_arguments.iter().any(|(given, _)| given == name) {
            tool_arguments.push((name.clone(), value));
        }
    }
    Ok(ToolInput { tool_name: name.clone(), tool_arguments })
}
