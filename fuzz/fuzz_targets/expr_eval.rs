//! Any text evaluated with data of every kind; results can be printed, converted and compared.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolwright_expr::{Limits, Program, Script, Value, Variables};

fuzz_target!(|text: &str| {
    let limits = Limits { steps: 50_000, bytes: 4 << 20, ..Limits::default() };
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
});

fn check(result: Result<Value, toolwright_expr::Error>, text: &str) {
    match result {
        Ok(value) => {
            let _ = (format!("{value:?}"), value.to_json().is_ok(), value == value.clone());
        }
        Err(error) => drop(error.render(text)),
    }
}
