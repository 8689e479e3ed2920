//! References inside a document: `#/components/schemas/Pet`. Nothing outside of the document is looked up.

use serde_json::Value;

/// How many references may follow one another.
const MAX_HOPS: usize = 50;

/// What a JSON pointer leads to; `""` is the whole value. A pointer may be written as a fragment (`#/a/b`).
pub fn find<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    let fragment = pointer.strip_prefix('#');
    let pointer = fragment.unwrap_or(pointer);
    let found = root.pointer(pointer);
    if found.is_some() || fragment.is_none() || !pointer.contains('%') {
        return found;
    }
    // A fragment of a URI may be percent-encoded.
    root.pointer(&percent_decoded(pointer)?)
}

/// The object that a value is or refers to; an error says why there is none.
pub(crate) fn resolved<'v>(root: &'v Value, value: &'v Value) -> Result<&'v Value, String> {
    let mut at = value;
    for _ in 0..MAX_HOPS {
        let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return Ok(at) };
        at = target(root, reference)?;
    }
    Err(format!("more than {MAX_HOPS} references follow one another"))
}

/// What a reference leads to.
pub(crate) fn target<'v>(root: &'v Value, reference: &str) -> Result<&'v Value, String> {
    if !reference.starts_with('#') {
        return Err(format!("`{reference}` is in another document, and none is fetched"));
    }
    find(root, reference).ok_or_else(|| format!("`{reference}` leads nowhere in the document"))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_stay_in_the_document_and_end() {
        let root = json!({"a b": {"$ref": "#/c~1d"}, "c/d": 1, "x": {"$ref": "#/y"}, "y": {"$ref": "#/x"}});
        assert_eq!(find(&root, "#/a%20b"), Some(&json!({"$ref": "#/c~1d"})));
        let of = |reference: &str| resolved(&root, &json!({"$ref": reference})).cloned();
        assert_eq!(of("#/a b"), Ok(json!(1)));
        assert!(of("#/x").unwrap_err().contains("follow one another"));
        assert!(of("other.yaml#/x").unwrap_err().contains("another document"));
        assert!(of("https://example.com/#/x").is_err() && of("#/nosuch").is_err());
    }
}
