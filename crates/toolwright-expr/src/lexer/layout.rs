//! What is between tokens: blanks, comments, line ends, and the indentation of scripts.

use super::{Dialect, LexToken, Lexer, Tok};
use crate::error::{Error, Span};

impl Lexer<'_> {
    /// Skips blanks and comments; a line end outside brackets is a token.
    #[inline]
    pub(super) fn skip_blanks(&mut self) -> Result<Option<LexToken>, Error> {
        while self.byte_at(0) == b' ' {
            self.at += 1;
        }
        match self.byte_at(0) {
            b'\t' | b'\x0c' | b'\n' | b'\r' | b'#' | b'\\' => self.skip_rare_blanks(),
            _ => Ok(None),
        }
    }

    #[inline(never)]
    fn skip_rare_blanks(&mut self) -> Result<Option<LexToken>, Error> {
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

    pub(super) fn comment(&mut self) {
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
    pub(super) fn indentation(&mut self) -> Result<Option<LexToken>, Error> {
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
}
