//! YAML text as a tree in which every node knows its place.
//!
//! The scanner is serde-saphyr's; the tree is our own because a tool file needs what a plain value cannot keep: places,
//! how a scalar was quoted, `!include`, and PyYAML's reading of plain words. How text becomes a tree is in `read`, where
//! a part of a text stands in the file in `place`.

mod advice;
mod data;
mod place;
mod read;

use std::sync::Arc;

use toolwright_expr::Value;

use crate::diag::Place;

pub use self::data::read_data;
pub(crate) use self::place::{Origin, within};
pub(crate) use self::read::{Budget, Include, MAX_BYTES, MAX_DATA, MAX_DEPTH, parse};

/// One node of a file.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) data: Data,
    pub(crate) place: Place,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits, in decimal.
    Large(String),
    Float(f64),
    Text(Arc<str>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// Something was wrong here and has been reported.
    Bad,
}

impl Node {
    /// The text, if this is one.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value under a key, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|(name, _)| name.is_key(key)).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn is_key(&self, key: &str) -> bool {
        self.text().is_some_and(|text| &**text == key)
    }

    /// What the node is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
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
    pub(crate) fn to_json(&self) -> serde_json::Value {
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
    pub(crate) fn key_text(&self) -> String {
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

    pub(super) fn size(&self) -> usize {
        match &self.data {
            Data::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Data::Map(entries) => {
                1 + entries.iter().map(|(key, value)| key.size() + value.size()).sum::<usize>()
            }
            _ => 1,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        match &self.data {
            Data::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Data::Map(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// A value that was read from JSON as a node, for included files. `None` when there is too much of it.
pub(crate) fn from_value(value: &Value, place: Place, budget: &mut Budget) -> Option<Node> {
    budget.data = budget.data.checked_sub(1)?;
    let data = match value {
        Value::Bool(flag) => Data::Bool(*flag),
        Value::Int(number) => Data::Int(*number),
        Value::Big(_) => Data::Large(value.to_string()),
        Value::Float(number) => Data::Float(*number),
        Value::Str(text) => Data::Text(text.as_str().into()),
        Value::List(items) => {
            let items = items.snapshot();
            Data::List(items.iter().map(|item| from_value(item, place, budget)).collect::<Option<_>>()?)
        }
        Value::Dict(dict) => {
            let mut entries = Vec::with_capacity(dict.len());
            for (key, value) in dict.entries() {
                let key = Node { data: Data::Text(key.as_str().unwrap_or_default().into()), place };
                entries.push((key, from_value(&value, place, budget)?));
            }
            Data::Map(entries)
        }
        // Null; nothing else comes of JSON.
        _ => Data::Null,
    };
    Some(Node { data, place })
}
