//! Arithmetic on bool, int and float with Python's results: integers never overflow, division rounds the way
//! Python rounds, comparisons between int and float are exact. Sizes are checked before numbers are computed.

use std::borrow::Cow;
use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{FromPrimitive, Signed, ToPrimitive, Zero};

use crate::ast::{BinaryOp, UnaryOp};
use crate::error::Error;
use crate::fuel::Fuel;
use crate::ops::complex;
use crate::value::{ObjectData, Value};

/// A number of any type.
#[derive(Clone, Copy)]
pub(crate) enum Number<'a> {
    Int(i64),
    Big(&'a BigInt),
    Float(f64),
    Complex(f64, f64),
}

impl<'a> Number<'a> {
    #[inline]
    pub(crate) fn of(value: &'a Value) -> Option<Number<'a>> {
        Some(match value {
            Value::Int(number) => Number::Int(*number),
            Value::Bool(flag) => Number::Int(i64::from(*flag)),
            Value::Float(number) => Number::Float(*number),
            Value::Big(number) => Number::Big(number),
            Value::Object(object) => match object.data() {
                ObjectData::Complex { re, im } => Number::Complex(*re, *im),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn big(self) -> Option<Cow<'a, BigInt>> {
        match self {
            Number::Int(number) => Some(Cow::Owned(BigInt::from(number))),
            Number::Big(number) => Some(Cow::Borrowed(number)),
            Number::Float(_) | Number::Complex(..) => None,
        }
    }

    /// The number as a float; integers too large for one are an error.
    pub(crate) fn float(self) -> Result<f64, Error> {
        match self {
            Number::Int(number) => Ok(number as f64),
            Number::Big(number) => match number.to_f64() {
                Some(float) if float.is_finite() => Ok(float),
                _ => Err(Error::overflow("int too large to convert to float")),
            },
            Number::Float(number) => Ok(number),
            Number::Complex(re, _) => Ok(re),
        }
    }
}

/// `left op right` when both are numbers.
#[inline]
pub(crate) fn binary(
    op: BinaryOp,
    left: &Value,
    right: &Value,
    fuel: &mut Fuel<'_>,
) -> Result<Option<Value>, Error> {
    let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) else { return Ok(None) };
    if let (Value::Bool(x), Value::Bool(y)) = (left, right) {
        match op {
            BinaryOp::And => return Ok(Some(Value::Bool(x & y))),
            BinaryOp::Or => return Ok(Some(Value::Bool(x | y))),
            BinaryOp::Xor => return Ok(Some(Value::Bool(x ^ y))),
            _ => {}
        }
    }
    match (a, b) {
        (Number::Int(x), Number::Int(y)) => small(op, x, y, fuel),
        (Number::Complex(..), _) | (_, Number::Complex(..)) => complex::binary(op, a, b),
        // Floats have no bits, however large the other number is.
        (Number::Float(_), _) | (_, Number::Float(_)) if is_bitwise(op) => Ok(None),
        (Number::Float(x), _) => floats(op, x, b.float()?),
        (_, Number::Float(y)) => floats(op, a.float()?, y),
        _ => match (a.big(), b.big()) {
            (Some(x), Some(y)) => large(op, &x, &y, fuel),
            _ => Ok(None),
        },
    }
}

fn is_bitwise(op: BinaryOp) -> bool {
    use BinaryOp::{And, MatMul, Or, Shl, Shr, Xor};
    matches!(op, And | Or | Xor | Shl | Shr | MatMul)
}

fn small(op: BinaryOp, x: i64, y: i64, fuel: &mut Fuel<'_>) -> Result<Option<Value>, Error> {
    let quick = match op {
        BinaryOp::Add => x.checked_add(y),
        BinaryOp::Sub => x.checked_sub(y),
        BinaryOp::Mul => x.checked_mul(y),
        BinaryOp::And => Some(x & y),
        BinaryOp::Or => Some(x | y),
        BinaryOp::Xor => Some(x ^ y),
        BinaryOp::FloorDiv if y == 0 => {
            return Err(Error::zero_division("integer division or modulo by zero"));
        }
        BinaryOp::Mod if y == 0 => return Err(Error::zero_division("integer modulo by zero")),
        BinaryOp::FloorDiv => floor_div(x, y),
        BinaryOp::Mod => Some(floor_mod(x, y)),
        BinaryOp::Div => return divide_small(x, y).map(Some),
        BinaryOp::Pow => match u32::try_from(y) {
            Ok(exponent) => x.checked_pow(exponent),
            Err(_) if y < 0 => return negative_power(x as f64, y as f64).map(Some),
            Err(_) => None,
        },
        BinaryOp::Shl | BinaryOp::Shr if y < 0 => return Err(Error::value("negative shift count")),
        BinaryOp::Shr => Some(if y > 63 { x >> 63 } else { x >> y }),
        BinaryOp::Shl => match u32::try_from(y) {
            Ok(shift) if shift < 63 && x.unsigned_abs().leading_zeros() > shift + 1 => Some(x << shift),
            _ if x == 0 => Some(0),
            _ => None,
        },
        BinaryOp::MatMul => return Ok(None),
    };
    match quick {
        Some(result) => Ok(Some(Value::Int(result))),
        None => large(op, &BigInt::from(x), &BigInt::from(y), fuel),
    }
}

#[inline]
pub(crate) fn floor_div(x: i64, y: i64) -> Option<i64> {
    let quotient = x.checked_div(y)?;
    Some(if x % y != 0 && (x < 0) != (y < 0) { quotient - 1 } else { quotient })
}

/// Remainder with the sign of the divisor, which must not be zero.
#[inline]
pub(crate) fn floor_mod(x: i64, y: i64) -> i64 {
    let rest = x.wrapping_rem(y);
    if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }
}

fn divide_small(x: i64, y: i64) -> Result<Value, Error> {
    const EXACT: u64 = 1 << 53;
    if y == 0 {
        return Err(Error::zero_division("division by zero"));
    }
    if x.unsigned_abs() <= EXACT && y.unsigned_abs() <= EXACT {
        return Ok(Value::Float(x as f64 / y as f64));
    }
    divide_large(&BigInt::from(x), &BigInt::from(y)).map(Value::Float)
}

fn large(op: BinaryOp, x: &BigInt, y: &BigInt, fuel: &mut Fuel<'_>) -> Result<Option<Value>, Error> {
    let (bits_x, bits_y) = (x.bits(), y.bits());
    let result = match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
            fuel.integer(bits_x.max(bits_y) + 1)?;
            match op {
                BinaryOp::Add => x + y,
                BinaryOp::Sub => x - y,
                BinaryOp::And => x & y,
                BinaryOp::Or => x | y,
                _ => x ^ y,
            }
        }
        BinaryOp::Mul => {
            fuel.integer(bits_x + bits_y)?;
            fuel.spend(quadratic(bits_x, bits_y))?;
            x * y
        }
        BinaryOp::FloorDiv | BinaryOp::Mod => {
            if y.is_zero() {
                return Err(Error::zero_division("integer division or modulo by zero"));
            }
            fuel.integer(bits_x.max(bits_y))?;
            fuel.spend(quadratic(bits_x.saturating_sub(bits_y), bits_y))?;
            if op == BinaryOp::Mod { x.mod_floor(y) } else { x.div_floor(y) }
        }
        BinaryOp::Div => return divide_large(x, y).map(|number| Some(Value::Float(number))),
        BinaryOp::Pow => return power(x, y, fuel).map(Some),
        BinaryOp::Shl | BinaryOp::Shr => return shift(op, x, y, fuel).map(Some),
        BinaryOp::MatMul => return Ok(None),
    };
    Ok(Some(Value::integer(result)))
}

