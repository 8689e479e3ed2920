//! Functions and methods of numbers.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{FromPrimitive, One, Signed, ToPrimitive, Zero};

use super::{Builtin, Constructor, Method, constructor, function, method, type_method};
use crate::ast::{BinaryOp, UnaryOp};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::lexer::MAX_TEXT_DIGITS;
use crate::ops::number::{Number, float_divmod, quadratic};
use crate::ops::{self, complex};
use crate::types::Type;
use crate::value::{ObjectData, Value};

pub(crate) static FUNCTIONS: &[Builtin] = &[
    function("abs", "abs(x)", "The absolute value.", abs),
    function("round", "round(x, digits=None)", "The nearest number; halves go to the even neighbour.", round),
    function("pow", "pow(base, exponent, mod=None)", "A power, optionally modulo a number.", pow),
    function("divmod", "divmod(a, b)", "Floor quotient and remainder as a tuple.", divmod),
    function("hex", "hex(n)", "The integer in base 16, as `0xff`.", |eval, args| {
        radix(eval, args, "hex", 16)
    }),
    function("oct", "oct(n)", "The integer in base 8, as `0o17`.", |eval, args| radix(eval, args, "oct", 8)),
    function("bin", "bin(n)", "The integer in base 2, as `0b101`.", |eval, args| radix(eval, args, "bin", 2)),
    function("rand", "rand()", "A random number between 0 and 1.", rand),
    function("randint", "randint(top)", "A random integer from 0 up to, not including, `top`.", randint),
    function("hash", "hash(x)", "An integer that is equal for equal values.", hash),
    function("id", "id(x)", "An integer that tells objects apart.", id),
];

pub(crate) static CONSTRUCTORS: &[Constructor] = &[
    constructor(Type::INT, "int(x=0, base=10)", "An integer from a number or a text.", int),
    constructor(Type::FLOAT, "float(x=0)", "A float from a number or a text.", float),
    constructor(Type::BOOL, "bool(x=False)", "Whether the value counts as true.", bool),
    constructor(Type::COMPLEX, "complex(real=0, imag=0)", "A complex number.", new_complex),
];

pub(crate) static INT_METHODS: &[Method] = &[
    method("bit_length", "n.bit_length()", "Bits needed to write the number.", bit_length),
    method("bit_count", "n.bit_count()", "Ones in the binary form.", bit_count),
    method("as_integer_ratio", "n.as_integer_ratio()", "The number as a fraction.", as_integer_ratio),
    method("is_integer", "n.is_integer()", "True.", |_, _, args| {
        args.none("is_integer")?;
        Ok(Value::Bool(true))
    }),
    method("conjugate", "n.conjugate()", "The number itself.", conjugate),
    method("trim", "n.trim()", "The number itself; not in Python.", |_, value, args| {
        args.none("trim")?;
        Ok(value.clone())
    }),
    method(
        "to_bytes",
        "n.to_bytes(length=1, byteorder='big', signed=False)",
        "The number as bytes.",
        to_bytes,
    ),
    type_method(
        "from_bytes",
        "int.from_bytes(data, byteorder='big', signed=False)",
        "The number in bytes.",
        from_bytes,
    ),
];

pub(crate) static FLOAT_METHODS: &[Method] = &[
    method("is_integer", "x.is_integer()", "Whether there is no fraction.", |_, value, args| {
        args.none("is_integer")?;
        Ok(Value::Bool(matches!(value, Value::Float(x) if x.is_finite() && x.fract() == 0.0)))
    }),
    method("as_integer_ratio", "x.as_integer_ratio()", "The exact fraction.", as_integer_ratio),
    method("hex", "x.hex()", "The exact value in base 16.", float_hex),
    method("conjugate", "x.conjugate()", "The number itself.", conjugate),
];

pub(crate) static COMPLEX_METHODS: &[Method] =
    &[method("conjugate", "z.conjugate()", "The number with its imaginary part negated.", conjugate)];

