//! Text layout: format specs, `str.format` and the `%` operator, on plain data only. Widths and precisions
//! are paid for before anything is padded.

mod braces;
mod number;
mod percent;

pub(crate) use self::braces::{braces, braces_from};
pub(crate) use self::percent::percent;

use self::number::{format_complex, format_float, format_integer};
use crate::error::Error;
use crate::fuel::Fuel;
use crate::ops::number::Number;
use crate::ops::sequence;
use crate::repr;
use crate::value::{Text, Value};

/// `format(value, spec)`.
pub(crate) fn value(value: &Value, spec: &str, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    if spec.is_empty() {
        return repr::text(value, fuel);
    }
    let kind = value.type_name();
    match (value, Number::of(value)) {
        (Value::Str(text), _) => format_text(text, &Spec::parse(spec, kind)?, fuel),
        (_, Some(number @ (Number::Int(_) | Number::Big(_)))) => {
            format_integer(number, &Spec::parse(spec, kind)?, fuel)
        }
        (_, Some(Number::Float(x))) => format_float(x, &Spec::parse(spec, kind)?, fuel),
        (_, Some(Number::Complex(re, im))) => format_complex(re, im, &Spec::parse(spec, kind)?, fuel),
        _ => Err(Error::type_(format!("unsupported format string passed to {kind}.__format__"))),
    }
}

/// A parsed `[[fill]align][sign][z][#][0][width][,][.precision][type]`.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    no_negative_zero: bool,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str, type_name: &str) -> Result<Spec, Error> {
        let mut spec = Spec::default();
        let mut chars = text.chars().peekable();
        let is_align = |c: Option<char>| matches!(c, Some('<' | '>' | '^' | '='));
        if is_align(text.chars().nth(1)) {
            spec.fill = chars.next();
            spec.align = chars.next();
        } else if is_align(chars.peek().copied()) {
            spec.align = chars.next();
        }
        spec.sign = chars.next_if(|c| matches!(c, '+' | '-' | ' '));
        spec.no_negative_zero = chars.next_if_eq(&'z').is_some();
        spec.alternate = chars.next_if_eq(&'#').is_some();
        if chars.next_if_eq(&'0').is_some() {
            spec.fill.get_or_insert('0');
            if type_name == "str" {
                spec.align.get_or_insert('<')
            } else {
                spec.align.get_or_insert('=')
            };
        }
        spec.width = number(&mut chars)?.unwrap_or(0);
        spec.grouping = chars.next_if(|c| matches!(c, ',' | '_'));
        if spec.grouping.is_some() && chars.next_if(|c| matches!(c, ',' | '_')).is_some() {
            return Err(Error::value("Cannot specify both ',' and '_'."));
        }
        if chars.next_if_eq(&'.').is_some() {
            spec.precision =
                Some(number(&mut chars)?.ok_or_else(|| Error::value("Format specifier missing precision"))?);
        }
        spec.kind = chars.next();
        if chars.next().is_some() {
            return Err(Error::value(format!(
                "Invalid format specifier '{text}' for object of type '{type_name}'"
            )));
        }
        Ok(spec)
    }

    /// Fills a finished number or text up to the width.
    fn pad(&self, prefix: &str, body: &str, default: char, fuel: &mut Fuel<'_>) -> Result<String, Error> {
        let length = prefix.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(length);
        let fill = self.fill.unwrap_or(' ');
        fuel.allocate((prefix.len() + body.len()).saturating_add(missing.saturating_mul(fill.len_utf8())))?;
        let mut out = String::with_capacity(prefix.len() + body.len() + missing * fill.len_utf8());
        let repeat = |out: &mut String, count: usize| out.extend(std::iter::repeat_n(fill, count));
        match self.align.unwrap_or(default) {
            '<' => {
                out.push_str(prefix);
                out.push_str(body);
                repeat(&mut out, missing);
            }
            '^' => {
                repeat(&mut out, missing / 2);
                out.push_str(prefix);
                out.push_str(body);
                repeat(&mut out, missing - missing / 2);
            }
            '=' => {
                out.push_str(prefix);
                repeat(&mut out, missing);
                out.push_str(body);
            }
            _ => {
                repeat(&mut out, missing);
                out.push_str(prefix);
                out.push_str(body);
            }
        }
        Ok(out)
    }

    /// The sign to write before the digits.
    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            (false, _) => "",
        }
    }

    /// Digits with separators, and zeros in front when the fill is a zero inside the number.
    fn grouped(&self, digits: &str, rest: usize, every: usize, fuel: &mut Fuel<'_>) -> Result<String, Error> {
        // Infinity has no digits to group.
        let Some(mark) = self.grouping.filter(|_| !digits.is_empty()) else { return Ok(digits.to_owned()) };
        let zero_filled = self.fill == Some('0') && self.align == Some('=');
        let wanted = if zero_filled { self.width.saturating_sub(rest) } else { 0 };
        fuel.allocate(digits.len().saturating_mul(2).saturating_add(wanted))?;
        let mut reversed = String::with_capacity(digits.len() * 2);
        let mut from_right = digits.chars().rev();
        let mut count = 0usize;
        loop {
            let next = from_right.next();
            let length = reversed.len();
            let digit = match next {
                Some(digit) => digit,
                None if length < wanted => '0',
                None => break,
            };
            if count > 0 && count.is_multiple_of(every) {
                reversed.push(mark);
            }
            reversed.push(digit);
            count += 1;
        }
        Ok(reversed.chars().rev().collect())
    }
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, Error> {
    let mut found: Option<usize> = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
        let value = found.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(digit as usize));
        match value {
            Some(value) if i64::try_from(value).is_ok() => found = Some(value),
            _ => return Err(Error::value("Too many decimal digits in format string")),
        }
    }
    Ok(found)
}

