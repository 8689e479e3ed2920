//! `call`: another tool, by the runtime's one path.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use toolwright_core::{CallTimeout, ErrorKind, InvokeOptions, ToolError, ToolOutput, Toolset};
use toolwright_expr::{Scope as _, Value};

use crate::blocks;
use crate::diag::FileSpan;
use crate::error::{self, Catch};
use crate::exec::{CallerVariables, Flow, FlowResult, Frame, Locals};
use crate::hint;
use crate::json;
use crate::template::{Snippet, TemplateTree};

/// A tool a flow can call, found when the file was loaded.
#[derive(Clone)]
pub(crate) struct Callee {
    pub(crate) name: Arc<str>,
    /// The tool alone in a set, so that it is found whatever the run's own tools are called.
    pub(crate) tools: Toolset,
    /// The same, as a flow calls it.
    pub(crate) called: Toolset,
    /// Variables it takes from its caller, when the caller has them.
    pub(crate) takes: Arc<[Arc<str>]>,
    /// Where it was defined.
    pub(crate) place: FileSpan,
    /// A tool of an MCP server: a flow sees its result as a list of content blocks, as llm-workers has it.
    pub(crate) gives_blocks: bool,
    /// Its statements have problems: it is there to check the calls of it, and nobody can call it.
    pub(crate) broken: bool,
}

impl Callee {
    /// What a flow sees of the tool's output. `keep` gets what else there may be in it.
    pub(crate) fn value(&self, mut output: ToolOutput, keep: impl FnOnce(&Value, &mut ToolOutput)) -> Value {
        if self.gives_blocks {
            return blocks::list_of(&output);
        }
        let value = blocks::value_of(&output);
        keep(&value, &mut output);
        value
    }
}

/// One of `params`.
pub(crate) struct Param {
    pub(crate) name: Arc<str>,
    /// Where the name stands.
    pub(crate) named: FileSpan,
    pub(crate) value: TemplateTree,
    /// Where the value stands.
    pub(crate) place: FileSpan,
}

impl Param {
    /// Where its code stands, when it is all code.
    fn at(&self) -> Option<String> {
        match &self.value {
            TemplateTree::Template(snippet) => Some(snippet.origin.at(&snippet.source, None)),
            _ => None,
        }
    }
}

/// `call`, `params`, `catch`, `timeout`, `ui_hint`.
pub(crate) struct CallStep {
    pub(crate) callee: Callee,
    pub(crate) params: Vec<Param>,
    pub(crate) catch: Option<Catch>,
    pub(crate) hint: Option<Snippet>,
    pub(crate) timeout: CallTimeout,
    pub(crate) place: FileSpan,
    /// The statement has no problem of its own, so that what it does not give is not given.
    pub(crate) whole: bool,
}

impl CallStep {
    /// Makes the call. `located` is where the statement stands.
    pub(crate) async fn run(
        &self,
        flow: &Flow<'_>,
        frame: &Frame<'_>,
        locals: &Locals,
        located: &Arc<str>,
    ) -> FlowResult {
        let (arguments, options) = self.prepare(flow, frame, locals, located)?;
        let callee = &self.callee;
        match flow.context.call_in(&callee.called, &callee.name, Json::Object(arguments), options).await {
            Ok(output) => Ok(callee.value(output, |value, output| {
                flow.beside.keep(value, output, flow.statements_left());
            })),
            Err(error) => self.caught(flow, error, located),
        }
    }

    /// Arguments and hint. Errors here are the flow's own, and no `catch` takes them.
    fn prepare(
        &self,
        flow: &Flow<'_>,
        frame: &Frame<'_>,
        locals: &Locals,
        located: &str,
    ) -> Result<(Map<String, Json>, InvokeOptions), ToolError> {
        let view = flow.view(frame, locals);
        let mut arguments = Map::new();
        for param in &self.params {
            let value = param.value.evaluate(&view, &flow.limits)?;
            let value = json::from_value(&value, &flow.limits).map_err(|error| {
                let place = param.at().unwrap_or_else(|| located.to_owned());
                error::kept_out(error, &param.name, &self.callee.name, Some(&place))
            })?;
            arguments.insert(param.name.to_string(), value);
        }
        let hint = match &self.hint {
            Some(snippet) => hint::of_call(&snippet.evaluate(&view, &flow.limits)?),
            None => None,
        };
        let caller_data = lend(&self.callee, flow, frame, locals);
        Ok((arguments, InvokeOptions { hint, timeout: self.timeout, caller_data }))
    }

    fn caught(&self, flow: &Flow<'_>, error: ToolError, located: &Arc<str>) -> FlowResult {
        let takes = self.catch.as_ref().is_some_and(|catch| catch.takes(&error));
        if !takes || flow.context.is_cancelled() {
            return Err(self.placed(error, located));
        }
        let kind = Value::str(error.kind().as_str());
        Ok(Value::dict([("error", kind), ("message", Value::str(error.message()))]))
    }
}

impl CallStep {
    /// The error with the place of this statement. Arguments that the callee refused are its own mistake:
    /// then it is where they stand.
    fn placed(&self, error: ToolError, located: &Arc<str>) -> ToolError {
        if error.kind() != ErrorKind::Parsing || std::error::Error::source(&error).is_some() {
            return error::called(error, located.to_string());
        }
        let named = |name: &str| error.message().contains(&format!("`{name}`"));
        let place = self.params.iter().filter(|param| named(&param.name)).find_map(Param::at);
        error::called(error, place.unwrap_or_else(|| located.to_string()))
    }
}

/// Variables on their way to a callee.
pub(crate) type Loan = Option<Arc<dyn std::any::Any + Send + Sync>>;

/// The caller's variables that the callee asks for. What every flow of the file sees is not lent.
pub(crate) fn lend(callee: &Callee, flow: &Flow<'_>, frame: &Frame<'_>, locals: &Locals) -> Loan {
    if callee.takes.is_empty() {
        return None;
    }
    let nothing = crate::exec::Globals::default();
    let view = crate::exec::VariableView { locals, frame, lent: flow.lent, globals: &nothing };
    let lent: Vec<_> =
        callee.takes.iter().filter_map(|name| view.get(name).map(|value| (name.clone(), value))).collect();
    if lent.is_empty() { None } else { Some(Arc::new(CallerVariables(lent))) }
}
