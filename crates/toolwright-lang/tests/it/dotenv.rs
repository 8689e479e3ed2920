//! `.env` files against what python-dotenv reads from the same texts.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwright_lang::parse_dotenv;

#[test]
fn generated_files_are_read_as_python_dotenv_reads_them() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/llm_workers/dotenv.json");
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    let set = |name: &str| match name {
        "HOME" => Some("/home/ann".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let got: BTreeMap<String, String> = parse_dotenv(text, set).into_iter().collect();
        let want: BTreeMap<String, String> = serde_json::from_value(case["want"].clone()).unwrap();
        assert_eq!(got, want, "{text:?}");
    }
    assert!(cases.len() >= 300);
}
