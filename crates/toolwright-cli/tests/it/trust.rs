//! Files that were found, not named: what they may not do before a person has allowed it.

use crate::fake_model::{ANSWER, FakeModel};
use crate::servers::US;
use crate::terminal::Terminal;
use crate::{json, json_with, show_in};

/// A folder as a stranger may have made it: its server leaves a mark when it is started.
fn untrusted() -> (tempfile::TempDir, String) {
    let script = format!("touch started; exec '{US}' serve");
    let folder = crate::servers::folder(
        "/bin/sh",
        &["-c", &script],
        "tools: [{import_tools: 'mcp:demo', prefix: ''}]\n",
    );
    let replies = "- {text: Hi.}\n";
    std::fs::write(folder.path().join("replies.yaml"), replies).unwrap();
    (folder, script)
}

#[test]
fn servers_of_an_untrusted_file_are_not_started_without_a_person() {
    let (folder, script) = untrusted();
    let started = folder.path().join("started");
    let ask = ["ask", "hi", "--model", "scripted/replies.yaml", "--no-record"];
    for args in [
        &["tools"][..],
        &ask,
        &["call", "nothing_built_in"],
        &["chat", "--model", "scripted/replies.yaml"],
        &["check", "--start-servers"],
    ] {
        let refused = if args[0] == "chat" { None } else { Some(json(folder.path(), args)) };
        // The exact command, as a shell would read it, and how to say that the file is trusted.
        let command = format!("/bin/sh -c '{}'", script.replace('\'', "'\\''"));
        match refused {
            Some(refused) => {
                refused.fails("parsing", 2, &[]);
                // A warning, an error or a problem of the file; in JSON a backslash is doubled.
                let text = (refused.stdout.clone() + &refused.stderr).replace("\\\\", "\\");
                assert!(text.contains(&command) && text.contains("-f toolwright.yaml"), "{refused:?}");
            }
            None => {
                let shown = show_in(folder.path(), args, "");
                assert!(shown.contains(&command) && shown.contains("-f toolwright.yaml"), "{shown}");
                assert!(shown.ends_with("--- exit 2\n"), "{shown}");
            }
        }
        assert!(!started.exists(), "{args:?} started the server");
    }
    // Models and sandboxes are looked up without the servers.
    for args in
        [&["models"][..], &["models", "toolwright.yaml"], &["sandbox", "explain", "-f", "toolwright.yaml"]]
    {
        let shown = show_in(folder.path(), args, "");
        assert!(!shown.ends_with("exit 2\n"), "{shown}");
        assert!(!started.exists(), "{args:?} started the server");
    }
    let names = json(folder.path(), &["tools", "-f", "toolwright.yaml"]).names();
    assert!(names.iter().any(|name| name == "add") && started.exists(), "{names:?}");
}

#[test]
fn a_person_allows_the_servers_of_an_untrusted_file_once() {
    let (folder, _) = untrusted();
    let started = folder.path().join("started");
    let answer = |word: &str| {
        let mut terminal = Terminal::start(folder.path(), &["tools", "add"], 200, 30, &[]);
        terminal.wait("touch started; exec");
        terminal.wait("Allow it, here and from now on?");
        terminal.send(&format!("{word}\r"));
        terminal.end()
    };
    assert_eq!((answer("n"), started.exists()), (2, false));
    assert_eq!((answer("y"), started.exists()), (0, true));
    let kept = folder.path().join(".local/share/toolwright/allowed.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(std::fs::read_to_string(&kept).unwrap().contains("touch started"));
    // Not asked again, here; another command is another question.
    let again = Terminal::start(folder.path(), &["tools", "add"], 200, 30, &[]).end();
    assert_eq!(again, 0);
    let file = folder.path().join("toolwright.yaml");
    let text = std::fs::read_to_string(&file).unwrap().replace("touch started", "touch  started");
    std::fs::write(&file, text).unwrap();
    let mut changed = Terminal::start(folder.path(), &["tools", "add"], 200, 30, &[]);
    changed.wait("Allow it, here and from now on?");
    changed.send("n\r");
    assert_eq!(changed.end(), 2);
}

/// What a `toolwright.yaml` says that a stranger may have put there, and what a person has to be shown of it.
const OPENING: &[(&str, &str)] = &[
    ("sandbox: {kind: local, setup: 'touch ran'}", "in no sandbox at all\n    beginning with: 'touch ran'"),
    ("sandbox: local", "they run on this machine, in no sandbox at all"),
    ("sandbox: {read: [/etc]}", "they may read /etc"),
    ("sandbox: {write: [., ..]}", "they may write in .."),
    ("sandbox: {network: [a.example]}", "they may reach a.example"),
    ("sandbox: {env: {pass: [MY_KEY]}}", "they see your variable MY_KEY"),
    ("sandbox: {write: [.], protect: []}", "they may write files that run programs outside"),
    ("sandbox: {require: []}", "they run also where there is no seccomp"),
    ("sandboxes: {b: local}\nsandbox: {write: [.]}", "of the sandbox `b`"),
];

#[test]
fn an_untrusted_file_does_not_open_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolwright.yaml");
    std::fs::write(folder.path().join("replies.yaml"), "- {text: Hi.}\n").unwrap();
    for (section, told) in OPENING {
        std::fs::write(&file, format!("{section}\ntools: [{{import_tool: bash}}]\n")).unwrap();
        let call = ["call", "bash", "command=touch ran"];
        let ask = ["ask", "hi", "--model", "scripted/replies.yaml", "--no-record"];
        for args in [&call[..], &ask] {
            json(folder.path(), args).fails("parsing", 2, &[told, "-f toolwright.yaml"]);
            assert!(!folder.path().join("ran").exists(), "{section}: {args:?} ran");
        }
    }
    // What keeps to the folder, or closes more, needs nobody's word.
    for section in [
        "sandbox: {write: [.], mask: [secret], network: loopback}",
        "sandbox: none",
        "limits: {tool_calls: 3}",
    ] {
        std::fs::write(&file, format!("{section}\n")).unwrap();
        let shown = show_in(folder.path(), &["call", "add", "x=1", "y=2"], "");
        assert!(shown.ends_with("--- exit 0\n"), "{section}: {shown}");
    }
    // Who names the file has said that they trust it.
    std::fs::write(&file, "sandbox: local\n").unwrap();
    let shown = show_in(folder.path(), &["call", "bash", "command=touch ran", "-f", "toolwright.yaml"], "");
    assert!(folder.path().join("ran").exists(), "{shown}");
}

