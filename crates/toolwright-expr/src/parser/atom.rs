//! What an expression begins with: names, literals, brackets.

use super::Parser;
use super::expression::COMPARE;
use crate::ast::{DictItem, Expr, ExprForm};
use crate::error::{Error, Span};
use crate::lexer::Tok;
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn atom(&mut self) -> Result<Expr, Error> {
        let span = self.token.span;
        match &self.token.tok {
            Tok::Name(_) => {
                let name = match self.advance()?.tok {
                    Tok::Name(name) => name,
                    _ => return Err(self.unexpected()),
                };
                // A keyword argument's name is only a key.
                if !self.at("=") {
                    self.check_name(&name, span)?;
                }
                Ok(leaf(ExprForm::Name(name), span))
            }
            Tok::Number(value) => {
                let value = value.clone();
                self.advance()?;
                Ok(leaf(ExprForm::Const(value), span))
            }
            Tok::Str(_) | Tok::FString(_) => self.strings(),
            Tok::Bytes(_) => self.bytes(),
            Tok::Word(word) => self.word_atom(word, span),
            Tok::Op("(") => self.parenthesis(),
            Tok::Op("[") => self.list(),
            Tok::Op("{") => self.braces(),
            Tok::Op("...") => {
                self.advance()?;
                Ok(leaf(ExprForm::Const(Value::Ellipsis), span))
            }
            Tok::End => Err(Error::syntax("expected an expression", span)),
            _ => Err(self.unexpected()),
        }
    }

    fn word_atom(&mut self, word: &'static str, span: Span) -> Result<Expr, Error> {
        let value = match word {
            "None" => Value::None,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "await" | "async" => return Err(self.forbidden("await is not part of the language", span)),
            "yield" => return Err(self.forbidden("yield is not part of the language", span)),
            "lambda" => return Err(Error::syntax("this lambda needs parentheses", span)),
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok(leaf(ExprForm::Const(value), span))
    }

    pub(super) fn bytes(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        let mut all = Vec::new();
        while let Tok::Bytes(bytes) = &self.token.tok {
            all.extend_from_slice(bytes);
            self.advance()?;
        }
        if matches!(self.token.tok, Tok::Str(_) | Tok::FString(_)) {
            return Err(Error::syntax("cannot mix bytes and nonbytes literals", self.token.span));
        }
        Ok(leaf(ExprForm::Const(Value::bytes(all)), self.span_from(start)))
    }

    fn parenthesis(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        self.advance()?;
        if self.at(")") {
            self.advance()?;
            return Ok(leaf(ExprForm::Const(Value::tuple(Vec::new())), self.span_from(start)));
        }
        if self.at_word("yield") {
            return Err(self.forbidden("yield is not part of the language", self.token.span));
        }
        let first = self.starred_or_expression()?;
        if self.at_word("for") || self.at_word("async") {
            let mut generator = self.comprehension(first, None, start, ExprForm::Generator)?;
            self.expect(")")?;
            generator.span = self.span_from(start);
            return Ok(generator);
        }
        if self.at(",") {
            let mut items = vec![first];
            while self.take(",")? {
                if self.at(")") {
                    break;
                }
                items.push(self.starred_or_expression()?);
            }
            self.expect(")")?;
            return self.sequence(items, self.span_from(start), ExprForm::Tuple);
        }
        self.expect(")")?;
        if matches!(first.kind, ExprForm::Starred(_)) {
            return Err(Error::syntax("cannot use starred expression here", first.span));
        }
        Ok(first)
    }

    pub(super) fn list(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        self.advance()?;
        let mut items = Vec::new();
        while !self.at("]") {
            let item = self.starred_or_expression()?;
            if items.is_empty() && (self.at_word("for") || self.at_word("async")) {
                let mut comp = self.comprehension(item, None, start, ExprForm::ListComp)?;
                self.expect("]")?;
                comp.span = self.span_from(start);
                return Ok(comp);
            }
            items.push(item);
            if !self.take(",")? {
                break;
            }
        }
        self.expect("]")?;
        self.sequence(items, self.span_from(start), ExprForm::List)
    }

    pub(super) fn braces(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        self.advance()?;
        if self.at("}") {
            self.advance()?;
            return Ok(leaf(ExprForm::Dict(Box::new([])), self.span_from(start)));
        }
        if self.at("**") {
            return self.dict(start, None);
        }
        let first = self.starred_or_expression()?;
        if self.at(":") {
            return self.dict(start, Some(first));
        }
        if self.at_word("for") || self.at_word("async") {
            let mut comp = self.comprehension(first, None, start, ExprForm::SetComp)?;
            self.expect("}")?;
            comp.span = self.span_from(start);
            return Ok(comp);
        }
        let mut items = vec![first];
        while self.take(",")? {
            if self.at("}") {
                break;
            }
            items.push(self.starred_or_expression()?);
        }
        self.expect("}")?;
        self.sequence(items, self.span_from(start), ExprForm::Set)
    }

    fn dict(&mut self, start: Span, first: Option<Expr>) -> Result<Expr, Error> {
        let mut items = Vec::new();
        let mut height = 0;
        let mut key = first;
        loop {
            let item = match key.take() {
                Some(key) => {
                    if matches!(key.kind, ExprForm::Starred(_)) {
                        return Err(Error::syntax("cannot use a starred expression as a dict key", key.span));
                    }
                    self.expect(":")?;
                    let value = self.expression()?;
                    if items.is_empty() && (self.at_word("for") || self.at_word("async")) {
                        let mut comp = self.comprehension(key, Some(value), start, ExprForm::DictComp)?;
                        self.expect("}")?;
                        comp.span = self.span_from(start);
                        return Ok(comp);
                    }
                    height = height.max(key.height).max(value.height);
                    DictItem::Pair(key, value)
                }
                None => {
                    self.expect("**")?;
                    let value = self.climb(COMPARE + 1)?;
                    height = height.max(value.height);
                    DictItem::Spread(value)
                }
            };
            items.push(item);
            if !self.take(",")? || self.at("}") {
                break;
            }
            key = if self.at("**") { None } else { Some(self.expression()?) };
        }
        self.expect("}")?;
        self.node(ExprForm::Dict(items.into()), self.span_from(start), height)
    }
}

pub(super) fn leaf(kind: ExprForm, span: Span) -> Expr {
    Expr { kind, span, height: 1 }
}
