//! Every example runs, and prints what it is said to print.

use std::process::Command;

fn check(program: &str, expected: &str) {
    let output = Command::new(program).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected.trim_end());
}

macro_rules! examples {
    ($($test:ident: $name:literal)*) => {$(
        #[test]
        fn $test() {
            check(env!(concat!("CARGO_BIN_EXE_", $name)), include_str!(concat!("../expected/", $name, ".txt")));
        }
    )*};
}

/// This one drives a browser.
#[test]
fn web_surfer() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium-headless-shell", "chromium", "google-chrome"];
    if !std::env::split_paths(&path).any(|folder| names.iter().any(|name| folder.join(name).exists())) {
        eprintln!("SKIPPED: no Chromium here (`cargo xtask test` installs it)");
        return;
    }
    check(env!("CARGO_BIN_EXE_10_web_surfer"), include_str!("../expected/10_web_surfer.txt"));
}

/// This one uses an editor on a display.
#[test]
fn desktop() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
    if let Some(missing) = ["Xvfb", "dbus-daemon", "openbox", "mousepad"].iter().find(|name| !has(name)) {
        eprintln!("SKIPPED: no {missing} here (`cargo xtask test` installs it)");
        return;
    }
    check(env!("CARGO_BIN_EXE_18_desktop"), include_str!("../expected/18_desktop.txt"));
}

examples! {
    hello_tool: "01_hello_tool"
    stateful: "02_stateful"
    composed: "03_composed"
    multimodal: "04_multimodal"
    approval: "05_approval"
    structured_messages: "06_structured_messages"
    model_loop: "07_loop"
    agents: "08_agents"
    sql_and_search: "09_sql_and_search"
    analysts: "11_analysts"
    sandboxed_tools: "12_sandboxed_tools"
    yaml_from_rust: "13_yaml_from_rust"
    mcp: "14_mcp"
    own_sandbox_tools: "15_own_sandbox_tools"
    tools_as_values: "16_tools_as_values"
    http_and_files: "17_http_and_files"
}
