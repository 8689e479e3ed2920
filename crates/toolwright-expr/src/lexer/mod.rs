//! Text to tokens, one at a time: the parser asks for the next token and, inside an f-string, for the next
//! stretch of literal text. Indentation becomes tokens in scripts only.

mod layout;
mod number;
mod string;
mod words;

pub(crate) use self::words::is_word;

use compact_str::CompactString;
use smallvec::SmallVec;

use self::words::{operator, word};
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
pub(crate) struct LexToken {
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
    pub(crate) fn next(&mut self) -> Result<LexToken, Error> {
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

    fn at_end(&mut self) -> LexToken {
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

    fn token(&self, tok: Tok, start: usize) -> LexToken {
        LexToken { tok, span: Span::new(start, self.at) }
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

    fn name_or_prefixed_string(&mut self, start: usize) -> Result<LexToken, Error> {
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

    fn operator(&mut self, start: usize) -> Result<LexToken, Error> {
        let in_field = self.fields.last() == Some(&self.open.len());
        let (first, second) = (self.byte_at(0), self.byte_at(1));
        let found = if in_field && (first, second) == (b':', b'=') {
            Some(":")
        } else {
            operator(first, second, self.byte_at(2))
        };
        let Some(operator) = found else {
            let odd = self.bump().unwrap_or(' ');
            let message = format!("invalid character '{odd}' (U+{:04X})", odd as u32);
            let error = Error::syntax(message, Span::new(start, self.at));
            return Err(match odd {
                '?' => error.with_hint("choose with `a if condition else b`"),
                '!' => error.with_hint("negate with `not`"),
                '$' => error.with_hint("names inside `${...}` have no `$`"),
                _ => error,
            });
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
}

pub(crate) fn is_name_start(c: char) -> bool {
    c == '_' || unicode_ident::is_xid_start(c)
}

pub(crate) fn is_name_part(c: char) -> bool {
    unicode_ident::is_xid_continue(c)
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
