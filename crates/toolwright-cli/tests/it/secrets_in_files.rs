//! Secrets and what is written down beside the transcript: sessions, exports, locks, history, core files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::{json_with, last_session, show_with};

const SECRET: &str = "hunter2-hunter2-hunter2";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A chat whose model repeats a secret, in a file of which it is a variable.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = "env: {KEY: {secret: true}}\npolicy: [{tools: '*', decision: approve}]\n\
                tools: [{name: show, description: Shows., do: {eval: 'it is ${env.KEY}'}}]\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let replies = format!("- calls: [{{tool: show, arguments: {{}}}}]\n- text: The key is {SECRET}.\n");
    std::fs::write(folder.path().join("r.yaml"), replies).unwrap();
    folder
}

/// F8, F24 and the session in the workspace.
#[test]
fn sessions_and_exports_hold_no_secret_and_are_for_their_owner() {
    let folder = folder();
    let args = ["chat", "t.yaml", "--model", "scripted/r.yaml"];
    let input = format!("my key is {SECRET}\n/save talk\n/export talk\n");
    let shown = show_with(folder.path(), &args, &input, &[("KEY", SECRET)]);
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    for path in
        [folder.path().join("talk.chat.yaml"), folder.path().join("talk.md"), last_session(folder.path())]
    {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("The key is [redacted]") && !text.contains(SECRET), "{text}");
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// A vendor's key is a secret that no file names.
#[test]
fn a_vendors_key_is_not_in_a_session() {
    let folder = folder();
    let args = ["chat", "--model", "scripted/r.yaml"];
    let show = |input: &str| show_with(folder.path(), &args, input, &[("ANTHROPIC_API_KEY", SECRET)]);
    std::fs::write(folder.path().join("r.yaml"), "- text: Hello.\n").unwrap();
    let shown = show(&format!("my key is {SECRET}\n"));
    assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    let text = std::fs::read_to_string(last_session(folder.path())).unwrap();
    assert!(text.contains("my key is [redacted]"), "{text}");
}

/// A model gets a reference; what it is shown says so.
#[test]
fn models_and_people_do_not_see_a_secret_unless_the_file_says_so() {
    let folder = folder();
    let call = |variables: &[(&str, &str)]| {
        json_with(folder.path(), &["call", "show", "-f", "t.yaml"], "", variables)
    };
    let result = call(&[("KEY", SECRET)]).value()["content"].to_string();
    assert!(result.contains("it is [redacted]"), "{result}");
    let file = std::fs::read_to_string(folder.path().join("t.yaml")).unwrap();
    let visible = file.replace("secret: true", "secret: true, secret_visible_to_model: true");
    std::fs::write(folder.path().join("t.yaml"), visible).unwrap();
    let result = call(&[("KEY", SECRET)]).value()["content"].to_string();
    assert!(result.contains(&format!("it is {SECRET}")), "{result}");
}

/// F8: `tools.lock` is meant for git.
#[test]
fn a_lock_holds_no_value_of_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let own = env!("CARGO_BIN_EXE_toolwright");
    let server = ["serve", "--tools", "add"];
    // A wrapper takes the secret in three forms and starts a server.
    let script = format!("exec {own} {}", server.join(" "));
    let option = format!("--api-key={SECRET}");
    let args =
        ["mcp", "lock", "--name", "s", "--", "sh", "-c", &script, "sh", &option, "--token", SECRET, SECRET];
    let locked = show_with(folder.path(), &args, "", &[("MY_API_KEY", SECRET)]);
    assert!(locked.ends_with("--- exit 0\n"), "{locked}");
    let text = std::fs::read_to_string(folder.path().join("tools.lock")).unwrap();
    assert!(
        !text.contains(SECRET) && text.contains("--api-key=[secret] --token [secret] [secret]"),
        "{text}"
    );
    // Another value is the same server.
    let other = SECRET.replace('2', "3");
    let args = args.map(|word| word.replace(SECRET, &other));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let again = show_with(folder.path(), &args, "", &[("MY_API_KEY", &other)]);
    assert!(again.ends_with("--- exit 0\n") && !again.contains("another one"), "{again}");
}

/// F16: a core file in the workspace would hold the keys of the process.
#[cfg(target_os = "linux")]
#[test]
fn the_process_leaves_no_core_file_and_hides_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    // A child that reads its own limits shows what it was given; the process itself is asked through /proc.
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(["serve", "--tools", "add"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    use std::io::{BufRead as _, Write as _};
    let ping = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n";
    child.stdin.as_mut().unwrap().write_all(ping.as_bytes()).unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap().to_owned();
    let _ = std::process::Command::new("kill").args(["-ABRT", &child.id().to_string()]).status();
    child.wait().unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("core")), "{names:?}");
}
