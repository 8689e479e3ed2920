//! Any text loads or is refused with problems that can be shown; nothing panics, hangs or grows without bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolwright_lang::{Host, Source, load_all};

fuzz_target!(|text: &str| {
    let loaded = load_all(Source::text("fuzz.yaml", text), &Host::new());
    for problem in loaded.check() {
        assert!(!problem.render().is_empty());
    }
});