/// Steps a schoolbook product of two numbers takes, in units of a few nanoseconds.
pub(crate) fn quadratic(bits_x: u64, bits_y: u64) -> u64 {
    (bits_x / 64).saturating_mul(bits_y / 64) / 8
}

fn power(base: &BigInt, exponent: &BigInt, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    if exponent.is_negative() {
        return negative_power(Number::Big(base).float()?, Number::Big(exponent).float()?);
    }
    if base.is_zero() || base.magnitude().bits() == 1 {
        let odd = exponent.bit(0);
        let one = if base.is_negative() && odd { -1 } else { 1 };
        return Ok(Value::Int(if base.is_zero() { i64::from(exponent.is_zero()) } else { one }));
    }
    let exponent = exponent.to_u64().unwrap_or(u64::MAX);
    let bits = (base.bits() - 1).saturating_mul(exponent);
    fuel.integer(bits)?;
    fuel.spend(quadratic(bits, bits) * 2)?;
    let exponent = u32::try_from(exponent).map_err(|_| Error::overflow("exponent too large"))?;
    Ok(Value::integer(base.pow(exponent)))
}

fn negative_power(base: f64, exponent: f64) -> Result<Value, Error> {
    if base == 0.0 {
        return Err(Error::zero_division("0.0 cannot be raised to a negative power"));
    }
    Ok(Value::Float(base.powf(exponent)))
}

