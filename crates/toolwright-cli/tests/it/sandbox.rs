//! Standard tools as a person calls them: in a sandbox, without being asked for one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::{json, show_in};

/// A folder that also the user inside a sandbox may look at and write in.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// The sandbox works here; where it does not, the test says so and ends.
pub fn works(folder: &Path) -> bool {
    let shown = show_in(folder, &["sandbox", "explain"], "");
    if shown.ends_with("--- exit 0\n") {
        return true;
    }
    eprintln!("skipped: no process sandbox on this machine\n{shown}");
    false
}

fn call(folder: &Path, words: &[&str]) -> String {
    show_in(folder, &[&["call"], words].concat(), "").replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn the_record_says_where_commands_ran_and_behind_what() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    for (kind, behind) in [("process", "seccomp"), ("local", "\"local\"")] {
        call(folder.path(), &["bash", "command=true", "--sandbox", kind, "--transcript", "t.jsonl"]);
        let shown = show_in(folder.path(), &["runs", "show", "t.jsonl"], "");
        assert!(shown.contains(&format!("\nsandbox: {kind}\n")), "{shown}");
        let record = std::fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
        let began = record.lines().next().unwrap();
        assert!(began.contains(&format!("\"sandbox\":\"{kind}")) && began.contains(behind), "{began}");
        std::fs::remove_file(folder.path().join("t.jsonl")).unwrap();
    }
}

#[test]
fn a_command_reads_the_current_folder_and_writes_only_where_it_may() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    std::fs::write(folder.path().join("a.txt"), "hello\n").unwrap();
    let read = call(folder.path(), &["bash", "command=pwd; cat a.txt; id -u"]);
    assert!(read.contains("FOLDER\nhello\n") && read.ends_with("--- exit 0\n"), "{read}");
    let refused = call(folder.path(), &["bash", "cmd=echo x > b.txt"]);
    assert!(refused.contains("Read-only file system") && refused.contains("exit code 1"), "{refused}");
    assert!(refused.contains("hint: ") && refused.contains("`--write .`"), "{refused}");
    assert!(!folder.path().join("b.txt").exists());
    call(folder.path(), &["bash", "command=echo x > b.txt", "--write", "."]);
    assert_eq!(std::fs::read_to_string(folder.path().join("b.txt")).unwrap(), "x\n");
    let refused = call(folder.path(), &["write_file", "path=c.txt", "content=x"]);
    assert!(refused.contains("error: ") && refused.ends_with("--- exit 1\n"), "{refused}");
    assert!(refused.contains("is read-only") && refused.contains("`--write .`"), "{refused}");
    let file = "tools: [{import_tool: bash}]\n\
                cli: {process_input: one_by_one, do: {call: bash, params: {command: 'echo x > d.txt'}}}\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let refused = show_in(folder.path(), &["run", "t.yaml", "go"], "");
    assert!(refused.contains("Read-only file system") && refused.contains("`--write .`"), "{refused}");
    let wrote = call(folder.path(), &["write_file", "path=c.txt", "content=x", "--write", "."]);
    assert!(wrote.ends_with("--- exit 0\n"), "{wrote}");
    let elsewhere = folder_with_key();
    let path = format!("path={}", elsewhere.path().join("key").display());
    assert!(call(folder.path(), &["read_file", &path]).ends_with("--- exit 1\n"));
    let shown = elsewhere.path().display().to_string();
    assert!(call(folder.path(), &["read_file", &path, "--read", &shown]).contains("hunter2"));
}

#[test]
fn tools_of_a_file_work_in_the_sandbox_they_name() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    let file = "
sandboxes:
  victim:
    files: {/tmp/flag: found}
    setup: echo ready > /tmp/state
tools:
  - {import_tool: bash}
  - {import_tool: bash, name: inside, config: {sandbox: victim}}
";
    let write = |text: &str| std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    write(file);
    let look = "command=cat /tmp/flag /tmp/state";
    let inside = call(folder.path(), &["inside", look, "-f", "t.yaml"]);
    assert!(inside.contains("foundready\n") && inside.ends_with("--- exit 0\n"), "{inside}");
    let outside = call(folder.path(), &["bash", look, "-f", "t.yaml"]);
    assert!(outside.contains("No such file") && !outside.contains("ready"), "{outside}");
    // Without a default sandbox a tool that names none does not work in one of the others.
    write(&format!("sandbox: none\n{file}"));
    json(folder.path(), &["call", "bash", look, "-f", "t.yaml"]).fails("sandbox_unavailable", 1, &[]);
    let inside = call(folder.path(), &["inside", look, "-f", "t.yaml"]);
    assert!(inside.contains("foundready\n"), "{inside}");
    write(&file.replace("    files", "    write: [.]\n    files"));
    let explained = show_in(folder.path(), &["sandbox", "explain", "-f", "t.yaml", "--name", "victim"], "");
    assert!(explained.contains(&format!("writable     {}", folder.path().display())), "{explained}");
    let unknown = json(folder.path(), &["sandbox", "explain", "-f", "t.yaml", "--name", "victin"]);
    unknown.fails("parsing", 2, &["`victin`", "victim"]);
}

