//! Expression vectors observed from llm-workers: templates and JSON documents with templates in them.
//! Values are compared with their types, errors by phase and Python class.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value as Json;
use toolwright_expr::{Error, ErrorKind, EvalLimits, Scope, Template, Value};

use super::Tally;
use super::tagged::{from_tagged, matches};

/// Names we define although the original does not; a vector that wants them unknown says nothing about us.
/// The list is in `docs/divergences.md`.
const ADDED: &[&str] = &[
    "get",
    "min",
    "max",
    "sum",
    "any",
    "all",
    "enumerate",
    "reversed",
    "map",
    "filter",
    "set",
    "frozenset",
    "type",
    "format",
    "bin",
    "rand",
    "randint",
];

/// Runs files of expression vectors.
pub fn run(files: &[PathBuf]) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut optional = Tally::default();
    for file in files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let document: Json = serde_json::from_str(&text)?;
        let vectors = document.get("vectors").and_then(Json::as_array).context("no `vectors` in the file")?;
        for vector in vectors {
            let tally = if vector.get("optional").is_some() { &mut optional } else { &mut tally };
            check(vector, tally);
        }
    }
    println!("optional: {}", optional.closing_line());
    Ok(tally)
}

fn check(vector: &Json, tally: &mut Tally) {
    let id = vector.get("id").and_then(Json::as_str).unwrap_or("?");
    if vector.get("quirk").is_some() || diverges(vector) {
        return tally.skip();
    }
    let scope: Vec<(String, Value)> = vector
        .get("vars")
        .and_then(Json::as_object)
        .map(|vars| vars.iter().map(|(name, value)| (name.clone(), from_tagged(value))).collect())
        .unwrap_or_default();
    let input = vector.get("expr").unwrap_or(&Json::Null);
    let got = evaluate(input, scope.as_slice());
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    match (verdict(expect, &got), got) {
        (Ok(()), _) => match changed(vector, scope.as_slice()) {
            None => tally.pass(),
            Some((name, wanted, got)) => tally.fail(id, format!("{name} = {wanted} afterwards"), got),
        },
        (Err(wanted), Ok(value)) => {
            tally.fail(id, wanted, format!("{value:?} of type {}", value.type_name()))
        }
        (Err(wanted), Err(failure)) => {
            let phase = if failure.load { "load" } else { "eval" };
            tally.fail(id, wanted, format!("{phase} {}: {}", failure.error.python_class(), failure.error));
        }
    }
}

/// Where our language is larger on purpose: built-ins the original lacks, and lambdas given to `key=`.
fn diverges(vector: &Json) -> bool {
    let message = vector.pointer("/expect/error/message").and_then(Json::as_str).unwrap_or_default();
    let source = vector.get("expr").and_then(Json::as_str).unwrap_or_default();
    let added = ADDED.iter().any(|name| message.ends_with(&format!("name '{name}' is not defined")));
    let lambda = message.contains("lambda")
        && ["key=lambda", "map(lambda", "filter(lambda"].iter().any(|use_| source.contains(use_));
    added || lambda
}

struct Failure {
    load: bool,
    error: Error,
}

/// A template, or a document in which every text is one.
fn evaluate(input: &Json, scope: &[(String, Value)]) -> Result<Value, Failure> {
    compile_all(input).map_err(|error| Failure { load: true, error })?;
    document(input, &scope).map_err(|error| Failure { load: false, error })
}

/// Compiles first, as loading a file does, so that a bad template fails before anything runs.
fn compile_all(input: &Json) -> Result<(), Error> {
    match input {
        Json::String(text) => Template::compile(text).map(drop),
        Json::Array(items) => items.iter().try_for_each(compile_all),
        Json::Object(fields) => fields.values().try_for_each(compile_all),
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
    }
}

fn document(input: &Json, scope: &dyn Scope) -> Result<Value, Error> {
    match input {
        Json::String(text) => Template::compile(text)?.evaluate(scope, &EvalLimits::default()),
        Json::Array(items) => {
            Ok(Value::list(items.iter().map(|item| document(item, scope)).collect::<Result<Vec<_>, _>>()?))
        }
        Json::Object(fields) => {
            let Some(pairs) = fields.get("$dict").and_then(Json::as_array) else {
                let entries = fields.iter().map(|(key, value)| Ok((key.clone(), document(value, scope)?)));
                return Ok(Value::dict(entries.collect::<Result<Vec<_>, Error>>()?));
            };
            // A tagged dict: keys are data, values are documents.
            let mut literal = String::from("{");
            let mut values = Vec::new();
            for (index, pair) in pairs.iter().enumerate() {
                let key = from_tagged(pair.get(0).unwrap_or(&Json::Null));
                literal.push_str(&format!("{key:?}: v{index}, "));
                values.push((format!("v{index}"), document(pair.get(1).unwrap_or(&Json::Null), scope)?));
            }
            literal.push('}');
            toolwright_expr::Program::compile(&literal)?.evaluate(&values.as_slice(), &EvalLimits::default())
        }
        other => Ok(from_tagged(other)),
    }
}

/// `Err` says what was wanted.
fn verdict(expect: &Json, got: &Result<Value, Failure>) -> Result<(), String> {
    if let Some(wanted) = expect.get("ok") {
        let kind = expect.get("type").and_then(Json::as_str).unwrap_or_default();
        return match got {
            Ok(value) if matches(wanted, value) && (value.type_name() == kind) => Ok(()),
            _ => Err(format!("{wanted} of type {kind}")),
        };
    }
    let field = |name: &str| expect.pointer(&format!("/error/{name}")).and_then(Json::as_str);
    let load = field("phase") == Some("load");
    let class = field("cause").or(field("class")).unwrap_or_default();
    let wanted = || {
        format!("{} {class}: {}", if load { "load" } else { "eval" }, field("message").unwrap_or_default())
    };
    match got {
        Err(failure) if failure.load == load && class_matches(class, failure) => Ok(()),
        _ => Err(wanted()),
    }
}

/// The class of failure must match; every text that does not compile is a syntax error of some kind.
fn class_matches(class: &str, failure: &Failure) -> bool {
    let ours = failure.error.python_class();
    let syntax = matches!(failure.error.kind(), ErrorKind::Syntax | ErrorKind::Forbidden);
    ours == class || failure.load && syntax && class.ends_with("Error")
}

/// Variables that an expression was seen to change in place.
fn changed(vector: &Json, scope: &[(String, Value)]) -> Option<(String, String, String)> {
    let after = vector.get("vars_after")?.as_object()?;
    after.iter().find_map(|(name, wanted)| {
        let (_, value) = scope.iter().find(|(known, _)| known == name)?;
        (!matches(wanted, value)).then(|| (name.clone(), wanted.to_string(), format!("{value:?}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_vectors_pass() {
        let file =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/expr/llm_workers.json");
        let tally = run(&[file]).unwrap();
        assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n"));
        assert!(tally.passed > 900 && tally.skipped < 40, "{tally:?}");
    }
}
