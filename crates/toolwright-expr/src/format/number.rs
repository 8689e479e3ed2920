//! Integers, floats and complex numbers under a format spec.

use num_bigint::BigInt;
use num_traits::Signed;

use super::{EXACT_DECIMALS, Spec, unknown_code};
use crate::error::Error;
use crate::fuel::Fuel;
use crate::ops::number::Number;
use crate::repr;

pub(super) fn format_integer(number: Number<'_>, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
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
pub(super) fn magnitude(
    number: Number<'_>,
    radix: u32,
    fuel: &mut Fuel<'_>,
) -> Result<(bool, String), Error> {
    let big = match number {
        Number::Int(n) if radix == 10 => return Ok((n < 0, n.unsigned_abs().to_string())),
        Number::Int(n) => BigInt::from(n),
        Number::Big(n) => n.clone(),
        Number::Float(_) | Number::Complex(..) => BigInt::default(),
    };
    if radix == 10 {
        return Ok((big.is_negative(), repr::decimal(&big.abs(), fuel)?));
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
        Some(c) => spec.pad("", c.encode_utf8(&mut [0; 4]), '>', fuel),
        None => Err(Error::overflow("%c arg not in range(0x110000)")),
    }
}

pub(super) fn format_float(x: f64, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
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
            None if spec.precision.is_none() => {
                let shown = repr::float(size);
                // The alternate form always has a point.
                match shown.split_once('e') {
                    Some((digits, exponent)) if spec.alternate && !digits.contains('.') => {
                        format!("{digits}.e{exponent}")
                    }
                    _ => shown,
                }
            }
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
pub(super) fn format_complex(re: f64, im: f64, spec: &Spec, fuel: &mut Fuel<'_>) -> Result<String, Error> {
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
            None if spec.alternate => text.strip_suffix(".0").map_or(text.clone(), |text| format!("{text}.")),
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
