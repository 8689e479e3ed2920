//! Files of Python functions, as a person uses them. Without Python these tests are skipped.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const TOOLS: &str = "
def add(x: int, y: int = 1) -> int:
    '''Adds.'''
    return x + y

def bad(callback: type) -> int:
    return 0

def where() -> str:
    import sys
    return sys.prefix

def home() -> list:
    import os
    return os.listdir(os.path.expanduser('~'))
";

fn folder(file: &str) -> Option<TempDir> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tools.py"), TOOLS).unwrap();
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    Some(folder)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).envs(crate::NO_SERVERS);
    command.output().unwrap()
}

fn value(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn functions_are_imported_under_a_prefix_and_one_by_one() {
    let file = "
tools:
  - {import_tools: 'python:tools.py', prefix: py_, filter: [add]}
  - {import_tool: 'python:tools.py/add', name: plus, description: More.}
";
    let Some(folder) = folder(file) else { return };
    let tools = value(&run(folder.path(), &["tools", "-f", "t.yaml", "--format", "json"]));
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["py_add", "plus"]);
    assert_eq!(tools[1]["description"], "More.");
    assert_eq!(value(&run(folder.path(), &["call", "plus", "x=41", "-f", "t.yaml"])), json!(42));
    let wrong = run(folder.path(), &["call", "plus", "x=many", "-f", "t.yaml"]);
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn a_flow_calls_functions() {
    let file = "
tools:
  - {import_tools: 'python:tools.py'}
  - name: sums
    input: [{name: numbers, type: 'list[int]', description: Numbers.}]
    do: {for_each: '${numbers}', do: {call: add, params: {x: '${_}', y: 10}}}
";
    let Some(folder) = folder(file) else { return };
    let sums = run(folder.path(), &["call", "sums", "numbers:=[1,2]", "-f", "t.yaml"]);
    assert_eq!(String::from_utf8_lossy(&sums.stdout), "11\n12\n");
}

#[test]
fn what_cannot_be_used_is_reported_with_its_place() {
    let Some(folder) = folder("tools: [{import_tools: 'python:tools.py'}]") else { return };
    let checked = run(folder.path(), &["check", "t.yaml", "--connect"]);
    let text = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(text.contains("`bad` of the Python file `tools.py` is left out: line 6"), "{text}");
    std::fs::write(folder.path().join("tools.py"), "import nowhere_at_all\n").unwrap();
    let broken = run(folder.path(), &["call", "add", "x=1", "-f", "t.yaml"]);
    let text = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert_eq!(broken.status.code(), Some(2), "{text}");
    assert!(text.contains("No module named 'nowhere_at_all'"), "{text}");
    std::fs::remove_file(folder.path().join("tools.py")).unwrap();
    assert_eq!(run(folder.path(), &["call", "add", "x=1", "-f", "t.yaml"]).status.code(), Some(2));
}

#[test]
fn an_environment_beside_the_file_is_taken() {
    let Some(folder) = folder("tools: [{import_tools: 'python:tools.py'}]") else { return };
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--without-pip", ".venv"]).current_dir(folder.path());
    if !venv.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: python3 makes no environments here");
        return;
    }
    let output = run(folder.path(), &["call", "where", "-f", "t.yaml"]);
    let prefix = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(prefix.ends_with("/.venv"), "{prefix} {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_script_block_names_the_environment_of_uv() {
    let Some(folder) = folder("tools: [{import_tools: 'python:tools.py'}]") else { return };
    if Command::new("uv").arg("--version").output().is_err() {
        eprintln!("skipped: a_script_block_names_the_environment_of_uv (no uv)");
        return;
    }
    let sync = |folder: &Path| {
        let cache = folder.join("cache");
        let mut command = Command::new("uv");
        command.args(["sync", "--offline", "--script", "tools.py"]).current_dir(folder);
        command.env("UV_CACHE_DIR", cache).output().unwrap()
    };
    let call = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
        command.args(["call", "where", "-f", "t.yaml"]).current_dir(folder).stdin(Stdio::null());
        command.envs(crate::NO_SERVERS).env("UV_CACHE_DIR", folder.join("cache")).output().unwrap()
    };
    let write = |packages: &str| {
        let block =
            format!("# /// script\n# requires-python = \">=3.9\"\n# dependencies = [{packages}]\n# ///\n");
        std::fs::write(folder.path().join("tools.py"), format!("{block}{TOOLS}")).unwrap();
    };
    // Nothing is installed by a call.
    write("\"no-package-has-this-name\"");
    let before = call(folder.path());
    let text = String::from_utf8_lossy(&before.stderr).into_owned();
    assert!(before.status.code() == Some(2) && text.contains("uv sync --script"), "{text}");
    write("");
    let synced = sync(folder.path());
    assert!(synced.status.success(), "{}", String::from_utf8_lossy(&synced.stderr));
    let after = call(folder.path());
    let prefix = String::from_utf8_lossy(&after.stdout).trim().to_owned();
    assert!(prefix.contains("/environments-"), "{prefix} {}", String::from_utf8_lossy(&after.stderr));
}

#[test]
fn a_worker_starts_only_when_one_of_its_tools_is_used() {
    let file = "
tools:
  - {import_tools: 'python:gone.py', prefix: gone_}
  - {name: hello, do: {eval: hi}}
";
    let Some(folder) = folder(file) else { return };
    let output = run(folder.path(), &["call", "hello", "-f", "t.yaml"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "hi");
}
