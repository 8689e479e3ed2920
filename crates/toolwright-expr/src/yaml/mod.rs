//! The YAML text of `as_yaml`, character for character what PyYAML writes: block style, no sorting, lines of
//! about 80 characters. Long texts are cut to the lines asked for first, as llm-workers does it.

mod cut;
mod plain;
mod scalar;

use indexmap::IndexMap;

use crate::error::Error;
use crate::fuel::Fuel;
use crate::value::{ObjectData, Value};

use self::cut::Cut;

/// Lines longer than this are folded where a blank allows it.
const WIDTH: usize = 80;

/// How far each level stands in.
const STEP: usize = 2;

/// The longest text that can be a key on the line of its value. Six characters of 128 are PyYAML's for the
/// tag.
const LONGEST_KEY: usize = 122;

/// The value as YAML. `lines` bounds the lines of each text; none means no bound.
pub(crate) fn text(value: &Value, lines: Option<i64>, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let mut writer = YamlWriter {
        out: String::new(),
        column: 0,
        after_blank: true,
        at_indent: true,
        open_ended: false,
        lines,
        fuel,
    };
    writer.node(value, None, NodePosition::Root)?;
    writer.indent(0)?;
    if writer.open_ended {
        writer.indicator("...", true, false, false)?;
        writer.indent(0)?;
    }
    Ok(writer.out)
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq)]
enum NodePosition {
    Root,
    /// In a list.
    Item,
    /// A key of a dict that stands on the line of its value.
    Key,
    /// A value of a dict, or a key that has a line of its own.
    Field,
}

/// Writes nodes, and knows where on the line it is.
struct YamlWriter<'p, 'f> {
    out: String,
    column: usize,
    /// The last character was a blank or the end of a line.
    after_blank: bool,
    /// Nothing but indentation and marks of lists and keys is on the line.
    at_indent: bool,
    /// The document has no explicit end.
    open_ended: bool,
    lines: Option<i64>,
    fuel: &'p mut Fuel<'f>,
}

