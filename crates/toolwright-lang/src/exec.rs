//! Running a flow: variables, scopes, budgets, and the statements one after the other.
//!
//! Statements that call nothing run on the spot, without futures and without events; the others are awaited.
//! A flow stops between statements, and inside expressions, when its call is cancelled or its time is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolwright_core::{BoxFuture, ErrorKind, ToolContext, ToolError};
use toolwright_expr::{EvalLimits, Scope, Value, Variables};

use crate::blocks::Beside;
use crate::error;
use crate::step::{Body, Statement, StatementKind};

/// What one run of a flow may spend beside the limits of each expression.
#[derive(Debug, Clone)]
pub struct FlowLimits {
    /// Statements, those of all loops counted.
    pub statements: u64,
    /// Bytes of results that loops and variables keep, roughly counted.
    pub bytes: u64,
    /// What each expression may spend.
    pub expression: EvalLimits,
}

impl Default for FlowLimits {
    fn default() -> Self {
        FlowLimits { statements: 1_000_000, bytes: 256 << 20, expression: EvalLimits::default() }
    }
}

/// How many statements pass between two looks at the cancel flag.
const CANCEL_CHECK_INTERVAL: u64 = 16;

/// How many statements may run before a loop lets others have the thread.
const TURN: u64 = 4096;

/// Variables every flow of a file sees: `env` and the shared data.
pub(crate) type Globals = Variables;

/// Variables a caller lends to the flow it calls.
pub(crate) struct CallerVariables(pub(crate) Vec<(Arc<str>, Value)>);

/// One run of a flow: what all its statements share.
pub(crate) struct Flow<'f> {
    pub(crate) context: &'f ToolContext,
    pub(crate) globals: &'f Globals,
    pub(crate) lent: Option<&'f CallerVariables>,
    pub(crate) limits: EvalLimits,
    /// Pictures and files beside the values of called tools.
    pub(crate) beside: Beside,
    statements: AtomicU64,
    bytes: AtomicU64,
}

/// The variables of one tool call: inputs and what `store_as` kept. A parallel loop gives each element one of
/// its own.
#[derive(Default)]
pub(crate) struct Frame<'o> {
    pub(crate) variables: Vec<(Arc<str>, Value)>,
    pub(crate) outer: Option<&'o Frame<'o>>,
}

impl Frame<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        let own = self.variables.iter().find(|(known, _)| **known == *name).map(|(_, value)| value);
        own.or_else(|| self.outer.and_then(|outer| outer.get(name)))
    }

    pub(crate) fn set(&mut self, name: &Arc<str>, value: Value) {
        match self.variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.variables.push((name.clone(), value)),
        }
    }

    /// Gives names values for a while; what they hide comes back with `restore`.
    pub(crate) fn lend(&mut self, names: &[Arc<str>], values: Vec<Value>) -> Vec<Option<Value>> {
        let hidden = names.iter().map(|name| {
            self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        });
        let hidden = hidden.collect();
        names.iter().zip(values).for_each(|(name, value)| self.set(name, value));
        hidden
    }

    pub(crate) fn restore(&mut self, names: &[Arc<str>], hidden: Vec<Option<Value>>) {
        for (name, value) in names.iter().zip(hidden) {
            match value {
                Some(value) => self.set(name, value),
                None => self.variables.retain(|(known, _)| known != name),
            }
        }
    }
}

/// The names a statement cannot change: `_`, and `key` inside a loop over a dict.
#[derive(Clone, Default)]
pub(crate) struct Locals {
    pub(crate) last: Option<Value>,
    pub(crate) key: Option<Value>,
}

/// All variables at one statement, innermost first.
pub(crate) struct VariableView<'v> {
    pub(crate) locals: &'v Locals,
    pub(crate) frame: &'v Frame<'v>,
    pub(crate) lent: Option<&'v CallerVariables>,
    pub(crate) globals: &'v Globals,
}

impl VariableView<'_> {
    /// What the flow itself knows, without the globals.
    #[inline]
    fn own(&self, name: &str) -> Option<Value> {
        if name == "_"
            && let Some(last) = &self.locals.last
        {
            return Some(last.clone());
        }
        if name == "key"
            && let Some(key) = &self.locals.key
        {
            return Some(key.clone());
        }
        if let Some(value) = self.frame.get(name) {
            return Some(value.clone());
        }
        if let Some(lent) = self.lent
            && let Some((_, value)) = lent.0.iter().find(|(known, _)| **known == *name)
        {
            return Some(value.clone());
        }
        None
    }
}

