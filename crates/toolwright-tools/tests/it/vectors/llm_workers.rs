//! The file tools of llm-workers: values must be equal, and failures must fail.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use toolwright_core::ErrorKind;
use toolwright_testkit::vectors::Tally;
use toolwright_tools::resolve;

use super::{Vector, file, finish, to_run};
use crate::support::{Backend, Bench, cases, value_of};

cases![file_tools_do_what_llm_workers_does];

fn files() -> Map<String, Value> {
    let text = std::fs::read_to_string(file("llm_workers/fs")).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    match all["files"].take() {
        Value::Object(files) => files,
        other => panic!("{other}"),
    }
}

async fn file_tools_do_what_llm_workers_does(backend: Backend) {
    let mut tally = Tally::default();
    for vector in to_run("llm_workers/fs") {
        let bench = Bench::of(backend, resolve(&format!("llm_workers.tools.fs.{}", vector.tool))).await;
        let files = files();
        for (age, (path, text)) in files.iter().enumerate() {
            bench.write(path, text.as_str().unwrap());
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + 10 * age as u64);
            std::fs::File::options()
                .append(true)
                .open(bench.folder.join(path))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        check(&bench, &vector, &files, &mut tally).await;
    }
    finish(&tally);
}

async fn check(bench: &Bench, vector: &Vector, files: &Map<String, Value>, tally: &mut Tally) {
    let result = bench.call(&vector.tool, vector.given.clone()).await;
    let expect = &vector.observed;
    if let Some(error) = expect.get("error") {
        let wanted = match (error["cause"].as_str(), error["class"].as_str()) {
            (Some("FileNotFoundError"), _) => ErrorKind::FileNotFound,
            (Some("IsADirectoryError"), _) => ErrorKind::IsADirectory,
            (_, Some("ValidationError")) => ErrorKind::Parsing,
            _ => ErrorKind::Unknown,
        };
        return tally.check(&vector.id, &Some(wanted), &result.error.map(|error| error.kind));
    }
    let mut got = value_of(&result);
    if let Some(error) = &result.error {
        got = json!({"error": error});
    }
    // The observation leaves out what differs from machine to machine.
    if vector.tool == "file_info"
        && let (Some(got), Some(wanted)) = (got.as_object_mut(), expect["ok"].as_object())
    {
        got.retain(|key, _| wanted.contains_key(key));
        if wanted.contains_key("permissions") {
            got.insert("permissions".to_owned(), "rw-r--r--".into());
        }
    }
    // Nothing and an empty text are the same to a model.
    let empty = |value: &Value| value.is_null() || value == "";
    if empty(&got) && empty(&expect["ok"]) {
        got = expect["ok"].clone();
    }
    tally.check(&vector.id, &expect["ok"], &got);
    let mut changed = Map::new();
    for (path, text) in files {
        let now = bench.read(path);
        if now != text.as_str().unwrap() {
            changed.insert(path.clone(), now.into());
        }
    }
    for entry in std::fs::read_dir(&bench.folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_file() && !files.contains_key(&name) {
            changed.insert(name.clone(), bench.read(&name).into());
        }
    }
    let wanted = expect["files_changed"].as_object().cloned().unwrap_or_default();
    tally.check(&format!("{} (files)", vector.id), &wanted, &changed);
}
