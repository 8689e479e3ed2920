//! Comprehensions, and the names loops bind.

use super::{Parser, too_deep};
use crate::ast::{AssignTarget, Clause, Comprehension, Expr, ExprForm};
use crate::error::{Error, Span};
use crate::lexer::{Dialect, Tok};

impl Parser<'_> {
    pub(super) fn comprehension(
        &mut self,
        element: Expr,
        value: Option<Expr>,
        start: Span,
        make: fn(Box<Comprehension>) -> ExprForm,
    ) -> Result<Expr, Error> {
        if matches!(element.kind, ExprForm::Starred(_)) {
            return Err(Error::syntax("iterable unpacking cannot be used in comprehension", element.span));
        }
        let mut height = element.height.max(value.as_ref().map_or(0, |value| value.height));
        let mut clauses = Vec::new();
        loop {
            if self.at_word("async") {
                return Err(self.forbidden("async is not part of the language", self.token.span));
            }
            if !self.take_word("for")? {
                break;
            }
            let target = self.loop_target()?;
            if !self.take_word("in")? {
                return Err(self.expected("in"));
            }
            let iter = self.disjunction()?;
            height = height.max(iter.height);
            let mut conditions = Vec::new();
            while self.take_word("if")? {
                let condition = self.disjunction()?;
                height = height.max(condition.height);
                conditions.push(condition);
            }
            if clauses.len() >= 20 {
                return Err(too_deep(self.token.span));
            }
            clauses.push(Clause { target, iter, conditions, cost: 1, pure: false });
        }
        // Each `for` is one more level of recursion when the comprehension runs.
        let height = height.saturating_add(u16::try_from(clauses.len()).unwrap_or(u16::MAX));
        let comprehension = Comprehension { element, value, clauses, cells: Vec::new(), code: None };
        self.node(make(Box::new(comprehension)), self.span_from(start), height)
    }

    /// What a `for` binds: a name, or names in a (nested) tuple with at most one star.
    pub(crate) fn loop_target(&mut self) -> Result<AssignTarget, Error> {
        let first = self.target_item()?;
        let starred = matches!(first, (_, true));
        if !self.at(",") {
            if starred {
                return Err(Error::syntax(
                    "starred assignment target must be in a list or tuple",
                    self.token.span,
                ));
            }
            return Ok(first.0);
        }
        self.target_rest(first, |parser| parser.at_word("in") || parser.at("="))
    }

    fn target_rest(
        &mut self,
        first: (AssignTarget, bool),
        end: fn(&Self) -> bool,
    ) -> Result<AssignTarget, Error> {
        let mut star = first.1.then_some(0);
        let mut items = vec![first.0];
        while self.take(",")? {
            if end(self) {
                break;
            }
            let span = self.token.span;
            let (item, starred) = self.target_item()?;
            if starred && star.replace(items.len()).is_some() {
                return Err(Error::syntax("multiple starred expressions in assignment", span));
            }
            items.push(item);
        }
        Ok(AssignTarget::Tuple(items.into(), star))
    }

    fn target_item(&mut self) -> Result<(AssignTarget, bool), Error> {
        let starred = self.take("*")?;
        let close = match &self.token.tok {
            Tok::Op("(") => ")",
            Tok::Op("[") => "]",
            _ => {
                let span = self.token.span;
                let name = self.bound_name()?;
                if self.dialect == Dialect::Script && (self.at("[") || self.at(".")) {
                    return Err(Error::syntax("a loop can only bind names", self.token.span));
                }
                return Ok((AssignTarget::Name(name, span), starred));
            }
        };
        self.enter()?;
        self.advance()?;
        let end: fn(&Self) -> bool = if close == ")" { |p| p.at(")") } else { |p| p.at("]") };
        if end(self) {
            self.advance()?;
            self.nesting -= 1;
            return Ok((AssignTarget::Tuple(Box::new([]), None), starred));
        }
        let first = self.target_item()?;
        let tuple = close == "]" || self.at(",") || first.1;
        let target = if tuple { self.target_rest(first, end)? } else { first.0 };
        self.expect(if close == ")" { ")" } else { "]" })?;
        self.nesting -= 1;
        Ok((target, starred))
    }
}
