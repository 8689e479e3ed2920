//! Tokens to tree: a recursive-descent parser for expressions. Runs of operators, prefixes and conditional
//! chains are loops, so only real nesting costs stack, and nesting is bounded. Statements are in `statements`.

use std::sync::Arc;

use crate::ast::{
    Argument, Attribute, Binary, BinaryOp, Call, Chain, Clause, Compare, CompareOp, Compares, Comprehension,
    Conditional, DictItem, Expr, FPart, Field, Function, Kind, Name, Param, ParamKind, Subscript, Symbol,
    Target, UnaryOp,
};
use crate::error::{Error, ErrorKind, LimitKind, Span};
use crate::lexer::{Dialect, FEnd, Lexer, Quote, Tok, Token};
use crate::value::Value;

/// Tallest tree the evaluator will walk. A debug build on a 2 MiB stack must survive it.
const MAX_HEIGHT: u16 = 120;

/// Longest run of one operator kept as nested pairs; longer ones become a flat chain.
const MAX_SPINE: usize = 12;

/// Deepest recursion of the parser itself.
const MAX_NESTING: u32 = 100;

/// Precedences below those of the arithmetic operators, which go on from five.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;

pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(crate) token: Token,
    pub(crate) last_end: u32,
    dialect: Dialect,
    nesting: u32,
    pub(crate) in_function: bool,
    pub(crate) in_loop: bool,
    /// The expression about to be read may be a lambda although this is not a script.
    lambda_allowed: bool,
}

impl<'a> Parser<'a> {
    /// A parser whose first token starts at byte `start`.
    pub(crate) fn new(source: &'a str, start: usize, dialect: Dialect) -> Result<Self, Error> {
        let mut lexer = Lexer::new(source, start, dialect)?;
        let token = lexer.next()?;
        Ok(Self {
            lexer,
            token,
            last_end: u32::try_from(start).unwrap_or(u32::MAX),
            dialect,
            nesting: 0,
            in_function: false,
            in_loop: false,
            lambda_allowed: false,
        })
    }

    /// A whole program: one expression, possibly a bare tuple, and nothing after it.
    pub(crate) fn program(&mut self) -> Result<Expr, Error> {
        self.skip_newlines()?;
        let expr = self.expression_list()?;
        self.skip_newlines()?;
        if self.token.tok != Tok::End {
            return Err(self.unexpected());
        }
        Ok(expr)
    }

    /// Code inside `${...}`; gives the tree and the byte after the closing brace.
    pub(crate) fn embedded(&mut self) -> Result<(Expr, usize), Error> {
        self.skip_newlines()?;
        if self.at("}") {
            return Err(Error::syntax("expected an expression between the braces", self.token.span));
        }
        let expr = self.expression_list()?;
        self.skip_newlines()?;
        if self.at("}") {
            return Ok((expr, self.token.span.end as usize));
        }
        if self.token.tok == Tok::End {
            return Err(Error::syntax("unclosed expression", self.token.span).with_hint("close it with }"));
        }
        Err(self.unexpected())
    }

    pub(crate) fn advance(&mut self) -> Result<Token, Error> {
        let next = self.lexer.next()?;
        self.last_end = self.token.span.end;
        Ok(std::mem::replace(&mut self.token, next))
    }

    #[inline]
    pub(crate) fn at(&self, operator: &str) -> bool {
        matches!(&self.token.tok, Tok::Op(found) if *found == operator)
    }

    #[inline]
    pub(crate) fn at_word(&self, word: &str) -> bool {
        matches!(&self.token.tok, Tok::Word(found) if *found == word)
    }

