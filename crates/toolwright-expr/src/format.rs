//! Text layout: format specs, `str.format` and the `%` operator, on plain data only. Widths and precisions are
//! paid for before anything is padded.

use num_bigint::BigInt;
use num_traits::Signed;

use crate::ast::Name;
use crate::error::{Error, ErrorKind};
use crate::eval::{Args, Eval};
use crate::fuel::Fuel;
use crate::ops::number::Number;
use crate::ops::{self, sequence};
use crate::repr;
use crate::value::{ObjectData, Text, Value};

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

fn format_integer(number: Number<'_>, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    if spec.no_negative_zero && !matches!(spec.kind, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) {
        return Err(Error::value("Negative zero coercion (z) not allowed in integer format specifier"));
    }
    let kind = spec.kind.unwrap_or('d');
    if matches!(kind, 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') {
        return format_float(number.float()?, spec, fuel);
    }
    if spec.precision.is_some() {
        return Err(Error::value("Precision not allowed in integer format specifier"));
    }
    if kind == 'c' {
        return format_character(number, spec, fuel);
    }
    if let Some(mark) = spec.grouping
        && (mark == ',' && kind != 'd' || kind == 'n')
    {
        return Err(Error::value(format!("Cannot specify '{mark}' with '{kind}'.")));
    }
    let (radix, mark, upper) = match kind {
        'd' | 'n' => (10, "", false),
        'b' => (2, "0b", false),
        'o' => (8, "0o", false),
        'x' => (16, "0x", false),
        'X' => (16, "0X", true),
        _ => return Err(unknown_code(kind, "int")),
    };
    let (negative, mut digits) = magnitude(number, radix, fuel)?;
    if upper {
        digits.make_ascii_uppercase();
    }
    let sign = spec.sign(negative);
    let prefix = if spec.alternate { format!("{sign}{mark}") } else { sign.to_owned() };
    let every = if radix == 10 { 3 } else { 4 };
    let body = spec.grouped(&digits, prefix.len(), every, fuel)?;
    spec.pad(&prefix, &body, '>', fuel)
}

/// Sign and digits of an integer in a base.
fn magnitude(number: Number<'_>, radix: u32, fuel: &mut Fuel<'_>) -> Result<(bool, String), Error> {
    let big = match number {
        Number::Int(n) if radix == 10 => return Ok((n < 0, n.unsigned_abs().to_string())),
        Number::Int(n) => BigInt::from(n),
        Number::Big(n) => n.clone(),
        Number::Float(_) | Number::Complex(..) => BigInt::default(),
    };
    if radix == 10 {
        return Ok((big.is_negative(), repr::decimal(&big.abs())?));
    }
    fuel.allocate(big.bits() as usize)?;
    Ok((big.is_negative(), big.magnitude().to_str_radix(radix)))
}

fn format_character(number: Number<'_>, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    if spec.sign.is_some() {
        return Err(Error::value("Sign not allowed with integer format specifier 'c'"));
    }
    if spec.alternate {
        return Err(Error::value("Alternate form (#) not allowed with integer format specifier 'c'"));
    }
    if let Some(mark) = spec.grouping {
        return Err(Error::value(format!("Cannot specify '{mark}' with 'c'.")));
    }
    let c = match number {
        Number::Int(n) => u32::try_from(n).ok().and_then(char::from_u32),
        _ => None,
    };
    match c {
        Some(c) => spec.pad("", c.encode_utf8(&mut [0; 4]), '<', fuel),
        None => Err(Error::overflow("%c arg not in range(0x110000)")),
    }
}

