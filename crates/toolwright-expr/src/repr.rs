//! The text form of values: Python's `str()`, `repr()` and `ascii()`. Output grows through a counted builder,
//! so that data sharing structure cannot print itself into gigabytes.

use compact_str::CompactString;
use num_bigint::BigInt;
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::error::Error;
use crate::fuel::Fuel;
use crate::lexer::MAX_TEXT_DIGITS;
use crate::ops::number::quadratic;
use crate::types::Type;
use crate::value::{ObjectData, Value, ViewKind};

/// `str(value)`.
pub(crate) fn text(value: &Value, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let mut printer = Printer::new(fuel);
    printer.text(value)?;
    Ok(printer.out.into_string())
}

/// `repr(value)`.
pub(crate) fn repr(value: &Value, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let mut printer = Printer::new(fuel);
    printer.repr(value)?;
    Ok(printer.out.into_string())
}

/// `ascii(value)`: as `repr`, with everything outside ASCII escaped.
pub(crate) fn ascii(value: &Value, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let plain = repr(value, fuel)?;
    fuel.allocate(plain.len() * 4)?;
    let mut out = CompactString::with_capacity(plain.len());
    for c in plain.chars() {
        if c.is_ascii() { out.push(c) } else { escape_code(&mut out, c) }
    }
    Ok(out.into_string())
}

/// Appends `str(value)` to a text that is being put together.
pub(crate) fn append(out: &mut CompactString, value: &Value, fuel: &mut Fuel<'_>) -> Result<(), Error> {
    // Texts and integers are most of what templates show; they need no printer.
    match value {
        Value::Str(text) => {
            fuel.allocate(text.len())?;
            out.push_str(text);
            return Ok(());
        }
        Value::Int(number) => {
            fuel.allocate(Digits::ROOM)?;
            out.push_str(Digits::default().write(*number));
            return Ok(());
        }
        _ => {}
    }
    let mut printer = Printer { out: std::mem::take(out), fuel };
    let result = printer.text(value);
    *out = printer.out;
    result
}

struct Printer<'p, 'f> {
    out: CompactString,
    fuel: &'p mut Fuel<'f>,
}

