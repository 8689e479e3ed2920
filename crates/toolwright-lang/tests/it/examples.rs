//! Every file of `examples/yaml` loads without complaint and gives what its last lines state.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright_lang::{Severity, Source, load};
use toolwright_runtime::Run;

use crate::support::{call, call_shown, host};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/yaml")
}

#[tokio::test]
async fn examples_give_what_they_state() {
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8);
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "yaml")) {
        run_example(&file).await;
    }
}

#[tokio::test]
async fn the_guide_tells_the_truth() {
    let page = std::fs::read_to_string(folder().join("../../docs/guide/yaml-tools.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 8);
    for (index, block) in blocks.iter().enumerate() {
        run_text(&format!("block {index} of the guide"), block).await;
    }
}

async fn run_example(file: &Path) {
    run_text(&file.display().to_string(), &std::fs::read_to_string(file).unwrap()).await;
}

async fn run_text(shown: &str, text: &str) {
    let source = Source::text(shown, text);
    let loaded = load(source, &host()).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let problems = loaded.check();
    let errors: Vec<_> = problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{shown}: {}", errors[0].render());
    let mut stated = 0;
    for line in text.lines() {
        let Some((what, rest)) = line.strip_prefix("# ").and_then(|line| line.split_once(": ")) else {
            continue;
        };
        if !matches!(what, "check" | "hint" | "input") {
            continue;
        }
        stated += 1;
        let (asked, wanted) = rest.rsplit_once(" -> ").unwrap();
        if what == "input" {
            let cli = loaded.cli().unwrap();
            let run = Run::builder(loaded.tools().clone().with(cli.tool()).unwrap()).build().unwrap();
            let got = cli.run_input(&*run.dispatch(), json!(asked)).await.unwrap();
            assert_eq!(got.text, wanted, "{shown}: {line}");
            continue;
        }
        let (tool, arguments) = asked.split_once(' ').unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        if what == "hint" {
            let (_, hints) = call_shown(&loaded, tool, arguments).await;
            assert_eq!(hints, [wanted], "{shown}: {line}");
        } else {
            let wanted: Value = serde_json::from_str(wanted).unwrap();
            assert_eq!(call(&loaded, tool, arguments).await, Ok(wanted), "{shown}: {line}");
        }
    }
    assert!(stated > 0, "{shown} states no result");
}

/// The documentation of llm-workers writes `{query}` where `${query}` was meant. The file loads and runs as
/// it is, and `check` says so.
#[tokio::test]
async fn a_documented_slip_runs_as_written_and_is_pointed_at() {
    let text = std::fs::read_to_string(folder().join("08_composing.yaml")).unwrap();
    let text = text.replace("text: \"${query}\"", "text: \"{query}\"");
    let loaded = load(Source::text("slip.yaml", text), &host()).unwrap();
    let told: Vec<_> = loaded.check().into_iter().map(|problem| (problem.severity, problem.hint)).collect();
    assert_eq!(told, [(Severity::Warning, Some("write `${query}`".to_owned()))]);
    let outcome = call(&loaded, "advanced_search", json!({"query": "rust"})).await;
    assert_eq!(outcome, Ok(json!("No results found")));
}
