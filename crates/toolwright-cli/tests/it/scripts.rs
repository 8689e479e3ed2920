//! Scripts as tools, as a person uses them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const GREET: &str = "\
# @describe Greets.
# @option --name! Who.
# @option --mark=! The mark.
main() { echo \"Hello $argc_name$argc_mark\" >> \"$LLM_OUTPUT\"; echo noise; }
eval \"$(argc --argc-eval \"$0\" \"$@\")\"
";

const KEY: &str =
    "# /// tool\n# description: Shows the key.\n# ///\necho \"key ${KEY:-none} ${OTHER:-none}\"\n";

fn folder(file: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    std::fs::write(folder.path().join("bin/greet.sh"), GREET).unwrap();
    std::fs::write(folder.path().join("bin/key.sh"), KEY).unwrap();
    std::fs::write(folder.path().join("bin/notes.txt"), "Nothing to run.\n").unwrap();
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).envs(crate::NO_SERVERS);
    command.env("KEY", "k1").env("OTHER", "o1").output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn scripts_are_imported_under_a_prefix_and_one_by_one() {
    let folder = folder(
        "
tools:
  - {import_tools: 'script:bin/*', prefix: sh_, filter: [greet]}
  - {import_tool: 'script:bin/greet.sh', name: hello, description: More.}
  - {import_tool: 'script:bin/key.sh'}
  - name: twice
    do: {for_each: [Ann, Bob], do: {call: hello, params: {name: '${_}', mark: '?'}}}
scripts: {env: [KEY]}
",
    );
    let tools: Value =
        serde_json::from_str(&text(&run(folder.path(), &["tools", "-f", "t.yaml", "--format", "json"])))
            .unwrap();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sh_greet", "hello", "key", "twice"]);
    assert_eq!(tools[1]["description"], "More.");
    assert_eq!(text(&run(folder.path(), &["call", "hello", "name=Ann", "-f", "t.yaml"])), "Hello Ann!");
    let twice = text(&run(folder.path(), &["call", "twice", "-f", "t.yaml"]));
    assert_eq!(twice.lines().filter(|line| line.starts_with("Hello")).count(), 2, "{twice}");
    // Of the variables they see those that the file names.
    assert_eq!(text(&run(folder.path(), &["call", "key", "-f", "t.yaml"])), "key k1 none");
    let wrong = run(folder.path(), &["call", "hello", "-f", "t.yaml"]);
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn what_is_no_tool_is_reported_without_starting_anything() {
    let folder = folder("tools: [{import_tools: 'script:bin/*'}]");
    let checked = run(folder.path(), &["check", "t.yaml"]);
    let text = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(text.contains("`notes.txt` of the scripts `bin/*` is left out: it has no definition"), "{text}");
    for (file, words) in [
        ("tools: [{import_tool: 'script:bin/notes.txt'}]", "it has no definition"),
        ("tools: [{import_tool: 'script:bin/gone.sh'}]", "gone.sh"),
        ("tools: [{import_tools: 'script:nowhere/*'}]", "nowhere"),
        ("scripts: {timeout: 0}", "`timeout` must be seconds"),
        ("scripts: {envs: []}", "envs"),
    ] {
        std::fs::write(folder.path().join("t.yaml"), file).unwrap();
        let checked = run(folder.path(), &["check", "t.yaml"]);
        let text = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.code() == Some(2) && text.contains(words), "{file}: {text}");
    }
}

#[test]
fn trust_is_bound_to_each_script() {
    use toolwright::file::ToolFile;
    use toolwright::lang::Source;

    let folder = folder("tools: [{import_tools: 'script:bin/*.sh'}]");
    let shown = || {
        let text = std::fs::read_to_string(folder.path().join("t.yaml")).unwrap();
        let file = ToolFile::parse(Source::text("t.yaml", &text)).unwrap();
        format!("{:?}", file.authority(folder.path()))
    };
    let first = shown();
    for part in ["bin/greet.sh", "bin/key.sh", "the scripts "] {
        assert!(first.contains(part), "{part}: {first}");
    }
    std::fs::write(folder.path().join("bin/greet.sh"), format!("{GREET}# changed\n")).unwrap();
    let second = shown();
    assert_ne!(first, second);
    std::fs::write(folder.path().join("bin/more.sh"), KEY).unwrap();
    let third = shown();
    assert!(second != third && third.contains("bin/more.sh"));
    std::fs::write(folder.path().join("bin/more.tool.yaml"), "description: x\n").unwrap();
    assert_ne!(third, shown());
}
