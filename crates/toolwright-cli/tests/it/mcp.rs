//! The program as MCP server and as MCP client, each against the other.

use crate::support::wait_until;
use crate::{json, show, show_in};

const US: &str = env!("CARGO_BIN_EXE_toolwright");

/// What the program prints, without the part of the command line that differs from machine to machine.
fn mcp(args: &[&str]) -> String {
    show(&[&["mcp"], args, &["--", US, "serve", "--profile", "demo"]].concat()).replace(US, "toolwright")
}

#[test]
fn our_tools_are_served_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let names = json(folder.path(), &["mcp", "list", "--", US, "serve", "--profile", "demo"]).names();
    for name in ["add", "bash", "read_file"] {
        assert!(names.iter().any(|one| one == name), "{names:?}");
    }
    // For a person: a name and what the tool does, in columns.
    assert!(mcp(&["list"]).contains("\nadd                      Adds two numbers.\n"));
}

#[test]
fn a_served_tool_is_called_and_its_progress_shown() {
    insta::assert_snapshot!("call", mcp(&["call", "add", "x=19", "y=23"]));
    insta::assert_snapshot!("call_progress", mcp(&["call", "countdown", "seconds=1"]));
    // That of the tools that a flow calls is shown too, as one that grows.
    let folder = tempfile::tempdir().unwrap();
    let text = "tools: [{import_tool: countdown}, {name: twice, do: [{call: countdown, params: {seconds: 2}}, {call: countdown, params: {seconds: 2}}]}]\npolicy: [{tools: ['*'], decision: approve}]\n";
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    let shown = show_in(folder.path(), &["mcp", "call", "twice", "--", US, "serve", "t.yaml"], "");
    assert!(shown.contains("--- stderr\n2 s left\n1 s left\n1 s left\n"), "{shown}");
}

#[test]
fn a_tool_that_changes_something_is_refused_when_nobody_can_be_asked() {
    insta::assert_snapshot!("call_refused", mcp(&["call", "remember", "note=x"]));
}

#[test]
fn a_policy_lets_a_client_do_more() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.yaml"), "- tools: ['remember']\n  decision: approve\n")
        .unwrap();
    let args = [
        "mcp",
        "call",
        "remember",
        "note=x",
        "--json",
        "--",
        US,
        "serve",
        "--profile",
        "demo",
        "--policy",
        "policy.yaml",
    ];
    let shown = show_in(folder.path(), &args, "");
    assert!(shown.contains(r#""value":["x"]"#) && shown.ends_with("--- exit 0\n"), "{shown}");
}

#[test]
fn unknown_programs_tools_and_commands_have_errors_of_their_own() {
    insta::assert_snapshot!("program_missing", show(&["mcp", "list", "--", "/no/such/program"]));
    insta::assert_snapshot!("unknown_tool", mcp(&["call", "ad"]));
    insta::assert_snapshot!("command_missing", show(&["mcp", "list"]));
}

#[test]
fn a_changed_tool_is_shown_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let lock = |check: bool| {
        let check: &[&str] = if check { &["--check"] } else { &[] };
        let args =
            [&["mcp", "lock", "--name", "demo"], check, &["--", US, "serve", "--profile", "demo"]].concat();
        show_in(folder.path(), &args, "").replace(US, "toolwright")
    };
    assert!(lock(false).contains("tools in `tools.lock`"));
    insta::assert_snapshot!("lock_same", lock(true));
    let path = folder.path().join("tools.lock");
    let changed = std::fs::read_to_string(&path).unwrap().replace("two numbers", "two num\u{200b}bers");
    std::fs::write(&path, changed).unwrap();
    insta::assert_snapshot!("lock_changed", lock(true));
}

#[test]
fn install_writes_the_settings_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".vscode")).unwrap();
    let config = folder.path().join(".vscode/mcp.json");
    std::fs::write(&config, r#"{"inputs": [1], "servers": {"other": {"url": "x"}}}"#).unwrap();
    let install = |args: &[&str]| {
        let args = [&["mcp", "install", "--project", "--client"], args].concat();
        show_in(folder.path(), &args, "").replace(US, "toolwright")
    };
    insta::assert_snapshot!("install_vscode", install(&["vscode"]));
    assert!(install(&["vscode", "--write"]).contains("added `toolwright` in .vscode/mcp.json"));
    let address = "http://127.0.0.1:3000/mcp";
    assert!(install(&["vscode", "--write", "--url", address]).contains("replaced"));
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let servers = serde_json::json!({"other": {"url": "x"}, "toolwright": {"type": "http", "url": address}});
    assert_eq!(written, serde_json::json!({"inputs": [1], "servers": servers}));
    std::fs::write(&config, "{ // mine\n}").unwrap();
    insta::assert_snapshot!("install_unreadable", install(&["vscode", "--write"]));
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "{ // mine\n}");
    insta::assert_snapshot!("install_windsurf", install(&["windsurf"]));
    // Claude Desktop starts programs only, so one passes on to the address.
    let args = ["mcp", "install", "--client", "claude-desktop", "--json", "--url", address];
    let desktop = show_in(folder.path(), &args, "");
    let entry = r#""command":"npx","args":["-y","mcp-remote","http://127.0.0.1:3000/mcp"]"#;
    assert!(desktop.contains(entry) && desktop.contains("Settings > Connectors"), "{desktop}");
}

