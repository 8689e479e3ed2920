//! Where the references of a schema lead inside its document.
//!
//! A name may be found in several places when parts of the document have addresses of their own; then all of
//! them are given. Nobody checks values with this, it only bounds the work, and more work than there is does
//! no harm.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;

/// The places of a document that references can name.
pub(super) struct Places<'a> {
    root: &'a Value,
    /// Parts with an address of their own, by the last piece of it.
    addresses: Vec<(String, &'a Value)>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
}

impl<'a> Places<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut places = Places { root, addresses: Vec::new(), anchors: HashMap::new() };
        let mut todo = vec![root];
        while let Some(value) = todo.pop() {
            match value {
                Value::Array(items) => todo.extend(items),
                Value::Object(map) => {
                    let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
                    for address in ["$id", "id"].into_iter().filter_map(text) {
                        match address.strip_prefix('#') {
                            Some(anchor) => places.anchors.entry(anchor).or_default().push(value),
                            None => places.addresses.push((last_piece(address), value)),
                        }
                    }
                    for anchor in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
                        places.anchors.entry(anchor).or_default().push(value);
                    }
                    todo.extend(map.values());
                }
                _ => {}
            }
        }
        places
    }

    /// Everything that a reference may mean. Nothing for the schemas of JSON Schema itself.
    pub(super) fn find(&self, reference: &str) -> Result<Vec<&'a Value>, SchemaError> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let wanted = last_piece(address);
        let named = self.addresses.iter().filter(|(piece, _)| address.is_empty() || *piece == wanted);
        let here = address.is_empty().then_some(self.root);
        let mut starts: Vec<&'a Value> = here.into_iter().chain(named.map(|(_, value)| *value)).collect();
        starts.dedup_by(|a, b| std::ptr::eq(*a, *b));
        let fragment = unescaped(fragment);
        let found: Vec<&'a Value> = match fragment.as_str() {
            "" => starts,
            pointer if pointer.starts_with('/') => {
                starts.into_iter().filter_map(|start| start.pointer(pointer)).collect()
            }
            anchor => self.anchors.get(anchor).cloned().unwrap_or_default(),
        };
        if found.is_empty() && !address.contains("//json-schema.org/") {
            return Err(SchemaError(format!("its reference `{reference}` leads to nothing in it")));
        }
        Ok(found)
    }
}

fn last_piece(address: &str) -> String {
    let address = address.split('#').next().unwrap_or_default().trim_end_matches('/');
    unescaped(address.rsplit('/').next().unwrap_or_default())
}

/// The text with `%41` written as `A`.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_found_however_they_are_written() {
        let schema = json!({
            "$id": "http://example.com/root.json",
            "$defs": {
                "a b": {"const": 1},
                "c": {"$id": "other/part", "$defs": {"d": {"const": 2}}, "$anchor": "here", "const": 3}
            }
        });
        let places = Places::of(&schema);
        let found = |reference: &str| {
            let all = places.find(reference).unwrap();
            all.into_iter().filter_map(|schema| schema.get("const").cloned()).collect::<Vec<_>>()
        };
        assert_eq!(found("#/$defs/a%20b"), [json!(1)]);
        assert_eq!(found("http://example.com/root.json#/$defs/a b"), [json!(1)]);
        assert_eq!(found("part#/$defs/d"), [json!(2)]);
        assert_eq!(found("#/$defs/d"), [json!(2)]);
        assert_eq!(found("#here"), [json!(3)]);
        assert_eq!(found("https://json-schema.org/draft/2020-12/schema"), Vec::<Value>::new());
        assert!(places.find("#/nowhere").is_err());
    }
}
