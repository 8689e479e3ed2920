//! One entry put into a JSON text. Everything else stays as it was written: blanks, order, every digit of a
//! number.

use std::ops::Range;

use serde_json::Value;

/// A text with `value` under `outer` and `name`, and whether there was one before; `None` when `outer` is no
/// object. The text must be a JSON object.
pub fn put(text: &str, outer: &str, name: &str, value: &Value) -> Option<(String, bool)> {
    let root = Object::at(text, text.find('{')?)?;
    let Some(servers) = root.find(outer) else {
        let all = serde_json::json!({name: value});
        return Some((root.with(text, outer, &all, 1)?, false));
    };
    let servers = Object::at(text, servers.start)?;
    let known = servers.find(name).is_some();
    Some((servers.with(text, name, value, 2)?, known))
}

/// An object in a text: where it stands, and where the values of its keys do.
struct Object {
    place: Range<usize>,
    members: Vec<(String, Range<usize>)>,
}

impl Object {
    /// The object that begins there; `None` when something else does.
    fn at(text: &str, start: usize) -> Option<Object> {
        let mut at = start + text.get(start..)?.starts_with('{').then_some(1)?;
        let mut members = Vec::new();
        loop {
            at = skip(text, at, |byte| byte.is_ascii_whitespace() || byte == b',');
            if text.get(at..)?.starts_with('}') {
                return Some(Object { place: start..at + 1, members });
            }
            let key = at..end(text, at);
            let value = skip(text, key.end, |byte| byte.is_ascii_whitespace() || byte == b':');
            at = end(text, value);
            members.push((serde_json::from_str(text.get(key)?).ok()?, value..at));
        }
    }

    /// Where the value of a key stands. Of a key that is there twice, the last counts, as everywhere.
    fn find(&self, key: &str) -> Option<Range<usize>> {
        self.members.iter().rfind(|(known, _)| known == key).map(|(_, place)| place.clone())
    }

    /// The text with a value under this key, moved in by so many steps.
    fn with(&self, text: &str, key: &str, value: &Value, steps: usize) -> Option<String> {
        let step = format!("\n{}", "  ".repeat(steps));
        let value = serde_json::to_string_pretty(value).ok()?.replace('\n', &step);
        let entry = format!("{step}{}: {value}", Value::from(key));
        let (place, new) = match (self.find(key), self.members.last()) {
            (Some(place), _) => (place, value),
            (None, Some((_, last))) => (last.end..last.end, format!(",{entry}")),
            (None, None) => (self.place.clone(), format!("{{{entry}\n{}}}", "  ".repeat(steps - 1))),
        };
        Some(format!("{}{new}{}", text.get(..place.start)?, text.get(place.end..)?))
    }
}

/// The first place from here on where this does not hold.
fn skip(text: &str, at: usize, over: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| over(**byte)).count()
}

/// Where the value that begins here ends.
fn end(text: &str, start: usize) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            if !quoted && depth == 0 {
                return at + 1;
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => depth += 1,
            // A number or a word, which ends where something else begins.
            b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, want: &str, known: bool) {
        let new = json!({"command": "tw"});
        let got = put(text, "mcpServers", "toolwright", &new);
        assert_eq!(got, Some((want.to_owned(), known)), "{text}");
        let parsed: Value = serde_json::from_str(want).unwrap();
        assert_eq!(parsed["mcpServers"]["toolwright"], new);
    }

    #[test]
    fn an_entry_is_put_in_and_nothing_else_changes() {
        let entry = "\"toolwright\": {\n      \"command\": \"tw\"\n    }";
        let fresh = format!("\"mcpServers\": {{\n    {entry}\n  }}");
        check("{}", &format!("{{\n  {fresh}\n}}"), false);
        // Numbers keep their digits, texts their signs, and blanks their places.
        let odd =
            "{ \"big\":123456789012345678901,\n\t\"f\": 9007199254740993.5e0 , \"t\": \"a\\\"}, {\\\\\" }";
        check(odd, &odd.replacen(" }", &format!(",\n  {fresh} }}"), 1), false);
        let empty = "{\"mcpServers\": {}, \"n\": [1.0, {\"toolwright\": 1}]}\n";
        check(empty, &empty.replace("{}", &format!("{{\n    {entry}\n  }}")), false);
        let others = "{\"mcpServers\": {\"a\": {\"env\": {\"K\": \"s\"}}}}";
        check(others, &others.replace("\"s\"}}", &format!("\"s\"}}}},\n    {entry}")), false);
        let known = "{\"mcpServers\":{\"toolwright\":[1,{}],\"b\":1e40}}";
        check(known, &known.replace("[1,{}]", "{\n      \"command\": \"tw\"\n    }"), true);
        assert_eq!(put("{\"mcpServers\": 7}", "mcpServers", "x", &json!(1)), None);
    }
}
