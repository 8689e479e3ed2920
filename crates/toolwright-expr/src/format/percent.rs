//! The `%` operator on texts.

use super::Spec;
use super::number::{format_float, magnitude};
use crate::error::Error;
use crate::fuel::Fuel;
use crate::ops::number::Number;
use crate::ops::sequence;
use crate::value::{Text, Value};
use crate::{ops, repr};

/// `template % values`.
pub(crate) fn percent(template: &str, values: &Value, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let mut out = String::new();
    let mut supply = Supply::new(values);
    let mut chars = template.chars().enumerate().peekable();
    let mut literal = String::new();
    while let Some((_, c)) = chars.next() {
        if c != '%' {
            literal.push(c);
            continue;
        }
        push(&mut out, &literal, fuel)?;
        literal.clear();
        if chars.next_if(|(_, c)| *c == '%').is_some() {
            literal.push('%');
            continue;
        }
        let mut spec = Spec::default();
        let mut mapped = None;
        if chars.next_if(|(_, c)| *c == '(').is_some() {
            let mut key = String::new();
            let mut depth = 1;
            for (_, c) in chars.by_ref() {
                match c {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
                key.push(c);
            }
            if !matches!(supply.values, Value::Dict(_)) {
                return Err(Error::type_("format requires a mapping"));
            }
            if depth > 0 {
                return Err(Error::value("incomplete format key"));
            }
            mapped = Some(supply.named(&key, fuel)?);
        }
        let mut left = false;
        let mut zero = false;
        while let Some((_, flag)) = chars.next_if(|(_, c)| matches!(c, '-' | '+' | ' ' | '#' | '0')) {
            match flag {
                '-' => left = true,
                '+' => spec.sign = Some('+'),
                ' ' => {
                    spec.sign.get_or_insert(' ');
                }
                '#' => spec.alternate = true,
                _ => zero = true,
            }
        }
        if chars.next_if(|(_, c)| *c == '*').is_some() {
            let width = star(&supply.next()?)?;
            left |= width < 0;
            spec.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        } else {
            spec.width = digits(&mut chars)?.unwrap_or(0);
        }
        if chars.next_if(|(_, c)| *c == '.').is_some() {
            spec.precision = Some(if chars.next_if(|(_, c)| *c == '*').is_some() {
                usize::try_from(star(&supply.next()?)?).unwrap_or(0)
            } else {
                digits(&mut chars)?.unwrap_or(0)
            });
        }
        while chars.next_if(|(_, c)| matches!(c, 'h' | 'l' | 'L')).is_some() {}
        let Some((at, kind)) = chars.next() else { return Err(Error::value("incomplete format")) };
        let argument = match mapped {
            Some(value) => value,
            None => supply.next()?,
        };
        spec.align = Some(if left { '<' } else { '>' });
        let numeric = matches!(kind, 'd' | 'i' | 'u' | 'o' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G');
        if zero && !left && numeric {
            spec.fill = Some('0');
            spec.align = Some('=');
        }
        let text = conversion(kind, at, &argument, spec, fuel)?;
        push(&mut out, &text, fuel)?;
    }
    push(&mut out, &literal, fuel)?;
    supply.finish()?;
    Ok(out)
}

pub(super) fn push(out: &mut String, text: &str, fuel: &mut Fuel<'_>) -> Result<(), Error> {
    fuel.allocate(text.len())?;
    out.push_str(text);
    Ok(())
}

pub(super) fn digits(
    chars: &mut std::iter::Peekable<std::iter::Enumerate<std::str::Chars<'_>>>,
) -> Result<Option<usize>, Error> {
    let mut found: Option<usize> = None;
    while let Some((_, c)) = chars.next_if(|(_, c)| c.is_ascii_digit()) {
        let value = found.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(c.to_digit(10)? as usize));
        match value {
            Some(value) if value <= i32::MAX as usize => found = Some(value),
            _ => return Err(Error::value("width too big")),
        }
    }
    Ok(found)
}

fn star(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(_) | Value::Bool(_) => ops::index(value),
        _ => Err(Error::type_("* wants int")),
    }
}

