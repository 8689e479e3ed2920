//! Letting go of values without recursion, however deep they are nested.

use std::sync::Arc;

use super::Value;

/// Takes the items out of a container that is going away, if any of them could hold others in turn.
pub(super) fn nested(items: Option<&mut Vec<Value>>) -> Vec<Value> {
    match items {
        Some(items) if items.iter().any(Value::is_container) => std::mem::take(items),
        _ => Vec::new(),
    }
}

/// Drops values without recursion, so that a list nested a million deep cannot overflow the stack.
pub(super) fn dismantle(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut data) = Arc::into_inner(list.0) {
                    pending.append(&mut data.take());
                }
            }
            Value::Tuple(tuple) => {
                if let Some(mut data) = Arc::into_inner(tuple.0) {
                    pending.append(&mut nested(Some(&mut data.items)));
                }
            }
            Value::Dict(dict) => {
                if let Some(mut data) = Arc::into_inner(dict.0) {
                    pending.append(&mut data.take());
                }
            }
            Value::Set(set) => {
                if let Some(mut data) = Arc::into_inner(set.0) {
                    pending.append(&mut data.take());
                }
            }
            Value::Object(object) => {
                if let Some(mut data) = Arc::into_inner(object.0) {
                    pending.append(&mut data.take());
                }
            }
            _ => {}
        }
    }
}
