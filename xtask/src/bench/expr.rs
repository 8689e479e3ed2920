//! Templates beside llm-workers: `expr` evaluates compiled ones, `load` loads and evaluates.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Report, Row, geometric_mean, nanos, ours, peer};

pub fn evaluate() -> Result<Report> {
    run(
        "evaluate",
        "Evaluating a compiled template; the ratio is the geometric mean of the shapes. Where the time goes: a variable \
        of the caller's scope costs a hash lookup, a text that is made an allocation; operators on numbers and rounds \
        of a loop that only counts take a few nanoseconds each. The comprehension is the closest race, because \
        llm-workers runs it as CPython's bytecode.",
    )
}

pub fn load() -> Result<Report> {
    run(
        "load",
        "Compiling a template and evaluating it once; the ratio is the geometric mean of the shapes. Where the time \
        goes: not quite half of it reads tokens and builds the tree, a quarter gives names their slots, the rest \
        evaluates once and frees the tree. A bare `${name}` needs no tree.",
    )
}

fn run(what: &str, about: &str) -> Result<Report> {
    let shapes = crate::root().join("testdata/bench/expr.json");
    let mine = ours("expr")?;
    let shapes_text = shapes.to_str().context("the path of the repository is not text")?;
    let theirs = peer::run("llm-workers", &["llm-workers==1.1.4"], &["llm_workers_expr.py", shapes_text])?;
    let mut rows = Vec::new();
    for shape in serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(&shapes)?)? {
        let name = shape.get("name").and_then(Value::as_str).context("a shape has no name")?;
        let key = format!("value: {name}");
        if mine.get(&key) != theirs.get(&key) {
            bail!("{name}: we say {:?}, the peer {:?}", mine.get(&key), theirs.get(&key));
        }
        let key = format!("{what}: {name}");
        rows.push(Row {
            work: name.to_owned(),
            ours: nanos(&mine, &key)?,
            peer: "llm-workers",
            theirs: nanos(&theirs, &key)?,
        });
    }
    Ok(Report { about: about.to_owned(), ratio: geometric_mean(&rows), rows })
}
