//! Environment variables that a file declares: asked for, kept, listed and redacted.

use crate::terminal::Terminal;
use crate::{json, json_with};

const UNSET: &str = "
env:
  PLACE: {description: where it runs, persistent: true}
  TOKEN: {description: 'from your account', secret: true}
tools:
  - {name: t, do: {eval: '${len(env.TOKEN)} signs for ${env.PLACE}'}}
";

#[test]
fn a_person_is_asked_for_variables_that_are_not_set() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), UNSET).unwrap();
    let args = ["call", "t", "-f", "t.yaml"];
    let mut terminal = Terminal::start(folder.path(), &args, 100, 30, &[]);
    terminal.wait("`PLACE` is not set: where it runs");
    terminal.wait("Value:");
    terminal.send("the north\r");
    terminal.wait("`TOKEN` is not set: from your account");
    terminal.wait("Value (not shown):");
    terminal.send("sesame\r");
    terminal.wait("6 signs for the north");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.written().contains("sesame"), "{}", terminal.written());
    let kept = folder.path().join(".env");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "PLACE='the north'\n");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    // What was kept is not asked for again; without an answer the error names the variable.
    let mut terminal = Terminal::start(folder.path(), &args, 100, 30, &[]);
    terminal.wait("Value (not shown):");
    terminal.send("\r");
    terminal.wait("the environment variable `TOKEN` is not set");
    assert_eq!(terminal.end(), 2);
    assert!(!terminal.written().contains("`PLACE`"), "{}", terminal.written());
    // Without a terminal no user is available to answer.
    let called = json(folder.path(), &args);
    called.fails("parsing", 2, &[]);
    called.has_problems(&[("error t.yaml:4:3", "`TOKEN`")]);
}

#[test]
fn commands_that_list_take_variables_that_are_not_set_as_empty() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), format!("models: {{own: scripted/r.yaml}}\n{UNSET}"))
        .unwrap();
    let listed = json(folder.path(), &["tools", "t.yaml"]);
    assert_eq!((listed.names().as_slice(), listed.code), (["t".to_owned()].as_slice(), Some(0)));
    assert!(listed.stderr.contains("`PLACE`, `TOKEN`"), "{listed:?}");
    // What is shown of sections depends on no variable.
    for args in [&["models", "-f", "t.yaml"][..], &["sandbox", "explain", "-f", "t.yaml"]] {
        let shown = json(folder.path(), args);
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown:?}");
    }
    // Nor is anybody asked at a terminal.
    let mut terminal = Terminal::start(folder.path(), &["tools", "t.yaml"], 100, 30, &[]);
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.written().contains("Value"), "{}", terminal.written());
}

/// Answers that llm-workers kept are found, unless the folder or one above has a file of its own.
#[test]
fn the_variables_of_llm_workers_are_the_last_resort() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir_all(at(".config/llm-workers")).unwrap();
    std::fs::write(at(".config/llm-workers/.env"), "TOKEN=theirs\n").unwrap();
    let file = "env: {TOKEN: {}, PLACE: {persistent: true}}\ntools: [{name: t, do: [{eval: '${env.PLACE}'}, {eval: '${env.TOKEN}'}]}]\n";
    std::fs::write(at("t.yaml"), file).unwrap();
    let args = ["call", "t", "-f", "t.yaml", "--no-record"];
    let called = || json_with(home.path(), &args, "", &[("PLACE", "here")]);
    let text = || called().value()["content"][0]["text"].clone();
    assert_eq!(text(), "theirs");
    // A file that is made here would hide theirs.
    let mut terminal = Terminal::start(home.path(), &args, 200, 30, &[]);
    terminal.wait("llm-workers/.env is in use; write it there yourself");
    terminal.send("north\r");
    assert_eq!(terminal.end(), 0);
    assert!(!at(".env").exists());
    std::fs::write(at(".env"), "TOKEN=ours\n").unwrap();
    assert_eq!(text(), "ours");
    std::fs::write(at(".env"), "OTHER=1\n").unwrap();
    called().fails("parsing", 2, &["`TOKEN`"]);
}