    #[inline]
    pub(crate) fn take(&mut self, operator: &str) -> Result<bool, Error> {
        let found = self.at(operator);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    #[inline]
    pub(crate) fn take_word(&mut self, word: &str) -> Result<bool, Error> {
        let found = self.at_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    #[inline]
    pub(crate) fn expect(&mut self, operator: &'static str) -> Result<(), Error> {
        if self.take(operator)? { Ok(()) } else { Err(self.expected(operator)) }
    }

    pub(crate) fn skip_newlines(&mut self) -> Result<(), Error> {
        while self.token.tok == Tok::Newline {
            self.advance()?;
        }
        Ok(())
    }

    fn expected(&self, what: &str) -> Error {
        Error::syntax(format!("expected `{what}`, found {}", describe(&self.token.tok)), self.token.span)
    }

    pub(crate) fn unexpected(&self) -> Error {
        let error = Error::syntax(format!("unexpected {}", describe(&self.token.tok)), self.token.span);
        match &self.token.tok {
            Tok::Op("=") => error.with_hint("compare with `==`"),
            Tok::Op("!") => error.with_hint("negate with `not`"),
            Tok::Op(":=") => error.with_hint("assignment inside an expression is not part of the language"),
            Tok::Op("&" | "|") => error.with_hint("combine conditions with `and` and `or`"),
            _ => error,
        }
    }

    fn forbidden(&self, message: &str, span: Span) -> Error {
        Error::new(ErrorKind::Forbidden, message.to_owned()).at(span)
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(too_deep(self.token.span));
        }
        Ok(())
    }

    fn node(&self, kind: Kind, span: Span, child: u16) -> Result<Expr, Error> {
        if child >= MAX_HEIGHT {
            return Err(too_deep(span));
        }
        Ok(Expr { kind, span, height: child + 1 })
    }

    fn span_from(&self, start: Span) -> Span {
        Span { start: start.start, end: self.last_end.max(start.start) }
    }

    /// `a, b` makes a tuple; a single expression stays itself.
    pub(crate) fn expression_list(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        let first = self.starred_or_expression()?;
        if !self.at(",") {
            if matches!(first.kind, Kind::Starred(_)) {
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
        self.sequence(items, self.span_from(start), Kind::Tuple)
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

    fn sequence(&self, items: Vec<Expr>, span: Span, make: fn(Box<[Expr]>) -> Kind) -> Result<Expr, Error> {
        let height = tallest(&items);
        self.node(make(items.into()), span, height)
    }

    fn starred_or_expression(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        if self.take("*")? {
            let value = self.climb(COMPARE + 1)?;
            let height = value.height;
            return self.node(Kind::Starred(Box::new(value)), self.span_from(start), height);
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

    fn conditional(&mut self) -> Result<Expr, Error> {
        let first = self.lambda_or_disjunction()?;
        if self.at_word("if") && !matches!(first.kind, Kind::Lambda(_)) {
            return self.conditional_rest(first);
        }
        Ok(first)
    }

    #[inline(never)]
    fn conditional_rest(&mut self, first: Expr) -> Result<Expr, Error> {
        let start = first.span;
        let mut branches = Vec::new();
        let mut last = first;
        while self.at_word("if") && !matches!(last.kind, Kind::Lambda(_)) {
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
                Kind::Conditional(Box::new(Conditional { test, then, other: expr })),
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

    fn lambda(&mut self) -> Result<Expr, Error> {
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
        self.node(Kind::Lambda(Box::new(function)), self.span_from(start), height)
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

    /// A name that is being given a value.
    pub(crate) fn bound_name(&mut self) -> Result<Symbol, Error> {
        let span = self.token.span;
        match self.advance()?.tok {
            Tok::Name(name) => {
                self.check_name(&name, span)?;
                Ok(name)
            }
            other => Err(Error::syntax(format!("expected a name, found {}", describe(&other)), span)),
        }
    }

    fn check_name(&self, name: &str, span: Span) -> Result<(), Error> {
        if is_allowed_name(name) {
            return Ok(());
        }
        let message = match name {
            "breakpoint" | "builtins" => format!("\"{name}\" is a reserved name"),
            _ if name.starts_with('_') => {
                format!("\"{name}\" is not a usable name because it starts with \"_\"")
            }
            _ => format!("\"{name}\" is not a usable name"),
        };
        Err(self.forbidden(&message, span))
    }

    fn disjunction(&mut self) -> Result<Expr, Error> {
        self.climb(OR)
    }

    /// Operators of precedence `floor` and above, by precedence climbing. One function for all of them, because
    /// every level of nesting passes through here and stack is what bounds nesting.
    fn climb(&mut self, floor: u8) -> Result<Expr, Error> {
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
                left = self.word_list(left, "and", AND, start, Kind::And)?;
            } else if floor <= OR && self.at_word("or") {
                left = self.word_list(left, "or", OR, start, Kind::Or)?;
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
        make: fn(Box<[Expr]>) -> Kind,
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
            expr = self.node(Kind::Not(Box::new(expr)), self.span_from(start), height)?;
        }
        Ok(expr)
    }

    #[inline(never)]
    fn comparison(&mut self, first: Expr, op: CompareOp, start: Span) -> Result<Expr, Error> {
        let right = self.climb(COMPARE + 1)?;
        let mut height = first.height.max(right.height);
        let Some(mut next) = self.compare_op()? else {
            let compare = Compare { quick: None, op, left: first, right };
            return self.node(Kind::Compare(Box::new(compare)), self.span_from(start), height);
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
        self.node(Kind::Compares(Box::new(Compares { first, rest })), self.span_from(start), height)
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
    fn join(&self, left: Expr, op: BinaryOp, right: Expr, start: Span, spine: usize) -> Result<Expr, Error> {
        let span = self.span_from(start);
        let height = left.height.max(right.height);
        match left.kind {
            Kind::Chain(mut chain) if spine > MAX_SPINE + 1 => {
                let tallest = left.height.max(right.height.saturating_add(1));
                chain.rest.push((op, right));
                self.node(Kind::Chain(chain), span, tallest.saturating_sub(1))
            }
            kind if spine > MAX_SPINE => {
                let first = Expr { kind, span: left.span, height: left.height };
                let chain = Chain { first, rest: vec![(op, right)] };
                self.node(Kind::Chain(Box::new(chain)), span, height)
            }
            kind => {
                let left = Expr { kind, span: left.span, height: left.height };
                self.node(Kind::Binary(Box::new(Binary { quick: None, op, left, right })), span, height)
            }
        }
    }

    fn binary_op(&self) -> Option<(BinaryOp, u8)> {
        let Tok::Op(operator) = &self.token.tok else { return None };
        // Most tokens that end an operand are brackets and commas; they are told apart by one byte.
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
            (UnaryOp::Minus, Kind::Const(Value::Int(number))) if number != i64::MIN => {
                Ok(Expr { kind: Kind::Const(Value::Int(-number)), span, height: 1 })
            }
            (UnaryOp::Minus, Kind::Const(Value::Float(number))) => {
                Ok(Expr { kind: Kind::Const(Value::Float(-number)), span, height: 1 })
            }
            (_, kind) => {
                let operand = Expr { kind, span: expr.span, height: expr.height };
                self.node(Kind::Unary(op, Box::new(operand)), span, expr.height)
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
        self.node(Kind::Binary(Box::new(binary)), span, height)
    }

    fn postfix(&mut self) -> Result<Expr, Error> {
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
        self.node(Kind::Attribute(Box::new(attribute)), self.span_from(start), height)
    }

    fn subscript(&mut self, value: Expr, start: Span) -> Result<Expr, Error> {
        self.advance()?;
        let inner = self.token.span;
        let first = self.slice_or_expression()?;
        let index = if self.at(",") {
            let mut items = vec![first];
            while self.take(",")? {
                if self.at("]") {
                    break;
                }
                items.push(self.slice_or_expression()?);
            }
            self.sequence(items, self.span_from(inner), Kind::Tuple)?
        } else {
            first
        };
        self.expect("]")?;
        let height = value.height.max(index.height);
        self.node(Kind::Subscript(Box::new(Subscript { value, index })), self.span_from(start), height)
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
        self.node(Kind::Slice(Box::new(parts)), self.span_from(start), height)
    }

    fn call(&mut self, callee: Expr, start: Span) -> Result<Expr, Error> {
        self.advance()?;
        let mut args: Vec<Argument> = Vec::new();
        let mut height = callee.height;
        while !self.at(")") {
            let arg = self.argument(&callee, &args)?;
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
        if let Kind::Name(name) = &callee.kind
            && (&**name == "eval" || &**name == "exec")
        {
            return Err(self.forbidden(&format!("calls of {name}() are not allowed"), callee.span));
        }
        self.node(Kind::Call(Box::new(Call { callee, args })), self.span_from(start), height)
    }

    fn argument(&mut self, callee: &Expr, before: &[Argument]) -> Result<Argument, Error> {
        if self.take("**")? {
            return Ok(Argument::DoubleStar(self.expression()?));
        }
        if self.take("*")? {
            return Ok(Argument::Star(self.expression()?));
        }
        let span = self.token.span;
        let takes_function =
            matches!(&callee.kind, Kind::Name(name) if &**name == "map" || &**name == "filter");
        self.lambda_allowed = takes_function && before.is_empty() && self.at_word("lambda");
        let value = self.expression()?;
        if self.at("=")
            && let Kind::Name(name) = &value.kind
        {
            let name = name.clone();
            self.advance()?;
            if before.iter().any(|arg| matches!(arg, Argument::Keyword(other, _) if **other == *name)) {
                return Err(Error::syntax(format!("keyword argument repeated: {name}"), span));
            }
            self.check_name(&name, span)?;
            self.lambda_allowed = &*name == "key" && self.at_word("lambda");
            let value = self.expression()?;
            return Ok(Argument::Keyword(Arc::from(&*name), value));
        }
        if before.iter().any(|arg| matches!(arg, Argument::Keyword(..))) {
            return Err(Error::syntax("positional argument follows keyword argument", span));
        }
        if before.iter().any(|arg| matches!(arg, Argument::DoubleStar(_))) {
            return Err(Error::syntax("positional argument follows keyword argument unpacking", span));
        }
        if self.at_word("for") || self.at_word("async") {
            let generator = self.comprehension(value, None, span, Kind::Generator)?;
            if !before.is_empty() || self.at(",") {
                return Err(Error::syntax("generator expression must be parenthesized", generator.span));
            }
            return Ok(Argument::Positional(generator));
        }
        Ok(Argument::Positional(value))
    }

    fn atom(&mut self) -> Result<Expr, Error> {
        let span = self.token.span;
        match &self.token.tok {
            Tok::Name(_) => {
                let name = match self.advance()?.tok {
                    Tok::Name(name) => name,
                    _ => return Err(self.unexpected()),
                };
                // A keyword argument's name is checked by the caller instead.
                if !self.at("=") {
                    self.check_name(&name, span)?;
                }
                Ok(leaf(Kind::Name(name), span))
            }
            Tok::Number(value) => {
                let value = value.clone();
                self.advance()?;
                Ok(leaf(Kind::Const(value), span))
            }
            Tok::Str(_) | Tok::FString(_) => self.strings(),
            Tok::Bytes(_) => self.bytes(),
            Tok::Word(word) => self.word_atom(word, span),
            Tok::Op("(") => self.parenthesis(),
            Tok::Op("[") => self.list(),
            Tok::Op("{") => self.braces(),
            Tok::Op("...") => {
                self.advance()?;
                Ok(leaf(Kind::Const(Value::Ellipsis), span))
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
        Ok(leaf(Kind::Const(value), span))
    }

    fn bytes(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        let mut all = Vec::new();
        while let Tok::Bytes(bytes) = &self.token.tok {
            all.extend_from_slice(bytes);
            self.advance()?;
        }
        if matches!(self.token.tok, Tok::Str(_) | Tok::FString(_)) {
            return Err(Error::syntax("cannot mix bytes and nonbytes literals", self.token.span));
        }
        Ok(leaf(Kind::Const(Value::bytes(all)), self.span_from(start)))
    }

    /// One or more adjacent string literals, joined.
    fn strings(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        if let Tok::Str(text) = &mut self.token.tok {
            let text = std::mem::take(text);
            self.advance()?;
            if !matches!(self.token.tok, Tok::Str(_) | Tok::FString(_) | Tok::Bytes(_)) {
                return Ok(leaf(Kind::Const(Value::str(text)), start));
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
            return Ok(leaf(Kind::Const(Value::str(&*text)), span));
        }
        self.node(Kind::FString(parts.into()), span, height)
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
        self.token = self.lexer.next()?;
        if self.at("}") || self.at("!") || self.at(":") || self.at("=") {
            return Err(Error::syntax("f-string: expected an expression", self.token.span));
        }
        let from = self.token.span.start as usize;
        let value = self.expression_list()?;
        if matches!(value.kind, Kind::Lambda(_)) {
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
            self.advance()?;
            conversion = match &self.token.tok {
                Tok::Name(name) if matches!(&**name, "r" | "s" | "a") => name.chars().next(),
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

    fn parenthesis(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        self.advance()?;
        if self.at(")") {
            self.advance()?;
            return Ok(leaf(Kind::Const(Value::tuple(Vec::new())), self.span_from(start)));
        }
        if self.at_word("yield") {
            return Err(self.forbidden("yield is not part of the language", self.token.span));
        }
        let first = self.starred_or_expression()?;
        if self.at_word("for") || self.at_word("async") {
            let mut generator = self.comprehension(first, None, start, Kind::Generator)?;
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
            return self.sequence(items, self.span_from(start), Kind::Tuple);
        }
        self.expect(")")?;
        if matches!(first.kind, Kind::Starred(_)) {
            return Err(Error::syntax("cannot use starred expression here", first.span));
        }
        Ok(first)
    }

    fn list(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        self.advance()?;
        let mut items = Vec::new();
        while !self.at("]") {
            let item = self.starred_or_expression()?;
            if items.is_empty() && (self.at_word("for") || self.at_word("async")) {
                let mut comp = self.comprehension(item, None, start, Kind::ListComp)?;
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
        self.sequence(items, self.span_from(start), Kind::List)
    }

    fn braces(&mut self) -> Result<Expr, Error> {
        let start = self.token.span;
        self.advance()?;
        if self.at("}") {
            self.advance()?;
            return Ok(leaf(Kind::Dict(Box::new([])), self.span_from(start)));
        }
        if self.at("**") {
            return self.dict(start, None);
        }
        let first = self.starred_or_expression()?;
        if self.at(":") {
            return self.dict(start, Some(first));
        }
        if self.at_word("for") || self.at_word("async") {
            let mut comp = self.comprehension(first, None, start, Kind::SetComp)?;
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
        self.sequence(items, self.span_from(start), Kind::Set)
    }

    fn dict(&mut self, start: Span, first: Option<Expr>) -> Result<Expr, Error> {
        let mut items = Vec::new();
        let mut height = 0;
        let mut key = first;
        loop {
            let item = match key.take() {
                Some(key) => {
                    if matches!(key.kind, Kind::Starred(_)) {
                        return Err(Error::syntax("cannot use a starred expression as a dict key", key.span));
                    }
                    self.expect(":")?;
                    let value = self.expression()?;
                    if items.is_empty() && (self.at_word("for") || self.at_word("async")) {
                        let mut comp = self.comprehension(key, Some(value), start, Kind::DictComp)?;
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
        self.node(Kind::Dict(items.into()), self.span_from(start), height)
    }

    fn comprehension(
        &mut self,
        element: Expr,
        value: Option<Expr>,
        start: Span,
        make: fn(Box<Comprehension>) -> Kind,
    ) -> Result<Expr, Error> {
        if matches!(element.kind, Kind::Starred(_)) {
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
    pub(crate) fn loop_target(&mut self) -> Result<Target, Error> {
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

    fn target_rest(&mut self, first: (Target, bool), end: fn(&Self) -> bool) -> Result<Target, Error> {
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
        Ok(Target::Tuple(items.into(), star))
    }

    fn target_item(&mut self) -> Result<(Target, bool), Error> {
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
                return Ok((Target::Name(name, span), starred));
            }
        };
        self.enter()?;
        self.advance()?;
        let end: fn(&Self) -> bool = if close == ")" { |p| p.at(")") } else { |p| p.at("]") };
        if end(self) {
            self.advance()?;
            self.nesting -= 1;
            return Ok((Target::Tuple(Box::new([]), None), starred));
        }
        let first = self.target_item()?;
        let tuple = close == "]" || self.at(",") || first.1;
        let target = if tuple { self.target_rest(first, end)? } else { first.0 };
        self.expect(if close == ")" { ")" } else { "]" })?;
        self.nesting -= 1;
        Ok((target, starred))
    }
}

/// Whether a program may use a name; whatever could lead out of plain data may not.
pub(crate) fn is_allowed_name(name: &str) -> bool {
    let private = name.starts_with('_') && name != "_";
    !private && !name.ends_with("__roles__") && name != "breakpoint" && name != "builtins"
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

fn too_deep(span: Span) -> Error {
    Error::limited(LimitKind::Depth, "the expression is nested too deeply").at(span)
}

fn leaf(kind: Kind, span: Span) -> Expr {
    Expr { kind, span, height: 1 }
}

fn tallest(items: &[Expr]) -> u16 {
    items.iter().map(|item| item.height).max().unwrap_or(0)
}

fn push_text(parts: &mut Vec<FPart>, text: &str) {
    if let Some(FPart::Text(last)) = parts.last_mut() {
        *last = Arc::from(format!("{last}{text}"));
    } else if !text.is_empty() {
        parts.push(FPart::Text(Arc::from(text)));
    }
}

fn describe(tok: &Tok) -> String {
    match tok {
        Tok::Name(name) => format!("`{name}`"),
        Tok::Word(word) => format!("`{word}`"),
        Tok::Op(operator) => format!("`{operator}`"),
        Tok::Number(_) => "a number".to_owned(),
        Tok::Str(_) | Tok::FString(_) => "a string".to_owned(),
        Tok::Bytes(_) => "a bytes literal".to_owned(),
        Tok::Newline => "the end of the line".to_owned(),
        Tok::Indent | Tok::Dedent => "a change of indentation".to_owned(),
        Tok::End => "the end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> Result<Expr, Error> {
        Parser::new(source, 0, Dialect::Expression)?.program()
    }

    #[test]
    fn errors_point_at_the_offending_token() {
        let error = parse("a = 1").err().unwrap();
        assert_eq!(error.span(), Some(Span::new(2, 3)));
        assert_eq!(error.hint(), Some("compare with `==`"));
    }

    #[test]
    fn long_runs_of_operators_stay_flat() {
        let source = vec!["1"; 20_000].join("+");
        assert!(parse(&source).unwrap().height < 40);
    }

    #[test]
    fn nesting_ends_in_a_limit_error() {
        for (open, close) in [("(", ")"), ("[", "]"), ("{'a':", "}"), ("f(", ")"), ("2**", ""), ("-x**", "")]
        {
            let source = format!("{}1{}", open.repeat(5_000), close.repeat(5_000));
            let error = parse(&source).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Limit, "{open}: {error}");
        }
    }

    #[test]
    fn private_names_are_refused_when_parsed() {
        for source in ["_x", "x.__class__", "x.gi_frame", "f(_x=1)", "[_y for _y in z]"] {
            assert_eq!(parse(source).err().unwrap().kind(), ErrorKind::Forbidden, "{source}");
        }
        assert!(parse("_").is_ok());
    }
}
