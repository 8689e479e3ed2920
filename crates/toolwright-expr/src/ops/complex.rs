//! Complex numbers, as far as an expression on plain data meets them: literals, the four operations, powers.

use crate::ast::BinaryOp;
use crate::error::Error;
use crate::ops::number::Number;
use crate::value::{Object, ObjectData, Value};

/// A complex value.
pub(crate) fn value(re: f64, im: f64) -> Value {
    Object::new(ObjectData::Complex { re, im })
}

pub(crate) fn binary(op: BinaryOp, left: Number<'_>, right: Number<'_>) -> Result<Option<Value>, Error> {
    let ((a, b), (c, d)) = (parts(left)?, parts(right)?);
    Ok(Some(match op {
        BinaryOp::Add => value(a + c, b + d),
        BinaryOp::Sub => value(a - c, b - d),
        BinaryOp::Mul => value(a * c - b * d, a * d + b * c),
        BinaryOp::Div => {
            let (re, im) = divide((a, b), (c, d))?;
            value(re, im)
        }
        BinaryOp::Pow => return power((a, b), (c, d)).map(Some),
        _ => return Ok(None),
    }))
}

fn parts(number: Number<'_>) -> Result<(f64, f64), Error> {
    match number {
        Number::Complex(re, im) => Ok((re, im)),
        other => Ok((other.float()?, 0.0)),
    }
}

/// Division scaled by the larger part, so that it does not overflow early.
fn divide((a, b): (f64, f64), (c, d): (f64, f64)) -> Result<(f64, f64), Error> {
    if c == 0.0 && d == 0.0 {
        return Err(Error::zero_division("complex division by zero"));
    }
    if c.abs() >= d.abs() {
        let ratio = d / c;
        let bottom = c + d * ratio;
        Ok(((a + b * ratio) / bottom, (b - a * ratio) / bottom))
    } else {
        let ratio = c / d;
        let bottom = c * ratio + d;
        Ok(((a * ratio + b) / bottom, (b * ratio - a) / bottom))
    }
}

/// `base ** exponent`.
pub(crate) fn power((a, b): (f64, f64), (c, d): (f64, f64)) -> Result<Value, Error> {
    if c == 0.0 && d == 0.0 {
        return Ok(value(1.0, 0.0));
    }
    if a == 0.0 && b == 0.0 {
        if d != 0.0 || c < 0.0 {
            return Err(Error::zero_division("0.0 to a negative or complex power"));
        }
        return Ok(value(0.0, 0.0));
    }
    if d == 0.0 && c.fract() == 0.0 && c.abs() <= 100.0 {
        let (mut result, mut square) = ((1.0, 0.0), (a, b));
        let mut rest = c.abs() as u32;
        while rest > 0 {
            if rest & 1 == 1 {
                result = product(result, square);
            }
            square = product(square, square);
            rest >>= 1;
        }
        if c < 0.0 {
            result = divide((1.0, 0.0), result)?;
        }
        return finite(result);
    }
    let length = a.hypot(b);
    let angle = b.atan2(a);
    let mut size = length.powf(c);
    let mut turn = angle * c;
    if d != 0.0 {
        size /= (angle * d).exp();
        turn += d * length.ln();
    }
    finite((size * turn.cos(), size * turn.sin()))
}

fn product((a, b): (f64, f64), (c, d): (f64, f64)) -> (f64, f64) {
    (a * c - b * d, a * d + b * c)
}

fn finite((re, im): (f64, f64)) -> Result<Value, Error> {
    if re.is_infinite() || im.is_infinite() {
        return Err(Error::overflow("complex exponentiation"));
    }
    Ok(value(re, im))
}
