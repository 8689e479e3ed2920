//! Text to tokens, one at a time: the parser asks for the next token and, inside an f-string, for the next
//! stretch of literal text. Indentation becomes tokens in scripts only.

use compact_str::CompactString;
use num_bigint::BigInt;
use smallvec::SmallVec;
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::ast::Symbol;
use crate::error::{Error, LimitKind, Span};
use crate::value::Value;

/// Sources longer than this are refused before they are read.
pub(crate) const MAX_SOURCE: usize = 1 << 20;

/// Brackets may be nested this deep.
const MAX_OPEN: usize = 100;

/// Python's own bound on digits when text becomes an integer or the other way round.
pub(crate) const MAX_TEXT_DIGITS: usize = 4300;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tok {
    Name(Symbol),
    /// A word with a meaning of its own, such as `if`.
    Word(&'static str),
    /// An operator or bracket.
    Op(&'static str),
    Number(Value),
    Str(CompactString),
    Bytes(Vec<u8>),
    FString(Quote),
    Newline,
    Indent,
    Dedent,
    End,
}

/// How a string began, so that its end is recognised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quote {
    mark: char,
    triple: bool,
    raw: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) span: Span,
}

/// What stands after a stretch of literal text in an f-string.
pub(crate) enum FEnd {
    /// A `{` that opens an expression.
    Field,
    /// The closing quote, or the `}` that ends a format spec.
    Close,
}

/// What the text is, which decides what line ends and braces mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// An expression on its own.
    Expression,
    /// Code inside `${...}`: a comment ends at the brace that closes the code.
    Embedded,
    /// As before, but comments run to the end of the line. The second try when the first fails.
    EmbeddedLines,
    /// Statements, with indentation.
    Script,
}

pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    dialect: Dialect,
    /// Open brackets; inside them line ends are blanks.
    open: SmallVec<[char; 8]>,
    /// Bracket depths at which an f-string expression sits: a `:` there starts its format spec.
    fields: Vec<usize>,
    /// Columns of the blocks around; the outermost begins at zero and is not in the list.
    indents: Vec<usize>,
    pending_dedents: usize,
    line_start: bool,
    /// The line end that closes a script without one was given.
    closed: bool,
}

/// The language's own words, as the one static text each is known by.
fn word(text: &str) -> Option<&'static str> {
    if !(2..=8).contains(&text.len()) {
        return None;
    }
    Some(match text {
        "and" => "and",
        "as" => "as",
        "assert" => "assert",
        "async" => "async",
        "await" => "await",
        "break" => "break",
        "class" => "class",
        "continue" => "continue",
        "def" => "def",
        "del" => "del",
        "elif" => "elif",
        "else" => "else",
        "except" => "except",
        "finally" => "finally",
        "for" => "for",
        "from" => "from",
        "global" => "global",
        "if" => "if",
        "import" => "import",
        "in" => "in",
        "is" => "is",
        "lambda" => "lambda",
        "nonlocal" => "nonlocal",
        "not" => "not",
        "or" => "or",
        "pass" => "pass",
        "raise" => "raise",
        "return" => "return",
        "try" => "try",
        "while" => "while",
        "with" => "with",
        "yield" => "yield",
        "None" => "None",
        "True" => "True",
        "False" => "False",
        _ => return None,
    })
}