impl<'p, 'f> Printer<'p, 'f> {
    fn new(fuel: &'p mut Fuel<'f>) -> Self {
        Printer { out: CompactString::default(), fuel }
    }

    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.fuel.allocate(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn text(&mut self, value: &Value) -> Result<(), Error> {
        match value {
            Value::Str(text) => self.push(text),
            Value::Object(object) => match object.data() {
                ObjectData::Exception(class, args) => match args.as_slice() {
                    [] => Ok(()),
                    // A KeyError shows its key as code, so that an empty key is visible.
                    [only] if *class == Type::KEY_ERROR => self.repr(only),
                    [only] => self.text(only),
                    several => self.items("(", several.iter(), ")"),
                },
                ObjectData::Yaml(value, trim) => {
                    let text = crate::yaml::text(value, *trim, self.fuel)?;
                    self.push(&text)
                }
                _ => self.repr(value),
            },
            _ => self.repr(value),
        }
    }

    fn repr(&mut self, value: &Value) -> Result<(), Error> {
        self.fuel.spend(1)?;
        match value {
            Value::None => self.push("None"),
            Value::Bool(true) => self.push("True"),
            Value::Bool(false) => self.push("False"),
            Value::Int(number) => {
                let mut digits = Digits::default();
                let text = digits.write(*number);
                self.push(text)
            }
            Value::Big(number) => {
                let digits = decimal(number, self.fuel)?;
                self.push(&digits)
            }
            Value::Float(number) => {
                let text = float(*number);
                self.push(&text)
            }
            Value::Str(text) => self.quoted(text),
            Value::Bytes(bytes) => {
                self.fuel.allocate(bytes.len() * 4)?;
                let text = bytes_repr(bytes);
                self.out.push_str(&text);
                Ok(())
            }
            Value::List(list) => self.items("[", list.snapshot().iter(), "]"),
            Value::Tuple(items) if items.len() == 1 => self.items("(", items.iter(), ",)"),
            Value::Tuple(items) => self.items("(", items.iter(), ")"),
            Value::Dict(dict) => {
                let map = dict.snapshot();
                self.nested("{", "}", map.iter(), |printer, (key, value)| {
                    printer.repr(&key.value)?;
                    printer.push(": ")?;
                    printer.repr(value)
                })
            }
            Value::Set(set) => self.set(set),
            Value::Range(range) if range.step == 1 => {
                self.push(&format!("range({}, {})", range.start, range.stop))
            }
            Value::Range(range) => {
                self.push(&format!("range({}, {}, {})", range.start, range.stop, range.step))
            }
            Value::Ellipsis => self.push("Ellipsis"),
            Value::Type(kind) => self.push(&format!("<class '{}'>", kind.name())),
            Value::Builtin(builtin) => self.push(&format!("<built-in function {}>", builtin.name)),
            Value::Unbound => self.push("<unbound>"),
            Value::Object(object) => self.object(object.data()),
        }
    }

    fn set(&mut self, set: &crate::value::Set) -> Result<(), Error> {
        let members = crate::iter::set_order(&set.snapshot());
        match (set.is_frozen(), members.is_empty()) {
            (false, true) => self.push("set()"),
            (true, true) => self.push("frozenset()"),
            (false, false) => self.items("{", members.iter(), "}"),
            (true, false) => self.items("frozenset({", members.iter(), "})"),
        }
    }

    fn object(&mut self, data: &ObjectData) -> Result<(), Error> {
        match data {
            ObjectData::Complex { re, im } => self.push(&complex(*re, *im)),
            ObjectData::Slice(parts) => self.items("slice(", parts.iter(), ")"),
            ObjectData::View(kind, dict) => {
                let map = dict.snapshot();
                match kind {
                    ViewKind::Keys => self.items("dict_keys([", map.keys().map(|key| &key.value), "])"),
                    ViewKind::Values => self.items("dict_values([", map.values(), "])"),
                    ViewKind::Items => {
                        self.nested("dict_items([", "])", map.iter(), |printer, (key, value)| {
                            printer.items("(", [&key.value, value].into_iter(), ")")
                        })
                    }
                }
            }
            ObjectData::Struct(fields) => {
                self.nested("struct(", ")", fields.iter(), |printer, (name, value)| {
                    printer.push(name)?;
                    printer.push("=")?;
                    printer.repr(value)
                })
            }
            ObjectData::Exception(class, args) => self.items(&format!("{}(", class.name()), args.iter(), ")"),
            ObjectData::Method(receiver, method) => {
                self.push(&format!("<built-in method {} of {} object>", method.name, receiver.type_name()))
            }
            ObjectData::Unbound(kind, method) => {
                self.push(&format!("<method '{}' of '{}' objects>", method.name, kind.name()))
            }
            ObjectData::Closure(closure) => self.push(&format!("<function {}>", closure.name())),
            ObjectData::Host(function) => self.push(&format!("<function {}>", function.name())),
            ObjectData::Generator(_) => self.push("<generator object>"),
            ObjectData::Iter(kind, _) => self.push(&format!("<{} object>", kind.name())),
            // Shown inside other values, nothing is cut off.
            ObjectData::Yaml(value, _) => {
                let text = crate::yaml::text(value, None, self.fuel)?;
                self.push(&text)
            }
            ObjectData::Cell(_) => self.push("<cell>"),
        }
    }

    fn items<'v>(
        &mut self,
        open: &str,
        items: impl Iterator<Item = &'v Value>,
        close: &str,
    ) -> Result<(), Error> {
        self.nested(open, close, items, |printer, item| printer.repr(item))
    }

    fn nested<T>(
        &mut self,
        open: &str,
        close: &str,
        items: impl Iterator<Item = T>,
        mut print: impl FnMut(&mut Self, T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.fuel.enter()?;
        self.push(open)?;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            print(self, item)?;
        }
        self.fuel.leave();
        self.push(close)
    }

    /// A text in quotes: single ones, unless that would need more escapes.
    fn quoted(&mut self, text: &str) -> Result<(), Error> {
        self.fuel.allocate(text.len() + 2)?;
        let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        self.out.push(quote);
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| !(' '..='~').contains(&c) || c == quote || c == '\\') {
            let (plain, special) = rest.split_at(at);
            self.out.push_str(plain);
            let mut chars = special.chars();
            let c = chars.next().unwrap_or(' ');
            rest = chars.as_str();
            match c {
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                ' '..='~' if c == quote => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                ' '..='~' => self.out.push(c),
                _ if is_printable(c) => self.out.push(c),
                _ => {
                    self.fuel.allocate(8)?;
                    escape_code(&mut self.out, c);
                }
            }
        }
        self.out.push_str(rest);
        self.out.push(quote);
        Ok(())
    }
}

fn escape_code(out: &mut CompactString, c: char) {
    let code = c as u32;
    let escape = match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    };
    out.push_str(&escape);
}

/// Whether `repr` shows a character as itself.
pub(crate) fn is_printable(c: char) -> bool {
    use GeneralCategory::{
        Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, SpaceSeparator, Surrogate, Unassigned,
    };
    c == ' '
        || !matches!(
            get_general_category(c),
            Control
                | Format
                | LineSeparator
                | ParagraphSeparator
                | PrivateUse
                | SpaceSeparator
                | Surrogate
                | Unassigned
        )
}

