//! Reading calls from what any model wrote. Unlike the reader of anthropic-tools, whose rules are the
//! original's, this one takes the text of an argument as it is, tags and all.

use std::ops::Range;

use serde_json::{Map, Value as Json, json};
use toolwright_core::ToolSpec;

/// A call in a reply, or an attempt at one.
pub(crate) enum ParsedCall {
    /// A tool and its arguments.
    Call(String, Json),
    /// The tool that was meant, and what is wrong.
    Mistake(String, String),
}

/// A reply without its reasoning: text between `<think>` and `</think>` is never read as a call.
pub(crate) struct Aloud<'a> {
    text: &'a str,
    thoughts: Vec<Range<usize>>,
}

impl<'a> Aloud<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let (open, close) = ("<think>", "</think>");
        let mut thoughts: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while let Some(begin) = text.get(from..).and_then(|rest| rest.find(open)) {
            let begin = from + begin;
            // An unterminated thinking tag is ordinary text.
            let Some(end) = text.get(begin..).and_then(|rest| rest.find(close)) else { break };
            from = begin + end + close.len();
            thoughts.push(begin..from);
        }
        Aloud { text, thoughts }
    }

    /// The next position of `mark` outside of reasoning.
    pub(crate) fn find(&self, mark: &str, mut from: usize) -> Option<usize> {
        loop {
            let at = from + self.text.get(from..)?.find(mark)?;
            let thought = self.thoughts.get(self.thoughts.partition_point(|thought| thought.end <= at));
            match thought.filter(|thought| thought.contains(&at)) {
                None => return Some(at),
                Some(thought) => from = thought.end,
            }
        }
    }
}

/// The calls of a reply in XML, and where the first begins.
pub(crate) fn xml(text: &str, tools: &[ToolSpec]) -> Option<(usize, Vec<ParsedCall>)> {
    let begin = Aloud::new(text).find("<function_calls>", 0)?;
    let mut reader = Xml { rest: text.get(begin..)?, tools };
    let mut calls = Vec::new();
    // Several blocks are read as one.
    while let Some((_, block)) = reader.rest.split_once("<function_calls>") {
        reader.rest = block;
        let before = calls.len();
        while reader.takes("<invoke>") {
            match reader.invoke() {
                Ok(call) => calls.push(call),
                Err((name, problem)) => {
                    // The calls beside one that cannot be read are not made: its end is unknown.
                    return Some((begin, vec![ParsedCall::Mistake(name, problem)]));
                }
            }
        }
        if calls.len() == before {
            let problem = "There is no <invoke></invoke> inside of <function_calls></function_calls>.";
            return Some((begin, vec![ParsedCall::Mistake("function_calls".to_owned(), problem.to_owned())]));
        }
    }
    Some((begin, calls))
}

struct Xml<'a> {
    rest: &'a str,
    tools: &'a [ToolSpec],
}

