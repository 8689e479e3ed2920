//! Strings: plain, raw, bytes, and the literal text of f-strings, with their escapes.

use compact_str::CompactString;

use super::{FEnd, LexToken, Lexer, MAX_OPEN, Quote, Tok};
use crate::error::{Error, LimitKind, Span};

impl Lexer<'_> {
    pub(super) fn string(&mut self, start: usize, prefix: &str) -> Result<LexToken, Error> {
        let mark = self.bump().unwrap_or('"');
        let triple = self.peek() == Some(mark) && self.peek_at(1) == Some(mark);
        if triple {
            self.at += 2;
        }
        let quote = Quote { mark, triple, raw: prefix.contains('r') };
        if prefix.contains('f') {
            return Ok(self.token(Tok::FString(quote), start));
        }
        if prefix.contains('b') {
            let mut bytes = Vec::new();
            loop {
                match self.string_char(quote, start)? {
                    None => return Ok(self.token(Tok::Bytes(bytes), start)),
                    Some('\\') if !quote.raw => self.bytes_escape(&mut bytes)?,
                    Some('\\') => {
                        bytes.push(b'\\');
                        if self.peek() == Some(mark) || self.peek() == Some('\\') {
                            bytes.extend(self.bump().map(|c| c as u8));
                        }
                    }
                    Some(c) if c.is_ascii() => bytes.push(c as u8),
                    Some(_) => {
                        return Err(Error::syntax(
                            "bytes can only contain ASCII literal characters",
                            Span::new(start, self.at),
                        ));
                    }
                }
            }
        }
        let mut text = CompactString::default();
        loop {
            self.plain_text(quote, &mut text);
            match self.string_char(quote, start)? {
                None => return Ok(self.token(Tok::Str(text), start)),
                Some('\\') if !quote.raw => self.escape(&mut text)?,
                Some('\\') => {
                    // In a raw string a backslash keeps the quote after it from closing the string.
                    text.push('\\');
                    if self.peek() == Some(mark) || self.peek() == Some('\\') {
                        text.extend(self.bump());
                    }
                }
                Some(c) => text.push(c),
            }
        }
    }

    /// Takes the stretch of a string up to the next character that may mean something, as it is.
    fn plain_text(&mut self, quote: Quote, text: &mut CompactString) {
        let special = |byte: &u8| matches!(byte, b'\\' | b'\n' | b'\r') || char::from(*byte) == quote.mark;
        let rest = self.rest();
        let length = rest.bytes().position(|byte| special(&byte)).unwrap_or(rest.len());
        text.push_str(rest.get(..length).unwrap_or_default());
        self.at += length;
    }

    /// The next character of a string, or `None` when its closing quote was read.
    fn string_char(&mut self, quote: Quote, start: usize) -> Result<Option<char>, Error> {
        if self.closes(quote) {
            self.at += if quote.triple { 3 } else { 1 };
            return Ok(None);
        }
        match self.bump() {
            Some('\n' | '\r') if !quote.triple => {
                Err(Error::syntax("unterminated string literal", Span::new(start, self.at)))
            }
            None => Err(Error::syntax("unterminated string literal", Span::new(start, self.at))
                .with_hint(format!("close it with {}", quote.mark))),
            Some('\r') => {
                if self.peek() == Some('\n') {
                    self.bump();
                }
                Ok(Some('\n'))
            }
            Some(c) => Ok(Some(c)),
        }
    }

    pub(super) fn closes(&self, quote: Quote) -> bool {
        let wanted = if quote.triple { 3 } else { 1 };
        (0..wanted).all(|ahead| char::from(self.byte_at(ahead)) == quote.mark)
    }

    /// Decodes one escape, the backslash already read.
    fn escape(&mut self, text: &mut CompactString) -> Result<(), Error> {
        let start = self.at - 1;
        let Some(next) = self.bump() else { return Ok(()) };
        match next {
            '\n' => {}
            '\r' => {
                if self.peek() == Some('\n') {
                    self.bump();
                }
            }
            '\\' | '\'' | '"' => text.push(next),
            'a' => text.push('\x07'),
            'b' => text.push('\x08'),
            'f' => text.push('\x0c'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'v' => text.push('\x0b'),
            '0'..='7' => text.push(char::from_u32(self.octal(next)).unwrap_or('\u{fffd}')),
            'x' => text.push(self.hex_escape(start, 2)?),
            'u' => text.push(self.hex_escape(start, 4)?),
            'U' => text.push(self.hex_escape(start, 8)?),
            'N' => {
                return Err(Error::syntax(
                    "character names (\\N{...}) are not supported",
                    Span::new(start, self.at),
                )
                .with_hint("write the character itself or its number as \\uXXXX"));
            }
            other => {
                text.push('\\');
                text.push(other);
            }
        }
        Ok(())
    }

    fn octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            match self.peek().and_then(|c| c.to_digit(8)) {
                Some(digit) => {
                    code = code * 8 + digit;
                    self.bump();
                }
                None => break,
            }
        }
        code
    }

    fn hex_escape(&mut self, start: usize, count: usize) -> Result<char, Error> {
        let code = self.hex_digits(start, count)?;
        char::from_u32(code).ok_or_else(|| self.no_character(start, code))
    }

    fn hex_digits(&mut self, start: usize, count: usize) -> Result<u32, Error> {
        let mut code = 0u32;
        for _ in 0..count {
            match self.peek().and_then(|c| c.to_digit(16)) {
                Some(digit) => {
                    code = code.wrapping_mul(16).wrapping_add(digit);
                    self.bump();
                }
                None => {
                    return Err(Error::syntax(
                        format!("this escape needs {count} hexadecimal digits"),
                        Span::new(start, self.at),
                    ));
                }
            }
        }
        Ok(code)
    }

    fn no_character(&self, start: usize, code: u32) -> Error {
        Error::syntax(format!("U+{code:04X} is not a character a text can hold"), Span::new(start, self.at))
            .with_hint("half of a surrogate pair is not a character; write the character itself")
    }

    fn bytes_escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let start = self.at - 1;
        let Some(next) = self.peek() else { return Ok(()) };
        match next {
            'x' => {
                self.bump();
                bytes.push(self.hex_digits(start, 2)? as u8);
            }
            '0'..='7' => {
                self.bump();
                bytes.push(self.octal(next) as u8);
            }
            'u' | 'U' | 'N' => {
                self.bump();
                bytes.push(b'\\');
                bytes.push(next as u8);
            }
            _ => {
                let mut text = CompactString::default();
                self.escape(&mut text)?;
                bytes.extend(text.bytes());
            }
        }
        Ok(())
    }

    /// Enters the expression of an f-string field: line ends are blanks and `:` starts the format spec.
    pub(crate) fn enter_field(&mut self) -> Result<(), Error> {
        if self.open.len() >= MAX_OPEN {
            return Err(Error::limited(LimitKind::Depth, "too many nested brackets"));
        }
        self.open.push('f');
        self.fields.push(self.open.len());
        Ok(())
    }

    /// The byte that is read next.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Leaves it again at byte `at`, right after the token that ended it.
    pub(crate) fn leave_field(&mut self, at: u32) {
        self.fields.pop();
        self.open.pop();
        self.at = at as usize;
    }

    /// Literal text of an f-string up to the next field or the end. `spec` is true inside a format spec.
    pub(crate) fn fstring_text(
        &mut self,
        quote: Quote,
        spec: bool,
        start: u32,
    ) -> Result<(CompactString, FEnd), Error> {
        let mut text = CompactString::default();
        loop {
            if !spec && self.closes(quote) {
                self.at += if quote.triple { 3 } else { 1 };
                return Ok((text, FEnd::Close));
            }
            match self.peek() {
                Some('{') => {
                    self.bump();
                    if self.peek() == Some('{') && !spec {
                        self.bump();
                        text.push('{');
                    } else {
                        return Ok((text, FEnd::Field));
                    }
                }
                Some('}') => {
                    self.bump();
                    if spec {
                        return Ok((text, FEnd::Close));
                    }
                    if self.peek() != Some('}') {
                        return Err(Error::syntax(
                            "f-string: single '}' is not allowed",
                            Span::new(self.at - 1, self.at),
                        ));
                    }
                    self.bump();
                    text.push('}');
                }
                _ => match self.string_char(quote, start as usize)? {
                    // Only a format spec can meet the quote here: the field was never closed.
                    None => {
                        return Err(Error::syntax(
                            "f-string: expecting '}'",
                            Span::new(self.at - 1, self.at),
                        ));
                    }
                    // A backslash does not keep a brace from being one.
                    Some('\\') if !quote.raw && !matches!(self.peek(), Some('{' | '}')) => {
                        self.escape(&mut text)?
                    }
                    Some(c) => text.push(c),
                },
            }
        }
    }
}