impl Scope for VariableView<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        self.own(name).or_else(|| self.globals.get(name))
    }

    fn get_hashed(&self, name: &str, hash: u64) -> Option<Value> {
        self.own(name).or_else(|| self.globals.get_hashed(name, hash))
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        if self.locals.last.is_some() {
            visit("_");
        }
        if self.locals.key.is_some() {
            visit("key");
        }
        let mut frame = Some(self.frame);
        while let Some(now) = frame {
            now.variables.iter().for_each(|(name, _)| visit(name));
            frame = now.outer;
        }
        if let Some(lent) = self.lent {
            lent.0.iter().for_each(|(name, _)| visit(name));
        }
        self.globals.names(visit);
    }
}

pub(crate) type FlowResult = Result<Value, ToolError>;

impl<'f> Flow<'f> {
    pub(crate) fn new(
        context: &'f ToolContext,
        globals: &'f Globals,
        lent: Option<&'f CallerVariables>,
        limits: &FlowLimits,
    ) -> Self {
        let deadline = context.deadline().map(tokio::time::Instant::into_std);
        Flow {
            context,
            globals,
            lent,
            limits: EvalLimits { deadline, ..limits.expression.clone() },
            beside: Beside::default(),
            statements: AtomicU64::new(limits.statements),
            bytes: AtomicU64::new(limits.bytes),
        }
    }

    pub(crate) fn view<'v>(&'v self, frame: &'v Frame<'v>, locals: &'v Locals) -> VariableView<'v> {
        VariableView { locals, frame, lent: self.lent, globals: self.globals }
    }

