//! What the MCP servers of a file ask, and who answers; servers of the older transport; servers a file can do without.

use std::path::Path;

use crate::show_in;
use crate::terminal::Terminal;

/// A server in shell with one tool, `go`, that asks `question` and tells what came back. While there is a file `hold` it
/// does not ask, while there is a file `keep` it does not tell.
fn asking(folder: &Path, question: &str) {
    let script = format!(
        r#"answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
read -r hello
can=none; case "$hello" in *'"sampling":{{'*) can=sampling;; esac
answer 1 '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"asks","version":"1"}}}}'
read -r l; read -r l; answer 2 '{{"tools":[{{"name":"go","inputSchema":{{"type":"object"}}}}]}}'
read -r l
while [ -e hold ]; do sleep 0.05; done
printf '%s\n' '{question}'
read -r reply
while [ -e keep ]; do sleep 0.05; done
case "$reply" in
  *'"text":"hello from the model"'*) said='the model said hello';;
  *'"action":"accept"'*'"name":"Ada"'*) said='hello Ada';;
  *'"action":"accept"'*) said='accepted';;
  *'"action":"decline"'*) said='declined';;
  *rejected*) said='rejected';;
  *'is not offered'*) said='not offered';;
  *) said='something else';;
esac
answer 3 "{{\"content\":[{{\"type\":\"text\",\"text\":\"$said, $can\"}}]}}"
cat > /dev/null"#
    );
    std::fs::write(folder.join("asks.sh"), script).unwrap();
}

const SAMPLE: &str = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}}"#;

const ELICIT: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who is there?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"nobody"}}}}}"#;

#[test]
fn a_server_asks_the_model_a_file_names_when_its_policy_says_so() {
    let folder = tempfile::tempdir().unwrap();
    asking(folder.path(), SAMPLE);
    std::fs::write(
        folder.path().join("replies.yaml"),
        "- {text: hello from the model, usage: {input_tokens: 5, output_tokens: 5}}\n",
    )
    .unwrap();
    let go = |sampling: &str, policy: &str| {
        let text = format!(
            "models: {{small: scripted/replies.yaml}}\nmcp:\n  s: {{transport: stdio, command: /bin/sh, args: [asks.sh], auto_import_scope: shared{sampling}}}\n{policy}"
        );
        std::fs::write(folder.path().join("t.yaml"), text).unwrap();
        show_in(folder.path(), &["call", "s_go", "-f", "t.yaml"], "")
    };
    let rules = "policy: [{tools: [mcp_sampling], decision: approve}]\n";
    let asked = go(", sampling: small", rules);
    assert!(asked.contains("the model said hello, sampling"), "{asked}");
    // What it asks is paid for by the run that makes the call.
    let poor = go(", sampling: small", &format!("{rules}limits: {{tokens: 9}}\n"));
    assert!(poor.contains("something else, sampling"), "{poor}");
    let rich = go(", sampling: small", &format!("{rules}limits: {{cost: 1.0, tokens: 100}}\n"));
    assert!(rich.contains("the model said hello, sampling"), "{rich}");
    // Nobody said it may, and nobody is there to ask.
    let unasked = go(", sampling: small", "");
    assert!(unasked.contains("rejected, sampling"), "{unasked}");
    let refused = go(", sampling: small", "policy: [{tools: [mcp_sampling], decision: reject}]\n");
    assert!(refused.contains("rejected, sampling"), "{refused}");
    // The rules are not enough: the server must have been given a model.
    let none = go("", rules);
    assert!(none.contains("not offered, none"), "{none}");
    let wrong = go(", sampling: [small]", rules);
    assert!(wrong.contains("`sampling`") && wrong.ends_with("--- exit 2\n"), "{wrong}");
}

#[test]
fn the_servers_of_a_file_ask_the_person_at_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    asking(folder.path(), ELICIT);
    let text =
        "mcp:\n  s: {transport: stdio, command: /bin/sh, args: [asks.sh], auto_import_scope: shared}\n";
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    let args = ["call", "s_go", "-f", "t.yaml"];
    let mut terminal = Terminal::start(folder.path(), &args, 100, 30, &[]);
    terminal.wait("The server `s` asks:");
    terminal.wait("Answer it? [y]es, [n]o:");
    terminal.send("y\r");
    terminal.wait("name");
    terminal.send("Ada\r");
    terminal.wait("hello Ada");
    assert_eq!(terminal.end(), 0);
    // Where there is no terminal there is nobody.
    let shown = show_in(folder.path(), &args, "");
    assert!(shown.contains("not offered, none"), "{shown}");
}

#[test]
fn a_file_can_do_without_a_server_that_is_not_required() {
    let folder = tempfile::tempdir().unwrap();
    let text = |required: &str| {
        format!(
            "mcp:\n  gone: {{transport: stdio, command: /no/such/program, auto_import_scope: shared{required}}}\ntools:\n  - {{name: one, description: One., do: {{eval: '${{1}}'}}}}\n"
        )
    };
    let call = |required: &str, args: &[&str]| {
        std::fs::write(folder.path().join("t.yaml"), text(required)).unwrap();
        show_in(folder.path(), args, "")
    };
    let without = call(", required: false", &["tools", "t.yaml"]);
    assert!(without.contains("--- stdout\none ") && without.ends_with("--- exit 0\n"), "{without}");
    assert!(without.contains("warning: the tools of MCP server `gone` cannot be had"), "{without}");
    let with = call("", &["tools", "t.yaml"]);
    assert!(
        with.contains("error: the tools of MCP server `gone`") && with.ends_with("--- exit 2\n"),
        "{with}"
    );
}

