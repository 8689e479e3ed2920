//! Adjacent string literals, and the fields of f-strings.

use std::sync::Arc;

use super::Parser;
use super::atom::leaf;
use crate::ast::{Expr, ExprForm, FPart, Field};
use crate::error::{Error, Span};
use crate::lexer::{FEnd, Quote, Tok};
use crate::value::Value;

impl Parser<'_> {
    /// One or more adjacent string literals, joined.
    pub(super) fn strings(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        if let Tok::Str(text) = &mut self.token.tok {
            let text = std::mem::take(text);
            self.advance()?;
            if !matches!(self.token.tok, Tok::Str(_) | Tok::FString(_) | Tok::Bytes(_)) {
                return Ok(leaf(ExprForm::Const(Value::str(text)), start));
            }
            return self.joined_strings(vec![FPart::Text(Arc::from(text))], start);
        }
        self.joined_strings(Vec::new(), start)
    }

    fn joined_strings(&mut self, mut parts: Vec<FPart>, start: Span) -> Result<Expr, Error> {
        let mut formatted = false;
        let mut height = 0;
        loop {
            match &self.token.tok {
                Tok::Str(text) => {
                    push_text(&mut parts, text);
                    self.advance()?;
                }
                Tok::FString(quote) => {
                    formatted = true;
                    let quote = *quote;
                    let opened = self.token.span.start;
                    height = height.max(self.fstring(quote, false, opened, &mut parts)?);
                    self.token = self.lexer.next()?;
                }
                Tok::Bytes(_) => {
                    return Err(Error::syntax("cannot mix bytes and nonbytes literals", self.token.span));
                }
                _ => break,
            }
        }
        let span = self.span_from(start);
        if !formatted {
            let text = match parts.pop() {
                Some(FPart::Text(text)) => text,
                _ => Arc::from(""),
            };
            return Ok(leaf(ExprForm::Const(Value::str(&*text)), span));
        }
        self.node(ExprForm::FString(parts.into()), span, height)
    }

    /// The inside of an f-string or of a format spec; leaves the lexer right after its end.
    fn fstring(
        &mut self,
        quote: Quote,
        spec: bool,
        opened: u32,
        parts: &mut Vec<FPart>,
    ) -> Result<u16, Error> {
        let mut height = 0;
        loop {
            let (text, end) = self.lexer.fstring_text(quote, spec, opened)?;
            push_text(parts, &text);
            match end {
                FEnd::Close => return Ok(height),
                FEnd::Field => height = height.max(self.field(quote, opened, parts)?),
            }
        }
    }

    fn field(&mut self, quote: Quote, opened: u32, parts: &mut Vec<FPart>) -> Result<u16, Error> {
        self.lexer.enter_field()?;
        let from = self.lexer.place();
        self.token = self.lexer.next()?;
        if self.at("}") || self.at("!") || self.at(":") || self.at("=") {
            return Err(Error::syntax("f-string: expected an expression", self.token.span));
        }
        let value = self.expression_list()?;
        if matches!(value.kind, ExprForm::Lambda(_)) {
            return Err(Error::syntax("f-string: lambda needs parentheses", value.span));
        }
        let mut height = value.height;
        let mut conversion = None;
        let mut debug = false;
        if self.at("=") {
            debug = true;
            self.advance()?;
            let text = self.lexer.source().get(from..self.token.span.start as usize).unwrap_or_default();
            push_text(parts, text);
        }
        if self.at("!") {
            let mark = self.token.span.end;
            self.advance()?;
            conversion = match &self.token.tok {
                Tok::Name(name) if self.token.span.start == mark && matches!(&**name, "r" | "s" | "a") => {
                    name.chars().next()
                }
                _ => return Err(Error::syntax("f-string: conversion must be !r, !s or !a", self.token.span)),
            };
            self.advance()?;
        }
        let mut spec = Vec::new();
        let has_spec = self.at(":");
        if !has_spec && !self.at("}") {
            return Err(Error::syntax("f-string: expecting '}'", self.token.span));
        }
        self.last_end = self.token.span.end;
        self.lexer.leave_field(self.token.span.end);
        if has_spec {
            height = height.max(self.fstring(quote, true, opened, &mut spec)?);
        } else if debug && conversion.is_none() {
            conversion = Some('r');
        }
        parts.push(FPart::Field(Box::new(Field { value, conversion, spec: spec.into() })));
        Ok(height)
    }
}

fn push_text(parts: &mut Vec<FPart>, text: &str) {
    if let Some(FPart::Text(last)) = parts.last_mut() {
        *last = Arc::from(format!("{last}{text}"));
    } else if !text.is_empty() {
        parts.push(FPart::Text(Arc::from(text)));
    }
}