fn format_float(x: f64, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let kind = spec.kind;
    if let Some(kind) = kind
        && !matches!(kind, 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n' | '%')
    {
        return Err(unknown_code(kind, "float"));
    }
    if let (Some(mark), Some('n')) = (spec.grouping, kind) {
        return Err(Error::value(format!("Cannot specify '{mark}' with 'n'.")));
    }
    let precision = spec.precision.unwrap_or(6);
    fuel.allocate(precision.saturating_add(400))?;
    let mut body = if x.is_finite() {
        let size = x.abs();
        match kind {
            None if spec.precision.is_none() => repr::float(size),
            None => general(size, precision, spec.alternate, true),
            Some('e' | 'E') => exponential(size, precision, spec.alternate),
            Some('f' | 'F') => fixed(size, precision, spec.alternate),
            Some('%') => fixed(size * 100.0, precision, spec.alternate),
            Some(_) => general(size, precision, spec.alternate, false),
        }
    } else if x.is_nan() {
        "nan".to_owned()
    } else {
        "inf".to_owned()
    };
    if matches!(kind, Some('E' | 'F' | 'G')) {
        body.make_ascii_uppercase();
    }
    if kind == Some('%') {
        body.push('%');
    }
    let zero = !body.bytes().any(|byte| matches!(byte, b'1'..=b'9')) && x.is_finite();
    let negative = x.is_sign_negative() && !x.is_nan() && !(spec.no_negative_zero && zero);
    let sign = spec.sign(negative);
    let split = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
    let (whole, rest) = body.split_at(split);
    let whole = spec.grouped(whole, sign.len() + rest.len(), 3, fuel)?;
    spec.pad(sign, &format!("{whole}{rest}"), '>', fuel)
}

/// Both parts laid out alike, the whole padded; in parentheses when no type asks for plain numbers.
fn format_complex(re: f64, im: f64, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    if let Some(kind) = spec.kind
        && !matches!(kind, 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n')
    {
        return Err(unknown_code(kind, "complex"));
    }
    if spec.fill == Some('0') {
        return Err(Error::value("Zero padding is not allowed in complex format specifier"));
    }
    if spec.align == Some('=') {
        return Err(Error::value("'=' alignment flag is not allowed in complex format specifier"));
    }
    let part = |sign: Option<char>| Spec {
        sign,
        no_negative_zero: spec.no_negative_zero,
        alternate: spec.alternate,
        grouping: spec.grouping,
        precision: spec.precision,
        kind: spec.kind.or(Some('g')).filter(|_| spec.kind.is_some() || spec.precision.is_some()),
        ..Spec::default()
    };
    let shown = |x: f64, sign: Option<char>, fuel: &mut Fuel<'_>| {
        let text = format_float(x, &part(sign), fuel)?;
        Ok::<_, Error>(match spec.kind {
            None => text.strip_suffix(".0").map_or(text.clone(), str::to_owned),
            Some(_) => text,
        })
    };
    let imaginary = shown(im, Some('+'), fuel)?;
    let body = if spec.kind.is_none() && re == 0.0 && re.is_sign_positive() {
        format!("{}j", shown(im, spec.sign, fuel)?)
    } else if spec.kind.is_none() {
        format!("({}{imaginary}j)", shown(re, spec.sign, fuel)?)
    } else {
        format!("{}{imaginary}j", shown(re, spec.sign, fuel)?)
    };
    spec.pad("", &body, '>', fuel)
}

/// Decimals beyond these are zeros for every float, so they need not be computed.
const EXACT_DECIMALS: usize = 1_100;

fn fixed(x: f64, precision: usize, alternate: bool) -> String {
    if x.is_infinite() {
        return "inf".to_owned();
    }
    let computed = precision.min(EXACT_DECIMALS);
    let mut text = format!("{x:.computed$}");
    text.extend(std::iter::repeat_n('0', precision - computed));
    if alternate && precision == 0 {
        text.push('.');
    }
    text
}

fn exponential(x: f64, precision: usize, alternate: bool) -> String {
    let computed = precision.min(EXACT_DECIMALS);
    let text = format!("{x:.computed$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let zeros = "0".repeat(precision - computed);
    let point = if alternate && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{zeros}{point}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g`: as many significant digits as asked for, in whichever form is shorter. `point` is the variant
/// without a type code, which always shows a decimal point.
fn general(x: f64, precision: usize, alternate: bool, point: bool) -> String {
    let digits = precision.max(1);
    let computed = digits.min(EXACT_DECIMALS);
    let text = format!("{x:.*e}", computed - 1);
    let exponent: i64 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let bound = i64::try_from(digits).unwrap_or(i64::MAX) - i64::from(point);
    let mut shown = if exponent < -4 || exponent >= bound {
        exponential(x, digits - 1, alternate)
    } else {
        fixed(
            x,
            usize::try_from(i64::try_from(digits).unwrap_or(i64::MAX) - 1 - exponent).unwrap_or(0),
            alternate,
        )
    };
    if !alternate && shown.contains('.') {
        let (number, tail) = match shown.split_once('e') {
            Some((number, exponent)) => (number.to_owned(), format!("e{exponent}")),
            None => (shown.clone(), String::new()),
        };
        let number = number.trim_end_matches('0').trim_end_matches('.');
        shown = format!("{number}{tail}");
    }
    if point && !shown.contains(['.', 'e']) {
        shown.push_str(".0");
    }
    shown
}

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
        if kind == '%' {
            push(&mut out, "%", fuel)?;
            continue;
        }
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

fn push(out: &mut String, text: &str, fuel: &mut Fuel<'_>) -> Result<(), Error> {
    fuel.allocate(text.len())?;
    out.push_str(text);
    Ok(())
}

fn digits(
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

fn conversion(
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
                let number = number.float()?;
                if !number.is_finite() && spec.fill == Some('0') {
                    spec.fill = None;
                    spec.align = Some('>');
                }
                format_float(number, &spec, fuel)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn check(input: impl Into<Value>, spec: &str, wanted: &str) {
        let limits = Limits::default();
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
        let limits = Limits::default();
        for spec in ["9999999999", ".9999999999f", "099999999999d"] {
            let error = value(&Value::Float(1.0), spec, &mut Fuel::new(&limits));
            assert!(error.is_err(), "{spec}");
        }
    }
}