#[test]
fn a_server_of_the_older_transport_is_imported() {
    let test = "a_server_of_the_older_transport_is_imported";
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/mcp-npm/node_modules");
    let node = modules.join("node/bin/node");
    if !node.exists() {
        eprintln!("skipped: {test} (no npm peers in target/peers/mcp-npm)");
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = std::process::Command::new(node)
        .arg(modules.join("@modelcontextprotocol/server-everything/dist/index.js"))
        .arg("sse")
        .env("PORT", port.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..1200 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let folder = tempfile::tempdir().unwrap();
    let text = |more: &str| {
        format!(
            "mcp:\n  old: {{transport: sse, url: 'http://127.0.0.1:{port}/sse', headers: {{X-Who: me}}{more}, auto_import_scope: shared}}\n"
        )
    };
    let call = |more: &str| {
        std::fs::write(folder.path().join("t.yaml"), text(more)).unwrap();
        show_in(folder.path(), &["call", "old_echo", "message=hi", "-f", "t.yaml"], "")
    };
    let shown = call(", timeout: 30.5, sse_read_timeout: 60.5");
    let wrong = call(", timeout: 0");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(shown.contains("Echo: hi"), "{shown}");
    assert!(wrong.contains("`timeout` is a number of seconds, from 0.001 to 86400"), "{wrong}");
}

/// What was typed before a question was there is no answer to it, whoever asks.
#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    asking(folder.path(), ELICIT);
    write(
        "t.yaml",
        "mcp:\n  s: {transport: stdio, command: /bin/sh, args: [asks.sh], auto_import_scope: shared}\n\
         policy: [{tools: s_go, decision: approve}, {tools: greet, decision: ask}]\n\
         tools: [{name: greet, do: {eval: hello}}]\n",
    );
    write("replies.yaml", "- calls: [{tool: s_go}]\n- calls: [{tool: greet}]\n- {text: done}\n");
    write("hold", "");
    write("keep", "");
    let args = ["ask", "hi", "-f", "t.yaml", "--model", "scripted/replies.yaml", "--no-record"];
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &[]);
    // Its echo may stand behind what the program is about to end with a newline.
    let typed = |times: usize| {
        move |screen: &str| screen.lines().filter(|line| line.trim_end().ends_with('y')).count() == times
    };
    terminal.wait("s_go");
    terminal.send("y\r");
    terminal.wait_for("the line that was typed", typed(1));
    std::fs::remove_file(folder.path().join("hold")).unwrap();
    terminal.wait("Answer it?");
    terminal.send("n\ry\r");
    terminal.wait_for("the other line that was typed", typed(2));
    std::fs::remove_file(folder.path().join("keep")).unwrap();
    terminal.wait("Allow it?");
    terminal.send("n\r");
    assert_eq!(terminal.end(), 0);
    let screen = terminal.screen();
    assert!(screen.contains("declined, none") && screen.contains("the user said no"), "{screen}");
}

/// The `choices` of an approvers file are the only answers; passing a call on goes to its next entry.
#[test]
fn a_person_is_offered_the_choices_of_an_approvers_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tools.yaml", "tools: [{name: greet, do: {eval: hello}}]\n");
    write("replies.yaml", "- calls: [{tool: greet}]\n- {text: done}\n");
    let policy = |entries: &str| write("policy.yaml", &format!("approvers: [{entries}]\n"));
    policy(
        "{name: human, tools: greet, choices: [reject, escalate]}, {name: auto, tools: '*', decision: reject}",
    );
    let args =
        ["ask", "hi", "-f", "tools.yaml", "--policy", "policy.yaml", "--model", "scripted/replies.yaml"];
    let mut terminal = Terminal::start(folder.path(), &[&args[..], &["--no-record"]].concat(), 80, 24, &[]);
    let question = "Allow it? [n]o, [p]ass it on:";
    terminal.wait(question);
    terminal.send("y\r");
    terminal.wait_for("the question again", |screen| screen.matches(question).count() == 2);
    terminal.send("p\r");
    assert_eq!(terminal.end(), 0);
    let screen = terminal.screen();
    assert!(screen.contains("the policy does not allow this call"), "{screen}");
    policy("{name: human, tools: greet, choices: [frobnicate]}");
    let shown = show_in(folder.path(), &["check", "tools.yaml", "--policy", "policy.yaml"], "");
    assert!(shown.contains("unknown word `frobnicate`") && shown.contains("exit 2"), "{shown}");
    // Nobody is asked about what no entry is about.
    policy("{name: auto, tools: other}");
    let shown = show_in(folder.path(), &[&args[..], &["--no-record"]].concat(), "");
    assert!(shown.contains("no approver of the policy decides about this call"), "{shown}");
}

/// A person who does not answer keeps nothing waiting: Ctrl-C ends the run, and so does its time.
#[test]
fn an_open_question_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let tools = "tools: [{name: greet, do: {eval: hello}}]\n";
    let rule = "policy: [{tools: greet, decision: ask, reason: greetings are precious}]\n";
    write("tools.yaml", &format!("{rule}{tools}"));
    write("timed.yaml", &format!("{rule}limits: {{wall_time: 2}}\n{tools}"));
    write("replies.yaml", "- calls: [{tool: greet}]\n- {text: done}\n");
    for (file, key, told) in [("tools.yaml", "\x03", "stopped"), ("timed.yaml", "", "limit of 2")] {
        let args = ["ask", "hi", "-f", file, "--model", "scripted/replies.yaml", "--no-record"];
        let mut terminal = Terminal::start(folder.path(), &args, 80, 24, &[]);
        terminal.wait("greetings are precious");
        terminal.wait("Allow it?");
        terminal.send(key);
        assert_eq!(terminal.end(), 1, "{file}");
        let screen = terminal.screen();
        assert!(screen.contains(told), "{file}: {screen}");
    }
}

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