#[test]
fn a_person_allows_the_sandbox_of_an_untrusted_file_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolwright.yaml"), "sandbox: local\n").unwrap();
    let answer = |word: &str| {
        let args = ["call", "bash", "command=touch ran"];
        let mut terminal = Terminal::start(folder.path(), &args, 200, 30, &[]);
        terminal.wait("in no sandbox at all");
        terminal.wait("Allow it, here and from now on?");
        terminal.send(&format!("{word}\r"));
        (terminal.end(), folder.path().join("ran").exists())
    };
    assert_eq!(answer("n"), (2, false));
    assert_eq!(answer("y"), (0, true));
    let again = show_in(folder.path(), &["call", "bash", "command=echo again"], "");
    assert!(again.contains("again\n") && again.ends_with("--- exit 0\n"), "{again}");
}

#[test]
fn a_model_of_an_untrusted_file_is_not_reached_elsewhere() {
    let model = FakeModel::start();
    let folder = tempfile::tempdir().unwrap();
    let file = format!(
        "models: {{default: {{model: anthropic/m, base_url: 'http://{}', key_env: MY_KEY}}}}\n",
        model.address
    );
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    let variables = [("MY_KEY", "sk-test")];
    let refused = json_with(folder.path(), &["ask", "hello", "--no-record"], "", &variables);
    refused.fails("parsing", 2, &[&model.address, "MY_KEY"]);
    assert!(model.asked.lock().unwrap().is_empty());
    let args = ["ask", "hello", "--no-record", "-f", "toolwright.yaml"];
    let answered = json_with(folder.path(), &args, "", &variables);
    assert_eq!((answered.code, &answered.value()["answer"]), (Some(0), &ANSWER.into()), "{answered:?}");
}

/// A folder with a file that is found, and that names a model elsewhere beside one that answers.
fn with_a_far_model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = "models:\n  default: scripted/r.yaml\n  far: {model: openai-compatible/m, base_url: 'http://127.0.0.1:9/v1'}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    std::fs::write(folder.path().join("r.yaml"), "- text: Still here.\n").unwrap();
    folder
}

/// The keys of a chat are the chat's: what needs the person's word is refused there, and nothing waits for a
/// line.
#[test]
fn a_chat_refuses_a_model_of_an_untrusted_file_and_continues() {
    let folder = with_a_far_model();
    for (term, named) in [("xterm-256color", false), ("dumb", false), ("xterm-256color", true)] {
        let args = ["chat", "--no-record", "toolwright.yaml"];
        let args = if named { &args[..] } else { &args[..2] };
        let mut terminal = Terminal::start(folder.path(), args, 100, 40, &[("TERM", term)]);
        terminal.wait(">");
        terminal.send("/model far\r");
        if named {
            terminal.wait("openai-compatible/m answers from now on");
            continue;
        }
        terminal.wait("in the middle of a chat nobody is asked whether it may");
        terminal.wait("-f toolwright.yaml says that you trust the file");
        terminal.send("hello\r");
        terminal.wait("Still here.");
        terminal.send("/exit\r");
        assert_eq!(terminal.end(), if term == "dumb" { 1 } else { 0 });
    }
}

/// The chat owns stdin even when its output is redirected: the next line does not answer a trust question.
#[test]
fn a_chat_with_redirected_output_does_not_ask_about_trust() {
    let folder = with_a_far_model();
    let mut terminal = Terminal::start_in_shell_into(folder.path(), &["chat", "--no-record"], "answers.txt");
    terminal.send("/model far\r");
    terminal.wait("in the middle of a chat nobody is asked whether it may");
    terminal.send("y\r/exit\r");
    terminal.wait("[it ended]");
    let answers = std::fs::read_to_string(folder.path().join("answers.txt")).unwrap();
    assert!(answers.contains("Still here."), "{answers}");
}
