//! The YAML text of `as_yaml`: block style, one line per item, long texts cut to the lines asked for.

use crate::error::Error;
use crate::fuel::Fuel;
use crate::value::{ObjectData, Value};

/// The value as YAML. `lines` bounds the lines of each text; none means no bound.
pub(crate) fn text(value: &Value, lines: Option<usize>, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let mut writer = Writer { out: String::new(), lines, fuel };
    writer.node(value, 0, Place::Root)?;
    Ok(writer.out)
}

/// Where a node stands, which decides how it begins.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    /// After `key:`.
    Field,
    /// After `- `.
    Item,
}

struct Writer<'p, 'f> {
    out: String,
    lines: Option<usize>,
    fuel: &'p mut Fuel<'f>,
}

impl Writer<'_, '_> {
    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.fuel.allocate(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn node(&mut self, value: &Value, indent: usize, place: Place) -> Result<(), Error> {
        self.fuel.enter()?;
        match value {
            Value::List(list) => self.sequence(&list.snapshot(), indent, place)?,
            Value::Tuple(items) => self.sequence(items, indent, place)?,
            Value::Set(set) => self.sequence(&crate::iter::set_order(&set.snapshot()), indent, place)?,
            Value::Dict(dict) => {
                let entries = dict.entries();
                self.mapping(&entries, indent, place)?;
            }
            Value::Object(object) => match object.data() {
                ObjectData::Struct(fields) => {
                    let entries: Vec<_> =
                        fields.iter().map(|(name, value)| (Value::str(&**name), value.clone())).collect();
                    self.mapping(&entries, indent, place)?;
                }
                _ => self.scalar(value, indent, place)?,
            },
            _ => self.scalar(value, indent, place)?,
        }
        self.fuel.leave();
        Ok(())
    }

    fn sequence(&mut self, items: &[Value], indent: usize, place: Place) -> Result<(), Error> {
        if items.is_empty() {
            return self.inline("[]", place);
        }
        // A list under a key is not indented further; a list in a list begins on the same line.
        let (mut first, indent) = match place {
            Place::Root => (false, indent),
            Place::Field => {
                self.push("\n")?;
                (false, indent)
            }
            Place::Item => {
                self.push(" ")?;
                (true, indent + 2)
            }
        };
        for item in items {
            if !std::mem::take(&mut first) {
                self.push(&" ".repeat(indent))?;
            }
            self.push("-")?;
            self.node(item, indent, Place::Item)?;
        }
        Ok(())
    }

    fn mapping(&mut self, entries: &[(Value, Value)], indent: usize, place: Place) -> Result<(), Error> {
        if entries.is_empty() {
            return self.inline("{}", place);
        }
        let (mut first, indent) = match place {
            Place::Root => (false, indent),
            Place::Field => {
                self.push("\n")?;
                (false, indent + 2)
            }
            Place::Item => {
                self.push(" ")?;
                (true, indent + 2)
            }
        };
        for (key, value) in entries {
            if !std::mem::take(&mut first) {
                self.push(&" ".repeat(indent))?;
            }
            let key = crate::repr::text(key, self.fuel)?;
            self.push(&quoted(&key))?;
            self.push(":")?;
            self.node(value, indent, Place::Field)?;
        }
        Ok(())
    }

    fn inline(&mut self, text: &str, place: Place) -> Result<(), Error> {
        if place != Place::Root {
            self.push(" ")?;
        }
        self.push(text)?;
        self.push("\n")
    }

    fn scalar(&mut self, value: &Value, indent: usize, place: Place) -> Result<(), Error> {
        let shown = match value {
            Value::Str(text) => match self.cut(text)? {
                Cut::Block(block) => return self.block(&block, indent, place),
                Cut::Plain => quoted(text),
            },
            Value::None => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Float(number) if number.is_nan() => ".nan".to_owned(),
            Value::Float(number) if number.is_infinite() => {
                if *number > 0.0 { ".inf" } else { "-.inf" }.to_owned()
            }
            Value::Int(_) | Value::Big(_) | Value::Float(_) => crate::repr::repr(value, self.fuel)?,
            other => quoted(&crate::repr::repr(other, self.fuel)?),
        };
        self.inline(&shown, place)?;
        // A document that is a bare word ends with a mark of its own.
        if place == Place::Root && !shown.starts_with(['\'', '"']) {
            self.push("...\n")?;
        }
        Ok(())
    }

    /// Applies the bound on lines; texts of several lines become a block.
    fn cut(&mut self, text: &str) -> Result<Cut, Error> {
        self.fuel.allocate(text.len())?;
        let Some(most) = self.lines else {
            if !text.contains('\n') {
                return Ok(Cut::Plain);
            }
            return Ok(Cut::Block(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")));
        };
        let lines: Vec<&str> = text.lines().collect();
        let mut shown: Vec<String> = Vec::new();
        let mut cut_off = 0usize;
        for line in &lines {
            let room = (most - shown.len()).saturating_mul(80);
            let length = line.chars().count();
            if length >= room {
                shown.push(line.chars().take(room).collect());
                cut_off = length - room;
                break;
            }
            shown.push((*line).to_owned());
            if shown.len() == most {
                break;
            }
        }
        let left = lines.len() - shown.len();
        if left == 0 && cut_off == 0 {
            return Ok(if text.contains('\n') { Cut::Block(text.to_owned()) } else { Cut::Plain });
        }
        let message = match (cut_off, left) {
            (cut_off, 0) => format!("[{cut_off} characters trimmed]"),
            (0, left) => format!("[{left} lines trimmed]"),
            (cut_off, left) => format!("[{cut_off} characters and {left} lines trimmed]"),
        };
        match shown.last_mut() {
            Some(last) if cut_off > 0 => last.push_str(&format!("...{message}")),
            _ => shown.push(message),
        }
        Ok(Cut::Block(shown.join("\n")))
    }

    /// A literal block, `|` with its text indented below.
    fn block(&mut self, text: &str, indent: usize, place: Place) -> Result<(), Error> {
        let indent = if place == Place::Root { 2 } else { indent + 2 };
        if place != Place::Root {
            self.push(" ")?;
        }
        let body = text.strip_suffix('\n').unwrap_or(text);
        let end = match text.len() - body.len() {
            0 => "-",
            _ if body.ends_with('\n') => "+",
            _ => "",
        };
        let first_blank = if text.starts_with([' ', '\n']) { "2" } else { "" };
        self.push(&format!("|{first_blank}{end}\n"))?;
        for line in body.split('\n') {
            if line.is_empty() {
                self.push("\n")?;
            } else {
                self.push(&format!("{}{line}\n", " ".repeat(indent)))?;
            }
        }
        Ok(())
    }
}

enum Cut {
    Plain,
    Block(String),
}

/// A one-line text, in quotes when it would otherwise read as something else.
fn quoted(text: &str) -> String {
    let odd = text.chars().any(|c| c != ' ' && !crate::repr::is_printable(c));
    if odd {
        let mut out = String::from('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                _ if crate::repr::is_printable(c) => out.push(c),
                _ if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02X}", c as u32)),
                _ if (c as u32) < 0x1_0000 => out.push_str(&format!("\\u{:04X}", c as u32)),
                _ => out.push_str(&format!("\\U{:08X}", c as u32)),
            }
        }
        out.push('"');
        return out;
    }
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

fn is_plain(text: &str) -> bool {
    let words = ["null", "~", "true", "false", "yes", "no", "on", "off", ".nan", ".inf", "-.inf", "+.inf"];
    let lower = text.to_ascii_lowercase();
    if text.is_empty() || words.contains(&lower.as_str()) || text.starts_with(' ') || text.ends_with(' ') {
        return false;
    }
    let number_like = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && text.chars().all(|c| {
            c.is_ascii_hexdigit() || matches!(c, '+' | '-' | '.' | '_' | ':' | 'x' | 'o' | 'T' | ' ')
        });
    if number_like || text.contains(": ") || text.contains(" #") || text.ends_with(':') {
        return false;
    }
    let first_needs_quotes = text.starts_with([
        ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '=', '?',
    ]);
    let dash = text.starts_with("- ") || text == "-" || text.starts_with("---");
    !first_needs_quotes && !dash && !text.starts_with(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn shown(value: Value, lines: Option<usize>) -> String {
        let limits = Limits::default();
        text(&value, lines, &mut Fuel::new(&limits)).unwrap()
    }

    #[test]
    fn nested_data_is_written_in_blocks() {
        let inner = Value::dict([("x", Value::Int(1)), ("z", Value::str("yes"))]);
        let value = Value::dict([
            ("a", Value::list(vec![inner, Value::list(vec![Value::None])])),
            ("e", Value::dict::<&str>([])),
        ]);
        assert_eq!(shown(value, Some(1)), "a:\n- x: 1\n  z: 'yes'\n- - null\ne: {}\n");
    }

    #[test]
    fn long_texts_say_what_was_cut() {
        assert_eq!(shown(Value::str("l1\nl2"), Some(1)), "|-\n  l1\n  [1 lines trimmed]\n");
        assert_eq!(shown(Value::str("l1\nl2\n"), None), "|-\n  l1\n  l2\n");
    }
}
