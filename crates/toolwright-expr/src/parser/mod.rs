//! Tokens to tree: a recursive-descent parser for expressions. Runs of operators, prefixes and conditional
//! chains are loops, so only real nesting costs stack, and nesting is bounded. Statements are in
//! `statements`.

mod atom;
mod comprehension;
mod expression;
mod postfix;
mod string;

use crate::ast::{Expr, ExprForm, Symbol};
use crate::error::{Error, ErrorKind, LimitKind, Span};
use crate::lexer::{Dialect, LexToken, Lexer, Tok};

/// Tallest tree the evaluator will walk. A debug build on a 2 MiB stack must survive it.
const MAX_HEIGHT: u16 = 120;

/// Deepest recursion of the parser itself.
const MAX_NESTING: u32 = 100;

pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(crate) token: LexToken,
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
        let expr = self.whole_expression()?;
        self.skip_newlines()?;
        if self.token.tok != Tok::End {
            return Err(self.unexpected());
        }
        Ok(expr)
    }

    /// One expression, possibly a bare tuple.
    fn whole_expression(&mut self) -> Result<Expr, Error> {
        let expr = self.expression_list()?;
        // A tuple without brackets takes no stars here, as in Python's `eval`.
        if let ExprForm::Tuple(items) = &expr.kind
            && items.first().is_some_and(|first| first.span.start == expr.span.start)
            && let Some(star) = items.iter().find(|item| matches!(item.kind, ExprForm::Starred(_)))
        {
            return Err(Error::syntax("can't use starred expression here", star.span)
                .with_hint("put brackets around it: [*items]"));
        }
        Ok(expr)
    }

    /// Code inside `${...}`; gives the tree and the byte after the closing brace.
    pub(crate) fn embedded(&mut self) -> Result<(Expr, usize), Error> {
        self.skip_newlines()?;
        if self.at("}") {
            return Err(Error::syntax("expected an expression between the braces", self.token.span));
        }
        let expr = self.whole_expression()?;
        self.skip_newlines()?;
        if self.at("}") {
            return Ok((expr, self.token.span.end as usize));
        }
        if self.token.tok == Tok::End {
            return Err(Error::syntax("unclosed expression", self.token.span).with_hint("close it with }"));
        }
        Err(self.unexpected())
    }

    pub(crate) fn advance(&mut self) -> Result<LexToken, Error> {
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

    fn node(&self, kind: ExprForm, span: Span, child: u16) -> Result<Expr, Error> {
        if child >= MAX_HEIGHT {
            return Err(too_deep(span));
        }
        Ok(Expr { kind, span, height: child + 1 })
    }

    fn span_from(&self, start: Span) -> Span {
        Span { start: start.start, end: self.last_end.max(start.start) }
    }

    fn sequence(
        &self,
        items: Vec<Expr>,
        span: Span,
        make: fn(Box<[Expr]>) -> ExprForm,
    ) -> Result<Expr, Error> {
        let height = tallest(&items);
        self.node(make(items.into()), span, height)
    }

    /// A name that is being given a value.
    pub(crate) fn bound_name(&mut self) -> Result<Symbol, Error> {
        let span = self.token.span;
        match self.advance()?.tok {
            Tok::Name(name) if &*name != MATCH_GROUPS => {
                self.check_name(&name, span)?;
                Ok(name)
            }
            Tok::Name(name) => Err(self.forbidden(&format!("\"{name}\" cannot be given a value"), span)),
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
}

/// The one private name that programs may read beside `_`: a flow puts the groups of a pattern there.
const MATCH_GROUPS: &str = "_match_groups";

/// Whether a program may use a name; whatever could lead out of plain data may not.
pub(crate) fn is_allowed_name(name: &str) -> bool {
    let private = name.starts_with('_') && name != "_" && name != MATCH_GROUPS;
    !private && !name.ends_with("__roles__") && name != "breakpoint" && name != "builtins"
}

fn too_deep(span: Span) -> Error {
    Error::limited(LimitKind::Depth, "the expression is nested too deeply").at(span)
}

fn tallest(items: &[Expr]) -> u16 {
    items.iter().map(|item| item.height).max().unwrap_or(0)
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
        for source in ["_x", "x.__class__", "x.gi_frame", "[_y for _y in z]"] {
            assert_eq!(parse(source).err().unwrap().kind(), ErrorKind::Forbidden, "{source}");
        }
        // The name of a keyword argument is only a key.
        for source in ["_", "f(_x=1)"] {
            assert!(parse(source).is_ok(), "{source}");
        }
    }
}