impl<'a> Xml<'a> {
    /// Takes a tag, if it is next.
    fn takes(&mut self, tag: &str) -> bool {
        let after = self.rest.trim_start().strip_prefix(tag);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// One call, or the tool that was meant and what is wrong.
    fn invoke(&mut self) -> Result<ParsedCall, (String, String)> {
        let problem = |name: &str, problem: &str| Err((name.to_owned(), problem.to_owned()));
        let name = match self.takes("<tool_name>").then(|| self.rest.split_once("</tool_name>")).flatten() {
            Some((name, rest)) => {
                self.rest = rest;
                name.trim()
            }
            None => {
                return problem(
                    "function_calls",
                    "An <invoke> does not begin with <tool_name>NAME</tool_name>.",
                );
            }
        };
        if !self.takes("<parameters>") {
            return problem(name, "Missing <parameters></parameters> after the <tool_name> of an <invoke>.");
        }
        let tool = self.tools.iter().find(|tool| *tool.name == *name);
        let mut arguments = Map::new();
        while !self.takes("</parameters>") {
            let (parameter, text) =
                self.parameter(tool, &arguments).map_err(|said| (name.to_owned(), said))?;
            // Given more than once, the first counts.
            arguments.entry(parameter).or_insert_with(|| typed(tool, parameter, text));
        }
        if !self.takes("</invoke>") {
            return problem(name, "After </parameters>, </invoke> is missing.");
        }
        Ok(ParsedCall::Call(name.to_owned(), Json::Object(arguments)))
    }

    /// The next parameter and its text. The text ends where its own closing tag stands before another
    /// parameter or the end of them all; what looks like a tag before that is part of it.
    fn parameter(
        &mut self,
        tool: Option<&ToolSpec>,
        given: &Map<String, Json>,
    ) -> Result<(&'a str, &'a str), String> {
        let tag = self.rest.trim_start().strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let Some((name, rest)) = tag.filter(|(name, _)| !name.starts_with('/')) else {
            return Err(
                "<parameters> holds something else than <PARAMETER>VALUE</PARAMETER>, or is not closed \
                        with </parameters>."
                    .to_owned(),
            );
        };
        let close = format!("</{name}>");
        let ends = || rest.match_indices(&close).map(|(at, _)| at);
        let known = tool.and_then(|tool| tool.parameters.get("properties")).and_then(Json::as_object);
        let ends_there = |at: &usize| {
            let after = rest.get(at + close.len()..).unwrap_or_default().trim_start();
            let next = after.strip_prefix('<').and_then(|after| after.split_once('>'));
            let next = next.map(|(next, _)| next).unwrap_or_default();
            let another = known.is_some_and(|known| known.contains_key(next) && !given.contains_key(next));
            next == "/parameters" || (another && next != name)
        };
        let Some(end) = ends().find(ends_there).or_else(|| ends().next()) else {
            return Err(format!("<{name}> is not closed with {close}."));
        };
        self.rest = rest.get(end + close.len()..).unwrap_or_default();
        Ok((name, rest.get(..end).unwrap_or_default()))
    }
}

/// A value as its schema wants it: text stays text where text fits, everything else is JSON when it can be
/// read as such.
fn typed(tool: Option<&ToolSpec>, parameter: &str, text: &str) -> Json {
    let schema = tool.and_then(|tool| tool.parameters.get("properties")).and_then(|all| all.get(parameter));
    if schema.is_none_or(takes_text) {
        return text.into();
    }
    serde_json::from_str(text.trim()).unwrap_or_else(|_| text.into())
}

fn takes_text(schema: &Json) -> bool {
    let branches = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array());
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(kind) => kind == "string",
        None => branches.clone().next().is_none() || branches.flatten().any(takes_text),
    }
}

/// The calls of a reply in JSON, and where the first begins.
pub(crate) fn in_json(text: &str) -> Option<(usize, Vec<ParsedCall>)> {
    const OPEN: &str = "<tool_call>";
    let aloud = Aloud::new(text);
    let last_close = text.rfind("</tool_call>").unwrap_or(0);
    let mut begin = None;
    let mut calls = Vec::new();
    let mut from = 0;
    while let Some(at) = aloud.find(OPEN, from) {
        from = at + OPEN.len();
        let rest = text.get(from..).unwrap_or_default();
        // A value is read to its own end, so that a tag in one of its texts is text.
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        let value = values.next();
        let length = values.byte_offset();
        let after = rest.get(length..).unwrap_or_default().trim_start();
        let ended = after.is_empty() || after.starts_with("</tool_call>") || after.starts_with(OPEN);
        match value {
            // Some models write all calls between one pair of tags.
            Some(Ok(Json::Array(list))) if ended && !list.is_empty() => {
                calls.extend(list.into_iter().map(json_call));
                from += length;
            }
            Some(Ok(call)) if ended => {
                calls.push(json_call(call));
                from += length;
            }
            // The tag alone, in a sentence.
            _ if last_close < from && !rest.trim_start().starts_with(['{', '[']) => continue,
            Some(Err(problem)) => calls.push(no_call(&format!("is not JSON ({problem})"))),
            _ => calls.push(no_call("is not one JSON value")),
        }
        begin.get_or_insert(at);
    }
    Some((begin?, calls))
}

fn json_call(call: Json) -> ParsedCall {
    let Json::Object(mut call) = call else { return no_call("is not an object") };
    let arguments = call.shift_remove("arguments").or_else(|| call.shift_remove("parameters"));
    match call.get("name").and_then(Json::as_str) {
        Some(name) => ParsedCall::Call(name.to_owned(), arguments.unwrap_or_else(|| json!({}))),
        None => no_call("has no `name`"),
    }
}

fn no_call(problem: &str) -> ParsedCall {
    let form = r#"{"name": "NAME", "arguments": {"PARAMETER": VALUE}}"#;
    let reason = format!("What stands between <tool_call> and </tool_call> {problem}. Write {form}.");
    ParsedCall::Mistake("tool_call".to_owned(), reason)
}