/// A server that wants a token, with and without one that is wrong, and over either transport.
#[test]
fn a_server_that_wants_a_token_gets_a_hint_of_its_own() {
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 65536]);
            let _ = stream.write_all(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    for more in [&[][..], &["--header", "Authorization=Bearer old"], &["--sse"]] {
        let folder = tempfile::tempdir().unwrap();
        let listed = json(folder.path(), &[&["mcp", "list", "--url", &url], more].concat());
        assert_eq!(listed.code, Some(1), "{listed:?}");
        let hint = listed.error()["hint"].as_str().unwrap_or_default().to_owned();
        assert!(hint.contains("token"), "{listed:?}");
    }
}

#[test]
fn wrong_servers_and_options_fail_with_what_to_change() {
    let tw = env!("CARGO_BIN_EXE_toolwright");
    let folder = tempfile::tempdir().unwrap();
    for (args, kind, names, exit) in [
        (&["mcp", "list", "--", "no-such-program"][..], "unknown", &["`no-such-program`", "PATH"][..], 1),
        (&["mcp", "list", "--", "sh", "-c", "echo no key >&2; exit 3"], "unknown", &["\n    no key"], 1),
        (&["mcp", "list", "--", "true"], "unknown", &["stderr"], 1),
        (&["mcp", "list", "--url", "nonsense"], "parsing", &["`nonsense`", "https://"], 2),
        (
            &["mcp", "list", "--url", "http://127.0.0.1:1/mcp?key=hunter2"],
            "unknown",
            &["http://127.0.0.1:1/mcp"],
            1,
        ),
        (&["mcp", "list", "--cwd", "/no/such", "--", tw, "serve"], "parsing", &["--cwd", "`/no/such`"], 2),
        (&["mcp", "lock", "--check", "--name", "a", "--", tw, "serve"], "parsing", &["--check"], 2),
        (&["mcp", "install", "--client", "cursor", "--url", "nonsense"], "parsing", &["`nonsense`"], 2),
        (&["mcp", "list", "--url", "http://127.0.0.1:1/mcp", "--env", "A=B"], "parsing", &["--env"], 2),
        (&["mcp", "list", "--cwd", "/tmp", "--url", "http://127.0.0.1:1/mcp"], "parsing", &["--cwd"], 2),
        (&["mcp", "list", "--url", "http://127.0.0.1:1/mcp", "--read", "/tmp"], "parsing", &["--read"], 2),
        // A server that somebody believes contained is not started.
        (
            &["mcp", "list", "--read", "/nonexistent", "--", "touch", "started"],
            "parsing",
            &["--sandboxed", "--read"],
            2,
        ),
        (
            &["mcp", "call", "x", "--allow-net", "a.example", "--", "touch", "started"],
            "parsing",
            &["--sandboxed"],
            2,
        ),
        (
            &["mcp", "lock", "--name", "a", "--sandbox", "local", "--", "touch", "started"],
            "parsing",
            &["--sandboxed"],
            2,
        ),
        (
            &["serve", "--oauth", "https://as.example.com", "--audience", "https://x.example.com"],
            "parsing",
            &["--http <ADDR>"],
            2,
        ),
        (&["serve", "--http", "nonsense"], "parsing", &["127.0.0.1:3000"], 2),
        (&["serve", "--http", "127.0.0.1:0", "--token-env", "NOPE"], "parsing", &["export NOPE="], 2),
        (
            &[
                "serve",
                "--http",
                ":0",
                "--oauth",
                "http://as.example.com",
                "--audience",
                "https://x.example.com",
            ],
            "parsing",
            &["--oauth", "https"],
            2,
        ),
        (
            &["serve", "--http", "localhost:0", "--oauth", "https://as.example.com", "--audience", "x"],
            "parsing",
            &["audience"],
            2,
        ),
    ] {
        let failed = crate::json_with(folder.path(), args, "", &[("PATH", "/usr/bin:/bin")]);
        failed.fails(kind, exit, names);
        assert!(!failed.stderr.contains("hunter2"), "{failed:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    json(folder.path(), &["serve", "--http", &address]).fails("parsing", 2, &[&address]);
    assert!(!folder.path().join("started").exists());
}

/// A server in shell whose tool gives a text, a picture and a text.
const PICTURE: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
read -r l; answer 1 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}'
read -r l; read -r l; answer 2 '{"tools":[{"name":"draw","inputSchema":{"type":"object"}}]}'
read -r l; answer 3 '{"content":[{"type":"text","text":"before"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"after","annotations":{"audience":["user"]}}]}'
cat > /dev/null"#;

#[test]
fn files_of_a_result_are_saved_and_its_text_is_always_shown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.sh"), PICTURE).unwrap();
    std::fs::write(folder.path().join("taken"), "").unwrap();
    let call = |to: &str, more: &[&str]| {
        let args = [&["mcp", "call", "draw", "--save-to", to], more, &["--", "/bin/sh", "p.sh"]].concat();
        show_in(folder.path(), &args, "")
    };
    let shown = call("new/folder", &[]);
    assert!(shown.contains("--- stdout\nbefore\nafter\n") && shown.ends_with("--- exit 0\n"), "{shown}");
    assert_eq!(std::fs::read(folder.path().join("new/folder/draw-2.png")).unwrap(), b"hi");
    let shown = call("taken/folder", &[]);
    assert!(shown.contains("--- stdout\nbefore\nafter\n") && shown.ends_with("--- exit 1\n"), "{shown}");
    assert!(shown.contains("cannot make `taken/folder`"), "{shown}");
    // For whom a block is stays with the result.
    let shown = call(".", &["--json"]);
    assert!(
        shown.contains(r#""extras":{"content":[null,null,{"annotations":{"audience":["user"]}}]}"#),
        "{shown}"
    );
}

/// The processes whose command line names this.
fn named(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(mark)).collect()
}

