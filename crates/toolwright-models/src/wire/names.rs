//! Names and ids as vendors want them.
//!
//! A tool may be called `files.read`, which most vendors refuse, and an id may come from another vendor. Both
//! are rewritten on the way out, always in the same way; names are turned back on the way in.

use std::collections::HashMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolwright_core::{Message, ModelRequest};

use crate::dialect;

/// The longest name that every vendor takes.
const MAX_NAME: usize = 64;

/// The names of one request's tools, there and back.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    native: HashMap<String, String>,
    wire: HashMap<String, String>,
    /// The parameters that go by another name, by tool: as the tool calls them, and as the vendor does.
    parameters: HashMap<String, Vec<(String, String)>>,
}

impl ToolNames {
    /// The names of the tools offered and of those called before.
    pub(crate) fn new(request: &ModelRequest<'_>) -> Self {
        let mut names = ToolNames::default();
        let offered = request.tools.iter().map(|tool| &*tool.name);
        let called = request.messages.iter().filter_map(|message| match message {
            Message::Assistant(message) => Some(message.tool_calls.iter().map(|call| &*call.name)),
            _ => None,
        });
        let all: Vec<&str> = offered.chain(called.flatten()).collect();
        // Names that need no change come first, so that a rewritten one never takes their place.
        for name in all.iter().filter(|name| is_plain(name)) {
            names.add(name, (*name).to_owned());
        }
        for name in all.iter().filter(|name| !is_plain(name)) {
            let plain = plain(name);
            let taken = names.native.get(&plain).is_some_and(|native| native != name);
            names.add(name, if taken { with_hash(&plain, name) } else { plain });
        }
        names
    }

    fn add(&mut self, native: &str, wire: String) {
        if !self.wire.contains_key(native) {
            self.native.insert(wire.clone(), native.to_owned());
            self.wire.insert(native.to_owned(), wire);
        }
    }

    /// With names of parameters that Claude takes; those of a union at the root are sent too.
    pub(crate) fn with_parameters(mut self, request: &ModelRequest<'_>) -> Self {
        for tool in request.tools {
            let sent = dialect::plain(&tool.parameters).schema;
            let Some(properties) = sent.get("properties").and_then(Value::as_object) else { continue };
            let mut renamed: Vec<(String, String)> = Vec::new();
            for name in properties.keys().filter(|name| !is_plain_parameter(name)) {
                let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                let plain: String =
                    name.chars().take(MAX_NAME).map(|c| if good(c) { c } else { '_' }).collect();
                let taken = properties.contains_key(&plain) || renamed.iter().any(|(_, wire)| *wire == plain);
                let wire = if taken || !is_plain_parameter(&plain) || name.len() > MAX_NAME {
                    with_hash(&plain, name)
                } else {
                    plain
                };
                renamed.push((name.clone(), wire));
            }
            if !renamed.is_empty() {
                self.parameters.insert(tool.name.to_string(), renamed);
            }
        }
        self
    }

    /// The parameters of a tool that go by another name: as the tool calls them, and as the vendor does.
    pub(crate) fn parameters(&self, tool: &str) -> &[(String, String)] {
        self.parameters.get(tool).map_or(&[], Vec::as_slice)
    }

    /// Arguments under the names a vendor knows.
    pub(crate) fn arguments_to_wire(&self, tool: &str, arguments: Map<String, Value>) -> Map<String, Value> {
        let renamed = self.parameters(tool);
        rename(arguments, |name| renamed.iter().find(|(native, _)| native == name).map(|(_, wire)| wire))
    }

    /// Arguments under the names the tool knows.
    pub(crate) fn arguments_to_native(&self, tool: &str, arguments: Value) -> Value {
        let renamed = self.parameters(tool);
        let native = |name: &str| renamed.iter().find(|(_, wire)| wire == name).map(|(native, _)| native);
        match arguments {
            Value::Object(arguments) => Value::Object(rename(arguments, native)),
            other => other,
        }
    }

    /// The name a vendor is sent.
    pub(crate) fn to_wire(&self, native: &str) -> String {
        self.wire.get(native).cloned().unwrap_or_else(|| plain(native))
    }

    /// The name a vendor means; one that was not offered is kept as it is.
    pub(crate) fn to_native(&self, wire: &str) -> String {
        self.native.get(wire).cloned().unwrap_or_else(|| wire.to_owned())
    }
}

