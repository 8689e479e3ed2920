//! Flows as tools, and imported tools with what a file says about them.

use std::sync::Arc;

use serde_json::Value as Json;
use toolwright_core::schema::Schema;
use toolwright_core::{
    Arguments, BoxFuture, CallNote, DynTool, Handoff, Prepared, RewriteResults, Tool, ToolContext, ToolError,
    ToolOutput, ToolPolicy, ToolSpec,
};

use crate::exec::{CallerVariables, Flow, FlowLimits, FlowResult, Frame, Globals, Locals};
use crate::hint::Hint;
use crate::input::{self, Input};
use crate::json;
use crate::step::Body;
use crate::{error, strict_arguments};

/// A tool made of statements.
pub(crate) struct FlowTool {
    pub(crate) spec: ToolSpec,
    pub(crate) policy: ToolPolicy,
    pub(crate) inputs: Arc<[Input]>,
    /// What its result must be.
    pub(crate) output: Option<Schema>,
    pub(crate) body: Arc<Body>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) limits: Arc<FlowLimits>,
    pub(crate) hint: Option<Hint>,
    /// Calls nothing and has no loop: it can run on the spot.
    pub(crate) quick: bool,
}

impl FlowTool {
    fn frame(&self, mut arguments: Json) -> Frame<'static> {
        let mut variables = Vec::with_capacity(self.inputs.len() + 2);
        for input in self.inputs.iter() {
            let given = arguments.get_mut(&*input.name).map(Json::take);
            let value = given.or_else(|| input.default.clone()).map(|value| input.kind.value(value));
            variables.extend(value.map(|value| (input.name.clone(), value)));
        }
        Frame { variables, outer: None }
    }

    fn run_quick(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        let mut frame = self.frame(arguments);
        let lent = context.caller_data::<CallerVariables>();
        let flow = Flow::new(context, &self.globals, lent.as_deref(), &self.limits);
        let outcome = flow.pure_body(&self.body, &mut frame, &first_locals(lent.as_deref()));
        // What went in is freed before what comes out is made: both at once cost a third more time.
        drop(frame);
        self.left(&flow, outcome)
    }

    async fn run(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        let mut frame = self.frame(arguments);
        let lent = context.caller_data::<CallerVariables>();
        let flow = Flow::new(context, &self.globals, lent.as_deref(), &self.limits);
        let outcome = flow.body(&self.body, &mut frame, &first_locals(lent.as_deref())).await;
        drop(frame);
        self.left(&flow, outcome)
    }
}

/// A flow called from a list sees the caller's `_` until it has one of its own.
fn first_locals(lent: Option<&CallerVariables>) -> Locals {
    let last = lent.and_then(|lent| lent.0.iter().find(|(name, _)| &**name == "_"));
    Locals { last: last.map(|(_, value)| value.clone()), key: None }
}

impl Tool for FlowTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError> {
        let mut prepared = arguments.read(|arguments| input::read(&self.inputs, arguments))?.check()?;
        if let Some(hint) = &self.hint {
            hint.put_into(&mut prepared, &self.spec.name);
        }
        Ok(prepared)
    }

    async fn call(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        self.call_boxed(context, arguments).await
    }

    /// A box of its own size for each: that of a quick flow is small.
    fn call_boxed<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Json,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        if self.quick {
            return Box::pin(std::future::ready(self.run_quick(context, arguments)));
        }
        Box::pin(self.run(context, arguments))
    }
}

/// The name under which a failing flow reports its location as an event; models do not receive it.
pub const FAILED_AT: &str = "failed_at";

impl FlowTool {
    /// What the flow gives to its caller.
    fn left(&self, flow: &Flow<'_>, outcome: FlowResult) -> Result<ToolOutput, ToolError> {
        match outcome {
            Ok(value) => match json::from_value(&value, &flow.limits) {
                Ok(json) => {
                    self.promised(&json)?;
                    Ok(flow.beside.output(&value, json, flow.statements_left()))
                }
                Err(error) => Err(self.failed(flow, error::stays(error, self.body.end()))),
            },
            Err(error) => Err(self.failed(flow, error)),
        }
    }

    fn failed(&self, flow: &Flow<'_>, error: ToolError) -> ToolError {
        failed(flow.context, error::leaving(error, &self.spec.name))
    }
}

impl FlowTool {
    /// An error when a result is not what the file says it is.
    fn promised(&self, json: &Json) -> Result<(), ToolError> {
        let Some(schema) = &self.output else { return Ok(()) };
        let problems = schema.problems(json);
        if problems.is_empty() {
            return Ok(());
        }
        let problems = toolwright_core::text::clip(&problems.join("; "), 1000);
        Err(ToolError::new(format!(
            "the result of `{}` is not what its `output` says: {problems}",
            self.spec.name
        )))
    }
}

/// Notes where a flow failed.
pub(crate) fn failed(context: &ToolContext, error: ToolError) -> ToolError {
    if let Some(raised) = error::raised(&error).filter(|raised| raised.place().is_some()) {
        let value = Json::String(raised.to_string());
        context.note(CallNote::Data { name: FAILED_AT.to_owned(), value });
    }
    error
}

/// A tool from elsewhere, with another name, description, hint or policy.
pub(crate) struct ImportedTool {
    tool: Arc<DynTool>,
    spec: ToolSpec,
    policy: ToolPolicy,
    hint: Option<Hint>,
    /// The parameters that take text and refuse a number.
    texts: Vec<String>,
}

impl ImportedTool {
    /// The tool as the file says; a hint of the file stands in place of the tool's own, but for `true`, which
    /// only asks for one.
    pub(crate) fn new(tool: Arc<DynTool>, spec: ToolSpec, policy: ToolPolicy, hint: Option<Hint>) -> Self {
        ImportedTool { tool, spec, policy, hint, texts: Vec::new() }
    }

    /// The tool, which takes no number for the text of these parameters.
    pub(crate) fn exact(tool: Arc<DynTool>, texts: Vec<String>) -> Self {
        let (spec, policy) = (tool.spec().clone(), tool.policy().clone());
        ImportedTool { tool, spec, policy, hint: None, texts }
    }
}

impl Tool for ImportedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError> {
        let mut prepared = self.tool.prepare(strict_arguments::read(&self.texts, arguments)?)?;
        match &self.hint {
            Some(Hint::Calling(_)) if prepared.hint().is_some() => {}
            Some(hint) => hint.put_into(&mut prepared, &self.spec.name),
            None => {}
        }
        Ok(prepared)
    }

    async fn call(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        self.tool.call(context, arguments).await
    }

    fn result_rewriter(&self) -> Option<&dyn RewriteResults> {
        self.tool.result_rewriter()
    }

    fn handoff(&self) -> Option<&dyn Handoff> {
        self.tool.handoff()
    }
}