fn shift(op: BinaryOp, x: &BigInt, y: &BigInt, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    if y.is_negative() {
        return Err(Error::value("negative shift count"));
    }
    if x.is_zero() {
        return Ok(Value::Int(0));
    }
    let count = y.to_u64().unwrap_or(u64::MAX);
    if op == BinaryOp::Shr {
        fuel.integer(x.bits())?;
        if count >= x.bits() {
            return Ok(Value::Int(if x.is_negative() { -1 } else { 0 }));
        }
        return Ok(Value::integer(x >> count));
    }
    fuel.integer(x.bits().saturating_add(count))?;
    Ok(Value::integer(x << count))
}

/// The float nearest to the exact quotient.
fn divide_large(x: &BigInt, y: &BigInt) -> Result<f64, Error> {
    if y.is_zero() {
        return Err(Error::zero_division("division by zero"));
    }
    if x.is_zero() {
        return Ok(if y.is_negative() { -0.0 } else { 0.0 });
    }
    // A quotient of at least 64 bits with a sticky last bit rounds as the exact value would.
    let shift = 66 - (x.bits() as i64 - y.bits() as i64);
    let (numerator, denominator) = if shift >= 0 {
        (x.magnitude() << shift as u64, y.magnitude().clone())
    } else {
        (x.magnitude().clone(), y.magnitude() << shift.unsigned_abs())
    };
    let (quotient, rest) = numerator.div_rem(&denominator);
    let mut digits = quotient.to_u128().unwrap_or(u128::MAX);
    if !rest.is_zero() {
        digits |= 1;
    }
    let result = scale(digits as f64, -shift);
    if result.is_infinite() {
        return Err(Error::overflow("integer division result too large for a float"));
    }
    Ok(if (x.sign() == Sign::Minus) != (y.sign() == Sign::Minus) { -result } else { result })
}

/// `number * 2^power` in steps that cannot overflow on the way.
pub(crate) fn scale(mut number: f64, mut power: i64) -> f64 {
    while power > 1000 && number.is_finite() {
        number *= 2f64.powi(1000);
        power -= 1000;
    }
    while power < -1000 && number != 0.0 {
        number *= 2f64.powi(-1000);
        power += 1000;
    }
    number * 2f64.powi(power as i32)
}

fn floats(op: BinaryOp, x: f64, y: f64) -> Result<Option<Value>, Error> {
    let result = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div if y == 0.0 => return Err(Error::zero_division("float division by zero")),
        BinaryOp::Div => x / y,
        BinaryOp::FloorDiv if y == 0.0 => return Err(Error::zero_division("float floor division by zero")),
        BinaryOp::Mod if y == 0.0 => return Err(Error::zero_division("float modulo")),
        BinaryOp::FloorDiv => float_divmod(x, y).0,
        BinaryOp::Mod => float_divmod(x, y).1,
        BinaryOp::Pow => return float_power(x, y).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(Value::Float(result)))
}

/// Floor quotient and remainder with the sign of `y`, which must not be zero.
pub(crate) fn float_divmod(x: f64, y: f64) -> (f64, f64) {
    let mut rest = x % y;
    let mut quotient = (x - rest) / y;
    if rest != 0.0 {
        if (y < 0.0) != (rest < 0.0) {
            rest += y;
            quotient -= 1.0;
        }
    } else {
        rest = 0f64.copysign(y);
    }
    let floor = if quotient != 0.0 {
        let floor = quotient.floor();
        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
    } else {
        0f64.copysign(x / y)
    };
    (floor, rest)
}

fn float_power(x: f64, y: f64) -> Result<Value, Error> {
    if x == 0.0 && y < 0.0 {
        return Err(Error::zero_division("0.0 cannot be raised to a negative power"));
    }
    if x < 0.0 && x.is_finite() && y.is_finite() && y.fract() != 0.0 {
        return complex::power((x, 0.0), (y, 0.0));
    }
    let result = x.powf(y);
    if result.is_infinite() && x.is_finite() && y.is_finite() {
        return Err(Error::overflow("(34, 'Numerical result out of range')"));
    }
    Ok(Value::Float(result))
}

