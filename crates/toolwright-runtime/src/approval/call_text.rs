//! A call as one line of text, for patterns and for people: `add(x=1, note='hi')`.

use serde_json::Value;
use toolwright_core::ToolCall;

/// The call as one line: text in single quotes, everything else as JSON. Names that are not plain
/// words are written like text. Quotes, backslashes and control characters in text are escaped, so that an argument cannot
/// pretend to be another.
pub fn call_text(call: &ToolCall) -> String {
    let mut out = call.name.to_string();
    out.push('(');
    match &call.arguments {
        Value::Object(map) => {
            for (index, (name, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
                    out.push_str(name);
                } else {
                    quote(name, &mut out);
                }
                out.push('=');
                write(value, &mut out);
            }
        }
        Value::Null => {}
        other => write(other, &mut out),
    }
    out.push(')');
    out
}

fn write(value: &Value, out: &mut String) {
    let Value::String(text) = value else {
        out.push_str(&value.to_string());
        return;
    };
    quote(text, out);
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
}
