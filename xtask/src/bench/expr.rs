//! Templates beside llm-workers: evaluating a compiled one, and loading and evaluating. Six shapes, from a bare
//! variable to a comprehension over a hundred items. Both sides report the best of several rounds.

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value as Json, json};
use toolwright_expr::{Limits, Template, Value, Variables};

use super::peer;

// Rounds are short, so that on a busy machine some of them run undisturbed.
const EVALUATIONS: u64 = 1_000;
const LOADS: u64 = 200;
const ROUNDS: u64 = 60;

/// Prints the table and gives the geometric means of peer time over ours: (evaluate, load and evaluate).
/// `None` when there is no Python to run the peer with.
pub fn run() -> Result<Option<(f64, f64)>> {
    let Some(python) = peer::environment("llm-workers", "llm-workers==1.1.4")? else {
        println!("skipped: no Python of version 3.12 or later was found");
        return Ok(None);
    };
    let shapes = shapes();
    let theirs = measure_peer(&python, &shapes)?;
    println!("| shape | llm-workers | ours | ratio | load: llm-workers | ours | ratio |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let (mut evaluate, mut load) = (0.0, 0.0);
    for ((name, template, vars), peer) in shapes.iter().zip(&theirs) {
        let time = |key: &str| peer.get(key).and_then(Json::as_f64).context("the peer gave no time");
        let ours = measure(template, vars, peer.get("value").unwrap_or(&Json::Null))?;
        let (their_evaluate, their_load) = (time("evaluate")?, time("load")?);
        println!(
            "| {name} | {their_evaluate:.0} ns | {:.1} ns | {:.1} | {their_load:.0} ns | {:.0} ns | {:.1} |",
            ours.evaluate,
            their_evaluate / ours.evaluate,
            ours.load,
            their_load / ours.load
        );
        evaluate += (their_evaluate / ours.evaluate).ln();
        load += (their_load / ours.load).ln();
    }
    let count = shapes.len() as f64;
    let means = ((evaluate / count).exp(), (load / count).exp());
    println!("geometric mean: evaluate {:.1}, load and evaluate {:.1}", means.0, means.1);
    Ok(Some(means))
}

type Shape = (&'static str, &'static str, Json);

fn shapes() -> Vec<Shape> {
    let numbers: Vec<i64> = (0..100).collect();
    vec![
        ("variable", "${x}", json!({"x": 42})),
        ("arithmetic, 4 operators", "${(a + b) * c - d / 2}", json!({"a": 7, "b": 3, "c": 12, "d": 9})),
        (
            "template, 3 expressions",
            "Hello ${name}, you have ${count} messages from ${sender}.",
            json!({"name": "Ann", "count": 3, "sender": "Bob"}),
        ),
        (
            "chained conditional",
            "${'A' if score >= 90 else 'B' if score >= 80 else 'C' if score >= 70 else 'D'}",
            json!({"score": 72}),
        ),
        (
            "comprehension + filter, 100 items",
            "${[i * 2 for i in items if i % 2 == 0]}",
            json!({"items": numbers}),
        ),
        (
            "nested access + method",
            "${data['user']['name'].upper() + data.user.tags[1].replace('a', 'b')}",
            json!({"data": {"user": {"name": "ann", "tags": ["x", "banana"]}}}),
        ),
    ]
}

fn measure_peer(python: &std::path::Path, shapes: &[Shape]) -> Result<Vec<Json>> {
    let shapes: Vec<Json> =
        shapes.iter().map(|(_, template, vars)| json!({"template": template, "vars": vars})).collect();
    let request = json!({"shapes": shapes, "evaluations": EVALUATIONS, "loads": LOADS, "rounds": ROUNDS});
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/llm_workers_expr.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the peer")?;
    child.stdin.take().context("no input to the peer")?.write_all(request.to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the peer failed");
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

struct Times {
    evaluate: f64,
    load: f64,
}

fn measure(template: &str, vars: &Json, wanted: &Json) -> Result<Times> {
    let scope: Variables = vars
        .as_object()
        .context("variables must be an object")?
        .iter()
        .map(|(name, value)| (name.clone(), Value::from_json(value)))
        .collect();
    let limits = Limits::default();
    let compiled = Template::compile(template)?;
    let value = compiled.evaluate(&scope, &limits)?;
    if value.to_json()? != *wanted {
        bail!("{template}: we say {value:?}, the peer {wanted}");
    }
    let evaluate = best(EVALUATIONS, || black_box(compiled.evaluate(black_box(&scope), &limits)).is_ok());
    let load = best(LOADS, || {
        Template::compile(black_box(template)).and_then(|template| template.evaluate(&scope, &limits)).is_ok()
    });
    Ok(Times { evaluate, load })
}

fn best(count: u64, mut work: impl FnMut() -> bool) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..count {
            black_box(work());
        }
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    best
}
