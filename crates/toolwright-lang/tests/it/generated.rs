//! Pages written from the code are as the code would write them now. `TOOLWRIGHT_BLESS=1` writes them anew.

use std::path::Path;

use serde_json::Value;
use toolwright_core::schema::Schema;
use toolwright_lang::{file_schema, reference_page};

fn fresh(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is not what the code says; run the test with TOOLWRIGHT_BLESS=1",
        path.display()
    );
}

#[test]
fn the_schema_for_editors_is_fresh() {
    fresh("docs/reference/toolwright.schema.json", &format!("{:#}\n", file_schema()));
}

#[test]
fn the_reference_page_is_fresh() {
    fresh("docs/reference/yaml.md", &reference_page());
}

fn read(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap()
}

#[test]
fn the_schema_takes_what_we_take() {
    let schema = Schema::compile_any(&file_schema()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/yaml");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = read(&text);
        assert_eq!(schema.problems(&value), Vec::<String>::new(), "{}", path.display());
    }
    for text in [
        "tools: [{name: t, description: null, do: {if: x, then: {eval: 1}, else: null, store_as: null}}]",
        "tools: [{import_tool: build_llm_tool, config: {model_ref: fast, extract_json: last}}]",
        "tools: [{import_tool: bash, config: {timeout: 5}}]",
    ] {
        assert_eq!(schema.problems(&read(text)), Vec::<String>::new(), "{text}");
    }
    for text in [
        "tools: [{import_tool: build_llm_tool, config: {model_ref: 5}}]",
        "tools: [{import_tool: llm_workers.tools.llm_tool.build_llm_tool, config: {modle_ref: x}}]",
        "tools: [{import_tool: bash, config: 5}]",
        "tools: [{name: null, do: {eval: 1}}]",
        "shered: {}",
        "tools: [{name: t}]",
        "cli: {process_input: each, do: {eval: 1}}",
        "tools: [{do: {eval: 1, call: x}, name: t}]",
    ] {
        let value: Value = read(text);
        assert!(!schema.problems(&value).is_empty(), "{text}");
    }
}