fn abs(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let value = args.one("abs")?;
    match Number::of(&value) {
        Some(Number::Int(n)) if n >= 0 => Ok(Value::Int(n)),
        Some(Number::Int(_)) => ops::unary(UnaryOp::Minus, &value, &mut eval.fuel),
        Some(Number::Big(n)) => Ok(Value::integer(n.abs())),
        Some(Number::Float(x)) => Ok(Value::Float(x.abs())),
        Some(Number::Complex(re, im)) => Ok(Value::Float(re.hypot(im))),
        None => Err(Error::type_(format!("bad operand type for abs(): '{}'", value.type_name()))),
    }
}

fn round(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value, digits] = args.bind("round", ["number", "ndigits"], 1)?;
    let value = value.unwrap_or(Value::None);
    let digits = match digits {
        None | Some(Value::None) => None,
        // So many that no number has them.
        Some(Value::Big(digits)) => Some(if digits.is_negative() { i64::MIN } else { i64::MAX }),
        Some(digits) => Some(ops::index(&digits)?),
    };
    match (Number::of(&value), digits) {
        (Some(Number::Int(n)), None) => Ok(Value::Int(n)),
        (Some(Number::Big(_)), None) => Ok(value),
        (Some(Number::Int(_) | Number::Big(_)), Some(digits)) if digits >= 0 => {
            ops::unary(UnaryOp::Plus, &value, &mut eval.fuel)
        }
        (Some(Number::Int(_) | Number::Big(_)), Some(digits)) => round_integer(eval, &value, digits),
        (Some(Number::Float(x)), None) => float_to_integer(x.round_ties_even()),
        (Some(Number::Float(x)), Some(digits)) => round_float(x, digits).map(Value::Float),
        _ => Err(Error::type_(format!("type {} doesn't define __round__ method", value.type_name()))),
    }
}

fn round_integer(eval: &mut Eval<'_>, value: &Value, digits: i64) -> Result<Value, Error> {
    let places = u32::try_from(digits.unsigned_abs()).unwrap_or(u32::MAX);
    let number = big(value);
    if u64::from(places) > number.bits() {
        return Ok(Value::Int(0));
    }
    eval.fuel.integer(u64::from(places) * 4)?;
    let unit = BigInt::from(10).pow(places);
    let (mut quotient, rest) = number.div_mod_floor(&unit);
    let twice: BigInt = rest * 2;
    if twice > unit || twice == unit && quotient.is_odd() {
        quotient += 1;
    }
    Ok(Value::integer(quotient * unit))
}

/// Rounds to decimal places as if the exact binary value were written out.
fn round_float(x: f64, digits: i64) -> Result<f64, Error> {
    if !x.is_finite() || digits > 323 {
        return Ok(x);
    }
    if digits < -308 {
        return Ok(0f64.copysign(x));
    }
    let rounded = if digits >= 0 {
        let places = usize::try_from(digits).unwrap_or(0);
        format!("{x:.places$}").parse().unwrap_or(x)
    } else {
        let unit = BigInt::from(10).pow(u32::try_from(-digits).unwrap_or(0));
        let whole = BigInt::from_f64(x.abs().trunc()).unwrap_or_default();
        let (mut quotient, rest) = whole.div_rem(&unit);
        let twice: BigInt = rest * 2;
        if twice > unit || twice == unit && (x.fract() != 0.0 || quotient.is_odd()) {
            quotient += 1;
        }
        (quotient * unit).to_f64().unwrap_or(f64::INFINITY).copysign(x)
    };
    if rounded.is_infinite() {
        return Err(Error::overflow("rounded value too large to represent"));
    }
    Ok(rounded)
}

pub(crate) fn float_to_integer(x: f64) -> Result<Value, Error> {
    if x.is_nan() {
        return Err(Error::value("cannot convert float NaN to integer"));
    }
    if x.is_infinite() {
        return Err(Error::overflow("cannot convert float infinity to integer"));
    }
    if x.abs() < 9.0e18 {
        return Ok(Value::Int(x as i64));
    }
    Ok(BigInt::from_f64(x.trunc()).map_or(Value::Int(0), Value::integer))
}