/// A server that goes on when its input ends.
fn lingering(folder: &std::path::Path) -> String {
    let script = folder.join("lingers.sh");
    std::fs::write(&script, format!("{}\nexec tail -f \"$0\"\n", crate::forwarding::ASKS)).unwrap();
    script.display().to_string()
}

#[test]
fn nothing_of_a_server_is_left_when_the_program_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let script = lingering(folder.path());
    let text = format!(
        "mcp:\n  s: {{transport: stdio, command: /bin/sh, args: ['{script}'], auto_import_scope: shared}}\n"
    );
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    for args in [
        &["tools", "t.yaml"][..],
        &["call", "s_greet", "-f", "t.yaml"],
        &["mcp", "list", "--", "/bin/sh", &script],
    ] {
        let shown = crate::show_in(folder.path(), args, "");
        assert!(shown.ends_with("--- exit 0\n"), "{shown}");
        assert_eq!(named(&script), [""; 0], "{args:?}");
    }
}

/// Runs the program in a folder whose server says that it is up, and stops it then with a signal. How it
/// ended is told.
fn stopped(folder: &std::path::Path, args: &[&str], signal: &str) -> std::process::ExitStatus {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", "/usr/bin:/bin")
        .stdin(std::process::Stdio::null())
        .stderr(std::fs::File::create(folder.join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let up = folder.join("up");
    wait_until("the server starts", || up.exists());
    std::fs::remove_file(up).unwrap();
    let told = std::process::Command::new("kill").args([signal, &program.id().to_string()]).status();
    assert!(told.unwrap().success());
    program.wait().unwrap()
}

#[test]
fn nothing_of_a_server_is_left_after_an_interruption() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("silent.sh").display().to_string();
    std::fs::write(&script, "touch up; exec tail -f \"$0\"\n").unwrap();
    let lock = ["mcp", "lock", "--name", "s", "--", "/bin/sh", &script];
    for (args, signal, by) in [
        (&["mcp", "list", "--", "/bin/sh", &script][..], "-INT", "Ctrl-C"),
        (&lock, "-INT", "Ctrl-C"),
        (&lock, "-TERM", "SIGTERM"),
    ] {
        let status = stopped(folder.path(), args, signal);
        assert_eq!(status.code(), Some(if signal == "-INT" { 130 } else { 143 }), "{status}");
        let said = std::fs::read_to_string(folder.path().join("stderr")).unwrap();
        assert!(said.contains(&format!("stopped by {by}")), "{said}");
        assert_eq!(named(&script), [""; 0], "{args:?}");
    }
}

#[test]
fn a_server_that_ignores_everything_ends_soon_after_a_program_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("deaf.sh").display().to_string();
    // A helper leaves the group, and the environment of the server itself is empty.
    let text = "trap '' TERM INT HUP\nsetsid tail -f \"$0\" &\ntouch up\nexec env -i tail -f \"$0\"\n";
    std::fs::write(&script, text).unwrap();
    let text = format!(
        "mcp: {{s: {{transport: stdio, command: /bin/sh, args: [{script}], auto_import_scope: shared}}}}\n"
    );
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    for signal in ["-INT", "-TERM", "-KILL"] {
        let status = stopped(folder.path(), &["call", "s_think", "-f", "t.yaml"], signal);
        assert!(!status.success(), "{signal}: {status}");
        wait_until(&format!("the server ends after {signal}"), || named(&script).is_empty());
    }
}
