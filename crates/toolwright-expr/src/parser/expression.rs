//! Operators and what binds looser: conditionals, lambdas, and a climb through the precedences.

use super::Parser;
use crate::ast::{
    Binary, BinaryOp, Chain, Compare, CompareOp, Compares, Conditional, Expr, ExprForm, Function, Param,
    ParamKind, Symbol, UnaryOp,
};
use crate::error::{Error, Span};
use crate::lexer::{Dialect, Tok};
use crate::value::Value;

/// Longest run of one operator kept as nested pairs; longer ones become a flat chain.
const MAX_SPINE: usize = 12;

/// Precedences below those of the arithmetic operators, which go on from five.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
pub(super) const COMPARE: u8 = 4;

impl Parser<'_> {
    /// `a, b` makes a tuple; a single expression stays itself.
    pub(crate) fn expression_list(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        let first = self.starred_or_expression()?;
        if !self.at(",") {
            if matches!(first.kind, ExprForm::Starred(_)) {
                return Err(Error::syntax("can't use starred expression here", first.span));
            }
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take(",")? {
            if !self.starts_expression() {
                break;
            }
            items.push(self.starred_or_expression()?);
        }
        self.sequence(items, self.span_from(start), ExprForm::Tuple)
    }

    /// Whether the current token can begin an expression, so that a trailing comma is recognised.
    fn starts_expression(&self) -> bool {
        match &self.token.tok {
            Tok::Name(_) | Tok::Number(_) | Tok::Str(_) | Tok::Bytes(_) | Tok::FString(_) => true,
            Tok::Word(word) => {
                matches!(*word, "not" | "None" | "True" | "False" | "lambda" | "await" | "yield")
            }
            Tok::Op(operator) => matches!(*operator, "(" | "[" | "{" | "-" | "+" | "~" | "*" | "..."),
            _ => false,
        }
    }

    pub(super) fn starred_or_expression(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        if self.take("*")? {
            let value = self.climb(COMPARE + 1)?;
            let height = value.height;
            return self.node(ExprForm::Starred(Box::new(value)), self.span_from(start), height);
        }
        self.expression()
    }

    /// One expression: conditionals and everything that binds tighter.
    pub(crate) fn expression(&mut self) -> Result<Expr, Error> {
        self.enter()?;
        let expr = self.conditional()?;
        self.nesting -= 1;
        if self.at(":=") {
            return Err(
                self.forbidden("assignment expressions (`:=`) are not part of the language", self.token.span)
            );
        }
        Ok(expr)
    }

    pub(super) fn conditional(&mut self) -> Result<Expr, Error> {
        let first = self.lambda_or_disjunction()?;
        if self.at_word("if") && !matches!(first.kind, ExprForm::Lambda(_)) {
            return self.conditional_rest(first);
        }
        Ok(first)
    }

    #[inline(never)]
    fn conditional_rest(&mut self, first: Expr) -> Result<Expr, Error> {
        let start = first.span;
        let mut branches = Vec::new();
        let mut last = first;
        while self.at_word("if") && !matches!(last.kind, ExprForm::Lambda(_)) {
            self.advance()?;
            let test = self.disjunction()?;
            if !self.take_word("else")? {
                return Err(Error::syntax("expected 'else' after 'if' expression", self.span_from(start)));
            }
            branches.push((std::mem::replace(&mut last, self.lambda_or_disjunction()?), test));
        }
        let end = last.span;
        let mut expr = last;
        while let Some((then, test)) = branches.pop() {
            let height = expr.height.max(test.height).max(then.height);
            let span = then.span.to(end);
            expr = self.node(
                ExprForm::Conditional(Box::new(Conditional { test, then, other: expr })),
                span,
                height,
            )?;
        }
        Ok(expr)
    }

    fn lambda_or_disjunction(&mut self) -> Result<Expr, Error> {
        if self.at_word("lambda") {
            return self.lambda();
        }
        self.disjunction()
    }

    pub(super) fn lambda(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        // Outside scripts a lambda is only the function given to `key=`, `map` or `filter`.
        if self.dialect != Dialect::Script && !std::mem::take(&mut self.lambda_allowed) {
            return Err(self
                .forbidden("lambda is only available as key= or as the function of map() and filter()", start)
                .with_hint("a comprehension usually says it better"));
        }
        self.advance()?;
        let params = self.parameters(":")?;
        self.expect(":")?;
        let was_in_loop = std::mem::take(&mut self.in_loop);
        let body = self.expression()?;
        self.in_loop = was_in_loop;
        let height = body.height;
        let function = Function {
            name: Symbol::const_new("<lambda>"),
            params,
            body: crate::ast::Body::Expr(body),
            code: None,
        };
        self.node(ExprForm::Lambda(Box::new(function)), self.span_from(start), height)
    }

    /// Parameters of a lambda or `def`, up to but not including `close`.
    pub(crate) fn parameters(&mut self, close: &str) -> Result<Vec<Param>, Error> {
        let mut params: Vec<Param> = Vec::new();
        let mut keyword_only = false;
        while !self.at(close) {
            let kind = if self.take("**")? {
                ParamKind::DoubleStar
            } else if self.take("*")? {
                keyword_only = true;
                if self.take(",")? {
                    continue;
                }
                ParamKind::Star
            } else if self.take("/")? {
                // Positional-only markers change nothing that plain data can observe.
                if !self.take(",")? {
                    break;
                }
                continue;
            } else if keyword_only {
                ParamKind::KeywordOnly
            } else {
                ParamKind::Normal
            };
            let span = self.token.span;
            let name = self.bound_name()?;
            if params.iter().any(|param| param.name == name) {
                return Err(Error::syntax(
                    format!("duplicate argument '{name}' in function definition"),
                    span,
                ));
            }
            if close == ")" && self.take(":")? {
                self.expression()?;
            }
            let default = if self.take("=")? { Some(self.expression()?) } else { None };
            let after_default =
                params.last().is_some_and(|p| p.kind == ParamKind::Normal && p.default.is_some());
            if kind == ParamKind::Normal && default.is_none() && after_default {
                return Err(Error::syntax(
                    "parameter without a default follows parameter with a default",
                    span,
                ));
            }
            if params.len() >= 100 {
                return Err(Error::syntax("more than 100 parameters", span));
            }
            params.push(Param { name, default, kind });
            if !self.take(",")? {
                break;
            }
        }
        Ok(params)
    }

    pub(super) fn disjunction(&mut self) -> Result<Expr, Error> {
        self.climb(OR)
    }

    /// Operators of precedence `floor` and above, by precedence climbing. One function for all of them,
    /// because every level of nesting passes through here and stack is what bounds nesting.
    pub(super) fn climb(&mut self, floor: u8) -> Result<Expr, Error> {
        let start = self.token.span;
        let mut left =
            if floor <= NOT && self.at_word("not") { self.negation(start)? } else { self.unary()? };
        let mut spine = 0usize;
        loop {
            if let Some((op, precedence)) = self.binary_op() {
                if precedence < floor {
                    return Ok(left);
                }
                self.advance()?;
                let right = self.climb(precedence + 1)?;
                spine += 1;
                left = self.join(left, op, right, start, spine)?;
            } else if floor <= COMPARE
                && let Some(op) = self.compare_op()?
            {
                left = self.comparison(left, op, start)?;
            } else if floor <= AND && self.at_word("and") {
                left = self.word_list(left, "and", AND, start, ExprForm::And)?;
            } else if floor <= OR && self.at_word("or") {
                left = self.word_list(left, "or", OR, start, ExprForm::Or)?;
            } else {
                return Ok(left);
            }
        }
    }

    #[inline(never)]
    fn word_list(
        &mut self,
        first: Expr,
        word: &str,
        precedence: u8,
        start: Span,
        make: fn(Box<[Expr]>) -> ExprForm,
    ) -> Result<Expr, Error> {
        let mut items = vec![first];
        while self.take_word(word)? {
            items.push(self.climb(precedence + 1)?);
        }
        self.sequence(items, self.span_from(start), make)
    }

    #[inline(never)]
    fn negation(&mut self, start: Span) -> Result<Expr, Error> {
        let mut count = 0u64;
        while self.take_word("not")? {
            count += 1;
        }
        let mut expr = self.climb(COMPARE)?;
        // Two negations in a row only turn the value into a truth value, however many there are.
        for _ in 0..2 - count % 2 {
            let height = expr.height;
            expr = self.node(ExprForm::Not(Box::new(expr)), self.span_from(start), height)?;
        }
        Ok(expr)
    }

    #[inline(never)]
    fn comparison(&mut self, first: Expr, op: CompareOp, start: Span) -> Result<Expr, Error> {
        let right = self.climb(COMPARE + 1)?;
        let mut height = first.height.max(right.height);
        let Some(mut next) = self.compare_op()? else {
            let compare = Compare { quick: None, op, left: first, right };
            return self.node(ExprForm::Compare(Box::new(compare)), self.span_from(start), height);
        };
        let mut rest = vec![(op, right)];
        loop {
            let operand = self.climb(COMPARE + 1)?;
            height = height.max(operand.height);
            rest.push((next, operand));
            match self.compare_op()? {
                Some(op) => next = op,
                None => break,
            }
        }
        self.node(ExprForm::Compares(Box::new(Compares { first, rest })), self.span_from(start), height)
    }

    fn compare_op(&mut self) -> Result<Option<CompareOp>, Error> {
        let possible = match &self.token.tok {
            Tok::Op(operator) => matches!(operator.as_bytes().first(), Some(b'=' | b'!' | b'<' | b'>')),
            Tok::Word(word) => matches!(*word, "in" | "is" | "not"),
            _ => false,
        };
        if !possible {
            return Ok(None);
        }
        let op = match &self.token.tok {
            Tok::Op("==") => CompareOp::Eq,
            Tok::Op("!=") => CompareOp::Ne,
            Tok::Op("<") => CompareOp::Lt,
            Tok::Op("<=") => CompareOp::Le,
            Tok::Op(">") => CompareOp::Gt,
            Tok::Op(">=") => CompareOp::Ge,
            Tok::Word("in") => CompareOp::In,
            Tok::Word("is") => {
                self.advance()?;
                return Ok(Some(if self.take_word("not")? { CompareOp::IsNot } else { CompareOp::Is }));
            }
            Tok::Word("not") => {
                self.advance()?;
                if !self.take_word("in")? {
                    return Err(self.expected("in"));
                }
                return Ok(Some(CompareOp::NotIn));
            }
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(op))
    }

    #[inline(never)]
    pub(super) fn join(
        &self,
        left: Expr,
        op: BinaryOp,
        right: Expr,
        start: Span,
        spine: usize,
    ) -> Result<Expr, Error> {
        let span = self.span_from(start);
        let height = left.height.max(right.height);
        match left.kind {
            ExprForm::Chain(mut chain) if spine > MAX_SPINE + 1 => {
                let tallest = left.height.max(right.height.saturating_add(1));
                chain.rest.push((op, right));
                self.node(ExprForm::Chain(chain), span, tallest.saturating_sub(1))
            }
            kind if spine > MAX_SPINE => {
                let first = Expr { kind, span: left.span, height: left.height };
                let chain = Chain { first, rest: vec![(op, right)] };
                self.node(ExprForm::Chain(Box::new(chain)), span, height)
            }
            kind => {
                let left = Expr { kind, span: left.span, height: left.height };
                self.node(ExprForm::Binary(Box::new(Binary { quick: None, op, left, right })), span, height)
            }
        }
    }

    fn binary_op(&self) -> Option<(BinaryOp, u8)> {
        let Tok::Op(operator) = &self.token.tok else { return None };
        // Most tokens that end an operand are brackets and commas; one byte distinguishes them.
        if !matches!(
            operator.as_bytes().first(),
            Some(b'+' | b'-' | b'*' | b'/' | b'%' | b'|' | b'^' | b'&' | b'<' | b'>' | b'@')
        ) {
            return None;
        }
        Some(match *operator {
            "|" => (BinaryOp::Or, 5),
            "^" => (BinaryOp::Xor, 6),
            "&" => (BinaryOp::And, 7),
            "<<" => (BinaryOp::Shl, 8),
            ">>" => (BinaryOp::Shr, 8),
            "+" => (BinaryOp::Add, 9),
            "-" => (BinaryOp::Sub, 9),
            "*" => (BinaryOp::Mul, 10),
            "/" => (BinaryOp::Div, 10),
            "//" => (BinaryOp::FloorDiv, 10),
            "%" => (BinaryOp::Mod, 10),
            "@" => (BinaryOp::MatMul, 10),
            _ => return None,
        })
    }

    /// Prefix operators, then an operand and its power, which binds tighter than they do.
    fn unary(&mut self) -> Result<Expr, Error> {
        if !matches!(self.token.tok, Tok::Op("-" | "+" | "~")) {
            let expr = self.postfix()?;
            return if self.at("**") { self.power(expr) } else { Ok(expr) };
        }
        let mut prefixes = Vec::new();
        while let Tok::Op(operator @ ("-" | "+" | "~")) = &self.token.tok {
            let op = match *operator {
                "-" => UnaryOp::Minus,
                "+" => UnaryOp::Plus,
                _ => UnaryOp::Invert,
            };
            prefixes.push((op, self.token.span));
            self.advance()?;
        }
        let mut expr = self.postfix()?;
        if self.at("**") {
            expr = self.power(expr)?;
        }
        while let Some((op, span)) = prefixes.pop() {
            expr = self.prefixed(op, span, expr)?;
        }
        Ok(expr)
    }

    #[inline(never)]
    fn prefixed(&self, op: UnaryOp, span: Span, expr: Expr) -> Result<Expr, Error> {
        let span = span.to(expr.span);
        match (op, expr.kind) {
            (UnaryOp::Minus, ExprForm::Const(Value::Int(number))) if number != i64::MIN => {
                Ok(Expr { kind: ExprForm::Const(Value::Int(-number)), span, height: 1 })
            }
            (UnaryOp::Minus, ExprForm::Const(Value::Float(number))) => {
                Ok(Expr { kind: ExprForm::Const(Value::Float(-number)), span, height: 1 })
            }
            (_, kind) => {
                let operand = Expr { kind, span: expr.span, height: expr.height };
                self.node(ExprForm::Unary(op, Box::new(operand)), span, expr.height)
            }
        }
    }

    #[inline(never)]
    fn power(&mut self, base: Expr) -> Result<Expr, Error> {
        self.advance()?;
        self.enter()?;
        let exponent = self.unary()?;
        self.nesting -= 1;
        let (height, span) = (base.height.max(exponent.height), base.span.to(exponent.span));
        let binary = Binary { quick: None, op: BinaryOp::Pow, left: base, right: exponent };
        self.node(ExprForm::Binary(Box::new(binary)), span, height)
    }
}