    /// Runs a body, waiting for the tools it calls.
    pub(crate) fn body<'a>(
        &'a self,
        body: &'a Body,
        frame: &'a mut Frame<'_>,
        locals: &'a Locals,
    ) -> BoxFuture<'a, FlowResult> {
        Box::pin(async move {
            match body {
                Body::One(statement) => self.statement(statement, frame, locals).await,
                Body::List(statements) => {
                    let mut locals = first(locals);
                    for statement in statements {
                        let value = self.statement(statement, frame, &locals).await?;
                        locals.last = Some(value);
                    }
                    Ok(locals.last.unwrap_or(Value::None))
                }
            }
        })
    }

    async fn statement(&self, statement: &Statement, frame: &mut Frame<'_>, locals: &Locals) -> FlowResult {
        if statement.pure && !statement.loops {
            return self.pure_statement(statement, frame, locals);
        }
        self.tick()?;
        let value = match &statement.step {
            StatementKind::Eval(_) => return self.pure_statement(statement, frame, locals),
            StatementKind::If(step) => match step.choose(self, frame, locals)? {
                Some(body) => self.body(body, frame, locals).await?,
                None => Value::None,
            },
            StatementKind::Match(step) => step.run(self, frame, locals).await?,
            StatementKind::Each(step) => step.run(self, frame, locals).await?,
            StatementKind::Call(step) => step.run(self, frame, locals, &statement.located).await?,
            StatementKind::Script(step) => step.run(self, frame, locals).await?,
            StatementKind::Broken(_) => return Err(ToolError::fatal("a flow with problems was run")),
        };
        self.store(statement, frame, locals, &value)?;
        Ok(value)
    }

    /// Runs a body that calls nothing.
    pub(crate) fn pure_body(&self, body: &Body, frame: &mut Frame<'_>, locals: &Locals) -> FlowResult {
        match body {
            Body::One(statement) => self.pure_statement(statement, frame, locals),
            Body::List(statements) => {
                let mut locals = first(locals);
                for statement in statements {
                    let value = self.pure_statement(statement, frame, &locals)?;
                    locals.last = Some(value);
                }
                Ok(locals.last.unwrap_or(Value::None))
            }
        }
    }

    fn pure_statement(&self, statement: &Statement, frame: &mut Frame<'_>, locals: &Locals) -> FlowResult {
        self.tick()?;
        let value = match &statement.step {
            StatementKind::Eval(document) => document.evaluate(&self.view(frame, locals), &self.limits)?,
            StatementKind::If(step) => match step.choose(self, frame, locals)? {
                Some(body) => self.pure_body(body, frame, locals)?,
                None => Value::None,
            },
            StatementKind::Match(step) => step.run_pure(self, frame, locals)?,
            StatementKind::Each(step) => step.run_pure(self, frame, locals)?,
            StatementKind::Call(_) | StatementKind::Script(_) | StatementKind::Broken(_) => {
                return Err(ToolError::fatal(
                    "a flow took a statement that calls tools for one that does not",
                ));
            }
        };
        self.store(statement, frame, locals, &value)?;
        Ok(value)
    }

    #[inline]
    fn store(
        &self,
        statement: &Statement,
        frame: &mut Frame<'_>,
        locals: &Locals,
        value: &Value,
    ) -> Result<(), ToolError> {
        let Some(name) = &statement.store_as else { return Ok(()) };
        let fixed = &**name == "_" && locals.last.is_some() || &**name == "key" && locals.key.is_some();
        if fixed {
            let message = format!("`{name}` cannot be stored here: it already has a meaning");
            return Err(error::refused(message, statement.located.to_string()));
        }
        self.keep(value)?;
        frame.set(name, value.clone());
        Ok(())
    }

    /// Pays for one statement, and looks now and then whether the call is to stop.
    #[inline]
    pub(crate) fn tick(&self) -> Result<(), ToolError> {
        // Parallel elements may count over one another; the limit needs no exact number.
        let left = self.statements.load(Ordering::Relaxed);
        if left == 0 {
            return Err(ToolError::of(ErrorKind::Limit, "the flow runs more statements than it may"));
        }
        self.statements.store(left - 1, Ordering::Relaxed);
        if left.is_multiple_of(CANCEL_CHECK_INTERVAL) {
            self.context.check_cancelled()?;
            if self.limits.deadline.is_some_and(|deadline| std::time::Instant::now() >= deadline) {
                return Err(ToolError::of(ErrorKind::Timeout, "the flow ran out of time"));
            }
        }
        Ok(())
    }

    /// Pays for a value that is kept.
    pub(crate) fn keep(&self, value: &Value) -> Result<(), ToolError> {
        let weight = weight(value);
        let left = self.bytes.load(Ordering::Relaxed);
        match left.checked_sub(weight) {
            Some(left) => self.bytes.store(left, Ordering::Relaxed),
            None => return Err(ToolError::of(ErrorKind::Limit, "the flow keeps more data than it may")),
        }
        Ok(())
    }

    /// Whether this flow has had the thread for long and should let others have it. `seen` is the count at
    /// the last time.
    #[inline]
    pub(crate) fn had_its_turn(&self, seen: &mut u64) -> bool {
        let left = self.statements.load(Ordering::Relaxed);
        let had = seen.saturating_sub(left) > TURN;
        if had {
            *seen = left;
        }
        had
    }

    pub(crate) fn statements_left(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }
}

/// The locals of a list's first statement: `_` is what it was outside, or nothing.
fn first(locals: &Locals) -> Locals {
    Locals { last: Some(locals.last.clone().unwrap_or(Value::None)), key: locals.key.clone() }
}

/// About how many bytes a value holds on to. Looks at a few dozen parts at most, so that it costs little.
fn weight(value: &Value) -> u64 {
    fn walk(value: &Value, looks: &mut u32) -> u64 {
        let slot = 32;
        if *looks == 0 {
            return slot;
        }
        *looks -= 1;
        match value {
            Value::Str(text) => slot + text.len() as u64,
            Value::Bytes(bytes) => slot + bytes.len() as u64,
            Value::List(list) => items(&list.snapshot(), looks),
            Value::Tuple(all) => items(all, looks),
            Value::Dict(dict) if dict.len() <= 16 => {
                slot + dict
                    .entries()
                    .iter()
                    .map(|(key, value)| walk(key, looks) + walk(value, looks))
                    .sum::<u64>()
            }
            Value::Dict(dict) => slot + dict.len() as u64 * 96,
            Value::Set(set) => slot + set.len() as u64 * 64,
            _ => slot,
        }
    }
    fn items(all: &[Value], looks: &mut u32) -> u64 {
        // What is not looked at is taken to be like what is.
        let seen = all.len().min(16);
        let sum: u64 = all.iter().take(seen).map(|item| walk(item, looks)).sum();
        if seen == 0 { 32 } else { 32 + (sum / seen as u64).saturating_mul(all.len() as u64) }
    }
    match value {
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 16,
        other => walk(other, &mut 64),
    }
}
