//! What a plain word of YAML means. The rules are those of YAML 1.1 as PyYAML applies them, because the files
//! people bring were written against it: `yes` and `off` are booleans, `y` is text, `010` is eight, `1e3` is
//! text.

use std::sync::LazyLock;

use regex::Regex;

/// A scalar that is not text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer too large for 64 bits, in decimal.
    Large(String),
    Float(f64),
    Text,
}

/// Reads a plain scalar.
pub(crate) fn resolve(text: &str) -> Scalar {
    let Some(first) = text.chars().next() else { return Scalar::Null };
    match text {
        "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Scalar::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        _ => {}
    }
    if !matches!(first, '0'..='9' | '+' | '-' | '.') {
        return Scalar::Text;
    }
    if let Some(number) = small(text) {
        return Scalar::Int(number);
    }
    if INTEGER.is_match(text) {
        return integer(text);
    }
    if FLOAT.is_match(text) {
        return float(text).map_or(Scalar::Text, Scalar::Float);
    }
    Scalar::Text
}

/// Decimal numbers without signs, zeros in front or underscores: nearly all that occur.
fn small(text: &str) -> Option<i64> {
    let plain = text.len() < 19 && text.bytes().all(|byte| byte.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    if plain && !leading { text.parse().ok() } else { None }
}

#[expect(clippy::unwrap_used, reason = "the patterns are constants, and a test compiles them")]
static INTEGER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        "^[-+]?(?:0b[0-1_]+|0[0-7_]+|(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$",
    )
    .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the patterns are constants, and a test compiles them")]
static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?",
        r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
    ))
    .unwrap()
});

fn integer(text: &str) -> Scalar {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.replace('_', "");
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    let value = if let Some(rest) = digits.strip_prefix("0b") {
        radix(rest, 2)
    } else if let Some(rest) = digits.strip_prefix("0x") {
        radix(rest, 16)
    } else if digits.contains(':') {
        digits.split(':').try_fold(0_i64, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))
    } else if digits.len() > 1 && digits.starts_with('0') {
        radix(&digits, 8)
    } else {
        match digits.parse::<i64>() {
            Ok(value) => Some(value),
            Err(_) if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() => {
                return Scalar::Large(if negative { format!("-{digits}") } else { digits });
            }
            Err(_) => None,
        }
    };
    match value {
        Some(value) => Scalar::Int(if negative { -value } else { value }),
        None => Scalar::Text,
    }
}

fn float(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.replace('_', "").to_lowercase();
    let value = match digits.as_str() {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ if digits.contains(':') => {
            digits.split(':').try_fold(0.0, |sum: f64, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))?
        }
        _ => digits.parse().ok()?,
    };
    Some(sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_pyyaml_makes_of_them() {
        for (text, want) in [
            ("yes", Scalar::Bool(true)),
            ("Off", Scalar::Bool(false)),
            ("y", Scalar::Text),
            ("n", Scalar::Text),
            ("yEs", Scalar::Text),
            ("~", Scalar::Null),
            ("", Scalar::Null),
            ("nUll", Scalar::Text),
            ("12", Scalar::Int(12)),
            ("-12", Scalar::Int(-12)),
            ("+1_000", Scalar::Int(1000)),
            ("010", Scalar::Int(8)),
            ("08", Scalar::Text),
            ("0x1F", Scalar::Int(31)),
            ("0b101", Scalar::Int(5)),
            ("0o17", Scalar::Text),
            ("1:30", Scalar::Int(90)),
            ("0", Scalar::Int(0)),
            ("1.5", Scalar::Float(1.5)),
            ("1.", Scalar::Float(1.0)),
            (".5", Scalar::Float(0.5)),
            ("1e3", Scalar::Text),
            ("1.0e3", Scalar::Text),
            ("1.0e+3", Scalar::Float(1000.0)),
            ("-.inf", Scalar::Float(f64::NEG_INFINITY)),
            ("2026-01-01", Scalar::Text),
            ("99999999999999999999", Scalar::Large("99999999999999999999".into())),
            ("-", Scalar::Text),
            ("1.2.3", Scalar::Text),
        ] {
            assert_eq!(resolve(text), want, "{text}");
        }
    }
}