/// `-x`, `+x`, `~x` when it is a number.
pub(crate) fn unary(op: UnaryOp, value: &Value, fuel: &mut Fuel<'_>) -> Result<Option<Value>, Error> {
    let Some(number) = Number::of(value) else { return Ok(None) };
    Ok(Some(match (op, number) {
        (UnaryOp::Minus, Number::Int(x)) => match x.checked_neg() {
            Some(negated) => Value::Int(negated),
            None => Value::integer(-BigInt::from(x)),
        },
        (UnaryOp::Plus, Number::Int(x)) => Value::Int(x),
        (UnaryOp::Invert, Number::Int(x)) => Value::Int(!x),
        (_, Number::Big(x)) => {
            fuel.integer(x.bits() + 1)?;
            match op {
                UnaryOp::Minus => Value::integer(-x),
                UnaryOp::Plus => value.clone(),
                UnaryOp::Invert => Value::integer(!x),
            }
        }
        (UnaryOp::Minus, Number::Float(x)) => Value::Float(-x),
        (UnaryOp::Plus, Number::Float(x)) => Value::Float(x),
        (UnaryOp::Minus, Number::Complex(re, im)) => complex::value(-re, -im),
        (UnaryOp::Plus, Number::Complex(re, im)) => complex::value(re, im),
        (UnaryOp::Invert, Number::Float(_) | Number::Complex(..)) => return Ok(None),
    }))
}

/// Whether two numbers are equal; false when either is not a number.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (Number::of(left), Number::of(right)) {
        (Some(Number::Complex(re, im)), Some(other)) | (Some(other), Some(Number::Complex(re, im))) => {
            match other {
                Number::Complex(r, i) => re == r && im == i,
                other => im == 0.0 && compare(Number::Float(re), other) == Some(Ordering::Equal),
            }
        }
        (Some(a), Some(b)) => compare(a, b) == Some(Ordering::Equal),
        _ => false,
    }
}

/// The exact order of two real numbers; none with NaN or complex numbers.
pub(crate) fn compare(left: Number<'_>, right: Number<'_>) -> Option<Ordering> {
    match (left, right) {
        (Number::Int(x), Number::Int(y)) => Some(x.cmp(&y)),
        (Number::Float(x), Number::Float(y)) => x.partial_cmp(&y),
        (Number::Complex(..), _) | (_, Number::Complex(..)) => None,
        (Number::Float(x), other) => compare_integer(other, x).map(Ordering::reverse),
        (other, Number::Float(y)) => compare_integer(other, y),
        (a, b) => Some(a.big()?.cmp(&b.big()?)),
    }
}

fn compare_integer(integer: Number<'_>, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.is_infinite() {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    if let Number::Int(number) = integer
        && number.unsigned_abs() <= 1 << 53
    {
        return (number as f64).partial_cmp(&float);
    }
    let whole = BigInt::from_f64(float.trunc())?;
    let order = integer.big()?.as_ref().cmp(&whole);
    Some(order.then_with(|| 0f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalLimits;

    fn compute(op: BinaryOp, left: Value, right: Value) -> Result<Value, Error> {
        let limits = EvalLimits::default();
        binary(op, &left, &right, &mut Fuel::new(&limits)).map(Option::unwrap)
    }

    #[test]
    fn the_smallest_integer_divided_by_minus_one_grows() {
        let result = compute(BinaryOp::FloorDiv, Value::Int(i64::MIN), Value::Int(-1)).unwrap();
        assert_eq!(result.to_string(), "9223372036854775808");
        assert_eq!(compute(BinaryOp::Mod, Value::Int(i64::MIN), Value::Int(-1)).unwrap().to_string(), "0");
    }

    #[test]
    fn huge_powers_and_shifts_are_refused_before_computing() {
        for (op, right) in [(BinaryOp::Pow, 999_999_999), (BinaryOp::Shl, 1 << 40)] {
            let error = compute(op, Value::Int(9), Value::Int(right)).unwrap_err();
            assert_eq!(error.limit(), Some(crate::LimitKind::Digits));
        }
    }

    #[test]
    fn shifts_keep_the_sign_bit_in_mind() {
        assert_eq!(
            compute(BinaryOp::Shl, Value::Int(1), Value::Int(62)).unwrap().to_string(),
            "4611686018427387904"
        );
        assert_eq!(
            compute(BinaryOp::Shl, Value::Int(1), Value::Int(63)).unwrap().to_string(),
            "9223372036854775808"
        );
        assert_eq!(
            compute(BinaryOp::Shl, Value::Int(-3), Value::Int(61)).unwrap().to_string(),
            "-6917529027641081856"
        );
    }

    #[test]
    fn integers_and_floats_compare_exactly() {
        let big = (1i64 << 53) + 1;
        assert_eq!(compare(Number::Int(big), Number::Float((1i64 << 53) as f64)), Some(Ordering::Greater));
        assert_eq!(compare(Number::Int(-1), Number::Float(-1.5)), Some(Ordering::Greater));
        assert_eq!(compare(Number::Int(1), Number::Float(f64::NAN)), None);
    }
}