fn is_plain_parameter(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The same values under other names.
pub(super) fn rename<'a>(
    map: Map<String, Value>,
    other: impl Fn(&str) -> Option<&'a String>,
) -> Map<String, Value> {
    map.into_iter().map(|(name, value)| (other(&name).cloned().unwrap_or(name), value)).collect()
}

fn is_plain(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(good)
        // Gemini wants a letter or an underscore first.
        && !name.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}

fn plain(name: &str) -> String {
    if is_plain(name) {
        return name.to_owned();
    }
    let mut plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if !plain.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        plain.insert(0, '_');
    }
    if plain.len() > MAX_NAME { with_hash(&plain, name) } else { plain }
}

fn with_hash(plain: &str, name: &str) -> String {
    let head = plain.get(..plain.len().min(MAX_NAME - 9)).unwrap_or_default();
    format!("{head}_{}", hash(name, 8))
}

/// What a vendor demands of the ids of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Letters, digits, `_` and `-`, at most 64.
    Plain,
    /// Exactly nine letters or digits.
    Nine,
}

impl Ids {
    /// The id as the vendor takes it: unchanged when it fits, else a hash of it.
    pub(crate) fn to_wire(self, id: &str) -> String {
        let fits = match self {
            Ids::Plain => {
                (1..=64).contains(&id.len())
                    && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            }
            Ids::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        match self {
            _ if fits => id.to_owned(),
            Ids::Plain => format!("call_{}", hash(id, 24)),
            Ids::Nine => hash(id, 9),
        }
    }
}

/// Letters and digits that stand for `text`, `length` of them.
pub(crate) fn hash(text: &str, length: usize) -> String {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let digest = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| char::from(*ALPHABET.get(usize::from(*byte) % 36).unwrap_or(&b'0'));
    digest.iter().take(length).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::{ModelOptions, ToolChoice, ToolSpec};

    #[test]
    fn names_that_vendors_refuse_are_rewritten_and_found_again() {
        let long = "x".repeat(70);
        let native = ["files.read", "files_read", "2nd", "größe", &long, "files/read"];
        let tools = native.map(|name| ToolSpec::new(name, "d"));
        let (options, choice) = (ModelOptions::default(), ToolChoice::Auto);
        let request = ModelRequest { messages: &[], tools: &tools, tool_choice: &choice, options: &options };
        let names = ToolNames::new(&request);
        let wire: Vec<String> = native.iter().map(|name| names.to_wire(name)).collect();
        let back: Vec<String> = wire.iter().map(|name| names.to_native(name)).collect();
        assert_eq!(back, native);
        assert!(wire.iter().all(|name| is_plain(name)), "{wire:?}");
        assert_eq!((&*wire[1], &*wire[2], &*wire[3]), ("files_read", "_2nd", "gr__e"));
        assert_eq!(names.to_native("nobody"), "nobody");
    }

    #[test]
    fn parameters_of_a_union_at_the_root_are_renamed_too() {
        let union = serde_json::json!({"anyOf": [{"$ref": "#/$defs/A"}, {"properties": {"größe": {}}}],
            "$defs": {"A": {"properties": {"a b": {}}}}});
        let tools = [ToolSpec { parameters: union, ..ToolSpec::new("t", "d") }];
        let (options, choice) = (ModelOptions::default(), ToolChoice::Auto);
        let request = ModelRequest { messages: &[], tools: &tools, tool_choice: &choice, options: &options };
        let names = ToolNames::new(&request).with_parameters(&request);
        let wanted = [("a b", "a_b"), ("größe", "gr__e")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(names.parameters("t"), wanted);
        let back = names.arguments_to_native("t", serde_json::json!({"a_b": 1}));
        assert_eq!(back, serde_json::json!({"a b": 1}));
    }

    #[test]
    fn ids_that_fit_stay_and_the_others_are_hashed_alike_each_time() {
        assert_eq!(Ids::Nine.to_wire("abcDEF123"), "abcDEF123");
        let short = Ids::Nine.to_wire("call_1");
        assert_eq!((short.len(), Ids::Nine.to_wire("call_1")), (9, short.clone()));
        assert_ne!(Ids::Nine.to_wire("call_2"), short);
        assert_eq!(Ids::Plain.to_wire("toolu_1"), "toolu_1");
        assert_eq!(Ids::Plain.to_wire("a:b").len(), 29);
        assert_eq!(Ids::Plain.to_wire(&"x".repeat(65)).len(), 29);
    }
}