fn pow(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [base, exponent, modulus] = args.bind("pow", ["base", "exp", "mod"], 2)?;
    let (base, exponent) = (base.unwrap_or(Value::None), exponent.unwrap_or(Value::None));
    let modulus = match modulus {
        None | Some(Value::None) => return ops::binary(BinaryOp::Pow, &base, &exponent, &mut eval.fuel),
        Some(modulus) => modulus,
    };
    if [&base, &exponent, &modulus].iter().any(|value| !ops::is_instance(value, Type::INT)) {
        return Err(Error::type_("pow() 3rd argument not allowed unless all arguments are integers"));
    }
    let (base, exponent, modulus) = (big(&base), big(&exponent), big(&modulus));
    if modulus.is_zero() {
        return Err(Error::value("pow() 3rd argument cannot be 0"));
    }
    let rounds = exponent.bits().saturating_mul(2);
    eval.fuel.spend(rounds.saturating_mul(1 + quadratic(modulus.bits(), modulus.bits()) * 4))?;
    eval.fuel.integer(modulus.bits() * 2)?;
    let size = modulus.abs();
    let result = if exponent.is_negative() {
        let inverse = inverse(&base.mod_floor(&size), &size)
            .ok_or_else(|| Error::value("base is not invertible for the given modulus"))?;
        inverse.modpow(&-exponent, &size)
    } else {
        base.mod_floor(&size).modpow(&exponent, &size)
    };
    Ok(Value::integer(result.mod_floor(&modulus)))
}

fn inverse(number: &BigInt, modulus: &BigInt) -> Option<BigInt> {
    let found = number.extended_gcd(modulus);
    found.gcd.is_one().then(|| found.x.mod_floor(modulus))
}

fn divmod(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [a, b] = args.bind("divmod", ["/a", "/b"], 2)?;
    let (a, b) = (a.unwrap_or(Value::None), b.unwrap_or(Value::None));
    match (Number::of(&a), Number::of(&b)) {
        (Some(Number::Complex(..)), _) | (_, Some(Number::Complex(..))) | (None, _) | (_, None) => {
            Err(Error::type_(format!(
                "unsupported operand type(s) for divmod(): '{}' and '{}'",
                a.type_name(),
                b.type_name()
            )))
        }
        (Some(x @ Number::Float(_)), Some(y)) | (Some(x), Some(y @ Number::Float(_))) => {
            let (x, y) = (x.float()?, y.float()?);
            if y == 0.0 {
                return Err(Error::zero_division("float divmod()"));
            }
            let (quotient, rest) = float_divmod(x, y);
            Ok(Value::tuple(vec![Value::Float(quotient), Value::Float(rest)]))
        }
        _ => {
            let quotient = ops::binary(BinaryOp::FloorDiv, &a, &b, &mut eval.fuel)?;
            let rest = ops::binary(BinaryOp::Mod, &a, &b, &mut eval.fuel)?;
            Ok(Value::tuple(vec![quotient, rest]))
        }
    }
}

fn radix(eval: &mut Eval<'_>, args: Args, name: &str, base: u32) -> Result<Value, Error> {
    let value = args.one(name)?;
    if !ops::is_instance(&value, Type::INT) {
        return Err(Error::type_(format!(
            "'{}' object cannot be interpreted as an integer",
            value.type_name()
        )));
    }
    let number = big(&value);
    eval.fuel.allocate(number.bits() as usize)?;
    let prefix = match base {
        16 => "0x",
        8 => "0o",
        _ => "0b",
    };
    let sign = if number.is_negative() { "-" } else { "" };
    Ok(Value::str(format!("{sign}{prefix}{}", number.magnitude().to_str_radix(base))))
}

