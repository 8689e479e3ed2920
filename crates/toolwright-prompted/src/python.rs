//! Python's way from text to values, without running anything.
//!
//! The evaluator of `toolwright-expr` does the reading: it has Python's numbers, texts and containers and
//! reaches nothing else. Text is checked to be a literal before it is evaluated at all.

use toolwright_expr::{ErrorKind, EvalLimits, Program, Value, is_builtin};

use crate::error::{PromptError, PromptErrorKind};

/// How deep literals may be nested.
const MAX_DEPTH: usize = 90;

/// A parameter's text as a value of its declared type, which is the name of a Python type.
///
/// `list` and `dict` read a literal, whose own type is not checked. Any other type is called with the text;
/// text it refuses stays text. So `bool` makes everything but nothing true, as in Python. A name that is not
/// a Python type, or that would do more than make a value (`eval`, `open`), is an error.
pub fn convert(text: &str, kind: &str) -> Result<Value, PromptError> {
    if matches!(kind, "list" | "dict") {
        return literal(text);
    }
    if !is_builtin(kind) {
        return Err(value_error(format!(
            "there is no type `{kind}`: use str, int, float, bool, list or dict"
        )));
    }
    let made = Program::compile(&format!("{kind}(x)"))
        .and_then(|program| program.evaluate(&[("x", Value::str(text))], &EvalLimits::default()));
    match made {
        Ok(value) => Ok(value),
        Err(error) if error.kind() == ErrorKind::Value => Ok(Value::str(text)),
        Err(error) => Err(value_error(format!("`{kind}` takes no text: {}", error.message()))),
    }
}

/// A truth value of a tool of ours, by its words. The package has no such type, and its `bool` takes `False`
/// for true.
pub(crate) fn truth(text: &str) -> Value {
    match text.trim() {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        _ => Value::str(text),
    }
}

/// The value of a literal, as `ast.literal_eval` reads it.
fn literal(text: &str) -> Result<Value, PromptError> {
    // Space before the text does not count as its indentation; space before a later first line is.
    let text = text.trim_start_matches([' ', '\t']);
    let refused = |why: &str| {
        let shown = toolwright_core::text::clip(text, 200);
        value_error(format!(
            "{shown:?} is not a Python literal ({why}); write True, False and None, and quote texts"
        ))
    };
    if !(Scan { rest: text }).is_literal() {
        return Err(refused("it holds something other than data"));
    }
    let program = Program::compile(text.trim_end()).map_err(|error| refused(error.message()))?;
    program
        .evaluate(&Vec::<(&str, Value)>::new().as_slice(), &EvalLimits::default())
        .map_err(|error| refused(error.message()))
}

fn value_error(message: String) -> PromptError {
    PromptError::new(PromptErrorKind::Value, message)
}

