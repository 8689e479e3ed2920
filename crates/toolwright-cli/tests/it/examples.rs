//! The files of `examples/yaml` with the program's own tools: all are fine, and what uses the tools gives
//! what it states.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::show_in;

#[test]
fn examples_work_with_the_real_tools() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    let sandboxed = show_in(folder.path(), &["sandbox", "explain"], "").ends_with("--- exit 0\n");
    if !sandboxed {
        eprintln!(
            "skipped: the calls of examples_work_with_the_real_tools (no process sandbox on this machine)"
        );
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/yaml");
    let mut called = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        let (Some("yaml"), Some(name)) = (
            path.extension().and_then(|ending| ending.to_str()),
            path.file_name().and_then(|name| name.to_str()),
        ) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(folder.path().join(name), &text).unwrap();
        let checked = show_in(folder.path(), &["check", name], "");
        assert!(checked.ends_with("--- exit 0\n") && !checked.contains("warning"), "{checked}");
        if !sandboxed || !text.contains("import_tool: ") {
            continue;
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("# check: ")) {
            called += 1;
            check(folder.path(), name, line);
        }
    }
    assert!(called > 8 || !sandboxed);
}

fn check(folder: &Path, file: &str, line: &str) {
    let (asked, wanted) = line.rsplit_once(" -> ").unwrap();
    let (tool, arguments) = asked.split_once(' ').unwrap();
    let shown = show_in(folder, &["call", tool, "--args", arguments, "-f", file], "");
    let said = shown.split_once("--- stdout\n").map_or("", |(_, rest)| rest);
    let said = said.split_once("\n--- ").map_or(said, |(said, _)| said);
    match serde_json::from_str(wanted).unwrap() {
        Value::String(text) => assert_eq!(said, text.trim_end(), "{line}\n{shown}"),
        value => assert_eq!(serde_json::from_str::<Value>(said).ok(), Some(value), "{line}\n{shown}"),
    }
}
