//! Environment variables that a file declares: asked for, kept, listed and redacted.

use crate::show_in;
use crate::terminal::Terminal;

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
    // What was kept is not asked for again; whoever gives no answer is told what is missing.
    let mut terminal = Terminal::start(folder.path(), &args, 100, 30, &[]);
    terminal.wait("Value (not shown):");
    terminal.send("\r");
    terminal.wait("the environment variable `TOKEN` is not set");
    assert_eq!(terminal.end(), 2);
    assert!(!terminal.written().contains("`PLACE`"), "{}", terminal.written());
    // Where there is no terminal there is nobody to ask.
    let shown = show_in(folder.path(), &args, "");
    assert!(shown.contains("`TOKEN` is not set") && shown.ends_with("--- exit 2\n"), "{shown}");
}

#[test]
fn commands_that_list_take_variables_that_are_not_set_as_empty() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), format!("models: {{own: scripted/r.yaml}}\n{UNSET}"))
        .unwrap();
    let told = "`PLACE`, `TOKEN` are not set, and taken as empty here\n";
    let shown = show_in(folder.path(), &["tools", "t.yaml"], "");
    assert!(
        shown.contains("--- stdout\nt\n") && shown.contains(told) && shown.ends_with("--- exit 0\n"),
        "{shown}"
    );
    let shown = show_in(folder.path(), &["models", "-f", "t.yaml"], "");
    assert!(shown.contains("own  the file: ") && shown.contains(told), "{shown}");
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    let shown = show_in(folder.path(), &["sandbox", "explain", "-f", "t.yaml"], "");
    assert!(shown.contains("--- stdout\nfiles\n") && shown.contains(told), "{shown}");
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
    let file =
        "env: {TOKEN: {}, PLACE: {persistent: true}}\ntools: [{name: t, do: {eval: '${env.TOKEN}'}}]\n";
    std::fs::write(at("t.yaml"), file).unwrap();
    let args = ["call", "t", "-f", "t.yaml", "--no-record"];
    let called = || crate::show_with(home.path(), &args, "", &[("PLACE", "here")]);
    assert!(called().contains("--- stdout\ntheirs\n"), "{}", called());
    // A file that is made here would hide theirs.
    let mut terminal = Terminal::start(home.path(), &args, 200, 30, &[]);
    terminal.wait("llm-workers/.env is in use; write it there yourself");
    terminal.send("north\r");
    assert_eq!(terminal.end(), 0);
    assert!(!at(".env").exists());
    std::fs::write(at(".env"), "TOKEN=ours\n").unwrap();
    assert!(called().contains("--- stdout\nours\n"), "{}", called());
    std::fs::write(at(".env"), "OTHER=1\n").unwrap();
    assert!(called().contains("`TOKEN` is not set"), "{}", called());
}

/// A value of a few signs stands in other texts by chance, so it is not looked for; whoever declares one knows.
#[test]
fn a_secret_that_is_too_short_to_be_kept_out_of_records_is_told() {
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
fn an_answer_is_kept_in_no_file_but_the_folders_own() {
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
    answer("is no regular file");
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert_eq!((read(".env"), read("profile")), ("A=1\n".to_owned(), "# mine\n".to_owned()));
    std::fs::remove_file(at("project/.env")).unwrap();
    std::fs::write(at("project/.env"), "B=2").unwrap();
    answer("the answer is kept in");
    assert_eq!(read("project/.env"), "B=2\nPLACE=north\n");
}

#[test]
fn a_variable_has_a_name_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["touch pwned #", "A=B", "1A", "", "A\\nB", "Ä"] {
        let file = format!("env: {{\"{name}\": {{persistent: true}}}}\n");
        std::fs::write(folder.path().join("t.yaml"), file).unwrap();
        let shown = show_in(folder.path(), &["check", "t.yaml"], "");
        let told = "cannot be the name of an environment variable";
        assert!(shown.contains(told) && shown.ends_with("--- exit 2\n"), "{shown}");
    }
}

#[test]
fn a_file_sees_its_system_and_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = "cli: {process_input: one_by_one, do: {eval: '${env.OS} ${env.CLI_ARGS.inputs} ${input}'}}\n";
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    let system = if cfg!(target_os = "macos") { "Darwin" } else { "Linux" };
    let shown = show_in(folder.path(), &["run", "t.yaml", "a"], "");
    assert!(shown.contains(&format!("{system} ['a'] a")), "{shown}");
    let checked = show_in(folder.path(), &["check", "t.yaml"], "");
    assert!(checked.contains("no problems"), "{checked}");
}