/// Random numbers come from a counter mixed with a per-process seed: good enough to pick, not to keep
/// secrets.
fn random() -> f64 {
    static STATE: AtomicU64 = AtomicU64::new(0);
    static SEED: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    let mixed = SEED.hash_one(STATE.fetch_add(1, Ordering::Relaxed));
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn rand(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    args.none("rand")?;
    Ok(Value::Float(random()))
}

fn randint(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let top = args.one("randint")?;
    match Number::of(&top) {
        Some(number) => float_to_integer((random() * number.float()?).trunc()),
        None => Err(Error::type_(format!("randint() needs a number, not '{}'", top.type_name()))),
    }
}

fn hash(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let value = args.one("hash")?;
    let key = ops::key(&value, &mut eval.fuel)?;
    Ok(Value::Int(python_hash(&value).unwrap_or(key.hash_code() as i64)))
}

/// Python's hash of a number: its residue modulo 2^61 - 1. None for other types, whose hashes vary by run.
pub(crate) fn python_hash(value: &Value) -> Option<i64> {
    const PRIME: i64 = (1 << 61) - 1;
    let hash = match Number::of(value)? {
        Number::Int(n) => n % PRIME,
        Number::Big(n) => (n % PRIME).to_i64()?,
        Number::Float(x) if x.is_infinite() => {
            if x > 0.0 {
                314_159
            } else {
                -314_159
            }
        }
        Number::Float(x) if x.fract() == 0.0 => (BigInt::from_f64(x)? % PRIME).to_i64()?,
        Number::Float(x) if x.is_finite() => fraction_hash(x),
        Number::Complex(re, im) => {
            let (re, im) = (python_hash(&Value::Float(re))?, python_hash(&Value::Float(im))?);
            re.wrapping_add(im.wrapping_mul(1_000_003))
        }
        Number::Float(_) => return None,
    };
    Some(if hash == -1 { -2 } else { hash })
}

/// The hash of a float with a fraction, 28 bits of its mantissa at a time.
fn fraction_hash(x: f64) -> i64 {
    const BITS: u32 = 61;
    const PRIME: u64 = (1 << BITS) - 1;
    let (mut mantissa, mut exponent) = frexp(x.abs());
    let mut sum: u64 = 0;
    while mantissa != 0.0 {
        sum = ((sum << 28) & PRIME) | (sum >> (BITS - 28));
        mantissa *= 268_435_456.0;
        exponent -= 28;
        let whole = mantissa as u64;
        mantissa -= whole as f64;
        sum += whole;
        if sum >= PRIME {
            sum -= PRIME;
        }
    }
    let turn = exponent.rem_euclid(BITS as i32) as u32;
    let sum = if turn == 0 { sum } else { ((sum << turn) & PRIME) | (sum >> (BITS - turn)) };
    if x < 0.0 { -(sum as i64) } else { sum as i64 }
}

/// A float as a mantissa in [0.5, 1) and a power of two.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let bits = x.to_bits();
    let raw = ((bits >> 52) & 0x7ff) as i32;
    if raw == 0 {
        let (mantissa, exponent) = frexp(x * 2f64.powi(64));
        return (mantissa, exponent - 64);
    }
    (f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52)), raw - 1022)
}

fn id(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    // A reordered address tells objects apart without telling where they are.
    let value = args.one("id")?;
    let mixed = crate::value::hash_int(value.address() as i64) >> 2;
    Ok(Value::Int(mixed as i64))
}

fn int(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value, base] = args.bind("int", ["/x", "base"], 0)?;
    let Some(value) = value else {
        return match base {
            Some(_) => Err(Error::type_("int() missing string argument")),
            None => Ok(Value::Int(0)),
        };
    };
    if let Some(base) = base {
        let base = match base {
            Value::Big(_) => i64::MAX,
            base => ops::index(&base)?,
        };
        return match &value {
            Value::Str(text) => parse_int(eval, text, base),
            Value::Bytes(bytes) => parse_int(eval, &String::from_utf8_lossy(bytes), base),
            _ => Err(Error::type_("int() can't convert non-string with explicit base")),
        };
    }
    match &value {
        Value::Int(_) | Value::Big(_) => Ok(value),
        Value::Bool(flag) => Ok(Value::Int(i64::from(*flag))),
        Value::Float(x) => float_to_integer(*x),
        Value::Str(text) => parse_int(eval, text, 10),
        Value::Bytes(bytes) => parse_int(eval, &String::from_utf8_lossy(bytes), 10),
        _ => Err(Error::type_(format!(
            "int() argument must be a string, a bytes-like object or a real number, not '{}'",
            value.type_name()
        ))),
    }
}

