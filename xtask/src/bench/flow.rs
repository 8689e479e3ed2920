//! Flows beside llm-workers: a tool of three steps, and `for_each` over 10,000 elements.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Report, Row, geometric_mean, nanos, ours, output, peer};

/// A three-step tool.
pub fn flow() -> Result<Report> {
    let shapes = [
        ("three expressions", "three_evals"),
        ("expression, tool, expression", "with_call"),
        ("expression, branch, expression", "with_if"),
    ];
    let calls = shapes.map(|(work, tool)| (work, tool, json!({"x": 20})));
    let about = "A YAML tool of three steps: ours through the whole path of a call, theirs as a `call` statement runs \
        it. Where the time goes: four fifths of ours is the path of the call, from finding the tool and validating \
        its arguments to the result; the statements are the rest.";
    beside("flow", &calls, about)
}

/// A loop over 10,000 elements.
pub fn each() -> Result<Report> {
    let list: Vec<u32> = (0..10_000).collect();
    let dict: serde_json::Map<String, Value> = list.iter().map(|n| (format!("k{n}"), (*n).into())).collect();
    let calls = [
        ("one expression", "one_eval", json!({ "items": list })),
        ("expression and branch", "eval_if", json!({ "items": list })),
        ("a dict, one expression", "dict_eval", json!({ "items": dict })),
    ];
    beside(
        "each",
        &calls,
        "`for_each` over 10,000 elements: the tool is called, the list goes in, the results come out. Where the time \
        goes: with a list, about a third turns JSON into values and back, the rest is statements; with a dict, most of \
        it copies keys and texts from JSON and back into it.",
    )
}

fn beside(name: &str, calls: &[(&str, &str, Value)], about: &str) -> Result<Report> {
    let mine = ours(name)?;
    let python = peer::python("llm-workers", &["llm-workers==1.1.4"])?;
    let mut command = std::process::Command::new(python);
    command.arg(crate::root().join("xtask/peers/llm_workers_flow.py"));
    command.arg(crate::root().join("bench/files").join(format!("{name}.yaml")));
    // Large inputs would not fit a command line, so they are written to a file.
    let folder = crate::root().join("target/peers");
    for (_, tool, input) in calls {
        let path = folder.join(format!("{tool}.json"));
        std::fs::write(&path, input.to_string())?;
        command.arg(format!("{tool}={}", path.display()));
    }
    let theirs = output(&mut command)?;
    let mut rows = Vec::new();
    for (work, tool, _) in calls {
        let (ours, theirs) = (nanos(&mine, work)?, nanos(&theirs, tool)?);
        rows.push(Row { work: (*work).to_owned(), ours, peer: "llm-workers", theirs });
    }
    let ratio = geometric_mean(&rows);
    Ok(Report { about: format!("{about} The ratio is the geometric mean of the shapes."), rows, ratio })
}
