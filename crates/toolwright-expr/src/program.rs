//! What a host works with: compiled programs and scripts, evaluated as often as needed.

use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use crate::ast::{Argument, AssignTarget, Body, Code, ExprForm, SlotKind, Stmt, StmtKind};
use crate::error::{Error, Span};
use crate::eval::Eval;
use crate::fuel::EvalLimits;
use crate::host::Scope;
use crate::lexer::Dialect;
use crate::parser::Parser;
use crate::resolve;
use crate::value::Value;

/// One compiled expression.
#[derive(Clone)]
pub struct Program {
    code: Arc<Code>,
}

impl Program {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When the text is not an expression of the language; the error points at the place.
    pub fn compile(source: &str) -> Result<Program, Error> {
        let expr = Parser::new(source, 0, Dialect::Expression)?.program()?;
        Ok(Program { code: Arc::new(resolve::expression(expr)?) })
    }

    /// Evaluates the expression with the variables of `scope`.
    ///
    /// # Errors
    /// When the program fails or reaches a limit; the error points at the place.
    pub fn evaluate(&self, scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, Error> {
        let mut eval = Eval::new(&self.code, scope, limits);
        let value = run(&mut eval, &self.code)?;
        check_output(&eval, &value)?;
        Ok(value)
    }

    /// Names the program takes from its scope, built-ins it uses included.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        references(&self.code)
    }
}

/// A compiled script: statements whose result is the variable `result`, else what `run()` returns.
#[derive(Clone)]
pub struct Script {
    code: Arc<Code>,
    calls: Arc<[ScriptCall]>,
}

/// A call by name in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCall {
    /// What is called.
    pub name: String,
    /// The names of the arguments.
    pub named: Vec<String>,
    /// Those of them that are constants.
    pub constants: Vec<(String, Json)>,
    /// Whether there are arguments without names, of which only running the script tells which they are.
    pub others: bool,
    /// Whether one of those stands by itself, so that it is there whatever happens.
    pub positional: bool,
    /// Where the name stands.
    pub span: Span,
}

impl ScriptCall {
    pub(crate) fn new(name: &str, arguments: &[Argument], span: Span) -> Self {
        let (mut named, mut constants) = (Vec::new(), Vec::new());
        for argument in arguments {
            let Argument::Keyword(name, value) = argument else { continue };
            named.push(name.to_string());
            if let ExprForm::Const(value) = &value.kind
                && let Ok(value) = value.to_json()
            {
                constants.push((name.to_string(), value));
            }
        }
        let others = named.len() < arguments.len();
        let positional = arguments.iter().any(|argument| matches!(argument, Argument::Positional(_)));
        ScriptCall { name: name.to_owned(), named, constants, others, positional, span }
    }
}

impl Script {
    /// Compiles a script.
    ///
    /// # Errors
    /// When the text is not a script of the language; the error points at the place.
    pub fn compile(source: &str) -> Result<Script, Error> {
        let statements = Parser::new(source, 0, Dialect::Script)?.script()?;
        let (code, calls) = resolve::script(statements)?;
        Ok(Script { code: Arc::new(code), calls: calls.into() })
    }

    /// Runs the script. It works on copies of the variables, in which sets and tuples are lists, and
    /// iterators in its result are lists: what they call may be there only while the script runs.
    ///
    /// # Errors
    /// When the script fails, raises, reaches a limit, or leaves neither `result` nor `run()`.
    pub fn evaluate(&self, scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, Error> {
        let mut eval = Eval::new(&self.code, scope, limits);
        let Body::Block(statements) = &self.code.body else { return Ok(Value::None) };
        let value = eval.script(&self.code, statements)?;
        let value = eval.settled(value)?;
        check_output(&eval, &value)?;
        Ok(value)
    }

    /// Names the script takes from its scope, built-ins it uses and names it assigns included.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        references(&self.code)
    }

    /// The same names, each with the place where it is used first.
    pub fn places(&self) -> impl Iterator<Item = (&str, Span)> {
        places(&self.code)
    }

