//! A call as one line of text, for patterns and for people: `add(x=1, note='hi')`.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use toolwright_core::ToolCall;

/// The call as one line: text in single quotes, everything else as JSON. Names that are not plain
/// words are written like text. Quotes, backslashes and control characters in text are escaped, so that an
/// argument cannot pretend to be another.
pub fn call_text(call: &ToolCall) -> String {
    Writing::Ours.text(call)
}

/// How a call is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// As [`call_text`] does.
    Ours,
    /// The same with the values of Python: `True`, `None`, `['a', 1.0]`.
    Python,
    /// As Inspect shows it to its policies: the values of Python, but texts and names bare, with nothing
    /// escaped.
    Inspect,
}

impl Writing {
    pub(super) fn text(self, call: &ToolCall) -> String {
        let mut out = call.name.to_string();
        out.push('(');
        match &call.arguments {
            Value::Object(map) => {
                for (index, (name, value)) in map.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    self.name(name, &mut out);
                    out.push('=');
                    self.value(value, &mut out);
                }
            }
            Value::Null => {}
            other => self.value(other, &mut out),
        }
        out.push(')');
        out
    }

    fn name(self, name: &str, out: &mut String) {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        match plain || self == Writing::Inspect {
            true => out.push_str(name),
            false => quote(name, out),
        }
    }

    fn value(self, value: &Value, out: &mut String) {
        match (self, value) {
            (Writing::Inspect, Value::String(text)) => {
                out.push('\'');
                out.push_str(text);
                out.push('\'');
            }
            (_, Value::String(text)) => quote(text, out),
            (Writing::Ours, other) => out.push_str(&other.to_string()),
            (_, other) => repr(other, out),
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&c.escape_unicode().to_string()),
            c => out.push(c),
        }
    }
    out.push('\'');
}

/// A value as Python's `repr` writes it. The fields of objects stand in the order they have.
fn repr(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&repr_number(number)),
        Value::String(text) => repr_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                repr(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                repr_text(name, out);
                out.push_str(": ");
                repr(field, out);
            }
            out.push('}');
        }
    }
}

fn repr_number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let text = format!("{float:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, size) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
    format!("{digits}e{sign}{size:0>2}")
}

fn repr_text(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match (c, u32::from(c)) {
            ('\n', _) => out.push_str("\\n"),
            ('\r', _) => out.push_str("\\r"),
            ('\t', _) => out.push_str("\\t"),
            _ if c == mark || c == '\\' => out.extend(['\\', c]),
            _ if is_printable(c) => out.push(c),
            (_, code @ 0..=0xff) => _ = write!(out, "\\x{code:02x}"),
            (_, code @ 0x100..=0xffff) => _ = write!(out, "\\u{code:04x}"),
            (_, code) => _ = write!(out, "\\U{code:08x}"),
        }
    }
    out.push(mark);
}

/// Rust and Python mean the same by it. A mark that joins the letter before it is printable, but not alone.
fn is_printable(c: char) -> bool {
    (' '..='~').contains(&c) || String::from_iter(['a', c]).escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_read_as_one_line_and_cannot_pretend() {
        let text = |arguments| call_text(&ToolCall::new("1", "add", arguments));
        assert_eq!(text(json!({"x": 1, "s": "hi"})), "add(x=1, s='hi')");
        assert_eq!(text(json!({"s": "a', y='b\n"})), r"add(s='a\', y=\'b\n')");
        assert_eq!(text(json!({"s='a', x": 1, "s": "b"})), r"add('s=\'a\', x'=1, s='b')");
        assert_eq!(text(json!(null)), "add()");
    }
    #[test]
    fn values_are_written_as_python_writes_them() {
        let text = |writing: Writing, arguments| writing.text(&ToolCall::new("1", "add", arguments));
        let values =
            json!({"a": [true, null, 1.0, 1e16, 1e-5, "x"], "o": {"k": "it's", "q": "'\"\n\u{200b}\u{301}"}});
        let told = r#"add(a=[True, None, 1.0, 1e+16, 1e-05, 'x'], o={'k': "it's", 'q': '\'"\n\u200b"#;
        let told = format!("{told}\u{301}'}})");
        assert_eq!(text(Writing::Python, values.clone()), told);
        assert_eq!(text(Writing::Inspect, values), told);
        let quoted = json!({"s": "sh -c 'x'\n", "a b": false});
        assert_eq!(text(Writing::Inspect, quoted.clone()), "add(s='sh -c 'x'\n', a b=False)");
        assert_eq!(text(Writing::Python, quoted), r"add(s='sh -c \'x\'\n', 'a b'=False)");
    }
}
