//! The fuzz targets, with their seeds and the seeds cut and changed a little: a smoke run that needs no
//! fuzzer. The real ones are run by `cargo xtask fuzz`.

#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

use serde_json::Value;

/// The texts of a file of vectors, under a key.
fn seeds(file: &str, key: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let vectors: Vec<Value> = toolwright_testkit::vectors::load(&path).unwrap();
    vectors.iter().filter_map(|vector| Some(vector.get(key)?.as_str()?.to_owned())).collect()
}

/// The text, the text without its end, and with a part said twice.
fn variants(text: &str) -> Vec<String> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = |part: usize| ends[ends.len() * part / 7 % ends.len()];
    let (early, middle, late) = (at(2), at(4), at(5));
    vec![
        text.to_owned(),
        text[..late].to_owned(),
        text[early..].to_owned(),
        [&text[..middle], &text[early..]].concat(),
    ]
}

#[test]
fn fuzz_targets_survive_their_seeds() {
    let expressions = seeds("testdata/expr/llm_workers.json", "expr");
    let files = seeds("testdata/stmt/llm_workers.json", "yaml");
    assert!(expressions.len() > 900 && files.len() > 300);
    for (name, target) in targets::TARGETS {
        let seeds = if name == "yaml_load" { &files } else { &expressions };
        for seed in seeds {
            let bare = seed.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(seed);
            let text = if name.starts_with("expr") { bare } else { seed };
            variants(text).iter().for_each(|text| target(text));
        }
    }
}