#[cold]
fn unknown_code(kind: char, type_name: &str) -> Error {
    Error::value(format!("Unknown format code '{kind}' for object of type '{type_name}'"))
}

fn format_text(text: &Text, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    if let Some(kind) = spec.kind.filter(|kind| *kind != 's') {
        return Err(unknown_code(kind, "str"));
    }
    if spec.sign.is_some() {
        return Err(Error::value("Sign not allowed in string format specifier"));
    }
    if spec.no_negative_zero {
        return Err(Error::value("Negative zero coercion (z) not allowed in string format specifier"));
    }
    if spec.alternate {
        return Err(Error::value("Alternate form (#) not allowed in string format specifier"));
    }
    if spec.align == Some('=') {
        return Err(Error::value("'=' alignment not allowed in string format specifier"));
    }
    if let Some(mark) = spec.grouping {
        return Err(Error::value(format!("Cannot specify '{mark}' with 's'.")));
    }
    let shown = match spec.precision {
        Some(most) if most < text.chars_len() => sequence::char_range(text, 0, most),
        _ => text,
    };
    spec.pad("", shown, '<', fuel)
}

/// Decimals beyond these are zeros for each float, so they need not be computed.
const EXACT_DECIMALS: usize = 1_100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalLimits;

    fn check(input: impl Into<Value>, spec: &str, wanted: &str) {
        let limits = EvalLimits::default();
        let input = input.into();
        assert_eq!(value(&input, spec, &mut Fuel::new(&limits)).unwrap(), wanted, "{input:?} {spec}");
    }

    #[test]
    fn specs_lay_out_like_pythons() {
        check(1234, "010,", "00,001,234");
        check(1234, "09,", "0,001,234");
        check(1234, "08,", "0,001,234");
        check(-5, "05", "-0005");
        check(255, "#_x", "0xff");
        check(0x1_0000_0000i64, "_x", "1_0000_0000");
        check(3.0, ".3", "3.0");
        check(123.0, ".3", "1.23e+02");
        check(1_234_567.891, ",.2f", "1,234,567.89");
        check(2.5, ".0f", "2");
        check(-0.0, "z.1f", "0.0");
        check(1e-5, "g", "1e-05");
        check("abcdef", "^10.3", "   abc    ");
    }

    #[test]
    fn absurd_widths_and_precisions_are_refused() {
        let limits = EvalLimits::default();
        for spec in ["9999999999", ".9999999999f", "099999999999d"] {
            let error = value(&Value::Float(1.0), spec, &mut Fuel::new(&limits));
            assert!(error.is_err(), "{spec}");
        }
    }
}
