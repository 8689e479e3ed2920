//! Rules of the machine, the user, the project and the command line, judged together.

use std::path::Path;
use std::process::Command;

use crate::json_with;

const FILE: &str = "tools:\n  - {name: pay, input: [{name: n, type: int}], require_confirmation: true, do: {eval: PAID}}\n  - {name: look, do: {eval: SEEN}}\n";

/// A folder with tools, and a model that calls both.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let calls = "- calls: [{tool: pay, arguments: {n: 1}}, {tool: look, arguments: {}}]\n- text: done\n";
    std::fs::write(folder.path().join("r.yaml"), calls).unwrap();
    std::fs::create_dir_all(folder.path().join(".config/toolwright")).unwrap();
    folder
}

/// Which of the two tools ran.
fn ran(folder: &Path, args: &[&str]) -> (bool, bool) {
    let ask = ["ask", "go", "--model", "scripted/r.yaml", "-f", "t.yaml", "--no-record"];
    let outcome = json_with(folder, &[&ask, args].concat(), "", &[]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let messages = outcome.value()["messages"].to_string();
    (messages.contains("PAID"), messages.contains("SEEN"))
}

#[test]
fn the_strictest_of_user_project_and_command_line_decides() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let file = FILE.replace(", require_confirmation: true", "");
    for (user, project, flag, wanted) in [
        // Without rules, flows run: they only call others.
        ("", "", "", (true, true)),
        ("", "- {tools: '*', decision: approve}", "", (true, true)),
        ("- {tools: pay, decision: reject}", "- {tools: '*', decision: approve}", "", (false, true)),
        ("- {tools: pay, decision: ask}", "- {tools: '*', decision: approve}", "", (false, true)),
        ("- {tools: '*', decision: approve}", "- {tools: pay, decision: reject}", "", (false, true)),
        ("", "- {tools: pay, decision: reject}", "- {tools: '*', decision: approve}", (false, true)),
        ("- {tools: pay, decision: reject}", "", "- {tools: '*', decision: approve}", (false, true)),
        ("", "- {tools: '*', decision: approve}", "- {tools: look, decision: reject}", (true, false)),
        // Only approving rules turn the question about what no rule is about into an approval.
        ("", "- {tools: nothing, decision: reject}", "", (false, false)),
        ("- {tools: look, decision: approve}", "- {tools: nothing, decision: reject}", "", (false, true)),
    ] {
        write(".config/toolwright/policy.yaml", if user.is_empty() { "[]" } else { user });
        let policy = if project.is_empty() { String::new() } else { format!("policy:\n{project}\n") };
        write("t.yaml", &format!("{file}{policy}"));
        write("flag.yaml", flag);
        let args: &[&str] = if flag.is_empty() { &[] } else { &["--policy", "flag.yaml"] };
        assert_eq!(ran(folder.path(), args), wanted, "{user}, {project}, {flag}");
    }
    write(".config/toolwright/policy.yaml", "- {tools: pay, decison: reject}");
    let broken = crate::json(folder.path(), &["ask", "go", "--model", "scripted/r.yaml", "-f", "t.yaml"]);
    broken.fails("parsing", 2, &["policy.yaml", "decison"]);
}

#[test]
fn yes_answers_what_would_be_asked_and_nothing_that_is_refused() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("t.yaml", FILE);
    assert_eq!(ran(folder.path(), &[]), (false, true));
    assert_eq!(ran(folder.path(), &["--yes"]), (true, true));
    write(".config/toolwright/policy.yaml", "- {tools: look, decision: reject}\n");
    assert_eq!(ran(folder.path(), &["--yes"]), (true, false));
}

