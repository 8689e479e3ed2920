//! `starlark`: a script, with the flow's variables to read and its tools as functions.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value as Json};
use toolwright_core::{InvokeOptions, ToolError};
use toolwright_expr::{EvalLimits, HostArgs, HostError, NamedFunction, Scope as _, Script, Value};

use super::call::{Callee, Loan, lend};
use crate::diag::FileSpan;
use crate::error;
use crate::exec::{Flow, FlowResult, Frame, Locals};
use crate::json;
use crate::yaml::Origin;

/// How much more a script may spend than an expression: it is many of them, with loops.
const MORE_STEPS: u64 = 10;
const MORE_BYTES: u64 = 2;

/// `starlark`.
pub(crate) struct ScriptStep {
    pub(crate) script: Arc<Script>,
    /// The tools the script names.
    pub(crate) tools: Vec<Callee>,
    pub(crate) source: Arc<str>,
    pub(crate) place: FileSpan,
    pub(crate) origin: Origin,
}

impl ScriptStep {
    /// Runs the script on a thread that may block, because its tools are awaited there. A cancelled flow, or
    /// one that nobody waits for any more, raises the flag that ends the script.
    pub(crate) async fn run(&self, flow: &Flow<'_>, frame: &Frame<'_>, locals: &Locals) -> FlowResult {
        let flag = Arc::new(AtomicBool::new(false));
        let _raise = Raise(flag.clone());
        let own = flow.limits.clone();
        let (steps, bytes) = (own.steps.saturating_mul(MORE_STEPS), own.bytes.saturating_mul(MORE_BYTES));
        let limits = EvalLimits { cancel: Some(flag.clone()), steps, bytes, ..own };
        let scope = self.scope(flow, frame, locals, &limits);
        let script = self.script.clone();
        let mut work = tokio::task::spawn_blocking(move || {
            let _working = Waits::of(true);
            script.evaluate(&scope, &limits)
        });
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = flow.context.cancel_token().cancelled() => {
                flag.store(true, Ordering::Relaxed);
                return Err(ToolError::of(toolwright_core::ErrorKind::Cancelled, "the call was cancelled"));
            }
        };
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(join) if join.is_panic() => Err(toolwright_core::panic_error(&*join.into_panic())),
            Err(_) => {
                Err(ToolError::of(toolwright_core::ErrorKind::Cancelled, "the runtime is shutting down"))
            }
        }
    }

    /// The variables and tools the script names; tools hide variables.
    fn scope(
        &self,
        flow: &Flow<'_>,
        frame: &Frame<'_>,
        locals: &Locals,
        limits: &EvalLimits,
    ) -> HashMap<String, Value> {
        let view = flow.view(frame, locals);
        let mut scope: HashMap<String, Value> = self
            .script
            .references()
            .filter_map(|name| view.get(name).map(|value| (name.to_owned(), value)))
            .collect();
        for callee in &self.tools {
            let lent = lend(callee, flow, frame, locals);
            // The flag is up once this script is over, and another may call what it leaves behind.
            let limits = EvalLimits { cancel: None, ..limits.clone() };
            scope.insert(callee.name.to_string(), function(flow, callee, lent, limits));
        }
        scope
    }

    fn failed(&self, error: toolwright_expr::Error) -> ToolError {
        let host = error.kind() == toolwright_expr::ErrorKind::Host;
        let place = self.origin.at(&self.source, error.span().map(|span| span.start));
        let (message, class) = (error.message().to_owned(), error.python_class().to_owned());
        if host {
            return match error.into_host_source().map(|source| source.downcast::<ToolError>()) {
                Some(Ok(own)) => error::called(*own, place),
                _ => error::called(error::raise(class, message), place),
            };
        }
        error::script(error, place)
    }
}

/// Raises the flag when the step is over, however it ended.
struct Raise(Arc<AtomicBool>);

impl Drop for Raise {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    /// Whether this thread runs a script, and may wait for a tool. A function that a script left behind may
    /// be called anywhere: by an expression of the flow, or by a flow that this thread waits for already. To
    /// wait there would be a panic.
    static CAN_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Says whether this thread may wait, for as long as it lives.
struct Waits {
    before: bool,
}

impl Waits {
    fn of(can: bool) -> Waits {
        Waits { before: CAN_WAIT.replace(can) }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        CAN_WAIT.set(self.before);
    }
}

/// An error as a script sees it.
fn raised(error: ToolError) -> HostError {
    let (class, message) = (error::class_of(&error).to_owned(), error.message().to_owned());
    HostError::new(class, message).with_source(error)
}

/// A tool as a function of named arguments. `lent` is what it may see of the flow's variables, as they were
/// when the script began.
fn function(flow: &Flow<'_>, callee: &Callee, lent: Loan, limits: EvalLimits) -> Value {
    let (context, callee, beside) = (flow.context.clone(), callee.clone(), flow.beside.keeper());
    Value::host(NamedFunction::new(callee.name.to_string(), move |arguments: HostArgs| {
        if !arguments.positional.is_empty() {
            let message = format!("{} takes its arguments by name", callee.name);
            return Err(HostError::new("TypeError", message));
        }
        if !CAN_WAIT.get() {
            let message = format!("{} can be called in scripts only", callee.name);
            return Err(HostError::new("RuntimeError", message));
        }
        let named = arguments.named.iter();
        let arguments = named.map(|(name, value)| match json::from_value(value, &limits) {
            Ok(value) => Ok((name.to_string(), value)),
            Err(error) => Err(raised(error::kept_out(error, name, &callee.name, None))),
        });
        let arguments = arguments.collect::<Result<Map<String, Json>, HostError>>()?;
        let options = InvokeOptions { caller_data: lent.clone(), ..InvokeOptions::default() };
        let call = context.call_in(&callee.called, &callee.name, Json::Object(arguments), options);
        let waiting = Waits::of(false);
        let outcome = tokio::runtime::Handle::current().block_on(call);
        drop(waiting);
        let output = outcome.map_err(raised)?;
        Ok(callee.value(output, |value, output| beside.keep(value, output, None)))
    }))
}
