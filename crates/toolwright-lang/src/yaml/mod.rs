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

    pub(super) fn depth(&self) -> usize {
        match &self.data {
            Data::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Data::Map(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// A JSON document as a node, for included files. `None` when it is too large or too deep.
pub(crate) fn from_json(json: &serde_json::Value, place: Place, budget: &mut Budget) -> Option<Node> {
    use serde_json::Value;
    budget.data = budget.data.checked_sub(1)?;
    let data = match json {
        Value::Null => Data::Null,
        Value::Bool(flag) => Data::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Data::Int(number),
            (None, _) if number.is_u64() => Data::Large(number.to_string()),
            (None, number) => Data::Float(number.unwrap_or(f64::NAN)),
        },
        Value::String(text) => Data::Text(text.as_str().into()),
        Value::Array(items) => {
            Data::List(items.iter().map(|item| from_json(item, place, budget)).collect::<Option<_>>()?)
        }
        Value::Object(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map {
                let key = Node { data: Data::Text(key.as_str().into()), place };
                entries.push((key, from_json(value, place, budget)?));
            }
            Data::Map(entries)
        }
    };
    Some(Node { data, place })
}