/// The longest operator these bytes begin with.
fn operator(first: u8, second: u8, third: u8) -> Option<&'static str> {
    Some(match (first, second, third) {
        (b'*', b'*', b'=') => "**=",
        (b'/', b'/', b'=') => "//=",
        (b'<', b'<', b'=') => "<<=",
        (b'>', b'>', b'=') => ">>=",
        (b'.', b'.', b'.') => "...",
        (b'*', b'*', _) => "**",
        (b'/', b'/', _) => "//",
        (b'<', b'<', _) => "<<",
        (b'>', b'>', _) => ">>",
        (b'<', b'=', _) => "<=",
        (b'>', b'=', _) => ">=",
        (b'=', b'=', _) => "==",
        (b'!', b'=', _) => "!=",
        (b'-', b'>', _) => "->",
        (b':', b'=', _) => ":=",
        (b'+', b'=', _) => "+=",
        (b'-', b'=', _) => "-=",
        (b'*', b'=', _) => "*=",
        (b'/', b'=', _) => "/=",
        (b'%', b'=', _) => "%=",
        (b'@', b'=', _) => "@=",
        (b'&', b'=', _) => "&=",
        (b'|', b'=', _) => "|=",
        (b'^', b'=', _) => "^=",
        (b'+', ..) => "+",
        (b'-', ..) => "-",
        (b'*', ..) => "*",
        (b'/', ..) => "/",
        (b'%', ..) => "%",
        (b'@', ..) => "@",
        (b'&', ..) => "&",
        (b'|', ..) => "|",
        (b'^', ..) => "^",
        (b'~', ..) => "~",
        (b'<', ..) => "<",
        (b'>', ..) => ">",
        (b'(', ..) => "(",
        (b')', ..) => ")",
        (b'[', ..) => "[",
        (b']', ..) => "]",
        (b'{', ..) => "{",
        (b'}', ..) => "}",
        (b',', ..) => ",",
        (b':', ..) => ":",
        (b'.', ..) => ".",
        (b';', ..) => ";",
        (b'=', ..) => "=",
        (b'!', ..) => "!",
        _ => return None,
    })
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str, start: usize, dialect: Dialect) -> Result<Self, Error> {
        if source.len() > MAX_SOURCE {
            return Err(Error::limited(
                LimitKind::Source,
                format!("the source is longer than {MAX_SOURCE} bytes"),
            ));
        }
        Ok(Self {
            source,
            at: start,
            dialect,
            open: SmallVec::new(),
            fields: Vec::new(),
            indents: Vec::new(),
            pending_dedents: 0,
            line_start: dialect == Dialect::Script,
            closed: false,
        })
    }

    pub(crate) fn source(&self) -> &'a str {
        self.source
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token, Error> {
        if self.line_start && self.open.is_empty() {
            self.line_start = false;
            if let Some(token) = self.indentation()? {
                return Ok(token);
            }
        }
        if self.pending_dedents > 0 {
            self.pending_dedents -= 1;
            return Ok(self.token(Tok::Dedent, self.at));
        }
        if let Some(newline) = self.skip_blanks()? {
            return Ok(newline);
        }
        let start = self.at;
        match self.byte_at(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name_or_prefixed_string(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte_at(1).is_ascii_digit() => self.number(start),
            b'"' | b'\'' => self.string(start, ""),
            0 if self.at >= self.source.len() => Ok(self.at_end()),
            128.. if self.peek().is_some_and(is_name_start) => self.name_or_prefixed_string(start),
            _ => self.operator(start),
        }
    }

    fn at_end(&mut self) -> Token {
        if self.dialect == Dialect::Script {
            // A script may end without a line end; the parser still wants to see one.
            if !self.closed {
                self.closed = true;
                return self.token(Tok::Newline, self.at);
            }
            if self.indents.pop().is_some() {
                return self.token(Tok::Dedent, self.at);
            }
        }
        self.token(Tok::End, self.at)
    }

    fn token(&self, tok: Tok, start: usize) -> Token {
        Token { tok, span: Span::new(start, self.at) }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn peek(&self) -> Option<char> {
        match self.source.as_bytes().get(self.at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => self.rest().chars().next(),
            None => None,
        }
    }

    /// A byte further on; zero past the end.
    #[inline]
    fn byte_at(&self, ahead: usize) -> u8 {
        self.source.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.rest().chars().nth(ahead)
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Skips blanks and comments; a line end outside brackets is a token.
    #[inline]
    fn skip_blanks(&mut self) -> Result<Option<Token>, Error> {
        while self.byte_at(0) == b' ' {
            self.at += 1;
        }
        match self.byte_at(0) {
            b'\t' | b'\x0c' | b'\n' | b'\r' | b'#' | b'\\' => self.skip_rare_blanks(),
            _ => Ok(None),
        }
    }

    #[inline(never)]
    fn skip_rare_blanks(&mut self) -> Result<Option<Token>, Error> {
        loop {
            let start = self.at;
            match self.peek() {
                Some(' ' | '\t' | '\x0c') => {
                    self.bump();
                }
                Some('\n' | '\r') => {
                    self.line_end();
                    if self.open.is_empty() {
                        self.line_start = self.dialect == Dialect::Script;
                        return Ok(Some(self.token(Tok::Newline, start)));
                    }
                }
                Some('#') => self.comment(),
                Some('\\') => {
                    self.bump();
                    if !matches!(self.peek(), Some('\n' | '\r')) {
                        return Err(Error::syntax(
                            "unexpected character after line continuation character",
                            Span::new(start, self.at),
                        ));
                    }
                    self.line_end();
                }
                _ => return Ok(None),
            }
        }
    }

    fn line_end(&mut self) {
        if self.bump() == Some('\r') && self.peek() == Some('\n') {
            self.bump();
        }
    }

    fn comment(&mut self) {
        let mut braces = 0usize;
        let own = self.open.iter().filter(|open| **open == '{').count();
        while let Some(next) = self.peek() {
            match next {
                '\n' | '\r' => return,
                '{' => braces += 1,
                '}' if self.dialect == Dialect::Embedded => {
                    if braces == 0 && own == 0 {
                        return;
                    }
                    braces = braces.saturating_sub(1);
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Measures the indentation of a new line; blank and comment lines do not count.
    fn indentation(&mut self) -> Result<Option<Token>, Error> {
        loop {
            let start = self.at;
            let mut column = 0usize;
            while let Some(next) = self.peek() {
                match next {
                    ' ' => column += 1,
                    '\t' => column = (column / 8 + 1) * 8,
                    '\x0c' => column = 0,
                    _ => break,
                }
                self.bump();
            }
            match self.peek() {
                Some('\n' | '\r') => {
                    self.line_end();
                    continue;
                }
                Some('#') => {
                    self.comment();
                    if self.peek().is_some() {
                        continue;
                    }
                    return Ok(None);
                }
                None => return Ok(None),
                Some(_) => {}
            }
            let current = self.indents.last().copied().unwrap_or(0);
            if column > current {
                if self.indents.len() >= 100 {
                    return Err(Error::syntax("too many levels of indentation", Span::new(start, self.at)));
                }
                self.indents.push(column);
                return Ok(Some(self.token(Tok::Indent, start)));
            }
            let mut closed = 0usize;
            while self.indents.last().is_some_and(|indent| *indent > column) {
                self.indents.pop();
                closed += 1;
            }
            if self.indents.last().copied().unwrap_or(0) != column {
                return Err(Error::syntax(
                    "unindent does not match any outer indentation level",
                    Span::new(start, self.at),
                )
                .with_class("IndentationError"));
            }
            self.pending_dedents = closed;
            return Ok(None);
        }
    }

    fn name_or_prefixed_string(&mut self, start: usize) -> Result<Token, Error> {
        loop {
            let rest = self.source.as_bytes().get(self.at..).unwrap_or_default();
            let plain = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
            self.at += plain.count();
            // What is left is the end of the name, or a letter beyond ASCII.
            match self.peek() {
                Some(next) if !next.is_ascii() && is_name_part(next) => self.at += next.len_utf8(),
                _ => break,
            }
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        if matches!(self.peek(), Some('"' | '\'')) && text.len() <= 2 {
            let lower = text.to_ascii_lowercase();
            if ["r", "u", "b", "f", "br", "rb", "fr", "rf"].contains(&lower.as_str()) {
                return self.string(start, &lower);
            }
        }
        if let Some(word) = word(text) {
            return Ok(self.token(Tok::Word(word), start));
        }
        Ok(self.token(Tok::Name(Symbol::new(text)), start))
    }

    fn operator(&mut self, start: usize) -> Result<Token, Error> {
        let in_field = self.fields.last() == Some(&self.open.len());
        let (first, second) = (self.byte_at(0), self.byte_at(1));
        let found = if in_field && (first, second) == (b':', b'=') {
            Some(":")
        } else {
            operator(first, second, self.byte_at(2))
        };
        let Some(operator) = found else {
            let odd = self.bump().unwrap_or(' ');
            return Err(Error::syntax(
                format!("invalid character '{odd}' (U+{:04X})", odd as u32),
                Span::new(start, self.at),
            ));
        };
        self.at += operator.len();
        match operator {
            "(" | "[" | "{" => {
                if self.open.len() >= MAX_OPEN {
                    return Err(Error::limited(LimitKind::Depth, "too many nested brackets")
                        .at(Span::new(start, self.at)));
                }
                self.open.push(operator.chars().next().unwrap_or('('));
            }
            ")" | "]" | "}" => self.close(operator, start)?,
            _ => {}
        }
        Ok(self.token(Tok::Op(operator), start))
    }

    fn close(&mut self, operator: &str, start: usize) -> Result<(), Error> {
        // A brace that closes an f-string field or the template's own `${` is not ours to match.
        let field_end = operator == "}" && self.fields.last() == Some(&self.open.len());
        if field_end {
            return Ok(());
        }
        let wanted = match operator {
            ")" => '(',
            "]" => '[',
            _ => '{',
        };
        match self.open.last() {
            Some(open) if *open == wanted => {
                self.open.pop();
                Ok(())
            }
            None if operator == "}" && self.embedded() => Ok(()),
            Some(open) => Err(Error::syntax(
                format!("closing bracket '{operator}' does not match opening bracket '{open}'"),
                Span::new(start, self.at),
            )),
            None => Err(Error::syntax(format!("unmatched '{operator}'"), Span::new(start, self.at))),
        }
    }

    fn embedded(&self) -> bool {
        matches!(self.dialect, Dialect::Embedded | Dialect::EmbeddedLines)
    }

    fn number(&mut self, start: usize) -> Result<Token, Error> {
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

    fn decimal(&mut self, start: usize) -> Result<Token, Error> {
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

    fn digits(&mut self, accept: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| accept(c) || c == '_') {
            self.bump();
        }
        self.source.get(start..self.at).unwrap_or_default().to_owned()
    }

    fn string(&mut self, start: usize, prefix: &str) -> Result<Token, Error> {
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

    fn closes(&self, quote: Quote) -> bool {
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
                    Some('\\') if !quote.raw => self.escape(&mut text)?,
                    Some(c) => text.push(c),
                },
            }
        }
    }
}

fn without_underscores(digits: &str) -> Option<String> {
    let misplaced =
        digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    (!misplaced).then(|| digits.replace('_', ""))
}

pub(crate) fn is_name_start(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic()
}

pub(crate) fn is_name_part(c: char) -> bool {
    use GeneralCategory::{ConnectorPunctuation, DecimalNumber, NonspacingMark, SpacingMark};
    is_name_start(c)
        || c.is_ascii_digit()
        || !c.is_ascii()
            && matches!(
                get_general_category(c),
                NonspacingMark | SpacingMark | DecimalNumber | ConnectorPunctuation
            )
}

/// Whether the text is one of the language's own words.
pub(crate) fn is_word(text: &str) -> bool {
    word(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Tok> {
        let mut lexer = Lexer::new(source, 0, Dialect::Script).unwrap();
        let mut all = Vec::new();
        loop {
            let token = lexer.next().unwrap();
            match token.tok {
                Tok::End => return all,
                // The line end that closes the script.
                Tok::Newline if lexer.closed && lexer.indents.is_empty() => continue,
                _ => {}
            }
            all.push(token.tok);
        }
    }

    #[test]
    fn indentation_becomes_tokens_and_closes_at_the_end() {
        let tokens = kinds("if x:\n  y\n\n  # note\nz");
        assert_eq!(tokens.iter().filter(|tok| **tok == Tok::Indent).count(), 1);
        assert_eq!(tokens.iter().filter(|tok| **tok == Tok::Dedent).count(), 1);
        let open = kinds("if x:\n  y");
        assert_eq!(&open[open.len() - 2..], &[Tok::Newline, Tok::Dedent]);
    }

    #[test]
    fn numbers_keep_their_exact_value() {
        assert_eq!(kinds("0xFF"), vec![Tok::Number(Value::Int(255))]);
        assert_eq!(kinds("1_000"), vec![Tok::Number(Value::Int(1000))]);
        assert_eq!(kinds("1e3"), vec![Tok::Number(Value::Float(1000.0))]);
    }

    #[test]
    fn lone_surrogates_are_refused_with_a_hint() {
        let error = Lexer::new("'\\ud800'", 0, Dialect::Expression).unwrap().next().unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("surrogate")));
    }
}
