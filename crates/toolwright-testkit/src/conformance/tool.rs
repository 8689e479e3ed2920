//! What every tool should do: explain itself, take what its schema takes, and refuse the rest without
//! panicking.

use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::{Tool, ToolCall, ToolSpec, Toolset};
use toolwright_runtime::{Run, RunBuilder};

use super::{Report, ensure};

/// Checks a tool, calling it with `arguments` that it should accept and with many that it should not.
///
/// The tool is really called, so give arguments that do no harm.
pub async fn tool(tool: impl Tool + 'static, arguments: Value) -> Report {
    tool_in(tool, arguments, |run| run).await
}

/// Like [`tool`], in a run that has what the tool needs: state, a sandbox, a model.
pub async fn tool_in(
    tool: impl Tool + 'static,
    arguments: Value,
    prepare: impl FnOnce(RunBuilder) -> RunBuilder,
) -> Report {
    let mut report = Report::default();
    let spec = tool.spec().clone();
    check_spec(&mut report, &spec);
    let tools = match Toolset::new().with(tool) {
        Ok(tools) => tools,
        Err(error) => {
            report.check("it can be put into a set", Err(error.to_string()));
            return report;
        }
    };
    report.check("it can be put into a set", Ok(()));
    let run = match prepare(Run::builder(tools)).build() {
        Ok(run) => run,
        Err(error) => {
            report.check("a run can be built", Err(error.to_string()));
            return report;
        }
    };
    let call = |arguments: Value| run.call(ToolCall::new("check", spec.name.clone(), arguments));
    let good = call(arguments.clone()).await;
    report.check(
        "it takes the given arguments",
        match good {
            Ok(result) => ensure(result.error.is_none(), || format!("{:?}", result.error)),
            Err(error) => Err(format!("it ended the run: {error}")),
        },
    );
    let mut extra = arguments;
    if let Some(map) = extra.as_object_mut() {
        map.insert("no_such_parameter_here".to_owned(), json!(1));
    }
    for (what, odd) in odd_arguments(extra) {
        let outcome = tokio::time::timeout(Duration::from_secs(30), call(odd)).await;
        report.check(
            &format!("{what} end in a result, not in the end of the run"),
            match outcome {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("it took longer than 30 s".to_owned()),
            },
        );
    }
    report
}

fn check_spec(report: &mut Report, spec: &ToolSpec) {
    let described = !spec.description.trim().is_empty();
    report.check("it has a description", ensure(described, || "the description is empty".to_owned()));
    let properties = spec.parameters.get("properties").and_then(Value::as_object);
    let silent: Vec<&str> = properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| {
            schema.get("description").and_then(Value::as_str).is_none_or(|text| text.trim().is_empty())
        })
        .map(|(name, _)| name.as_str())
        .collect();
    report.check(
        "every parameter has a description",
        ensure(silent.is_empty(), || format!("not {}", silent.join(", "))),
    );
    let compiled = Schema::compile(&spec.parameters);
    report.check("its schema compiles", compiled.map(|_| ()).map_err(|error| error.to_string()));
    if let Some(output) = &spec.output_schema {
        let compiled = Schema::compile_any(output);
        report.check("its output schema compiles", compiled.map(|_| ()).map_err(|error| error.to_string()));
    }
}

fn odd_arguments(extra: Value) -> Vec<(&'static str, Value)> {
    let mut deep = json!(null);
    for _ in 0..90 {
        deep = json!([deep]);
    }
    vec![
        ("no arguments", json!({})),
        ("an unknown argument", extra),
        ("arguments that are a list", json!([1, 2])),
        ("arguments that are a number", json!(7)),
        ("arguments that are text", json!("just some text")),
        ("arguments that were cut off", json!("{\"a\": \"b")),
        ("deep arguments", json!({"a": deep})),
        ("arguments of every wrong type", json!({"a": null, "b": [], "c": {}, "d": 1.5, "e": "\u{0}"})),
    ]
}