impl YamlWriter<'_, '_> {
    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.fuel.allocate(text.len())?;
        self.out.push_str(text);
        self.column += text.chars().count();
        Ok(())
    }

    fn line_break(&mut self, mark: char) -> Result<(), Error> {
        self.push(mark.encode_utf8(&mut [0; 4]))?;
        (self.column, self.after_blank, self.at_indent) = (0, true, true);
        Ok(())
    }

    /// Goes to where a line of that indentation begins, on a new line unless this one is still there.
    fn indent(&mut self, indent: usize) -> Result<(), Error> {
        if !self.at_indent || self.column > indent || self.column == indent && !self.after_blank {
            self.line_break('\n')?;
        }
        if self.column < indent {
            self.after_blank = true;
            self.push(&" ".repeat(indent - self.column))?;
        }
        Ok(())
    }

    fn indicator(&mut self, mark: &str, spaced: bool, blank: bool, indents: bool) -> Result<(), Error> {
        if spaced && !self.after_blank {
            self.push(" ")?;
        }
        self.after_blank = blank;
        self.at_indent &= indents;
        self.open_ended = false;
        self.push(mark)
    }

    /// Writes a node inside one whose lines stand in by `outer`.
    fn node(&mut self, value: &Value, outer: Option<usize>, place: NodePosition) -> Result<(), Error> {
        self.fuel.enter()?;
        match value {
            Value::List(list) => self.sequence(&list.snapshot(), outer, place)?,
            Value::Tuple(items) => self.sequence(items, outer, place)?,
            Value::Set(set) if !set.is_frozen() => {
                self.sequence(&crate::iter::set_order(&set.snapshot()), outer, place)?;
            }
            Value::Dict(dict) => {
                let entries = dict.entries();
                self.mapping(entries.iter().map(|(key, value)| (key, value)), outer)?;
            }
            Value::Object(object) => match object.data() {
                ObjectData::Struct(fields) => {
                    let entries: Vec<_> =
                        fields.iter().map(|(name, value)| (Value::str(&**name), value.clone())).collect();
                    self.mapping(entries.iter().map(|(key, value)| (key, value)), outer)?;
                }
                _ => self.scalar_node(value, outer, place)?,
            },
            _ => self.scalar_node(value, outer, place)?,
        }
        self.fuel.leave();
        Ok(())
    }

    fn sequence(&mut self, items: &[Value], outer: Option<usize>, place: NodePosition) -> Result<(), Error> {
        if items.is_empty() {
            self.indicator("[", true, true, false)?;
            return self.indicator("]", false, false, false);
        }
        // A list under a key does not stand in further.
        let indent = match outer {
            None => 0,
            Some(outer) if place == NodePosition::Field && !self.at_indent => outer,
            Some(outer) => outer + STEP,
        };
        for item in items {
            self.indent(indent)?;
            self.indicator("-", true, false, true)?;
            self.node(item, Some(indent), NodePosition::Item)?;
        }
        Ok(())
    }

    fn mapping<'v>(
        &mut self,
        entries: impl Iterator<Item = (&'v Value, &'v Value)>,
        outer: Option<usize>,
    ) -> Result<(), Error> {
        // Keys become text, and of two that are then the same the last value stands in the first place.
        let mut named = IndexMap::new();
        for (key, value) in entries {
            self.fuel.spend(1)?;
            named.insert(crate::repr::text(key, self.fuel)?, value);
        }
        if named.is_empty() {
            self.indicator("{", true, true, false)?;
            return self.indicator("}", false, false, false);
        }
        let indent = outer.map_or(0, |outer| outer + STEP);
        for (key, value) in named {
            self.indent(indent)?;
            let short = key.chars().take(LONGEST_KEY + 1).count() <= LONGEST_KEY;
            if short && !key.is_empty() && !key.contains(scalar::is_break) {
                self.scalar(&key, indent, NodePosition::Key)?;
                self.indicator(":", false, false, false)?;
            } else {
                self.indicator("?", true, false, true)?;
                self.scalar(&key, indent, NodePosition::Field)?;
                self.indent(indent)?;
                self.indicator(":", true, false, true)?;
            }
            self.node(value, Some(indent), NodePosition::Field)?;
        }
        Ok(())
    }

    fn scalar_node(&mut self, value: &Value, outer: Option<usize>, place: NodePosition) -> Result<(), Error> {
        // A multi-line text at the root is indented too.
        let indent = outer.map_or(STEP, |outer| outer + STEP);
        let shown = match value {
            Value::Str(text) => match cut::cut(text, self.lines, self.fuel)? {
                Cut::Block(block) => return self.block(&block, indent),
                Cut::Whole => return self.scalar(text, outer.unwrap_or(0), place),
            },
            Value::None => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Float(number) if number.is_nan() => ".nan".to_owned(),
            Value::Float(number) if number.is_infinite() => {
                if *number > 0.0 { ".inf" } else { "-.inf" }.to_owned()
            }
            Value::Float(_) => {
                let shown = crate::repr::repr(value, self.fuel)?;
                if shown.contains('.') { shown } else { shown.replacen('e', ".0e", 1) }
            }
            Value::Int(_) | Value::Big(_) => crate::repr::repr(value, self.fuel)?,
            other => {
                let shown = crate::repr::repr(other, self.fuel)?;
                return match cut::cut(&shown, self.lines, self.fuel)? {
                    Cut::Block(block) => self.block(&block, indent),
                    Cut::Whole => self.scalar(&shown, outer.unwrap_or(0), place),
                };
            }
        };
        self.plain(&shown, indent, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalLimits;

    fn shown(value: Value, lines: Option<i64>) -> String {
        let limits = EvalLimits::default();
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

    #[test]
    fn bare_words_at_the_root_end_the_document() {
        assert_eq!(shown(Value::str("word"), Some(1)), "word\n...\n");
        assert_eq!(shown(Value::Float(1e16), Some(1)), "1.0e+16\n...\n");
        assert_eq!(shown(Value::str(""), Some(1)), "''\n");
    }

    #[test]
    fn keys_that_are_no_words_have_a_line_of_their_own() {
        let value = Value::dict([("", Value::Int(1)), ("a\nb", Value::list(vec![Value::Int(2)]))]);
        assert_eq!(shown(value, Some(1)), "? ''\n: 1\n? 'a\n\n  b'\n: - 2\n");
    }
}
