//! Replays of what each command records: with nothing changed, nothing differs, and nothing is started.

use std::path::Path;

use crate::show_in;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Runs a command, which does well, and replays it: gives what the replay says.
fn replayed(folder: &Path, args: &[&str]) -> String {
    let shown = show_in(folder, args, "");
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    show_in(folder, &["replay"], "")
}

/// Nothing is different, and nothing is said about it.
fn same(shown: &str) {
    assert_eq!(shown, "$ toolwright replay\n--- stdout\nno difference\n--- exit 0\n");
}

/// The flow of a `cli` section is run again, input by input, with what it stored and the command line it saw.
#[test]
fn a_replay_of_a_batch_runs_its_flow_again() {
    let file = "\
cli:
  process_input: one_by_one
  tools: [{name: shout, input: [{name: text, type: str}], do: {eval: '${text.upper()}'}}]
  do:
    - {call: shout, params: {text: '${input}'}}
    - eval: '${_} of ${env.CLI_ARGS.inputs} in ${env.CLI_ARGS.script_file}'
";
    let folder = folder(&[("t.yaml", file)]);
    same(&replayed(folder.path(), &["run", "t.yaml", "ada", "grace"]));
    std::fs::write(folder.path().join("t.yaml"), file.replace("upper", "title")).unwrap();
    let shown = show_in(folder.path(), &["replay"], "");
    assert!(shown.contains("shout gives Ada") && shown.ends_with("--- exit 1\n"), "{shown}");
    // All inputs as one.
    let file = file.replace("one_by_one", "all_as_list").replace("'${input}'", "'${input[0]}'");
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    same(&replayed(folder.path(), &["run", "t.yaml", "ada", "grace"]));
    // The file that `init` writes.
    show_in(folder.path(), &["init", "--yes"], "");
    same(&replayed(folder.path(), &["run", "toolwright.yaml", "ada"]));
}
