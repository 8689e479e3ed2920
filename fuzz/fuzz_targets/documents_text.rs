#![no_main]

#[path = "../src/documents.rs"]
mod documents;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| documents::text(bytes));
