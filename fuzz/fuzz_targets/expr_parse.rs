//! Any text as an expression and as a script: parsing answers and never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolwright_expr::{Program, Script};

fuzz_target!(|text: &str| {
    if let Err(error) = Program::compile(text) {
        let _ = error.render(text);
    }
    if let Err(error) = Script::compile(text) {
        let _ = error.render(text);
    }
});
