//! The definition of each tool under each name, byte for byte: the output of `tools --format json`.

use libtest_mimic::Trial;
use serde_json::{Value, json};
use toolwright_core::ToolSpec;

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("definitions::every_tool_under_every_name", || {
        insta::assert_snapshot!("definitions", every_definition());
        Ok(())
    })]
}

/// Each definition once, with all the names it has.
fn every_definition() -> String {
    let mut definitions: Vec<(ToolSpec, Vec<&str>)> = Vec::new();
    for name in toolwright_tools::references() {
        let tool = toolwright_tools::resolve(name).unwrap();
        match definitions.iter_mut().find(|(spec, _)| spec == tool.spec()) {
            Some((_, names)) => names.push(name),
            None => definitions.push((tool.spec().clone(), vec![name])),
        }
    }
    let all = definitions.into_iter().map(|(spec, names)| {
        let definition = serde_json::to_value(&spec).unwrap();
        json!({"names": names, "definition": definition})
    });
    serde_json::to_string_pretty(&all.collect::<Vec<Value>>()).unwrap()
}
