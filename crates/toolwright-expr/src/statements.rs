//! Statements of scripts: the parser of all syntax that is not an expression. Loops without bound, classes,
//! imports and exceptions handlers are refused here, with the reason.

use crate::ast::{AssignTarget, BinaryOp, Body, Expr, ExprForm, Function, Stmt, StmtKind, Symbol};
use crate::error::{Error, ErrorKind, Span};
use crate::lexer::Tok;
use crate::parser::Parser;

impl Parser<'_> {
    /// A whole script.
    pub(crate) fn script(&mut self) -> Result<Vec<Stmt>, Error> {
        let mut statements = Vec::new();
        self.skip_newlines()?;
        while self.token.tok != Tok::End {
            if self.token.tok == Tok::Indent {
                return Err(
                    Error::syntax("unexpected indent", self.token.span).with_class("IndentationError")
                );
            }
            self.statement(&mut statements)?;
            self.skip_newlines()?;
        }
        Ok(statements)
    }

    fn statement(&mut self, out: &mut Vec<Stmt>) -> Result<(), Error> {
        let span = self.token.span;
        let compound = match &self.token.tok {
            Tok::Word("if") => self.if_statement()?,
            Tok::Word("for") => self.for_statement()?,
            Tok::Word("def") => self.def_statement()?,
            Tok::Word(word) => {
                if let Some(reason) = refused(word) {
                    return Err(Error::new(ErrorKind::Forbidden, reason).at(span));
                }
                return self.simple_statements(out);
            }
            _ => return self.simple_statements(out),
        };
        out.push(statement(compound, span));
        Ok(())
    }

    fn simple_statements(&mut self, out: &mut Vec<Stmt>) -> Result<(), Error> {
        loop {
            let span = self.token.span;
            let kind = self.simple_statement()?;
            out.push(statement(kind, Span { start: span.start, end: self.last_end.max(span.start) }));
            if !self.take(";")? || matches!(self.token.tok, Tok::Newline | Tok::End) {
                break;
            }
        }
        match self.token.tok {
            Tok::Newline => self.advance().map(drop),
            Tok::End | Tok::Dedent => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    fn simple_statement(&mut self) -> Result<StmtKind, Error> {
        let span = self.token.span;
        if let Tok::Word(word) = self.token.tok {
            match word {
                "pass" => return self.bare(StmtKind::Pass),
                "break" | "continue" if !self.in_loop => {
                    return Err(Error::syntax(format!("'{word}' outside loop"), span));
                }
                "break" => return self.bare(StmtKind::Break),
                "continue" => return self.bare(StmtKind::Continue),
                "return" if !self.in_function => {
                    return Err(Error::syntax("'return' outside function", span));
                }
                "return" => {
                    self.advance()?;
                    return Ok(StmtKind::Return(self.optional_list()?));
                }
                "raise" => {
                    self.advance()?;
                    let value = self.optional_list()?;
                    if self.take_word("from")? {
                        self.expression()?;
                    }
                    return Ok(StmtKind::Raise(value));
                }
                "assert" => {
                    self.advance()?;
                    let test = self.expression()?;
                    let message = if self.take(",")? { Some(self.expression()?) } else { None };
                    return Ok(StmtKind::Assert(test, message));
                }
                "del" => {
                    self.advance()?;
                    let targets = self.expression_list()?;
                    return match self.assignable(targets)? {
                        AssignTarget::Tuple(items, None) => Ok(StmtKind::Del(items.into_vec())),
                        single => Ok(StmtKind::Del(vec![single])),
                    };
                }
                _ => {
                    if let Some(reason) = refused(word) {
                        return Err(Error::new(ErrorKind::Forbidden, reason).at(span));
                    }
                }
            }
        }
        self.expression_statement()
    }

    fn bare(&mut self, kind: StmtKind) -> Result<StmtKind, Error> {
        self.advance()?;
        Ok(kind)
    }

    fn optional_list(&mut self) -> Result<Option<Expr>, Error> {
        let end = matches!(self.token.tok, Tok::Newline | Tok::End | Tok::Dedent) || self.at(";");
        if end { Ok(None) } else { self.expression_list().map(Some) }
    }

    /// An expression, or an assignment once `=` or an operator with `=` follows.
    fn expression_statement(&mut self) -> Result<StmtKind, Error> {
        let mut targets = Vec::new();
        let mut expr = self.target_or_expression()?;
        if let Tok::Op(operator) = self.token.tok
            && let Some(op) = augmented(operator)
        {
            self.advance()?;
            let target = self.assignable(expr)?;
            if let AssignTarget::Item(_, span) = target {
                return Err(Error::new(
                    ErrorKind::Forbidden,
                    "an item cannot be changed with an operator and `=`",
                )
                .at(span)
                .with_hint("write it out: x[i] = x[i] + 1"));
            }
            if matches!(target, AssignTarget::Tuple(..)) {
                return Err(Error::syntax(
                    "a tuple cannot be changed with an operator and `=`",
                    self.token.span,
                ));
            }
            return Ok(StmtKind::Augment(target, op, self.expression_list()?));
        }
        if self.at(":") && matches!(expr.kind, ExprForm::Name(_)) {
            return Err(Error::new(ErrorKind::Forbidden, "variables have no annotations")
                .at(self.token.span)
                .with_hint("write it without the type: x = 1"));
        }
        while self.take("=")? {
            targets.push(self.assignable(expr)?);
            expr = self.target_or_expression()?;
        }
        if targets.is_empty() {
            return Ok(StmtKind::Expr(expr));
        }
        Ok(StmtKind::Assign(targets, expr))
    }

    /// Like `expression_list`, but a star may stand alone in `*a, b = ...`.
    fn target_or_expression(&mut self) -> Result<Expr, Error> {
        self.expression_list()
    }

    fn assignable(&self, expr: Expr) -> Result<AssignTarget, Error> {
        let span = expr.span;
        match expr.kind {
            ExprForm::Name(name) => self.assignable_name(name, span),
            ExprForm::Subscript(subscript) => Ok(AssignTarget::Item(subscript, span)),
            ExprForm::Tuple(items) | ExprForm::List(items) => {
                let mut star = None;
                let mut targets = Vec::with_capacity(items.len());
                for (index, item) in items.into_vec().into_iter().enumerate() {
                    let item = match item.kind {
                        ExprForm::Starred(inner) => {
                            if star.replace(index).is_some() {
                                return Err(Error::syntax(
                                    "multiple starred expressions in assignment",
                                    span,
                                ));
                            }
                            *inner
                        }
                        kind => Expr { kind, span: item.span, height: item.height },
                    };
                    targets.push(self.assignable(item)?);
                }
                Ok(AssignTarget::Tuple(targets.into(), star))
            }
            ExprForm::Attribute(_) => Err(Error::new(ErrorKind::Forbidden, "attributes cannot be assigned")
                .at(span)
                .with_hint("assign a dict item instead: x['name'] = value")),
            _ => Err(Error::syntax("cannot assign to this expression", span)),
        }
    }

    fn assignable_name(&self, name: Symbol, span: Span) -> Result<AssignTarget, Error> {
        if name.starts_with('_') && &*name != "_" {
            return Err(Error::new(ErrorKind::Forbidden, format!("\"{name}\" is not a usable name")).at(span));
        }
        if matches!(&*name, "print" | "printed") {
            return Err(Error::new(ErrorKind::Forbidden, format!("\"{name}\" is a reserved name")).at(span));
        }
        Ok(AssignTarget::Name(name, span))
    }

    fn if_statement(&mut self) -> Result<StmtKind, Error> {
        let mut branches = Vec::new();
        self.advance()?;
        loop {
            let test = self.expression()?;
            branches.push((test, self.block()?));
            if !self.take_word("elif")? {
                break;
            }
        }
        let other = if self.take_word("else")? { self.block()? } else { Vec::new() };
        Ok(StmtKind::If(branches, other))
    }

    fn for_statement(&mut self) -> Result<StmtKind, Error> {
        self.advance()?;
        let target = self.loop_target()?;
        if !self.take_word("in")? {
            return Err(self.unexpected());
        }
        let iter = self.expression_list()?;
        let outer = std::mem::replace(&mut self.in_loop, true);
        let body = self.block()?;
        self.in_loop = outer;
        let other = if self.take_word("else")? { self.block()? } else { Vec::new() };
        Ok(StmtKind::For(target, iter, body, other))
    }

    fn def_statement(&mut self) -> Result<StmtKind, Error> {
        self.advance()?;
        let span = self.token.span;
        let name = self.bound_name()?;
        if self.in_function {
            return Err(Error::new(ErrorKind::Forbidden, format!("functions cannot be nested ('{name}')"))
                .at(span)
                .with_hint("define it at the top of the script"));
        }
        self.expect("(")?;
        let params = self.parameters(")")?;
        self.expect(")")?;
        if self.take("->")? {
            self.expression()?;
        }
        self.in_function = true;
        let in_loop = std::mem::take(&mut self.in_loop);
        let body = self.block()?;
        self.in_function = false;
        self.in_loop = in_loop;
        let function = Function { name: name.clone(), params, body: Body::Block(body), code: None };
        Ok(StmtKind::Def(Box::new(function), self.assignable_name(name, span)?))
    }

    /// `:` and the statements below it, on the same line or indented.
    fn block(&mut self) -> Result<Vec<Stmt>, Error> {
        self.expect(":")?;
        let mut statements = Vec::new();
        if self.token.tok != Tok::Newline {
            self.simple_statements(&mut statements)?;
            return Ok(statements);
        }
        self.advance()?;
        if self.token.tok != Tok::Indent {
            return Err(
                Error::syntax("expected an indented block", self.token.span).with_class("IndentationError")
            );
        }
        self.advance()?;
        while self.token.tok != Tok::Dedent && self.token.tok != Tok::End {
            if self.token.tok == Tok::Indent {
                return Err(
                    Error::syntax("unexpected indent", self.token.span).with_class("IndentationError")
                );
            }
            self.statement(&mut statements)?;
            self.skip_newlines()?;
        }
        if self.token.tok == Tok::Dedent {
            self.advance()?;
        }
        Ok(statements)
    }
}

fn statement(kind: StmtKind, span: Span) -> Stmt {
    Stmt { kind, span, cost: 1 }
}

fn refused(word: &str) -> Option<&'static str> {
    Some(match word {
        "while" => "`while` is not part of the language: loop over a range or a list",
        "class" => "classes are not part of the language: use struct()",
        "import" | "from" => "`import` is not part of the language",
        "try" => "`try` is not part of the language",
        "with" => "`with` is not part of the language",
        "global" | "nonlocal" => "`global` and `nonlocal` are not part of the language",
        "async" => "`async` is not part of the language",
        "yield" => "generators with `yield` are not part of the language",
        _ => return None,
    })
}

fn augmented(operator: &str) -> Option<BinaryOp> {
    Some(match operator {
        "+=" => BinaryOp::Add,
        "-=" => BinaryOp::Sub,
        "*=" => BinaryOp::Mul,
        "/=" => BinaryOp::Div,
        "//=" => BinaryOp::FloorDiv,
        "%=" => BinaryOp::Mod,
        "**=" => BinaryOp::Pow,
        "@=" => BinaryOp::MatMul,
        "<<=" => BinaryOp::Shl,
        ">>=" => BinaryOp::Shr,
        "&=" => BinaryOp::And,
        "|=" => BinaryOp::Or,
        "^=" => BinaryOp::Xor,
        _ => return None,
    })
}
