//! The statements of a flow, compiled. One file for each kind; how they follow one another is in `exec`.

pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod each;
pub(crate) mod script;

use std::sync::Arc;

use crate::diag::FileSpan;
use crate::template::{Snippet, TemplateTree};

/// A statement, or a list of them in which each sees the result of the one before as `_`.
pub(crate) enum Body {
    One(Box<Statement>),
    List(Vec<Statement>),
}

/// One statement.
pub(crate) struct Statement {
    pub(crate) step: StatementKind,
    pub(crate) store_as: Option<Arc<str>>,
    /// Calls nothing, neither itself nor inside.
    pub(crate) pure: bool,
    /// Has a loop in it, so that it may take long.
    pub(crate) loops: bool,
    pub(crate) place: FileSpan,
    /// The place as a person reads it.
    pub(crate) located: Arc<str>,
}

/// What a statement does.
pub(crate) enum StatementKind {
    Eval(TemplateTree),
    If(Box<branch::If>),
    Match(Box<branch::MatchStep>),
    Each(Box<each::Each>),
    Call(Box<call::CallStep>),
    Script(Box<script::ScriptStep>),
    /// A statement with a problem: the bodies inside it, for checking. A flow that has one is never run.
    Broken(Vec<Body>),
}

impl Body {
    pub(crate) fn statements(&self) -> &[Statement] {
        match self {
            Body::One(statement) => std::slice::from_ref(statement),
            Body::List(statements) => statements,
        }
    }

    /// Where the last statement stands, whose result is that of all.
    pub(crate) fn end(&self) -> Option<&str> {
        self.statements().last().map(|statement| &*statement.located)
    }

    pub(crate) fn is_pure(&self) -> bool {
        self.statements().iter().all(|statement| statement.pure)
    }

    pub(crate) fn loops(&self) -> bool {
        self.statements().iter().any(|statement| statement.loops)
    }
}

impl StatementKind {
    /// The bodies inside.
    pub(crate) fn bodies(&self) -> Vec<&Body> {
        match self {
            StatementKind::Eval(_) | StatementKind::Call(_) | StatementKind::Script(_) => Vec::new(),
            StatementKind::If(step) => std::iter::once(&step.then).chain(&step.otherwise).collect(),
            StatementKind::Match(step) => {
                step.arms.iter().map(|arm| &arm.then).chain([&step.default]).collect()
            }
            StatementKind::Each(step) => vec![&step.body],
            StatementKind::Broken(bodies) => bodies.iter().collect(),
        }
    }

    pub(crate) fn is_pure(&self) -> bool {
        match self {
            StatementKind::Call(_) | StatementKind::Script(_) | StatementKind::Broken(_) => false,
            _ => self.bodies().into_iter().all(Body::is_pure),
        }
    }

    pub(crate) fn loops(&self) -> bool {
        matches!(self, StatementKind::Each(_)) || self.bodies().into_iter().any(Body::loops)
    }

    /// Calls `visit` with every template of the step itself, not of the bodies inside.
    pub(crate) fn snippets<'s>(&'s self, visit: &mut dyn FnMut(&'s Snippet)) {
        match self {
            StatementKind::Eval(document) => document.snippets(visit),
            StatementKind::If(step) => visit(&step.condition),
            StatementKind::Match(step) => visit(&step.value),
            StatementKind::Each(step) => step.over.snippets(visit),
            StatementKind::Call(step) => {
                step.params.iter().for_each(|param| param.value.snippets(visit));
                step.hint.iter().for_each(visit);
            }
            StatementKind::Script(_) | StatementKind::Broken(_) => {}
        }
    }
}