/// Tells whether a text is a literal: data, with no names, calls or operators but a number's sign.
struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    /// Whether all of it is one literal; several with commas between them are a tuple.
    fn is_literal(&mut self) -> bool {
        if indented(self.rest) || !self.value(0) {
            return false;
        }
        while self.take(',') {
            if !self.is_at_end() && !self.value(0) {
                return false;
            }
        }
        self.is_at_end()
    }

    fn value(&mut self, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        if self.take('[') {
            return self.items(']', depth);
        }
        if self.take('(') {
            return self.items(')', depth);
        }
        if self.take('{') {
            return self.items('}', depth);
        }
        if let Some(rest) = ["None", "True", "False", "set()", "..."]
            .iter()
            .find_map(|word| self.skipped().strip_prefix(word))
        {
            self.rest = rest;
            return true;
        }
        if self.text() {
            while self.text() {}
            return true;
        }
        self.number()
    }

    /// The items of a container, up to its end. Whether `:` and `,` stand where they must is left to the
    /// evaluator.
    fn items(&mut self, end: char, depth: usize) -> bool {
        loop {
            if self.take(end) {
                return true;
            }
            if !self.value(depth + 1) {
                return false;
            }
            let _ = self.take(':') || self.take(',');
        }
    }

    /// A number, with its sign; or a real and an imaginary part.
    fn number(&mut self) -> bool {
        let _ = self.take('+') || self.take('-');
        if !self.digits() {
            return false;
        }
        let before = self.rest;
        if self.take('+') || self.take('-') {
            let start = self.skipped();
            if !self.digits() {
                return false;
            }
            let taken = start.len() - self.rest.len();
            let imaginary = start.get(..taken).is_some_and(|part| part.ends_with(['j', 'J']));
            if !imaginary {
                self.rest = before;
                return false;
            }
        }
        true
    }

    fn digits(&mut self) -> bool {
        let text = self.skipped();
        if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return false;
        }
        let prefixed = ["0x", "0X", "0o", "0O", "0b", "0B"].iter().any(|prefix| text.starts_with(prefix));
        let mut end = 0;
        let mut last = '0';
        for c in text.chars() {
            let in_number = match c {
                '0'..='9' | '_' | '.' => true,
                'x' | 'X' | 'o' | 'O' | 'a'..='f' | 'A'..='F' if prefixed => true,
                'e' | 'E' | 'j' | 'J' => true,
                '+' | '-' => matches!(last, 'e' | 'E') && !prefixed,
                _ => false,
            };
            if !in_number {
                break;
            }
            end += c.len_utf8();
            last = c;
        }
        self.rest = text.get(end..).unwrap_or_default();
        true
    }

    /// One piece of quoted text.
    fn text(&mut self) -> bool {
        let text = self.skipped();
        let prefix = text.chars().take_while(|c| c.is_ascii_alphabetic()).count();
        let (letters, quoted) = text.split_at_checked(prefix).unwrap_or(("", text));
        let known = matches!(letters.to_ascii_lowercase().as_str(), "" | "r" | "b" | "u" | "br" | "rb");
        let Some(quote) = quoted.chars().next().filter(|c| known && matches!(c, '\'' | '"')) else {
            return false;
        };
        let triple = quote.to_string().repeat(3);
        let ends = if quoted.starts_with(&triple) { triple } else { quote.to_string() };
        let mut rest = quoted.get(ends.len()..).unwrap_or_default();
        loop {
            if let Some(after) = rest.strip_prefix(ends.as_str()) {
                self.rest = after;
                return true;
            }
            let mut chars = rest.chars();
            match chars.next() {
                None => return false,
                Some('\\') => drop(chars.next()),
                Some(_) => {}
            }
            rest = chars.as_str();
        }
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.skipped().strip_prefix(c);
        if let Some(rest) = found {
            self.rest = rest;
        }
        found.is_some()
    }

    /// What is left, without the space and the comments before it.
    fn skipped(&self) -> &'a str {
        let mut rest = self.rest;
        loop {
            let after = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
            rest = match (after.strip_prefix('#'), after.strip_prefix("\\\n")) {
                (Some(comment), _) => {
                    comment.find('\n').and_then(|end| comment.get(end..)).unwrap_or_default()
                }
                (None, Some(next_line)) => next_line,
                (None, None) => return after,
            };
        }
    }

    fn is_at_end(&self) -> bool {
        self.skipped().is_empty()
    }
}

/// Whether the first line that says something is indented, which Python refuses.
fn indented(text: &str) -> bool {
    let says = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().find(says).is_some_and(|line| line.starts_with([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_and_nothing_else() {
        let read = |text: &str| literal(text).map(|value| format!("{value:?}")).ok();
        for (text, value) in [
            ("[1, 2.5, None, True]", "[1, 2.5, None, True]"),
            ("{'a': (1,), 'b': {2}}", "{'a': (1,), 'b': {2}}"),
            (" -1e-3 ", "-0.001"),
            ("1+2j", "(1+2j)"),
            ("'it''s' \"x\"", "'itsx'"),
            ("0x1F", "31"),
            ("[]", "[]"),
            ("r'a\\b'", "'a\\\\b'"),
            ("1, 2", "(1, 2)"),
            ("1,", "(1,)"),
            ("[1] # one", "[1]"),
            ("# one\n[1]\n", "[1]"),
            ("[1,\\\n2]", "[1, 2]"),
        ] {
            assert_eq!(read(text).as_deref(), Some(value), "{text}");
        }
        for text in [
            "",
            "1+1",
            "[x]",
            "f()",
            "[true]",
            "{k: ",
            "1if 2else 3",
            "[1",
            "'a",
            "[1 for x in []]",
            "-'a'",
            "--1",
            "\n [1]",
            "[1]\u{a0}",
            ",",
            "1,,2",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&format!("{}{}", "[".repeat(200), "]".repeat(200))), None);
    }

    #[test]
    fn types_that_would_run_something_are_refused() {
        for kind in ["eval", "exec", "open", "__import__", "compile", "input", "str ", "", "list[int]", "a;b"]
        {
            assert_eq!(convert("1+1", kind).unwrap_err().kind(), PromptErrorKind::Value, "{kind}");
        }
        assert_eq!(format!("{:?}", convert("٣", "int").unwrap()), "3");
        assert_eq!(format!("{:?}", convert("3.0", "int").unwrap()), "'3.0'");
    }
}