/// A short value occurs in other texts by chance, so it is not redacted; a warning says so.
#[test]
fn a_secret_too_short_to_redact_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = "\
env: {NONE: {secret: true}, PIN: {secret: true}, KEY: {secret: true}, CODE: {secret: true}, OPEN: {}}
tools: [{name: t, do: {eval: '${env.PIN} ${env.KEY}'}}]
";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    std::fs::write(folder.path().join(".env"), "CODE=99\nOPEN=1\n").unwrap();
    let set = [("NONE", ""), ("PIN", "12345"), ("KEY", "123456")];
    let shown =
        crate::show_with(folder.path(), &["call", "t", "-f", "t.yaml", "--transcript", "t.jsonl"], "", &set);
    let warnings = "\
warning: the secret `PIN` has fewer than 6 bytes, so it is not kept out of records
warning: the secret `CODE` has fewer than 6 bytes, so it is not kept out of records
";
    assert!(shown.contains(&format!("--- stderr\n{warnings}--- exit 0\n")), "{shown}");
    let record = std::fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
    assert!(record.contains("12345 [redacted]"), "{record}");
}

/// As Python finds it; in containers and under `cron` no variable says it.
#[test]
fn the_name_of_the_user_is_known_without_variables() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), "tools: [{name: who, do: {eval: '${env.UserName}'}}]\n")
        .unwrap();
    let who = |set: &[(&str, &str)]| {
        let args = ["call", "who", "-f", "t.yaml", "--no-record"];
        let shown = crate::show_with(folder.path(), &args, "", set);
        let (_, name) = shown.split_once("--- stdout\n").unwrap();
        name.lines().next().unwrap().to_owned()
    };
    let me = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    let me = String::from_utf8(me).unwrap().trim().to_owned();
    assert_eq!(who(&[]), me);
    assert_eq!(who(&[("USER", ""), ("LOGNAME", "")]), me);
    assert_eq!(who(&[("USER", "ann")]), "ann");
    assert_eq!(who(&[("USER", "ann"), ("LOGNAME", "bob")]), "bob");
}

#[test]
fn an_answer_is_kept_only_in_the_env_file_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("project")).unwrap();
    let file = "env: {PLACE: {persistent: true}}\ntools: [{name: t, do: {eval: 'in ${env.PLACE}'}}]\n";
    std::fs::write(at("project/t.yaml"), file).unwrap();
    let answer = |told: &str| {
        let mut terminal = Terminal::start(&at("project"), &["call", "t", "-f", "t.yaml"], 200, 30, &[]);
        terminal.wait(told);
        terminal.wait("Value:");
        terminal.send("north\r");
        terminal.wait("in north");
        assert_eq!(terminal.end(), 0);
    };
    std::fs::write(at(".env"), "A=1\n").unwrap();
    answer("is in a folder above");
    std::fs::write(at("profile"), "# mine\n").unwrap();
    std::os::unix::fs::symlink(at("profile"), at("project/.env")).unwrap();
    answer("is not a regular file");
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert_eq!((read(".env"), read("profile")), ("A=1\n".to_owned(), "# mine\n".to_owned()));
    std::fs::remove_file(at("project/.env")).unwrap();
    std::fs::write(at("project/.env"), "B=2").unwrap();
    answer("the answer is kept in");
    assert_eq!(read("project/.env"), "B=2\nPLACE=north\n");
}

#[test]
fn a_wrong_variable_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["touch pwned #", "A=B", "1A", "", "A\\nB", "Ä"] {
        let file = format!("env: {{\"{name}\": {{persistent: true}}}}\n");
        std::fs::write(folder.path().join("t.yaml"), file).unwrap();
        let checked = json(folder.path(), &["check", "t.yaml"]);
        checked.fails("parsing", 2, &[]);
        checked.has_problems(&[("error t.yaml:1:7", "environment variable")]);
    }
}

#[test]
fn a_file_sees_its_system_and_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = "cli: {process_input: one_by_one, do: {eval: '${env.OS} ${env.CLI_ARGS.inputs} ${input}'}}\n";
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    let system = if cfg!(target_os = "macos") { "Darwin" } else { "Linux" };
    let ran = json(folder.path(), &["run", "t.yaml", "a"]);
    assert_eq!(ran.value()["output"], format!("{system} ['a'] a"), "{ran:?}");
    json(folder.path(), &["check", "t.yaml"]).has_problems(&[]);
}
