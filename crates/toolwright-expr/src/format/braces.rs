//! `str.format`: fields in braces, on plain data only.

use super::value;
use crate::ast::Name;
use crate::error::{Error, ErrorKind};
use crate::eval::{Args, Eval};
use crate::ops::sequence;
use crate::repr;
use crate::value::{ObjectData, Text, Value};

/// `template.format(...)`.
pub(crate) fn braces(eval: &mut Eval<'_>, template: &Text, args: Args) -> Result<Value, Error> {
    Braces { eval, args, next: 0, numbered: None, mapping: None }.run(template, 2).map(Value::str)
}

/// `template.format_map(mapping)`.
pub(crate) fn braces_from(eval: &mut Eval<'_>, template: &Text, mapping: Value) -> Result<Value, Error> {
    let args = Args::default();
    Braces { eval, args, next: 0, numbered: None, mapping: Some(mapping) }.run(template, 2).map(Value::str)
}

struct Braces<'e, 'f> {
    eval: &'e mut Eval<'f>,
    args: Args,
    next: usize,
    /// Whether fields carry numbers; the two ways must not be mixed.
    numbered: Option<bool>,
    mapping: Option<Value>,
}

impl Braces<'_, '_> {
    fn run(&mut self, template: &str, depth: u32) -> Result<String, Error> {
        if depth == 0 {
            return Err(Error::value("Max string recursion exceeded"));
        }
        let mut out = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            let (text, after) = rest.split_at(at);
            self.push(&mut out, text)?;
            if after.starts_with("{{") || after.starts_with("}}") {
                let (mark, next) = after.split_at(1);
                self.push(&mut out, mark)?;
                rest = next.get(1..).unwrap_or_default();
                continue;
            }
            if after.starts_with('}') {
                return Err(Error::value("Single '}' encountered in format string"));
            }
            let inside = after.get(1..).unwrap_or_default();
            let end = closing(inside)?;
            let (field, next) = inside.split_at(end);
            let text = self.field(field, depth)?;
            self.push(&mut out, &text)?;
            rest = next.get(1..).unwrap_or_default();
        }
        self.push(&mut out, rest)?;
        Ok(out)
    }

    fn push(&mut self, out: &mut String, text: &str) -> Result<(), Error> {
        self.eval.fuel.allocate(text.len())?;
        out.push_str(text);
        Ok(())
    }

    fn field(&mut self, field: &str, depth: u32) -> Result<String, Error> {
        // A `!` or `:` inside brackets belongs to the index.
        let mut bracket = false;
        let split = field.char_indices().find(|(_, c)| {
            match c {
                '[' => bracket = true,
                ']' => bracket = false,
                _ => {}
            }
            !bracket && matches!(c, '!' | ':')
        });
        let (name, tail) = field.split_at(split.map_or(field.len(), |(at, _)| at));
        let (conversion, spec) = match tail.strip_prefix('!') {
            Some(tail) => {
                let mut chars = tail.chars();
                let conversion = chars
                    .next()
                    .ok_or_else(|| Error::value("end of string while looking for conversion specifier"))?;
                let spec = match chars.as_str() {
                    "" => "",
                    rest => rest
                        .strip_prefix(':')
                        .ok_or_else(|| Error::value("expected ':' after conversion specifier"))?,
                };
                (Some(conversion), spec)
            }
            None => (None, tail.strip_prefix(':').unwrap_or_default()),
        };
        let mut found = self.lookup(name)?;
        found = match conversion {
            None => found,
            Some('r') => Value::str(repr::repr(&found, &mut self.eval.fuel)?),
            Some('s') => Value::str(repr::text(&found, &mut self.eval.fuel)?),
            Some('a') => Value::str(repr::ascii(&found, &mut self.eval.fuel)?),
            Some(other) => {
                return Err(Error::value(format!("Unknown conversion specifier {other}")));
            }
        };
        let spec = if spec.contains(['{', '}']) { self.run(spec, depth - 1)? } else { spec.to_owned() };
        value(&found, &spec, &mut self.eval.fuel)
    }

    /// `0`, `name`, `0[key].real`...: the argument, then items and data attributes of it.
    fn lookup(&mut self, path: &str) -> Result<Value, Error> {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (first, mut rest) = path.split_at(end);
        let mut found = self.argument(first)?;
        while !rest.is_empty() {
            if let Some(tail) = rest.strip_prefix('.') {
                let end = tail.find(['.', '[']).unwrap_or(tail.len());
                let (name, after) = tail.split_at(end);
                found = self.attribute(&found, name)?;
                rest = after;
            } else if let Some(tail) = rest.strip_prefix('[') {
                let Some((index, after)) = tail.split_once(']') else {
                    return Err(Error::value("Missing ']' in format string"));
                };
                if index.is_empty() {
                    return Err(Error::value("Empty attribute in format string"));
                }
                let index = match index.parse::<i64>() {
                    Ok(number) if index.bytes().all(|byte| byte.is_ascii_digit()) => Value::Int(number),
                    _ => Value::str(index),
                };
                found = sequence::subscript(&found, &index, &mut self.eval.fuel)?;
                rest = after;
            } else {
                return Err(Error::value("Only '.' or '[' may follow ']' in format field specifier"));
            }
        }
        Ok(found)
    }

    /// Attributes in a format field are data or nothing: no methods, and nothing that starts with `_`.
    fn attribute(&mut self, value: &Value, name: &str) -> Result<Value, Error> {
        if name.is_empty() {
            return Err(Error::value("Empty attribute in format string"));
        }
        let missing = || {
            Error::new(
                ErrorKind::Attribute,
                format!("'{}' object has no attribute '{name}'", value.type_name()),
            )
        };
        if name.starts_with('_') {
            return Err(missing());
        }
        if let Value::Object(object) = value
            && matches!(object.data(), ObjectData::Struct(_))
        {
            return self.eval.attribute_of(value, &Name::new(name.into()));
        }
        crate::builtins::property(value, name).ok_or_else(missing)
    }

    fn argument(&mut self, name: &str) -> Result<Value, Error> {
        let number = if name.is_empty() {
            self.numbering(false)?;
            let number = self.next;
            self.next += 1;
            Some(number)
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            self.numbering(true)?;
            Some(name.parse().map_err(|_| Error::value("Too many decimal digits in format string"))?)
        } else {
            None
        };
        if let Some(mapping) = self.mapping.clone() {
            if number.is_some() {
                return Err(Error::value("Format string contains positional fields"));
            }
            return sequence::subscript(&mapping, &Value::str(name), &mut self.eval.fuel);
        }
        match number {
            Some(number) => self.args.positional.get(number).cloned().ok_or_else(|| {
                Error::index(format!("Replacement index {number} out of range for positional args tuple"))
            }),
            None => match self.args.named.iter().find(|(known, _)| &**known == name) {
                Some((_, value)) => Ok(value.clone()),
                None => Err(Error::new(ErrorKind::Key, format!("'{name}'"))),
            },
        }
    }

    fn numbering(&mut self, numbered: bool) -> Result<(), Error> {
        match self.numbered.replace(numbered) {
            Some(before) if before != numbered => Err(Error::value(if numbered {
                "cannot switch from automatic field numbering to manual field specification"
            } else {
                "cannot switch from manual field specification to automatic field numbering"
            })),
            _ => Ok(()),
        }
    }
}

/// The byte of the `}` that ends a field; inner braces belong to its format spec.
fn closing(inside: &str) -> Result<usize, Error> {
    let mut depth = 0u32;
    let mut bracket = false;
    for (at, c) in inside.char_indices() {
        match c {
            '[' if depth == 0 => bracket = true,
            ']' => bracket = false,
            _ if bracket => {}
            '{' => depth += 1,
            '}' if depth == 0 => return Ok(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(Error::value(if inside.is_empty() {
        "Single '{' encountered in format string"
    } else {
        "expected '}' before end of string"
    }))
}
