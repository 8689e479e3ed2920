//! Commands and files shown in the README and the guide are run.

use std::path::{Path, PathBuf};

use crate::show_in;

fn page(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The code blocks of one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.trim() == format!("```{language}") {
            blocks.push(
                lines
                    .by_ref()
                    .take_while(|line| line.trim() != "```")
                    .map(|line| format!("{line}\n"))
                    .collect(),
            );
        }
    }
    blocks
}

/// Splits a command as a shell would: single quotes only.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut inside = false;
    for c in command.chars() {
        match c {
            '\'' => inside = !inside,
            ' ' if !inside => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn the_commands_of_the_readme_work() {
    let mut ran = 0;
    for command in blocks(&page("README.md"), "sh").iter().flat_map(|block| block.lines()) {
        let Some(command) = command.strip_prefix("cargo run --release -- ") else { continue };
        let words = words(command);
        let folder = tempfile::tempdir().unwrap();
        let shown = show_in(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>(), "");
        assert!(shown.ends_with("--- exit 0\n"), "{shown}");
        ran += 1;
    }
    assert!(ran >= 4, "only {ran} commands were found");
}

#[test]
fn the_policy_of_the_guide_is_one() {
    let blocks = blocks(&page("docs/guide/policies.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.yaml"), &blocks[0]).unwrap();
    let shown = show_in(folder.path(), &["check", "--policy", "policy.yaml"], "");
    assert!(shown.contains("4 rules: no problems"), "{shown}");
}

#[test]
fn the_script_of_the_guide_plays() {
    let blocks = blocks(&page("docs/guide/testing.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("replies.yaml"), &blocks[0]).unwrap();
    let shown = show_in(folder.path(), &["ask", "go", "--model", "scripted/replies.yaml"], "");
    assert!(shown.contains("It is 3."), "{shown}");
}

#[test]
fn the_yaml_tool_of_the_readme_works() {
    let blocks = blocks(&page("README.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolwright.yaml"), &blocks[0]).unwrap();
    let checked = show_in(folder.path(), &["check"], "");
    assert!(checked.contains("1 tools: no problems"), "{checked}");
    let called = show_in(folder.path(), &["call", "greet", "names=[\"ada\"]", "-f", "toolwright.yaml"], "");
    assert!(called.contains("Hello, Ada!"), "{called}");
}

#[test]
fn cargo_run_in_the_root_means_the_program() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let default = metadata["workspace_default_members"].as_array().unwrap();
    assert!(default.len() == 1 && default[0].as_str().unwrap().contains("toolwright-cli"), "{default:?}");
}