pub(super) fn conversion(
    kind: char,
    at: usize,
    value: &Value,
    mut spec: Spec,
    fuel: &mut Fuel<'_>,
) -> Result<String, Error> {
    let shown = match kind {
        's' => Some(repr::text(value, fuel)?),
        'r' => Some(repr::repr(value, fuel)?),
        'a' => Some(repr::ascii(value, fuel)?),
        'c' => Some(match value {
            Value::Str(text) if text.chars_len() == 1 => text.as_str().to_owned(),
            Value::Int(_) | Value::Bool(_) | Value::Big(_) => {
                match value.as_i64().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32) {
                    Some(c) => c.to_string(),
                    None => return Err(Error::overflow("%c arg not in range(0x110000)")),
                }
            }
            _ => return Err(Error::type_("%c requires int or char")),
        }),
        _ => None,
    };
    if let Some(shown) = shown {
        let text = Text::from(shown);
        let cut = match spec.precision {
            Some(most) if kind != 'c' && most < text.chars_len() => sequence::char_range(&text, 0, most),
            _ => &text,
        };
        spec.fill = None;
        return spec.pad("", cut, '>', fuel);
    }
    match kind {
        'd' | 'i' | 'u' => {
            let whole = match Number::of(value) {
                Some(Number::Float(x)) => crate::builtins::number::float_to_integer(x)?,
                Some(Number::Int(_) | Number::Big(_)) => value.clone(),
                _ => {
                    return Err(Error::type_(format!(
                        "%{kind} format: a real number is required, not {}",
                        value.type_name()
                    )));
                }
            };
            percent_integer(&whole, 10, "", false, &spec, fuel)
        }
        'o' | 'x' | 'X' => {
            let (radix, mark) = match kind {
                'o' => (8, "0o"),
                'x' => (16, "0x"),
                _ => (16, "0X"),
            };
            match value {
                Value::Int(_) | Value::Big(_) | Value::Bool(_) => {
                    percent_integer(value, radix, mark, kind == 'X', &spec, fuel)
                }
                _ => Err(Error::type_(format!(
                    "%{kind} format: an integer is required, not {}",
                    value.type_name()
                ))),
            }
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => match Number::of(value) {
            Some(number @ (Number::Int(_) | Number::Big(_) | Number::Float(_))) => {
                spec.kind = Some(kind);
                format_float(number.float()?, &spec, fuel)
            }
            _ => Err(Error::type_(format!("must be real number, not {}", value.type_name()))),
        },
        _ => Err(Error::value(format!(
            "unsupported format character '{kind}' (0x{:x}) at index {at}",
            kind as u32
        ))),
    }
}

/// Integers after `%`: the precision is a least number of digits.
fn percent_integer(
    value: &Value,
    radix: u32,
    mark: &str,
    upper: bool,
    spec: &Spec,
    fuel: &mut Fuel<'_>,
) -> Result<String, Error> {
    let number = Number::of(value).unwrap_or(Number::Int(0));
    let (negative, mut digits) = magnitude(number, radix, fuel)?;
    if upper {
        digits.make_ascii_uppercase();
    }
    if let Some(least) = spec.precision {
        let missing = least.saturating_sub(digits.len());
        fuel.allocate(missing)?;
        digits.insert_str(0, &"0".repeat(missing));
    }
    let sign = spec.sign(negative);
    let prefix = if spec.alternate { format!("{sign}{mark}") } else { sign.to_owned() };
    spec.pad(&prefix, &digits, '>', fuel)
}

/// The right side of `%`: a tuple is many values, anything else one; a mapping may be left unused.
struct Supply<'v> {
    values: &'v Value,
    used: usize,
    mapped: bool,
}

impl<'v> Supply<'v> {
    fn new(values: &'v Value) -> Self {
        Supply { values, used: 0, mapped: false }
    }

    fn next(&mut self) -> Result<Value, Error> {
        let found = match self.values {
            // Whoever takes fields by name takes all of them so.
            _ if self.mapped => None,
            Value::Tuple(items) => items.get(self.used).cloned(),
            single => (self.used == 0).then(|| single.clone()),
        };
        self.used += 1;
        found.ok_or_else(|| Error::type_("not enough arguments for format string"))
    }

    fn named(&mut self, key: &str, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
        self.mapped = true;
        match self.values {
            Value::Dict(_) => sequence::subscript(self.values, &Value::str(key), fuel),
            _ => Err(Error::type_("format requires a mapping")),
        }
    }

    fn finish(&self) -> Result<(), Error> {
        let left = match self.values {
            Value::Tuple(items) => self.used < items.len(),
            Value::Dict(_) | Value::List(_) | Value::Bytes(_) | Value::Range(_) => false,
            _ => self.used == 0 && !self.mapped,
        };
        if left { Err(Error::type_("not all arguments converted during string formatting")) } else { Ok(()) }
    }
}
