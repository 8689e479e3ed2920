//! The statements of a flow, compiled. One file for each kind; how they follow one another is in `exec`.

pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod each;
pub(crate) mod script;

use std::sync::Arc;

use crate::diag::Place;
use crate::template::{Document, Snippet};

/// A statement, or a list of them in which each sees the result of the one before as `_`.
pub(crate) enum Body {
    One(Box<Statement>),
    List(Vec<Statement>),
}

/// One statement.
pub(crate) struct Statement {
    pub(crate) step: Step,
    pub(crate) store_as: Option<Arc<str>>,
    /// Calls nothing, neither itself nor inside.
    pub(crate) pure: bool,
    /// Has a loop in it, so that it may take long.
    pub(crate) loops: bool,
    pub(crate) place: Place,
    /// The place as a person reads it.
    pub(crate) located: Arc<str>,
}

/// What a statement does.
pub(crate) enum Step {
    Eval(Document),
    If(Box<branch::If>),
    Match(Box<branch::Match>),
    Each(Box<each::Each>),
    Call(Box<call::Call>),
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

impl Step {
    /// The bodies inside.
    pub(crate) fn bodies(&self) -> Vec<&Body> {
        match self {
            Step::Eval(_) | Step::Call(_) | Step::Script(_) => Vec::new(),
            Step::If(step) => std::iter::once(&step.then).chain(&step.otherwise).collect(),
            Step::Match(step) => step.arms.iter().map(|arm| &arm.then).chain([&step.default]).collect(),
            Step::Each(step) => vec![&step.body],
            Step::Broken(bodies) => bodies.iter().collect(),
        }
    }

    pub(crate) fn is_pure(&self) -> bool {
        match self {
            Step::Call(_) | Step::Script(_) | Step::Broken(_) => false,
            _ => self.bodies().into_iter().all(Body::is_pure),
        }
    }

    pub(crate) fn loops(&self) -> bool {
        matches!(self, Step::Each(_)) || self.bodies().into_iter().any(Body::loops)
    }

    /// Calls `visit` with every template of the step itself, not of the bodies inside.
    pub(crate) fn snippets<'s>(&'s self, visit: &mut dyn FnMut(&'s Snippet)) {
        match self {
            Step::Eval(document) => document.snippets(visit),
            Step::If(step) => visit(&step.condition),
            Step::Match(step) => visit(&step.value),
            Step::Each(step) => step.over.snippets(visit),
            Step::Call(step) => {
                step.params.iter().for_each(|param| param.value.snippets(visit));
                step.hint.iter().for_each(visit);
            }
            Step::Script(_) | Step::Broken(_) => {}
        }
    }
}
