//! What Inspect and MARSYS were seen to do on the path of a call, against what we do.
//!
//! Every observed record is accounted for in `testdata/*/coverage.json`: run here from its data, covered by a
//! named test, different on purpose, or the business of a later part. The first matching entry counts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolCall, ToolDef, ToolError, ToolSpec, tool};
use toolwright_runtime::Run;
use toolwright_testkit::accounts::Accounts;
use toolwright_testkit::vectors::{Tally, load};

use crate::support::{add, plain, tools};

#[derive(Deserialize)]
struct Vector {
    id: String,
    #[serde(default, alias = "input")]
    given: Value,
    #[serde(default, alias = "output")]
    observed: Value,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn vectors(system: &str) -> Vec<Vector> {
    load(&root().join("testdata").join(system).join("call_path.json")).unwrap()
}

fn accounts(system: &str) -> Accounts {
    Accounts::load(&root().join("testdata").join(system).join("coverage.json")).unwrap()
}

/// Every record is accounted for, no entry is idle, and the tests that are named exist.
fn check_accounts(system: &str) {
    let all = vectors(system);
    let ids: Vec<&str> = all.iter().map(|vector| vector.id.as_str()).collect();
    let page = root().join("docs/divergences.md");
    let problems = accounts(system).problems(&ids, &root().join("crates"), &page).unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_observation_of_inspect_is_accounted_for() {
    check_accounts("inspect");
}

#[test]
fn every_observation_of_marsys_is_accounted_for() {
    check_accounts("marsys");
}

/// Runs the records that are data with `got`, which gives what we do in the terms of the observation.
async fn run_all(system: &str, prefix: &str, got: impl AsyncFn(&Vector) -> Option<(Value, Value)>) {
    let accounts = accounts(system);
    let report = std::env::var_os("TOOLWRIGHT_VECTORS_REPORT").map(PathBuf::from);
    let mut tally = Tally { report, ..Tally::default() };
    let all = asked_for(system).unwrap_or_else(|| vectors(system));
    for vector in all.iter().filter(|vector| vector.id.starts_with(prefix)) {
        if !accounts.is_run(&vector.id) {
            tally.skip();
            continue;
        }
        match got(vector).await {
            Some((wanted, got)) => tally.check(&vector.id, &wanted, &got),
            None => tally.fail(&vector.id, "a way to run it", "none"),
        }
    }
    if std::env::var_os("TOOLWRIGHT_VECTORS").is_none() {
        assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n"));
        assert!(tally.passed > 0, "nothing was run for {prefix}");
    }
}

/// The records of the file that `cargo xtask vectors` asks for, if it asks; none for another system.
fn asked_for(system: &str) -> Option<Vec<Vector>> {
    let asked = std::env::var_os("TOOLWRIGHT_VECTORS")?;
    let is_asked = std::env::var("TOOLWRIGHT_VECTORS_SYSTEM").is_ok_and(|name| name == system);
    let all: Vec<Value> = load(Path::new(&asked)).unwrap_or_default();
    // A record of another shape is missing in the report, and so fails there.
    Some(all.into_iter().filter(|_| is_asked).filter_map(|one| serde_json::from_value(one).ok()).collect())
}

#[tokio::test]
async fn arguments_are_read_as_inspect_reads_them() {
    let mut one = ToolSpec::new("one", "Takes anything.");
    one.parameters = json!({"type": "object", "properties": {"p": {}, "q": {}}});
    let echo = |spec: ToolSpec| ToolDef::dynamic(spec, |_, arguments: Value| async move { arguments });
    let run =
        Run::builder(tools([echo(one), echo(ToolSpec::new("zero", "Takes nothing."))])).build().unwrap();
    run_all("inspect", "parse.", async |vector| {
        let name = vector.given["function"].as_str()?;
        let arguments = match vector.given["arguments"].as_str()? {
            cut if cut.contains("...(") => format!("{{\"p\":{}{}}}", "[".repeat(101), "]".repeat(101)),
            text => text.to_owned(),
        };
        let result = run.call(ToolCall::new("1", name, arguments)).await.unwrap();
        let wanted = json!({"failed": !vector.observed["parse_error"].is_null(), "arguments": vector.observed["arguments"]});
        let read = serde_json::from_str(&result.to_text()).ok().filter(|_| result.error.is_none());
        Some((wanted, json!({"failed": result.error.is_some(), "arguments": read.unwrap_or_else(|| json!({}))})))
    })
    .await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Record {
    a: i64,
    #[serde(default)]
    b: String,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Letter {
    Alpha,
    Bravo,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
}

/// Takes an optional text.
#[tool]
async fn opt(
    /// Text.
    x: Option<String>,
) -> String {
    format!("{x:?}")
}

/// Takes a number or a text.
#[tool]
async fn un(
    /// Either.
    x: Either,
) -> String {
    match x {
        Either::Number(number) => number.to_string(),
        Either::Text(text) => format!("'{text}'"),
    }
}

/// Takes a letter.
#[tool]
async fn en(
    /// The letter.
    x: Letter,
) -> String {
    format!("{x:?}")
}

/// Takes a record.
#[tool]
async fn dc(
    /// The record.
    x: Record,
) -> String {
    format!("{} {}", x.a, x.b)
}

/// Takes a set.
#[tool]
async fn st(
    /// The set.
    x: BTreeSet<String>,
) -> Vec<String> {
    x.into_iter().collect()
}

/// Takes a pair.
#[tool]
async fn tp(
    /// The pair.
    x: (i64, i64),
) -> i64 {
    x.0 + x.1
}

/// Takes counts by name.
#[tool]
async fn dd(
    /// The counts.
    x: std::collections::BTreeMap<String, i64>,
) -> usize {
    x.len()
}

/// Takes one number.
#[tool]
async fn kw(
    /// The number.
    a: i64,
) -> i64 {
    a
}

#[tokio::test]
async fn calls_end_as_they_do_in_inspect() {
    let run = Run::builder(tools([add(), opt(), un(), en(), dc(), st(), tp(), dd(), kw()])).build().unwrap();
    run_all("inspect", "exec.", async |vector| {
        let tool = vector.given.get("tool").or_else(|| vector.given.get("call"))?.as_str()?;
        let tool = tool.split(['(', ' ']).next()?;
        let arguments = vector.given.get("args").cloned().unwrap_or_else(|| json!({}));
        let result = run.call(ToolCall::new("1", tool, arguments)).await.unwrap();
        let problems = |text: &str| text.matches("\n- ").count();
        let wanted = match vector.observed.get("error") {
            None => json!("a result"),
            Some(error) => json!([error["type"], problems(error["message"].as_str()?)]),
        };
        let got = match &result.error {
            None => json!("a result"),
            Some(error) => json!([error.kind, problems(&error.message)]),
        };
        Some((wanted, got))
    })
    .await;
}

#[tokio::test]
async fn errors_have_the_kind_they_have_in_inspect() {
    run_all("inspect", "error.", async |vector| {
        let raised = vector.given["tool raises"].as_str()?.split('(').next()?.to_owned();
        let error = move || -> ToolError {
            use std::io::{Error, ErrorKind as Io};
            match raised.as_str() {
                "TimeoutError" => Error::from(Io::TimedOut).into(),
                "PermissionError" => Error::from(Io::PermissionDenied).into(),
                "FileNotFoundError" => Error::from(Io::NotFound).into(),
                "NotADirectoryError" => Error::from(Io::NotADirectory).into(),
                "ConnectionError" => Error::from(Io::ConnectionReset).into(),
                "LimitExceededError" => ToolError::of(ErrorKind::Limit, "over"),
                "RuntimeError" | "KeyError" => Error::other("unexpected").into(),
                other => ToolError::invalid(format!("no counterpart of {other}")),
            }
        };
        let run = Run::builder(tools([plain("boom", move |_| {
            let error = error();
            async move { Err(error) }
        })]));
        let result = run.build().unwrap().call(ToolCall::new("1", "boom", json!({}))).await;
        let ends = |value: &Value| value.get("raises_out_of_execute_tools").is_some();
        let wanted = if ends(&vector.observed) {
            json!("ends the run")
        } else {
            vector.observed["error"]["type"].clone()
        };
        let got = match result {
            Ok(result) => json!(result.error.map(|error| error.kind)),
            Err(_) => json!("ends the run"),
        };
        Some((wanted, got))
    })
    .await;
}

#[tokio::test]
async fn long_output_keeps_the_halves_inspect_keeps() {
    run_all("inspect", "trunc.", async |vector| {
        let length = vector.given.get("len").and_then(Value::as_u64).unwrap_or(100) as usize;
        let own = vector
            .given
            .get("tool.max_output")
            .or_else(|| vector.given.get("max_output"))
            .and_then(Value::as_u64);
        let output: String = ('a'..='z').cycle().take(length).collect();
        let mut big = plain("big", move |_| {
            let output = output.clone();
            async move { Ok(output) }
        });
        if let Some(own) = own {
            big = big.with_max_output(own as usize);
        }
        let run = Run::builder(tools([big])).build().unwrap();
        let text = run.call(ToolCall::new("1", "big", json!({}))).await.unwrap().to_text();
        let (head, rest) = text.split_once("\n[…")?;
        let tail = rest.split_once("…]\n")?.1;
        let between = |whole: &str| {
            whole
                .split_once("<START_TOOL_OUTPUT>\n")?
                .1
                .split_once("\n<END_TOOL_OUTPUT>")
                .map(|(text, _)| text.to_owned())
        };
        match vector.observed.get("content").and_then(Value::as_str).and_then(between) {
            Some(kept) => Some((json!(kept), json!(format!("{head}{tail}")))),
            // The long record only shows where the halves begin and end.
            None => {
                let wanted = vector.observed["tail"].as_str()?.split_once("\n<END")?.0;
                Some((
                    json!([wanted, 16384]),
                    json!([tail.get(tail.len() - wanted.len()..)?, head.len() + tail.len()]),
                ))
            }
        }
    })
    .await;
}

#[tokio::test]
async fn marsys_calls_that_make_sense_give_the_same() {
    let fixed = |name: &str, value: Value| {
        ToolDef::dynamic(ToolSpec::new(name, "Returns a value."), move |_, _| {
            let value = value.clone();
            async move { value }
        })
    };
    let mut text = ToolSpec::new("t_str", "Says what it got.");
    text.parameters = json!({"type": "object", "properties": {"x": {"type": "string", "default": "d"}}});
    let text = ToolDef::dynamic(text, |_, arguments: Value| async move {
        format!("got {}", arguments.get("x").and_then(Value::as_str).unwrap_or("d"))
    });
    let mut number = ToolSpec::new("t_async", "Says what it got.");
    number.parameters = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let number =
        ToolDef::dynamic(number, |_, arguments: Value| async move { json!({"async": arguments["x"]}) });
    let all = [
        fixed("t_dict", json!({"b": 1, "a": "é", "nested": {"z": null}})),
        fixed("t_float", json!(0.1)),
        fixed("t_unicode", json!("naïve ⚠")),
        fixed("t_int", json!(42)),
        text,
        number,
    ];
    let run = Run::builder(tools(all)).build().unwrap();
    run_all("marsys", "execute/", async |vector| {
        let call = &vector.given[0]["function"];
        let result =
            run.call(ToolCall::new("1", call["name"].as_str()?, call["arguments"].clone())).await.unwrap();
        Some((vector.observed[0]["result"].clone(), json!(result.to_text())))
    })
    .await;
}