fn bytes_repr(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    let mut out = String::with_capacity(bytes.len() + 3);
    out.push('b');
    out.push(char::from(quote));
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => {
                if *byte == quote {
                    out.push('\\');
                }
                out.push(char::from(*byte));
            }
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(char::from(quote));
    out
}

/// Decimal digits of a large integer, up to Python's own bound.
pub(crate) fn decimal(number: &BigInt, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    // The smallest number of 4301 digits has 14285 bits.
    let bits = number.bits();
    if bits > 14_284 {
        return Err(too_many_digits());
    }
    // Each digit is the rest of a division of the whole number.
    fuel.spend(quadratic(bits, bits))?;
    let text = number.to_string();
    if text.trim_start_matches('-').len() > MAX_TEXT_DIGITS {
        return Err(too_many_digits());
    }
    Ok(text)
}

#[cold]
pub(crate) fn too_many_digits() -> Error {
    Error::value("Exceeds the limit (4300 digits) for integer string conversion")
}

/// Room for the digits of a machine integer, written without going through the formatter.
#[derive(Default)]
struct Digits {
    buffer: [u8; Self::ROOM],
}

impl Digits {
    const ROOM: usize = 20;

    fn write(&mut self, number: i64) -> &str {
        let mut rest = number.unsigned_abs();
        let mut start = self.buffer.len();
        for slot in self.buffer.iter_mut().rev() {
            *slot = b'0' + (rest % 10) as u8;
            start -= 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            start = start.saturating_sub(1);
            if let Some(slot) = self.buffer.get_mut(start) {
                *slot = b'-';
            }
        }
        self.buffer.get(start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or("0")
    }
}

/// A float the way Python writes it: the shortest digits that read back as the same number.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    if number != 0.0 && !(1e-4..1e16).contains(&number.abs()) {
        let text = shortest(number);
        return match text.split_once('e') {
            Some((digits, exponent)) => {
                let (sign, size) = match exponent.strip_prefix('-') {
                    Some(size) => ('-', size),
                    None => ('+', exponent),
                };
                format!("{digits}e{sign}{size:0>2}")
            }
            None => text,
        };
    }
    let mut text = number.to_string();
    if text.len() > 16 {
        // The same digits as in scientific form, with the point moved back.
        let exact = shortest(number);
        let digits = exact.split_once('e').map_or(exact.as_str(), |(digits, _)| digits);
        let mut digits = digits.bytes().filter(u8::is_ascii_digit);
        let lead = text.bytes().take_while(|byte| matches!(byte, b'-' | b'0' | b'.')).count();
        let rest = text.get(lead..).unwrap_or_default().bytes();
        let moved =
            rest.map(|byte| if byte == b'.' { '.' } else { char::from(digits.next().unwrap_or(b'0')) });
        text = format!("{}{}", text.get(..lead).unwrap_or_default(), moved.collect::<String>());
    }
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// The shortest digits that read back, in scientific form. Where two of them are equally near, Python takes
/// the even one; that can only happen with sixteen digits or more.
fn shortest(number: f64) -> String {
    let text = format!("{number:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits < 16 {
        return text;
    }
    let exact = format!("{number:.*e}", digits - 1);
    if exact.parse() == Ok(number) { exact } else { text }
}

fn complex(re: f64, im: f64) -> String {
    let part = |number: f64| {
        let text = float(number);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if re == 0.0 && re.is_sign_positive() {
        return format!("{}j", part(im));
    }
    let imaginary = part(im);
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{imaginary}j)", part(re))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_like_pythons() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (9999999999999998.0, "9999999999999998.0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1.5e-7, "1.5e-07"),
            (1.2345678901234568e17, "1.2345678901234568e+17"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ];
        for (number, text) in cases {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn integers_print_at_both_ends() {
        for number in [0, 7, -7, 10, i64::MAX, i64::MIN] {
            assert_eq!(Digits::default().write(number), number.to_string());
        }
    }

    #[test]
    fn quotes_follow_the_text() {
        let shown = |text: &str| format!("{:?}", Value::str(text));
        assert_eq!(shown("it's"), "\"it's\"");
        assert_eq!(shown("both ' and \""), "'both \\' and \"'");
        assert_eq!(shown("\u{200b}é\u{1f}"), "'\\u200bé\\x1f'");
    }

    #[test]
    fn structure_shared_a_thousand_times_ends_in_a_limit() {
        let mut value = Value::str("x");
        for _ in 0..60 {
            value = Value::list(vec![value.clone(), value]);
        }
        assert!(value.to_string().contains("more than"));
    }
}