fn parse_int(eval: &mut Eval<'_>, text: &str, base: i64) -> Result<Value, Error> {
    if base != 0 && !(2..=36).contains(&base) {
        return Err(Error::value("int() base must be >= 2 and <= 36, or 0"));
    }
    eval.fuel.allocate(text.len())?;
    let ascii = text::to_ascii_digits(text);
    let trimmed = ascii.trim_matches(text::is_space);
    let (negative, digits) = match trimmed.strip_prefix(['-', '+']) {
        Some(rest) => (trimmed.starts_with('-'), rest),
        None => (false, trimmed),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed = |prefix: &str, of: i64| {
        (base == of || base == 0).then(|| lower.strip_prefix(prefix)).flatten().map(|rest| (rest, of))
    };
    let (digits, real_base) = prefixed("0x", 16)
        .or_else(|| prefixed("0o", 8))
        .or_else(|| prefixed("0b", 2))
        .map(|(rest, of)| (rest.strip_prefix('_').unwrap_or(rest), of))
        .unwrap_or((&lower, if base == 0 { 10 } else { base }));
    let radix = u32::try_from(real_base).unwrap_or(10);
    let misplaced =
        digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    let leading_zero = base == 0
        && real_base == 10
        && digits.starts_with('0')
        && digits.bytes().any(|b| b != b'0' && b != b'_');
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if misplaced || leading_zero || !plain.chars().all(|c| c.is_digit(radix)) {
        let shown = crate::repr::repr(&Value::str(text), &mut eval.fuel)?;
        return Err(Error::value(format!("invalid literal for int() with base {base}: {shown}")));
    }
    let power_of_two = radix.is_power_of_two();
    if plain.len() > MAX_TEXT_DIGITS && !power_of_two {
        return Err(crate::repr::too_many_digits());
    }
    let bits = plain.len() as u64 * 6;
    eval.fuel.integer(bits)?;
    eval.fuel.spend(if power_of_two { 0 } else { quadratic(bits, bits) / 2 })?;
    let number = BigInt::parse_bytes(plain.as_bytes(), radix).unwrap_or_default();
    Ok(Value::integer(if negative { -number } else { number }))
}

use super::text;

fn float(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value] = args.bind("float", ["/x"], 0)?;
    let Some(value) = value else { return Ok(Value::Float(0.0)) };
    match (&value, Number::of(&value)) {
        (Value::Str(text), _) => parse_float(eval, text),
        (Value::Bytes(bytes), _) => parse_float(eval, &String::from_utf8_lossy(bytes)),
        (_, Some(Number::Complex(..)) | None) => Err(Error::type_(format!(
            "float() argument must be a string or a real number, not '{}'",
            value.type_name()
        ))),
        (_, Some(number)) => number.float().map(Value::Float),
    }
}

fn parse_float(eval: &mut Eval<'_>, text: &str) -> Result<Value, Error> {
    eval.fuel.allocate(text.len())?;
    match float_from_text(text) {
        Some(number) => Ok(Value::Float(number)),
        None => {
            let shown = crate::repr::repr(&Value::str(text), &mut eval.fuel)?;
            Err(Error::value(format!("could not convert string to float: {shown}")))
        }
    }
}

fn float_from_text(text: &str) -> Option<f64> {
    let ascii = text::to_ascii_digits(text);
    let trimmed = ascii.trim_matches(text::is_space).to_ascii_lowercase();
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(&trimmed);
    let sign = if trimmed.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned {
        "inf" | "infinity" => return Some(f64::INFINITY * sign),
        "nan" => return Some(f64::NAN.copysign(sign)),
        _ => {}
    }
    // An underscore may only stand between two digits.
    let bytes = unsigned.as_bytes();
    let digit_at = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    for (at, byte) in bytes.iter().enumerate() {
        let fits = match byte {
            b'_' => digit_at(at.checked_sub(1)) && digit_at(Some(at + 1)),
            b'0'..=b'9' | b'.' | b'e' | b'-' | b'+' => true,
            _ => false,
        };
        if !fits {
            return None;
        }
    }
    let plain = unsigned.replace('_', "");
    if plain.starts_with(['-', '+']) {
        return None;
    }
    plain.parse::<f64>().ok().map(|number| number * sign)
}

