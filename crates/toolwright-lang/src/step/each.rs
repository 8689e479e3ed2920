//! `for_each`: the body once for each element, one after the other or several at a time.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use toolwright_core::{BoxFuture, ToolError};
use toolwright_expr::{Dict, Value};

use super::Body;
use crate::error;
use crate::exec::{Flow, FlowResult, Frame, Locals};
use crate::template::{self, TemplateTree};

/// The most elements that are worked on at once.
const MAX_PARALLEL: usize = 64;

/// `for_each`, `do`, `parallelism`.
pub(crate) struct Each {
    pub(crate) over: TemplateTree,
    pub(crate) body: Body,
    pub(crate) parallelism: usize,
    pub(crate) located: Arc<str>,
}

/// The result of one element, and what it stored.
type Element = (Value, Vec<(Arc<str>, Value)>);

/// What the loop goes over.
enum Over {
    Items(Arc<Vec<Value>>),
    Entries(Dict),
    /// A text, a number, nothing: the body runs once.
    Single(Value),
}

impl Each {
    fn over(&self, flow: &Flow<'_>, frame: &Frame<'_>, locals: &Locals) -> Result<Over, ToolError> {
        let value = self.over.evaluate(&flow.view(frame, locals), &flow.limits)?;
        if let Value::Dict(dict) = &value {
            return Ok(Over::Entries(dict.copy()));
        }
        match template::elements(&value, &flow.limits) {
            Ok(Some(items)) => Ok(Over::Items(items)),
            Ok(None) => Ok(Over::Single(value)),
            Err(error) => Err(error::evaluation("for_each", error, self.located.to_string())),
        }
    }

    /// Runs a body that calls nothing.
    pub(crate) fn run_pure(&self, flow: &Flow<'_>, frame: &mut Frame<'_>, locals: &Locals) -> FlowResult {
        let mut inner = locals.clone();
        match self.over(flow, frame, locals)? {
            Over::Single(value) => {
                inner.last = Some(value);
                flow.pure_body(&self.body, frame, &inner)
            }
            Over::Items(items) => {
                let mut results = Vec::with_capacity(items.len().min(1 << 16));
                for item in items.iter() {
                    inner.last = Some(item.clone());
                    let value = flow.pure_body(&self.body, frame, &inner)?;
                    flow.keep(&value)?;
                    results.push(value);
                }
                Ok(Value::list(results))
            }
            Over::Entries(dict) => {
                let mut results = Vec::with_capacity(dict.len().min(1 << 16));
                for (key, item) in dict.entries() {
                    inner.last = Some(item);
                    inner.key = Some(key);
                    let value = flow.pure_body(&self.body, frame, &inner)?;
                    flow.keep(&value)?;
                    results.push(value);
                }
                Ok(dict.with_values(results).into())
            }
        }
    }

    pub(crate) fn run<'a>(
        &'a self,
        flow: &'a Flow<'_>,
        frame: &'a mut Frame<'_>,
        locals: &'a Locals,
    ) -> BoxFuture<'a, FlowResult> {
        Box::pin(async move {
            match self.over(flow, frame, locals)? {
                Over::Single(value) => {
                    let inner = Locals { last: Some(value), key: locals.key.clone() };
                    flow.body(&self.body, frame, &inner).await
                }
                Over::Items(items) => {
                    let inner =
                        items.iter().map(|item| Locals { last: Some(item.clone()), key: locals.key.clone() });
                    Ok(Value::list(self.all(flow, frame, inner).await?))
                }
                Over::Entries(dict) => {
                    let entries = dict.entries().into_iter();
                    let inner = entries.map(|(key, item)| Locals { last: Some(item), key: Some(key) });
                    let results = self.all(flow, frame, inner).await?;
                    Ok(dict.with_values(results).into())
                }
            }
        })
    }

    async fn all(
        &self,
        flow: &Flow<'_>,
        frame: &mut Frame<'_>,
        elements: impl ExactSizeIterator<Item = Locals> + Send,
    ) -> Result<Vec<Value>, ToolError> {
        let pure = self.body.is_pure();
        if !pure && self.parallelism > 1 && elements.len() > 1 {
            return self.at_once(flow, frame, elements).await;
        }
        let mut results = Vec::with_capacity(elements.len().min(1 << 16));
        let mut seen = flow.statements_left();
        for inner in elements {
            let value = if pure {
                if flow.had_its_turn(&mut seen) {
                    tokio::task::yield_now().await;
                }
                flow.pure_body(&self.body, frame, &inner)?
            } else {
                flow.body(&self.body, frame, &inner).await?
            };
            flow.keep(&value)?;
            results.push(value);
        }
        Ok(results)
    }

    /// Several elements at a time. Each stores into variables of its own; they come together in order at the
    /// end. The first error wins, and what has not started never does.
    async fn at_once(
        &self,
        flow: &Flow<'_>,
        frame: &mut Frame<'_>,
        mut elements: impl ExactSizeIterator<Item = Locals> + Send,
    ) -> Result<Vec<Value>, ToolError> {
        let outer: &Frame<'_> = frame;
        let width = self.parallelism.min(MAX_PARALLEL);
        let count = elements.len();
        let mut finished: Vec<Option<Element>> = (0..count).map(|_| None).collect();
        let mut running: Vec<(usize, BoxFuture<'_, Result<Element, ToolError>>)> = Vec::with_capacity(width);
        let mut next = 0;
        poll_fn(|cx| {
            loop {
                while running.len() < width
                    && let Some(inner) = elements.next()
                {
                    let work = async move {
                        let mut own = Frame { variables: Vec::new(), outer: Some(outer) };
                        let value = flow.body(&self.body, &mut own, &inner).await?;
                        flow.keep(&value)?;
                        Ok((value, own.variables))
                    };
                    running.push((next, Box::pin(work)));
                    next += 1;
                }
                if running.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                let before = running.len();
                let mut failed = None;
                running.retain_mut(|(index, work)| match work.as_mut().poll(cx) {
                    Poll::Pending => true,
                    Poll::Ready(Ok(done)) => {
                        if let Some(slot) = finished.get_mut(*index) {
                            *slot = Some(done);
                        }
                        false
                    }
                    Poll::Ready(Err(error)) => {
                        failed.get_or_insert(error);
                        false
                    }
                });
                if let Some(error) = failed {
                    return Poll::Ready(Err(error));
                }
                if running.len() == before {
                    return Poll::Pending;
                }
            }
        })
        .await?;
        drop(running);
        let mut results = Vec::with_capacity(count);
        for (value, variables) in finished.into_iter().flatten() {
            variables.into_iter().for_each(|(name, value)| frame.set(&name, value));
            results.push(value);
        }
        Ok(results)
    }
}
