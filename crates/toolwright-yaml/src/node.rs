//! The tree: what a file holds, node by node.

use std::sync::Arc;

use crate::diag::FileSpan;

/// One node of a file.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it holds.
    pub data: Data,
    /// Where it stands.
    pub place: FileSpan,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub enum Data {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// An integer beyond 64 bits, in decimal.
    Large(String),
    /// A number.
    Float(f64),
    /// Text.
    Text(Arc<str>),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file.
    Map(Vec<(Node, Node)>),
    /// Something was wrong here and has been reported.
    Bad,
}

impl Node {
    /// The text, if this is one.
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value under a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|(name, _)| name.is_key(key)).map(|(_, value)| value),
            _ => None,
        }
    }

    /// True when the node is this text.
    pub fn is_key(&self, key: &str) -> bool {
        self.text().is_some_and(|text| &**text == key)
    }

    /// What the node is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "nothing",
            Data::Bool(_) => "a boolean",
            Data::Int(_) | Data::Large(_) => "an integer",
            Data::Float(_) => "a number",
            Data::Text(_) => "text",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
            Data::Bad => "something unreadable",
        }
    }

    /// The node as plain data. Keys become text, as JSON wants them.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.data {
            Data::Null | Data::Bad => Value::Null,
            Data::Bool(flag) => Value::Bool(*flag),
            Data::Int(number) => (*number).into(),
            Data::Large(digits) => {
                digits.parse::<u64>().map_or_else(|_| Value::String(digits.clone()), Value::from)
            }
            Data::Float(number) => {
                serde_json::Number::from_f64(*number).map_or(Value::Null, serde_json::Value::Number)
            }
            Data::Text(text) => Value::String(text.to_string()),
            Data::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Data::Map(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.key_text(), value.to_json())).collect())
            }
        }
    }

    /// A scalar as the text of a key.
    pub fn key_text(&self) -> String {
        match &self.data {
            Data::Text(text) => text.to_string(),
            Data::Null | Data::Bad => "null".to_owned(),
            Data::Bool(flag) => flag.to_string(),
            Data::Int(number) => number.to_string(),
            Data::Large(digits) => digits.clone(),
            Data::Float(number) => number.to_string(),
            Data::List(_) | Data::Map(_) => String::new(),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match &self.data {
            Data::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Data::Map(entries) => {
                1 + entries.iter().map(|(key, value)| key.size() + value.size()).sum::<usize>()
            }
            _ => 1,
        }
    }

    /// How deep the lists and maps in it are nested.
    pub fn depth(&self) -> usize {
        match &self.data {
            Data::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Data::Map(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}