/// A path is bytes; a folder with a name that is not UTF-8 works like any other.
#[test]
fn a_folder_need_not_have_a_name_that_is_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let outer = folder();
    if !works(outer.path()) {
        return;
    }
    let odd = outer.path().join(std::ffi::OsStr::from_bytes(b"q\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(odd.join("a.txt"), "hello\n").unwrap();
    let bash = call(&odd, &["bash", "command=cat a.txt; echo written > b.txt", "--write", "."]);
    assert!(bash.contains("hello") && bash.ends_with("--- exit 0\n"), "{bash}");
    assert_eq!(std::fs::read_to_string(odd.join("b.txt")).unwrap(), "written\n");
    let read = call(&odd, &["read_file", "path=a.txt"]);
    assert!(read.contains("hello") && read.ends_with("--- exit 0\n"), "{read}");
    let wrote = call(&odd, &["write_file", "path=c.txt", "content=x", "--write", "."]);
    assert!(wrote.ends_with("--- exit 0\n") && odd.join("c.txt").exists(), "{wrote}");
    let explained = show_in(&odd, &["sandbox", "explain", "--json"], "");
    assert!(explained.ends_with("--- exit 0\n"), "{explained}");
}

fn folder_with_key() -> tempfile::TempDir {
    let folder = folder();
    std::fs::write(folder.path().join("key"), "hunter2").unwrap();
    folder
}

#[test]
fn files_and_the_setup_script_of_a_file_are_there_before_the_first_call() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    let file = |setup: &str| {
        let text = format!(
            "tools: [{{import_tool: bash}}]\nsandbox:\n  files: {{/tmp/a.ini: 'a = 1'}}\n  setup: {setup}\n"
        );
        std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    };
    file("cat /tmp/a.ini > /tmp/b.ini");
    let read = call(folder.path(), &["bash", "command=cat /tmp/b.ini; ls /tmp", "-f", "s.yaml"]);
    assert!(read.contains("a = 1") && !read.contains("toolwright-setup"), "{read}");
    file("echo broken >&2; exit 4");
    let refused = call(folder.path(), &["bash", "command=echo ran", "-f", "s.yaml"]);
    assert!(refused.contains("code 4: broken") && refused.ends_with("--- exit 2\n"), "{refused}");
}

#[test]
fn a_mask_of_a_file_hides_whatever_else_the_sandbox_shows() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    std::fs::write(folder.path().join(".env"), "SECRET=1\n").unwrap();
    std::fs::create_dir(folder.path().join("build")).unwrap();
    for section in ["", "  write: [build]\n", "  write: [.]\n", "  read: [build]\n"] {
        let text = format!("tools: [{{import_tool: bash}}]\nsandbox:\n{section}  mask: [.env]\n");
        std::fs::write(folder.path().join("m.yaml"), text).unwrap();
        let read = call(folder.path(), &["bash", "command=cat .env; echo ran", "-f", "m.yaml"]);
        assert!(read.contains("ran\n") && !read.contains("SECRET"), "{section}: {read}");
    }
    let explained = show_in(folder.path(), &["sandbox", "explain", "-f", "m.yaml"], "");
    assert!(!explained.contains("/workspace/.env"), "{explained}");
}

#[test]
fn nothing_of_a_sandbox_is_left_when_the_program_has_ended() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    for _ in 0..5 {
        let done = call(folder.path(), &["bash", "command=ls -A", "--write", "."]);
        assert!(!done.contains(".mcp.json") && done.ends_with("--- exit 0\n"), "{done}");
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        // The home folder of these tests is the same one, and the record of the call is there.
        assert!(left.iter().all(|name| name == ".local"), "{left:?}");
    }
}

