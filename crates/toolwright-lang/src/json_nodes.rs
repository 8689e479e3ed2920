//! Included JSON as nodes, in which every value stands where the file is included.

use toolwright_expr::Value;

use crate::diag::FileSpan;
use crate::yaml::{Budget, Data, Node};

/// A value that was read from JSON as a node, for included files. `None` when there is too much of it.
pub(crate) fn from_value(value: &Value, place: FileSpan, budget: &mut Budget) -> Option<Node> {
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