/// Runs the program where `/etc/toolwright/policy.yaml` is this text, with these rights and owner. `None`
/// where the machine gives no namespace for that.
fn managed(
    folder: &Path,
    rules: &str,
    mode: &str,
    owner: &str,
    args: &[&str],
) -> Option<(Option<i32>, String)> {
    std::fs::write(folder.join("managed.yaml"), rules).unwrap();
    let script = "mount -t tmpfs none /etc && mkdir -m 755 /etc/toolwright && cp managed.yaml /etc/toolwright/policy.yaml \
                  && chmod \"$1\" /etc/toolwright/policy.yaml && chown \"$2\" /etc/toolwright/policy.yaml || exit 99\n\
                  shift 2; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "--", "/bin/sh", "-c", script, "sh", mode, owner])
        .arg(env!("CARGO_BIN_EXE_toolwright"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(crate::NO_SERVERS)
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let unavailable = output.status.code() == Some(99) || text.starts_with("unshare:");
    (!unavailable).then_some((output.status.code(), text))
}

#[test]
fn the_rules_of_the_machine_are_loosened_by_nobody() {
    let folder = folder();
    std::fs::write(
        folder.path().join("t.yaml"),
        format!("{FILE}policy: [{{tools: '*', decision: approve}}]\n"),
    )
    .unwrap();
    let everything = "- {tools: '*', decision: approve}\n";
    std::fs::write(folder.path().join(".config/toolwright/policy.yaml"), everything).unwrap();
    std::fs::write(folder.path().join("flag.yaml"), everything).unwrap();
    let ask = [
        "--json",
        "ask",
        "go",
        "--model",
        "scripted/r.yaml",
        "-f",
        "t.yaml",
        "--policy",
        "flag.yaml",
        "--yes",
        "--no-record",
    ];
    let run = |rules: &str, args: &[&str]| managed(folder.path(), rules, "644", "0", args);
    let Some((code, shown)) = run("- {tools: look, decision: reject, reason: by the machine}\n", &ask) else {
        eprintln!("skipped: the_rules_of_the_machine_are_loosened_by_nobody (no mount namespace)");
        return;
    };
    assert!(code == Some(0) && shown.contains("PAID") && !shown.contains("SEEN"), "{shown}");
    assert!(shown.contains("by the machine"), "{shown}");
    // Its question is not answered by --yes, and its approvals do not count.
    let (_, shown) = run("- {tools: look, decision: ask}\n", &ask).unwrap();
    assert!(shown.contains("PAID") && !shown.contains("SEEN"), "{shown}");
    let cautious = ["--json", "ask", "go", "--model", "scripted/r.yaml", "-f", "t.yaml", "--no-record"];
    let (_, shown) = run(everything, &cautious).unwrap();
    assert!(!shown.contains("PAID") && shown.contains("SEEN"), "{shown}");
    // It holds for what a person calls.
    let call = ["--json", "call", "look", "-f", "t.yaml", "--no-record"];
    let (code, shown) = run("- {tools: look, decision: reject}\n", &call).unwrap();
    assert!(code == Some(1) && shown.contains("approval") && !shown.contains("SEEN"), "{shown}");
    let (code, shown) = run("- {tools: look, decision: ask}\n", &call).unwrap();
    assert!(code == Some(1) && shown.contains("nobody to ask") && !shown.contains("SEEN"), "{shown}");
    let (code, shown) = run("- {tools: other, decision: reject}\n", &call).unwrap();
    assert!(code == Some(0) && shown.contains("SEEN"), "{shown}");
    // What others could have written is not used, and nothing else is.
    for (mode, owner) in [("666", "0"), ("664", "0"), ("644", "1234")] {
        let used = managed(folder.path(), "[]\n", mode, owner, &ask).unwrap();
        assert!(
            used.0 == Some(2) && used.1.contains("/etc/toolwright/policy.yaml"),
            "{mode} {owner}: {used:?}"
        );
    }
    for broken in ["approvers: [{name: auto, tools: '*'}]\n", "- {tools: x, decison: ask}\n"] {
        assert_eq!(run(broken, &ask).unwrap().0, Some(2), "{broken}");
    }
}