#[test]
fn there_is_no_network_and_no_environment_of_the_caller() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "code=import socket\ntry:\n  socket.create_connection(('127.0.0.1', {port}), 1)\n  print('reached')\nexcept OSError:\n  print('refused')"
    );
    let answer = |more: &[&str]| {
        let shown = call(folder.path(), &[&["python", &script], more].concat());
        shown.split("--- stdout\n").nth(1).map(|out| out.lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(answer(&[]).as_deref(), Some("refused"));
    assert_eq!(answer(&["--sandbox", "local"]).as_deref(), Some("reached"), "somebody listens there");
    let env = call(folder.path(), &["bash", "command=env"]);
    assert!(!env.contains("COLUMNS"), "{env}");
}

#[test]
fn other_sandboxes_are_chosen_by_name_and_none_refuses() {
    let folder = folder();
    let local = call(folder.path(), &["bash", "command=echo x > made", "--sandbox", "local"]);
    assert!(local.ends_with("--- exit 0\n") && folder.path().join("made").exists(), "{local}");
    let called = |args: &[&str]| json(folder.path(), &[&["call"], args].concat());
    called(&["bash", "command=true", "--sandbox", "local", "--write", "."]).fails("parsing", 2, &["local"]);
    called(&["bash", "command=echo x", "--sandbox", "none"]).fails("sandbox_unavailable", 1, &[]);
    let think = call(folder.path(), &["think", "thought=hm", "--sandbox", "none"]);
    assert!(think.ends_with("--- exit 0\n"), "{think}");
    called(&["bash", "command=true", "--write", "nowhere"]).fails("parsing", 2, &["`nowhere`"]);
}

#[test]
fn names_of_other_systems_can_be_called() {
    let folder = folder();
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    let listed = call(folder.path(), &["llm_workers.tools.fs.list_files", "--sandbox", "local"]);
    assert!(listed.contains("files:\n- a.txt\ntotal 1 entries"), "{listed}");
}

#[test]
fn explain_reports_the_view_the_network_and_the_layers() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    let explained = json(folder.path(), &["sandbox", "explain", "--write", "."]).value();
    assert_eq!((&explained["kind"], &explained["network"]), (&"process".into(), &"off".into()));
    let listed = |list: &str, key: &str, value: &str| {
        let entries = explained[list].as_array().unwrap();
        entries.iter().find(|entry| entry[key] == value).cloned().unwrap_or_else(|| panic!("{explained}"))
    };
    let path = folder.path().display().to_string();
    assert_eq!(listed("view", "path", &path)["access"], "writable");
    assert_eq!(listed("layers", "layer", "seccomp")["available"], true);
    // For a person the same, in sections.
    let shown = show_in(folder.path(), &["sandbox", "explain", "--write", "."], "");
    assert!(shown.contains(&format!("  writable     {path}")), "{shown}");
    let findings = json(folder.path(), &["doctor"]).value();
    let sandbox = findings.as_array().unwrap().iter().find(|finding| finding["what"] == "sandbox").unwrap();
    assert_eq!(sandbox["works"], true, "{findings}");
}

#[test]
fn a_host_is_reached_only_when_it_is_named() {
    use std::io::{Read as _, Write as _};
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
        }
    });
    let page = format!(
        "command=exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n' >&3 && cat <&3"
    );
    let named = call(folder.path(), &["bash", &page, "--allow-net", &host]);
    assert!(named.contains("200 OK") && named.contains("yes"), "{named}");
    let other = call(folder.path(), &["bash", &page, "--allow-net", "example.com"]);
    assert!(other.contains("403 Forbidden") && !other.contains("yes"), "{other}");
    let called = |args: &[&str]| json(folder.path(), &[&["call", "bash", "command=true"], args].concat());
    called(&["--allow-net", "*"]).fails("parsing", 2, &["`*`"]);
    called(&["--sandbox", "docker"]).fails("parsing", 2, &["image"]);
}

#[test]
fn what_a_flow_hands_to_a_program_is_one_argument() {
    let folder = folder();
    if !works(folder.path()) {
        return;
    }
    let file = "
tools:
  - import_tool: run_process
  - import_tool: read_file
  - name: say
    input: [{name: what, type: str}]
    do: {call: run_process, params: {command: printf, args: ['%s', '${what}']}}
  - name: show
    input: [{name: what, type: str}]
    do: {call: read_file, params: {path: '${what}'}, catch: '*'}
";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    std::fs::write(folder.path().join("x"), "still here").unwrap();
    for what in ["; rm -rf x", "$(id)", "`id`", "a\nb", "-rf", "--help", "'\"\\", "*", "~", "${1 + 1}"] {
        let arguments = serde_json::json!({"what": what}).to_string();
        let said =
            call(folder.path(), &["say", "--args", &arguments, "-f", "toolwright.yaml", "--write", "."]);
        assert!(said.contains(&format!("--- stdout\n{what}\n")), "{said}");
        let shown = call(folder.path(), &["show", "--args", &arguments, "-f", "toolwright.yaml"]);
        assert!(shown.contains("file_not_found"), "{shown}");
    }
    assert!(folder.path().join("x").exists());
}
