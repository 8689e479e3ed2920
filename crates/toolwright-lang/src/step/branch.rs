//! `if` and `match`: one way out of several.

use regex::Regex;
use toolwright_core::{BoxFuture, ToolError};
use toolwright_expr::Value;

use super::Body;
use crate::exec::{Flow, Frame, Locals, Outcome};
use crate::template::{Snippet, truth};

/// `if`, `then`, `else`.
pub(crate) struct If {
    pub(crate) condition: Snippet,
    pub(crate) then: Body,
    pub(crate) otherwise: Option<Body>,
}

impl If {
    /// The body to run, if any.
    pub(crate) fn choose(
        &self,
        flow: &Flow<'_>,
        frame: &Frame<'_>,
        locals: &Locals,
    ) -> Result<Option<&Body>, ToolError> {
        let condition = self.condition.evaluate(&flow.view(frame, locals), &flow.limits)?;
        Ok(if truth(&condition) { Some(&self.then) } else { self.otherwise.as_ref() })
    }
}

/// `match`, `matchers`, `default`.
pub(crate) struct Match {
    pub(crate) value: Snippet,
    pub(crate) trim: bool,
    pub(crate) arms: Vec<Arm>,
    pub(crate) default: Body,
}

/// One way of a `match`.
pub(crate) struct Arm {
    pub(crate) test: Test,
    pub(crate) then: Body,
}

/// When an arm is taken.
pub(crate) enum Test {
    Equals(Box<str>),
    /// The whole text must match; the pattern is anchored.
    Pattern(Regex),
}

impl Match {
    /// The body of the arm that fits.
    fn choose(
        &self,
        flow: &Flow<'_>,
        frame: &Frame<'_>,
        locals: &Locals,
    ) -> Result<Option<&Body>, ToolError> {
        let value = self.value.evaluate(&flow.view(frame, locals), &flow.limits)?;
        let whole = match &value {
            Value::Str(text) => text.to_string(),
            other => other.to_string(),
        };
        let text = if self.trim { whole.trim() } else { &whole };
        let fits = |arm: &&Arm| match &arm.test {
            Test::Equals(wanted) => **wanted == *text,
            Test::Pattern(pattern) => pattern.is_match(text),
        };
        Ok(self.arms.iter().find(fits).map(|arm| &arm.then))
    }

    pub(crate) fn run<'a>(
        &'a self,
        flow: &'a Flow<'_>,
        frame: &'a mut Frame<'_>,
        locals: &'a Locals,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if let Some(body) = self.choose(flow, frame, locals)? {
                let value = flow.body(body, frame, locals).await?;
                if !matches!(value, Value::None) {
                    return Ok(value);
                }
            }
            flow.body(&self.default, frame, locals).await
        })
    }

    pub(crate) fn run_pure(&self, flow: &Flow<'_>, frame: &mut Frame<'_>, locals: &Locals) -> Outcome {
        if let Some(body) = self.choose(flow, frame, locals)? {
            let value = flow.pure_body(body, frame, locals)?;
            if !matches!(value, Value::None) {
                return Ok(value);
            }
        }
        flow.pure_body(&self.default, frame, locals)
    }
}
