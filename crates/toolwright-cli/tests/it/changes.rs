//! What calls change in a folder: nothing beside it, shown in the record, and undone.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Outcome, json_with};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().display().to_string()).collect();
    names.sort();
    names
}

/// A folder to work in, in a home folder of its own.
fn work() -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("kept"), "1\n").unwrap();
    (home, work)
}

/// Runs a command whose records are kept beside the folder.
fn json(work: &Path, args: &[&str]) -> Outcome {
    let data = work.with_file_name("data").display().to_string();
    json_with(work, args, "", &[("XDG_DATA_HOME", &data)])
}

fn call(work: &Path, command: &str) -> Outcome {
    let command = format!("command={command}");
    json(work, &["call", "bash", "--write", ".", &command])
}

#[test]
fn a_call_adds_nothing_to_the_folder_and_can_be_undone() {
    let (_home, work) = work();
    let listed = call(&work, "ls -A");
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("kept") && !listed.stdout.contains("tools.lock"), "{listed:?}");
    assert_eq!(call(&work, "echo 2 > kept; mkdir d; echo x > d/new").code, Some(0));
    assert_eq!(fs::read_to_string(work.join("kept")).unwrap(), "2\n");
    let undone = json(&work, &["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let value: Value = serde_json::from_str(&undone.stdout).unwrap();
    let changes = value["effect"]["files"].as_array().unwrap().len();
    assert_eq!((changes, value["undone"].as_array().unwrap().len()), (3, 1), "{value}");
    assert_eq!(fs::read_to_string(work.join("kept")).unwrap(), "1\n");
    assert!(!work.join("d").exists());
}

#[test]
fn the_record_of_a_run_has_the_effect_of_its_calls() {
    let (_home, work) = work();
    assert_eq!(call(&work, "echo x > new; echo y > .envrc").code, Some(0));
    let record = json(&work, &["runs", "show", "last"]);
    let notes: Vec<Value> = record
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["note"]["name"] == "effect" || event.to_string().contains("\"effect\""))
        .collect();
    assert_eq!(notes.len(), 1, "{record:?}");
    let text = notes[0].to_string();
    assert!(text.contains("/new") && text.contains("protected") && text.contains("commits"), "{text}");
    let undone = json(&work, &["undo", "last"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(!work.join("new").exists() && !work.join(".envrc").exists());
}

#[test]
fn what_changed_since_is_not_undone() {
    let (_home, work) = work();
    assert_eq!(call(&work, "echo 2 > kept; echo x > new").code, Some(0));
    fs::write(work.join("kept"), "mine\n").unwrap();
    let undone = json(&work, &["undo", "last"]);
    assert_eq!(undone.code, Some(1), "{undone:?}");
    assert_eq!(fs::read_to_string(work.join("kept")).unwrap(), "mine\n");
    assert!(!work.join("new").exists());
    assert_eq!(json(&work, &["undo", "no-such-call"]).code, Some(2));
}

#[test]
fn a_link_that_a_command_left_grants_nothing() {
    let (home, work) = work();
    let victim = home.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("keep"), "old").unwrap();
    let plant = format!("ln -s {} build", victim.display());
    assert_eq!(call(&work, &plant).code, Some(0));
    for grant in ["--write", "--read"] {
        let refused =
            json(&work, &["call", "bash", grant, "build", "command=cat build/keep; echo new > build/keep"]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(!refused.stdout.contains("old"), "{refused:?}");
    }
    assert_eq!(fs::read_to_string(victim.join("keep")).unwrap(), "old");
}

#[test]
fn live_changes_are_still_to_be_had() {
    let (_home, work) = work();
    fs::write(work.join("live.yaml"), "sandbox: {write: [.], changes: live}\ntools: [{import_tool: bash}]\n")
        .unwrap();
    let called = json(&work, &["call", "-f", "live.yaml", "bash", "command=echo 2 > kept"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert_eq!(fs::read_to_string(work.join("kept")).unwrap(), "2\n");
    let discard = "sandbox: {write: [.], changes: discard}\ntools: [{import_tool: bash}]\n";
    fs::write(work.join("drop.yaml"), discard).unwrap();
    let called = json(&work, &["call", "-f", "drop.yaml", "bash", "command=echo 3 > kept; echo x > y"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert_eq!(fs::read_to_string(work.join("kept")).unwrap(), "2\n");
    assert_eq!(names(&work), ["drop.yaml", "kept", "live.yaml"]);
}