fn bool(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value] = args.bind("bool", ["/x"], 0)?;
    Ok(Value::Bool(value.is_some_and(|value| ops::truth(&value))))
}

fn new_complex(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [real, imag] = args.bind("complex", ["real", "imag"], 0)?;
    if let (Some(Value::Str(text)), None) = (&real, &imag) {
        return parse_complex(text).ok_or_else(|| Error::value("complex() arg is a malformed string"));
    }
    let part = |value: Option<Value>| match value {
        None => Ok((0.0, 0.0)),
        Some(value) => match Number::of(&value) {
            Some(Number::Complex(re, im)) => Ok((re, im)),
            Some(number) => Ok((number.float()?, 0.0)),
            None => Err(Error::type_(format!(
                "complex() argument must be a string or a number, not '{}'",
                value.type_name()
            ))),
        },
    };
    let ((a, b), (c, d)) = (part(real)?, part(imag)?);
    // What was not given takes no part: adding zero would lose the sign of a zero.
    let im = if b == 0.0 { c } else { b + c };
    Ok(complex::value(if d == 0.0 { a } else { a - d }, im))
}

fn parse_complex(text: &str) -> Option<Value> {
    let text = text.trim_matches(text::is_space);
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(text).trim();
    let Some(body) = inner.strip_suffix(['j', 'J']) else {
        return float_from_text(inner).map(|re| complex::value(re, 0.0));
    };
    let split = body.char_indices().rev().find(|(at, c)| {
        matches!(c, '+' | '-') && *at > 0 && !body.get(..*at).is_some_and(|head| head.ends_with(['e', 'E']))
    });
    let (re, im) = match split {
        Some((at, _)) => (float_from_text(body.get(..at)?)?, body.get(at..)?),
        None => (0.0, body),
    };
    let im = match im {
        "" | "+" => 1.0,
        "-" => -1.0,
        digits => float_from_text(digits)?,
    };
    Some(complex::value(re, im))
}

/// An integer value as a large integer; zero for anything else.
pub(crate) fn big(value: &Value) -> BigInt {
    match value {
        Value::Int(n) => BigInt::from(*n),
        Value::Bool(flag) => BigInt::from(i64::from(*flag)),
        Value::Big(n) => (**n).clone(),
        _ => BigInt::zero(),
    }
}

fn bit_length(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.none("bit_length")?;
    Ok(Value::Int(big(value).bits() as i64))
}

fn bit_count(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.none("bit_count")?;
    Ok(Value::Int(big(value).magnitude().count_ones() as i64))
}

fn as_integer_ratio(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.none("as_integer_ratio")?;
    let Value::Float(x) = value else {
        return Ok(Value::tuple(vec![Value::integer(big(value)), Value::Int(1)]));
    };
    if !x.is_finite() {
        return Err(if x.is_nan() {
            Error::value("cannot convert NaN to integer ratio")
        } else {
            Error::overflow("cannot convert Infinity to integer ratio")
        });
    }
    let (mantissa, exponent) = frexp(*x);
    let mut numerator = BigInt::from_f64(mantissa * 2f64.powi(53)).unwrap_or_default();
    let mut power = i64::from(exponent) - 53;
    while power < 0 && numerator.is_even() && !numerator.is_zero() {
        numerator >>= 1;
        power += 1;
    }
    let (numerator, denominator) = if numerator.is_zero() {
        (numerator, BigInt::one())
    } else if power >= 0 {
        (numerator << power as u64, BigInt::one())
    } else {
        (numerator, BigInt::one() << power.unsigned_abs())
    };
    Ok(Value::tuple(vec![Value::integer(numerator), Value::integer(denominator)]))
}

