//! Ctrl-C and SIGTERM: commands clean up, report it, and the record says `cancelled`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::show_in;
use crate::support::wait_until;
use crate::view::Served;

const FILE: &str = "
tools: [{import_tool: countdown}]
cli: {process_input: one_by_one, do: {call: countdown, params: {seconds: 600}}}
";

const MODEL: &str = "- calls: [{tool: countdown, arguments: {seconds: 600}}]\n";

const CALLED: &str = r#"{"role": "assistant", "content": [], "tool_calls": [
    {"id": "1", "name": "countdown", "arguments": {"seconds": 600}}]}"#;

fn start(folder: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdin(std::fs::File::open(folder.join("stdin")).unwrap())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("stderr")).unwrap())
        .spawn()
        .unwrap()
}

fn send_signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

#[test]
fn a_run_stopped_by_a_signal_is_recorded_as_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, text) in [("t.yaml", FILE), ("model.yaml", MODEL), ("stdin", CALLED)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let last = |args: &[&str]| show_in(folder, &[&["runs"], args].concat(), "");
    for (args, told) in [
        (&["call", "countdown", "seconds=600"][..], "stopped by "),
        (&["run", "t.yaml", "x"], "stopped by "),
        (&["ask", "Count", "--model", "scripted/model.yaml", "--tools", "countdown"], "stopped by "),
        (&["step", "--call", "--file", "t.yaml"], "stopped by "),
    ] {
        for (signal, by) in [("-INT", "Ctrl-C"), ("-TERM", "SIGTERM")] {
            let mut process = start(folder, args);
            wait_until(&format!("the call of {args:?}"), || {
                last(&["show", "last"]).contains("still running")
            });
            send_signal(process.id(), signal);
            let status = process.wait().unwrap();
            let said = std::fs::read_to_string(folder.join("stderr")).unwrap();
            let code = if by == "Ctrl-C" { 130 } else { 143 };
            assert_eq!(status.code(), Some(code), "{args:?} {signal}: {status}, {said}");
            let told = if told.ends_with(' ') { format!("{told}{by}") } else { told.to_owned() };
            assert!(said.contains(&told), "{args:?} {signal}: {said}");
            let listed = last(&["--json"]);
            let line = listed.lines().find(|line| line.starts_with('{')).unwrap();
            let newest: Value = serde_json::from_str(line).unwrap();
            assert_eq!(newest["status"], "cancelled", "{args:?} {signal}: {listed}");
        }
    }
}

#[test]
fn the_viewer_ends_with_0_after_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["-INT", "-TERM"] {
        let served = Served::start(folder.path());
        let status = served.told(|process| send_signal(process, signal));
        assert_eq!(status.code(), Some(0), "{signal}: {status}");
    }
}