    /// The calls by name, wherever they stand.
    pub fn calls(&self) -> &[ScriptCall] {
        &self.calls
    }

    /// Names the script assigns outside its functions, wherever that happens.
    pub fn assigned(&self) -> Vec<&str> {
        let mut slots = Vec::new();
        if let Body::Block(statements) = &self.code.body {
            assigned(statements, &mut slots);
        }
        slots.iter().filter_map(|slot| self.code.slots.get(*slot as usize)).map(|slot| &*slot.name).collect()
    }
}

fn assigned(statements: &[Stmt], slots: &mut Vec<u32>) {
    for statement in statements {
        match &statement.kind {
            StmtKind::Assign(targets, _) => targets.iter().for_each(|one| assigned_target(one, slots)),
            StmtKind::Augment(one, ..) | StmtKind::Def(_, one) => assigned_target(one, slots),
            StmtKind::If(arms, otherwise) => {
                arms.iter().for_each(|(_, body)| assigned(body, slots));
                assigned(otherwise, slots);
            }
            StmtKind::For(one, _, body, otherwise) => {
                assigned_target(one, slots);
                assigned(body, slots);
                assigned(otherwise, slots);
            }
            StmtKind::Expr(_)
            | StmtKind::Return(_)
            | StmtKind::Assert(..)
            | StmtKind::Raise(_)
            | StmtKind::Del(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass => {}
        }
    }
}

fn assigned_target(target: &AssignTarget, slots: &mut Vec<u32>) {
    match target {
        AssignTarget::Slot(slot) => slots.push(*slot),
        AssignTarget::Tuple(items, _) => items.iter().for_each(|item| assigned_target(item, slots)),
        AssignTarget::Name(..) | AssignTarget::Item(..) => {}
    }
}

/// Whether a name is one of the language's built-in functions, types or exception classes.
pub fn is_builtin(name: &str) -> bool {
    crate::builtins::lookup(name).is_some()
}

/// The names of the language's built-in functions, types and exception classes, in order.
pub fn builtin_names() -> Vec<&'static str> {
    let mut names: Vec<_> = crate::builtins::names().collect();
    names.sort_unstable();
    names
}

/// Whether a text can be read as a variable by programs.
pub fn is_usable_name(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(crate::lexer::is_name_start);
    let private = name.starts_with('_') && name != "_";
    starts && !private && chars.all(crate::lexer::is_name_part) && !crate::lexer::is_word(name)
}

/// The tables of functions and methods as Markdown, for the reference page.
pub fn reference_tables() -> String {
    crate::builtins::reference()
}

/// Runs the expression of `code` in an evaluation that may have run others before.
pub(crate) fn run(eval: &mut Eval<'_>, code: &Code) -> Result<Value, Error> {
    let Body::Expr(expr) = &code.body else { return Ok(Value::None) };
    eval.fuel.spend(code.cost)?;
    eval.eval(expr)
}

pub(crate) fn check_output(eval: &Eval<'_>, value: &Value) -> Result<(), Error> {
    match value {
        Value::Str(text) => eval.fuel.output(text.len()),
        _ => Ok(()),
    }
}

/// An evaluation without code of its own, for iterators: they have with them all that they need.
pub(crate) fn bare(limits: &EvalLimits) -> Result<Eval<'_>, Error> {
    static NOTHING: OnceLock<Option<Program>> = OnceLock::new();
    let program = NOTHING.get_or_init(|| Program::compile("None").ok());
    let program = program.as_ref().ok_or_else(|| Error::runtime("`None` does not compile"))?;
    Ok(Eval::new(&program.code, &(), limits))
}

pub(crate) fn references(code: &Code) -> impl Iterator<Item = &str> {
    places(code).map(|(name, _)| name)
}

pub(crate) fn places(code: &Code) -> impl Iterator<Item = (&str, Span)> {
    let names = code.slots.iter().filter(|slot| matches!(slot.kind, SlotKind::Global(_)));
    names.map(|slot| (&*slot.name, slot.first))
}