fn float_hex(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.none("hex")?;
    let Value::Float(x) = value else { return Ok(Value::None) };
    if !x.is_finite() {
        return Ok(Value::str(crate::repr::float(*x)));
    }
    let sign = if x.is_sign_negative() { "-" } else { "" };
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let raw = ((bits >> 52) & 0x7ff) as i64;
    Ok(Value::str(match (raw, fraction) {
        (0, 0) => format!("{sign}0x0.0p+0"),
        (0, _) => format!("{sign}0x0.{fraction:013x}p-1022"),
        _ => format!("{sign}0x1.{fraction:013x}p{:+}", raw - 1023),
    }))
}

fn conjugate(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.none("conjugate")?;
    match value {
        Value::Object(object) => match object.data() {
            ObjectData::Complex { re, im } => Ok(complex::value(*re, -im)),
            _ => Ok(value.clone()),
        },
        Value::Bool(flag) => Ok(Value::Int(i64::from(*flag))),
        _ => Ok(value.clone()),
    }
}

fn byte_order(order: Option<Value>) -> Result<bool, Error> {
    match order.as_ref().map(|order| order.as_str()) {
        None | Some(Some("big")) => Ok(true),
        Some(Some("little")) => Ok(false),
        Some(_) => Err(Error::value("byteorder must be either 'little' or 'big'")),
    }
}

fn to_bytes(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [length, order, signed] = args.bind("to_bytes", ["length", "byteorder", "signed"], 0)?;
    let length = usize::try_from(length.map_or(Ok(1), |length| ops::index(&length))?)
        .map_err(|_| Error::value("length argument must be non-negative"))?;
    let big_endian = byte_order(order)?;
    let signed = signed.is_some_and(|flag| ops::truth(&flag));
    eval.fuel.allocate(length)?;
    let number = big(value);
    if number.is_negative() && !signed {
        return Err(Error::overflow("can't convert negative int to unsigned"));
    }
    let mut bytes = if signed { number.to_signed_bytes_le() } else { number.magnitude().to_bytes_le() };
    if number.is_zero() {
        bytes.clear();
    }
    if bytes.len() > length {
        return Err(Error::overflow("int too big to convert"));
    }
    bytes.resize(length, if number.is_negative() { 0xff } else { 0 });
    if big_endian {
        bytes.reverse();
    }
    Ok(Value::bytes(bytes))
}

fn from_bytes(eval: &mut Eval<'_>, _: &Value, args: Args) -> Result<Value, Error> {
    let [data, order, signed] = args.bind("from_bytes", ["bytes", "byteorder", "signed"], 1)?;
    let big_endian = byte_order(order)?;
    let signed = signed.is_some_and(|flag| ops::truth(&flag));
    let bytes = match data {
        Some(Value::Bytes(bytes)) => bytes.to_vec(),
        Some(items) if !matches!(items, Value::Str(_) | Value::Int(_) | Value::Big(_) | Value::Bool(_)) => {
            text::bytes_of(eval, &items)?
        }
        _ => return Err(Error::type_("cannot convert object to bytes")),
    };
    eval.fuel.integer(bytes.len() as u64 * 8)?;
    Ok(Value::integer(match (signed, big_endian) {
        (true, true) => BigInt::from_signed_bytes_be(&bytes),
        (true, false) => BigInt::from_signed_bytes_le(&bytes),
        (false, true) => BigInt::from_bytes_be(Sign::Plus, &bytes),
        (false, false) => BigInt::from_bytes_le(Sign::Plus, &bytes),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_numbers_are_pythons() {
        assert_eq!(python_hash(&Value::Int(-1)), Some(-2));
        assert_eq!(python_hash(&Value::Int((1 << 61) - 1)), Some(0));
        assert_eq!(python_hash(&Value::Float(0.5)), Some(1_152_921_504_606_846_976));
        assert_eq!(python_hash(&Value::Float(2.75)), Some(1_729_382_256_910_270_466));
    }

    #[test]
    fn texts_become_floats_like_pythons() {
        assert_eq!(float_from_text(" 1_0.5 "), Some(10.5));
        assert_eq!(float_from_text("1e5"), Some(1e5));
        for bad in ["", "1__0", "_1", "0x10", "1e", "--1", "infin", "1 2"] {
            assert_eq!(float_from_text(bad), None, "{bad}");
        }
    }
}
