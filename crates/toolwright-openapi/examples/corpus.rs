//! Imports all OpenAPI documents below a folder and reports what became of their operations.
//!
//! `cargo run --release -p toolwright-openapi --example corpus -- FOLDER [--reasons]`

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a program for people")]

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::schema::Schema;
use toolwright_openapi::{ApiDocument, ImportOptions};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut files = Vec::new();
    let Some(folder) = arguments.first() else {
        eprintln!("usage: corpus FOLDER [--reasons]");
        std::process::exit(2);
    };
    collect(Path::new(folder), &mut files);
    files.sort();
    let show = arguments.iter().any(|word| word == "--reasons");
    let (mut documents, mut refused, mut tools, mut left_out) = (0, Vec::new(), 0, 0);
    let (mut bad_schemas, mut requests, mut failed) = (0, 0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let (mut importing, mut compiling) = (Duration::ZERO, Duration::ZERO);
    let mut slowest = (Duration::ZERO, PathBuf::new());
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let begin = Instant::now();
        let options =
            ImportOptions { base_url: Some("https://api.example".into()), ..ImportOptions::default() };
        let name = file.display().to_string();
        let api = match ApiDocument::parse(&name, &text).and_then(|document| document.import(&options)) {
            Ok(api) => api,
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        };
        let time = begin.elapsed();
        importing += time;
        if time > slowest.0 {
            slowest = (time, file.clone());
        }
        documents += 1;
        tools += api.operations.len();
        left_out += api.left_out.len();
        for one in &api.left_out {
            *reasons.entry(format!("import: {}", plain(&one.reason))).or_default() += 1;
            if show {
                println!("{name}: {}: {}", one.operation, one.reason);
            }
        }
        let mut names = HashSet::new();
        let begin = Instant::now();
        for operation in &api.operations {
            let spec = operation.spec();
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(
                (1..=64).contains(&spec.name.len()) && spec.name.chars().all(legal),
                "{name}: {}",
                spec.name
            );
            assert!(names.insert(spec.name.clone()), "{name}: {} twice", spec.name);
            for argument in spec.parameter_names() {
                assert!(
                    (1..=64).contains(&argument.len()) && argument.chars().all(legal),
                    "{name}: {argument}"
                );
            }
            if let Err(error) = Schema::compile(&spec.parameters) {
                bad_schemas += 1;
                *reasons.entry(format!("schema: {}", plain(&error.to_string()))).or_default() += 1;
                if show {
                    println!("{name}: {}: {error}", spec.name);
                }
            }
            requests += 1;
            if let Err(error) = operation.request(&sample(&spec.parameters)) {
                failed += 1;
                *reasons.entry(format!("request: {}", plain(&error.to_string()))).or_default() += 1;
            }
        }
        compiling += begin.elapsed();
    }
    println!(
        "{documents} documents, {tools} tools, {left_out} operations left out, {} refused",
        refused.len()
    );
    println!("{bad_schemas} schemas do not compile; {failed} of {requests} sample requests fail");
    println!(
        "import {importing:.1?}, schemas {compiling:.1?}; slowest {:.2?} {}",
        slowest.0,
        slowest.1.display()
    );
    for (reason, count) in reasons {
        println!("{count:6} {reason}");
    }
    refused.iter().for_each(|reason| println!("refused: {reason}"));
}

fn collect(at: &Path, files: &mut Vec<PathBuf>) {
    if at.is_file() {
        return files.push(at.to_owned());
    }
    for entry in std::fs::read_dir(at).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, files),
            false
                if path
                    .extension()
                    .is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|one| ending == *one)) =>
            {
                files.push(path);
            }
            false => {}
        }
    }
}

/// A reason without what differs from document to document.
fn plain(reason: &str) -> String {
    let mut words = reason.split('`');
    let mut out = words.next().unwrap_or_default().to_owned();
    while let (Some(_), Some(text)) = (words.next(), words.next()) {
        out.push('…');
        out.push_str(text);
    }
    out.chars().take(100).collect()
}

/// Some value for each required parameter.
fn sample(schema: &Value) -> Value {
    let names =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| {
        let kind = schema
            .get("properties")
            .and_then(|all| all.get(name)?.get("type"))
            .and_then(Value::as_str)
            .unwrap_or("string");
        match kind {
            "integer" | "number" => json!(7),
            "boolean" => json!(true),
            "array" => json!(["a b", "c/d"]),
            "object" => json!({"k": "v&w"}),
            _ => json!("x y/z?"),
        }
    };
    Value::Object(names.map(|name| (name.to_owned(), value(name))).collect())
}
