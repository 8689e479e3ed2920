//! `if` and `match`: one way out of several.

use std::sync::Arc;

use regex::Regex;
use toolwright_core::{BoxFuture, ToolError};
use toolwright_expr::Value;

use super::Body;
use crate::exec::{Flow, FlowResult, Frame, Locals};
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
pub(crate) struct MatchStep {
    pub(crate) value: Snippet,
    pub(crate) trim: bool,
    pub(crate) arms: Vec<Arm>,
    pub(crate) default: Body,
}

/// One way of a `match`.
pub(crate) struct Arm {
    pub(crate) test: ArmTest,
    pub(crate) then: Body,
}

/// When an arm is taken.
pub(crate) enum ArmTest {
    Equals(Box<str>),
    Pattern(FullPattern),
    /// There is a problem with it. A flow that has one is never run.
    Broken,
}

/// A pattern that the whole text must match.
pub(crate) struct FullPattern {
    /// Anchored at both ends.
    regex: Regex,
    /// What its body sees beside the other variables: all groups, and each by its number from 0.
    pub(crate) names: Box<[Arc<str>]>,
}

impl FullPattern {
    pub(crate) fn new(regex: Regex) -> Self {
        let groups = 0..regex.captures_len().saturating_sub(1);
        let each = groups.map(|group| Arc::from(format!("match{group}")));
        FullPattern { names: std::iter::once("_match_groups".into()).chain(each).collect(), regex }
    }

    /// The values of `names`, if the text matches. A group that took no part is None.
    fn groups(&self, text: &str) -> Option<Vec<Value>> {
        let found = self.regex.captures(text)?;
        let group =
            |part: Option<regex::Match<'_>>| part.map_or(Value::None, |part| Value::str(part.as_str()));
        let each: Vec<Value> = found.iter().skip(1).map(group).collect();
        Some(std::iter::once(Value::tuple(each.clone())).chain(each).collect())
    }
}

/// The arm that fits, and the groups of its pattern.
struct ChosenArm<'m> {
    body: &'m Body,
    names: &'m [Arc<str>],
    groups: Vec<Value>,
}

impl MatchStep {
    fn choose(
        &self,
        flow: &Flow<'_>,
        frame: &Frame<'_>,
        locals: &Locals,
    ) -> Result<Option<ChosenArm<'_>>, ToolError> {
        let value = self.value.evaluate(&flow.view(frame, locals), &flow.limits)?;
        let whole = match &value {
            Value::Str(text) => text.to_string(),
            other => other.to_string(),
        };
        let text = if self.trim { whole.trim() } else { &whole };
        Ok(self.arms.iter().find_map(|arm| {
            let (names, groups): (&[Arc<str>], _) = match &arm.test {
                ArmTest::Equals(wanted) => (&[], (**wanted == *text).then(Vec::new)?),
                ArmTest::Pattern(pattern) => (&pattern.names, pattern.groups(text)?),
                ArmTest::Broken => return None,
            };
            Some(ChosenArm { body: &arm.then, names, groups })
        }))
    }

    pub(crate) fn run<'a>(
        &'a self,
        flow: &'a Flow<'_>,
        frame: &'a mut Frame<'_>,
        locals: &'a Locals,
    ) -> BoxFuture<'a, FlowResult> {
        Box::pin(async move {
            if let Some(ChosenArm { body, names, groups }) = self.choose(flow, frame, locals)? {
                let hidden = frame.lend(names, groups);
                let value = flow.body(body, frame, locals).await?;
                frame.restore(names, hidden);
                if !matches!(value, Value::None) {
                    return Ok(value);
                }
            }
            flow.body(&self.default, frame, locals).await
        })
    }

    pub(crate) fn run_pure(&self, flow: &Flow<'_>, frame: &mut Frame<'_>, locals: &Locals) -> FlowResult {
        if let Some(ChosenArm { body, names, groups }) = self.choose(flow, frame, locals)? {
            let hidden = frame.lend(names, groups);
            let value = flow.pure_body(body, frame, locals)?;
            frame.restore(names, hidden);
            if !matches!(value, Value::None) {
                return Ok(value);
            }
        }
        flow.pure_body(&self.default, frame, locals)
    }
}
