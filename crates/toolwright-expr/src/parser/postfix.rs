//! What follows an operand: attributes, subscripts, calls.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Parser, describe};
use crate::ast::{Argument, Attribute, CallExpr, Expr, ExprForm, Name, Subscript};
use crate::error::{Error, Span};
use crate::lexer::Tok;

impl Parser<'_> {
    pub(super) fn postfix(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        let mut expr = self.atom()?;
        loop {
            expr = match &self.token.tok {
                Tok::Op(".") => self.attribute(expr, start)?,
                Tok::Op("(") => self.call(expr, start)?,
                Tok::Op("[") => self.subscript(expr, start)?,
                _ => return Ok(expr),
            };
        }
    }

    fn attribute(&mut self, value: Expr, start: Span) -> Result<Expr, Error> {
        self.advance()?;
        let span = self.token.span;
        let name = match self.advance()?.tok {
            Tok::Name(name) => name,
            other => {
                let error =
                    Error::syntax(format!("expected a name after `.`, found {}", describe(&other)), span);
                return Err(match other {
                    Tok::Word(_) => {
                        error.with_hint("a key that is a word of the language needs brackets: x['if']")
                    }
                    _ => error,
                });
            }
        };
        if name.starts_with('_') {
            return Err(self
                .forbidden(
                    &format!("\"{name}\" is not a usable attribute because it starts with \"_\""),
                    span,
                )
                .with_hint(format!("a key of that name can be read as x['{name}']")));
        }
        if name.ends_with("__roles__") || INSPECTION.contains(&&*name) {
            return Err(self.forbidden(&format!("\"{name}\" is not a usable attribute"), span));
        }
        let height = value.height;
        let attribute = Attribute { value, name: Name::new(name) };
        self.node(ExprForm::Attribute(Box::new(attribute)), self.span_from(start), height)
    }

    fn subscript(&mut self, value: Expr, start: Span) -> Result<Expr, Error> {
        self.advance()?;
        let inner = self.token.span;
        let first = self.slice_or_expression()?;
        let index = if self.at(",") || matches!(first.kind, ExprForm::Starred(_)) {
            let mut items = vec![first];
            while self.take(",")? {
                if self.at("]") {
                    break;
                }
                items.push(self.slice_or_expression()?);
            }
            self.sequence(items, self.span_from(inner), ExprForm::Tuple)?
        } else {
            first
        };
        self.expect("]")?;
        let height = value.height.max(index.height);
        self.node(ExprForm::Subscript(Box::new(Subscript { value, index })), self.span_from(start), height)
    }

    fn slice_or_expression(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        let lower = if self.at(":") { None } else { Some(self.starred_or_expression()?) };
        if !self.at(":") {
            return lower.ok_or_else(|| self.unexpected());
        }
        let mut parts = [lower, None, None];
        for slot in parts.iter_mut().skip(1) {
            if !self.take(":")? {
                break;
            }
            if !self.at(":") && !self.at("]") && !self.at(",") {
                *slot = Some(self.expression()?);
            }
        }
        let height = parts.iter().flatten().map(|part| part.height).max().unwrap_or(0);
        self.node(ExprForm::Slice(Box::new(parts)), self.span_from(start), height)
    }

    fn call(&mut self, callee: Expr, start: Span) -> Result<Expr, Error> {
        self.advance()?;
        let mut args: Vec<Argument> = Vec::new();
        let mut before = ArgumentsBefore::default();
        let mut height = callee.height;
        while !self.at(")") {
            let arg = self.argument(&callee, &mut before)?;
            let expr = match &arg {
                Argument::Positional(e)
                | Argument::Star(e)
                | Argument::Keyword(_, e)
                | Argument::DoubleStar(e) => e,
            };
            height = height.max(expr.height);
            args.push(arg);
            if !self.take(",")? {
                break;
            }
        }
        self.expect(")")?;
        if let ExprForm::Name(name) = &callee.kind
            && (&**name == "eval" || &**name == "exec")
        {
            return Err(self.forbidden(&format!("calls of {name}() are not allowed"), callee.span));
        }
        self.node(ExprForm::Call(Box::new(CallExpr { callee, args })), self.span_from(start), height)
    }

    fn argument(&mut self, callee: &Expr, before: &mut ArgumentsBefore) -> Result<Argument, Error> {
        let is_first = !std::mem::replace(&mut before.any, true);
        if self.take("**")? {
            before.double_star = true;
            return Ok(Argument::DoubleStar(self.expression()?));
        }
        if self.take("*")? {
            if before.double_star {
                let message = "iterable argument unpacking follows keyword argument unpacking";
                return Err(Error::syntax(message, self.span_from(callee.span)));
            }
            return Ok(Argument::Star(self.expression()?));
        }
        let span = self.token.span;
        let takes_function =
            matches!(&callee.kind, ExprForm::Name(name) if &**name == "map" || &**name == "filter");
        self.lambda_allowed = takes_function && is_first && self.at_word("lambda");
        let value = self.expression()?;
        if self.at("=")
            && let ExprForm::Name(name) = &value.kind
        {
            let name = name.clone();
            self.advance()?;
            let name: Arc<str> = Arc::from(&*name);
            if !before.keywords.insert(name.clone()) {
                return Err(Error::syntax(format!("keyword argument repeated: {name}"), span));
            }
            self.lambda_allowed = &*name == "key" && self.at_word("lambda");
            let value = self.expression()?;
            return Ok(Argument::Keyword(name, value));
        }
        if !before.keywords.is_empty() {
            return Err(Error::syntax("positional argument follows keyword argument", span));
        }
        if before.double_star {
            return Err(Error::syntax("positional argument follows keyword argument unpacking", span));
        }
        if self.at_word("for") || self.at_word("async") {
            let generator = self.comprehension(value, None, span, ExprForm::Generator)?;
            if !is_first || self.at(",") {
                return Err(Error::syntax("generator expression must be parenthesized", generator.span));
            }
            return Ok(Argument::Positional(generator));
        }
        Ok(Argument::Positional(value))
    }
}

/// What came before an argument of a call, so that many arguments take linear time.
#[derive(Default)]
struct ArgumentsBefore {
    any: bool,
    double_star: bool,
    keywords: HashSet<Arc<str>>,
}

/// Attributes of frames and code objects. Plain data has none, but programs that try deserve a clear no.
const INSPECTION: &[&str] = &[
    "tb_frame",
    "tb_next",
    "f_back",
    "f_builtins",
    "f_code",
    "f_generator",
    "f_globals",
    "f_locals",
    "f_trace",
    "co_code",
    "gi_frame",
    "gi_code",
    "gi_yieldfrom",
    "cr_await",
    "cr_frame",
    "cr_code",
    "cr_origin",
    "ag_frame",
    "ag_await",
    "ag_code",
];
