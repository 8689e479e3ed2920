//! Numbers: decimal, with a base, with a fraction or exponent, imaginary.

use num_bigint::BigInt;

use super::{LexToken, Lexer, MAX_TEXT_DIGITS, Tok, is_name_part};
use crate::error::{Error, Span};
use crate::value::Value;

impl Lexer<'_> {
    pub(super) fn number(&mut self, start: usize) -> Result<LexToken, Error> {
        if let Some(small) = self.small_number() {
            return Ok(self.token(Tok::Number(Value::Int(small)), start));
        }
        let rest = self.rest().as_bytes();
        let radix = match (rest.first(), rest.get(1).map(u8::to_ascii_lowercase)) {
            (Some(b'0'), Some(b'x')) => 16,
            (Some(b'0'), Some(b'o')) => 8,
            (Some(b'0'), Some(b'b')) => 2,
            _ => return self.decimal(start),
        };
        self.at += 2;
        let body = self.digits(|c| c.is_ascii_alphanumeric());
        let digits = body.strip_prefix('_').unwrap_or(&body).to_owned();
        let digits = without_underscores(&digits);
        let parsed = digits.filter(|digits| digits.chars().all(|c| c.is_digit(radix)));
        let number = parsed.and_then(|digits| BigInt::parse_bytes(digits.as_bytes(), radix));
        match number {
            Some(number) => Ok(self.token(Tok::Number(Value::integer(number)), start)),
            None => Err(self.bad_number(start, "invalid digit in number")),
        }
    }

    /// A few plain digits, by far the most frequent number.
    fn small_number(&mut self) -> Option<i64> {
        let digits = self.rest().bytes().take(18).take_while(u8::is_ascii_digit).count();
        let next = self.byte_at(digits);
        let ends = !(next.is_ascii_alphanumeric() || next == b'.' || next == b'_' || !next.is_ascii());
        if !ends || digits > 1 && self.byte_at(0) == b'0' {
            return None;
        }
        let number = (0..digits).fold(0, |number, at| number * 10 + i64::from(self.byte_at(at) - b'0'));
        self.at += digits;
        Some(number)
    }

    fn decimal(&mut self, start: usize) -> Result<LexToken, Error> {
        let whole = self.digits(|c| c.is_ascii_digit());
        let mut text = match without_underscores(&whole) {
            Some(text) => text,
            None if whole.is_empty() => String::new(),
            None => return Err(self.bad_number(start, "invalid decimal literal")),
        };
        let mut float = false;
        if self.peek() == Some('.') {
            float = true;
            self.bump();
            let fraction = self.digits(|c| c.is_ascii_digit());
            text.push('.');
            if !fraction.is_empty() {
                match without_underscores(&fraction) {
                    Some(fraction) => text.push_str(&fraction),
                    None => return Err(self.bad_number(start, "invalid decimal literal")),
                }
            }
        }
        let sign = usize::from(matches!(self.peek_at(1), Some('+' | '-')));
        if matches!(self.peek(), Some('e' | 'E'))
            && self.peek_at(1 + sign).is_some_and(|c| c.is_ascii_digit())
        {
            float = true;
            text.push('e');
            self.bump();
            if sign == 1 {
                text.extend(self.bump());
            }
            match without_underscores(&self.digits(|c| c.is_ascii_digit())) {
                Some(exponent) => text.push_str(&exponent),
                None => return Err(self.bad_number(start, "invalid decimal literal")),
            }
        }
        let imaginary = matches!(self.peek(), Some('j' | 'J'));
        if imaginary {
            self.bump();
        }
        self.end_of_number(start)?;
        if float || imaginary {
            let number: f64 = text.parse().map_err(|_| self.bad_number(start, "invalid decimal literal"))?;
            let value =
                if imaginary { crate::ops::complex::value(0.0, number) } else { Value::Float(number) };
            return Ok(self.token(Tok::Number(value), start));
        }
        if text.len() > 1 && text.starts_with('0') && text.bytes().any(|byte| byte != b'0') {
            return Err(self.bad_number(start, "leading zeros in decimal integer literals are not permitted"));
        }
        if text.len() > MAX_TEXT_DIGITS {
            return Err(self.bad_number(start, "integer literal has more than 4300 digits"));
        }
        match text
            .parse::<i64>()
            .ok()
            .map(Value::Int)
            .or_else(|| BigInt::parse_bytes(text.as_bytes(), 10).map(Value::integer))
        {
            Some(number) => Ok(self.token(Tok::Number(number), start)),
            None => Err(self.bad_number(start, "invalid decimal literal")),
        }
    }

    /// Letters may not touch a number, except those of an operator word as in `1if x else 2`.
    fn end_of_number(&mut self, start: usize) -> Result<(), Error> {
        let rest = self.rest();
        if !self.peek().is_some_and(is_name_part) {
            return Ok(());
        }
        let word: String = rest.chars().take_while(|c| is_name_part(*c)).collect();
        if ["and", "else", "for", "if", "in", "is", "not", "or"].contains(&word.as_str()) {
            return Ok(());
        }
        Err(self.bad_number(start, "invalid decimal literal"))
    }

    fn bad_number(&self, start: usize, message: &'static str) -> Error {
        Error::syntax(message, Span::new(start, self.at.max(start + 1)))
    }

    pub(super) fn digits(&mut self, accept: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| accept(c) || c == '_') {
            self.bump();
        }
        self.source.get(start..self.at).unwrap_or_default().to_owned()
    }
}

fn without_underscores(digits: &str) -> Option<String> {
    let misplaced =
        digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    (!misplaced).then(|| digits.replace('_', ""))
}
