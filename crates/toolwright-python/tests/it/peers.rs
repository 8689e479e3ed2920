//! Schemas against fastmcp's, with pydantic in use: both accept and refuse the same arguments.
//!
//! It needs `target/peers/mcp` (made by `cargo xtask test`); where that is missing the tests are ignored.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use toolwright_core::schema::Schema;
use toolwright_python::PythonOptions;

use crate::support::{Opened, ResultValue as _, Test, open_with};

pub(crate) fn tests() -> Vec<Test> {
    vec![
        ("schemas_accept_and_refuse_what_fastmcp_does", || Box::pin(schemas())),
        ("pydantic_reads_what_only_pydantic_knows", || Box::pin(values())),
    ]
}

/// A virtual environment with pydantic and fastmcp.
pub(crate) fn environment() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/mcp");
    root.join("bin/python").exists().then_some(root)
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name)
}

async fn corpus() -> Opened {
    let root = environment().unwrap();
    let print = "import sys; print(sys.base_prefix)";
    let output = Command::new(root.join("bin/python")).args(["-I", "-c", print]).output().unwrap();
    let prefix = String::from_utf8(output.stdout).unwrap();
    let source = std::fs::read_to_string(here("corpus.py")).unwrap();
    // The peers may be behind a link.
    let real = root.canonicalize().unwrap();
    let program = real.join("bin/python");
    let read = vec![real, prefix.trim().into()];
    open_with(&source, PythonOptions::default(), &program, read).await.unwrap()
}

/// Our schemas refuse members that a class does not have; pydantic's ignore them.
fn opened(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let open = members
                .iter()
                .filter(|(key, value)| *key != "additionalProperties" || **value != json!(false));
            Value::Object(open.map(|(key, value)| (key.clone(), opened(value))).collect())
        }
        Value::Array(items) => items.iter().map(opened).collect(),
        other => other.clone(),
    }
}

/// Arguments that the schema accepts, then the same with one parameter left out or changed.
fn trials(schema: &Value, values: &[Value]) -> Vec<Value> {
    let Some(properties) = schema["properties"].as_object() else { return vec![json!({})] };
    let accepted = |property: &Value| {
        let alone =
            json!({"$defs": schema["$defs"].as_object().cloned().unwrap_or_default(), "allOf": [property]});
        let alone = Schema::compile_any(&alone).unwrap();
        values.iter().find(|value| alone.problems(value).is_empty()).cloned()
    };
    let base: Map<String, Value> =
        properties.iter().filter_map(|(name, property)| Some((name.clone(), accepted(property)?))).collect();
    let mut trials = vec![Value::Object(base.clone())];
    for name in properties.keys() {
        let mut less = base.clone();
        less.remove(name);
        trials.push(Value::Object(less));
        trials.extend(values.iter().map(|value| {
            let mut changed = base.clone();
            changed.insert(name.clone(), value.clone());
            Value::Object(changed)
        }));
    }
    trials
}

async fn schemas() {
    let root = environment().unwrap();
    let output = Command::new(root.join("bin/python")).arg(here("fastmcp_schemas.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let peer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let values = peer["values"].as_array().unwrap();
    let file = corpus().await;
    assert_eq!(file.file.left_out(), []);
    let specs = file.specs().await;
    let mut different = Vec::new();
    assert_eq!(specs.len(), peer["schemas"].as_object().unwrap().len());
    for spec in specs {
        let (ours, theirs) = (opened(&spec.parameters), opened(&peer["schemas"][&*spec.name]));
        let (mine, other) = (Schema::compile_any(&ours).unwrap(), Schema::compile_any(&theirs).unwrap());
        for trial in trials(&ours, values).into_iter().chain(trials(&theirs, values)) {
            let (mine, other) = (mine.problems(&trial).is_empty(), other.problems(&trial).is_empty());
            if mine != other {
                different.push(format!("{}: ours {mine}, fastmcp {other}: {trial}", spec.name));
            }
        }
    }
    assert!(different.is_empty(), "{}: {:#?}", different.len(), &different[..different.len().min(20)]);
}

async fn values() {
    let file = corpus().await;
    let fields = file.call("fields", json!({"a": 1})).await;
    assert_eq!((&fields.error, fields.value()), (&None, json!([1, "x", []])));
    let arguments = json!({"url": "http://a.b/", "n": 1, "user": {"name": "Ann"}, "key": "k"});
    let read = file.call("read", arguments).await;
    assert_eq!((&read.error, read.value()), (&None, json!(["HttpUrl", 2, "User", "k"])));
}
