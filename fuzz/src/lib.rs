//! What each fuzz target does with a text. The targets call it with whatever the fuzzer thinks of; a test of
//! the repository calls it with the seeds.

use toolwright_expr::{Error, EvalLimits, Program, Script, Template, Value, Variables};
use toolwright_lang::{Host, Source, load_all};

/// A target and its name.
pub type Target = (&'static str, fn(&str));

/// All of them.
pub const TARGETS: [Target; 4] =
    [("template", template), ("expr_parse", expr_parse), ("expr_eval", expr_eval), ("yaml_load", yaml_load)];

/// Any text as a template: it compiles and evaluates, or says why not.
pub fn template(text: &str) {
    let limits = EvalLimits { steps: 100_000, bytes: 4 << 20, ..EvalLimits::default() };
    let scope = [("x", Value::Int(1)), ("y", Value::str("é")), ("v", Value::list(vec![Value::None]))];
    match Template::compile(text) {
        Ok(template) => check(template.evaluate(&scope, &limits), text),
        Err(error) => drop(error.render(text)),
    }
}

/// Any text as an expression and as a script: parsing answers and never panics.
pub fn expr_parse(text: &str) {
    if let Err(error) = Program::compile(text) {
        let _ = error.render(text);
    }
    if let Err(error) = Script::compile(text) {
        let _ = error.render(text);
    }
}

/// Any text evaluated with data of every kind; results can be printed, converted and compared.
pub fn expr_eval(text: &str) {
    let limits = EvalLimits { steps: 50_000, bytes: 4 << 20, ..EvalLimits::default() };
    let scope: Variables = [
        ("a", Value::Int(7)),
        ("f", Value::Float(-0.5)),
        ("s", Value::str("Hello, é😀")),
        ("l", Value::list(vec![Value::Int(3), Value::str("x"), Value::None])),
        ("d", Value::dict([("k", Value::Int(1)), ("items", Value::list(vec![]))])),
        ("t", Value::tuple(vec![Value::Int(1), Value::Float(2.5)])),
        ("b", Value::bytes(*b"ab\xff")),
    ]
    .into_iter()
    .collect();
    if let Ok(program) = Program::compile(text) {
        check(program.evaluate(&scope, &limits), text);
    }
    if let Ok(script) = Script::compile(text) {
        check(script.evaluate(&scope, &limits), text);
    }
}

/// Any text loads or is refused with problems that can be shown; nothing panics, hangs or grows without
/// bound.
pub fn yaml_load(text: &str) {
    let loaded = load_all(Source::text("fuzz.yaml", text), &Host::new());
    for problem in loaded.check() {
        assert!(!problem.render().is_empty());
    }
}

fn check(result: Result<Value, Error>, text: &str) {
    match result {
        Ok(value) => {
            let _ = (format!("{value:?}"), value.to_json().is_ok(), value == value.clone());
        }
        Err(error) => drop(error.render(text)),
    }
}
