//! Any text as a template: it compiles and evaluates, or says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolwright_expr::{Limits, Template, Value};

fuzz_target!(|text: &str| {
    let limits = Limits { steps: 100_000, bytes: 4 << 20, ..Limits::default() };
    let scope = [("x", Value::Int(1)), ("y", Value::str("é")), ("v", Value::list(vec![Value::None]))];
    match Template::compile(text) {
        Ok(template) => {
            if let Err(error) = template.evaluate(&scope, &limits) {
                let _ = error.render(text);
            }
        }
        Err(error) => drop(error.render(text)),
    }
});
