//! Edits change what they say and nothing else, whichever tool makes them.

use std::sync::Arc;

use serde_json::json;
use toolwright_core::{DynSandbox, ErrorKind, ExecRequest, ExecResult, Sandbox, ToolCall, ToolError};
use toolwright_runtime::Run;
use toolwright_sandbox::SandboxPolicy;
use toolwright_tools::standard;

use crate::support::{Backend, Bench, cases};

cases![
    no_byte_outside_an_edit_changes,
    a_run_undoes_its_own_edits_in_order,
    two_runs_do_not_share_a_history,
    undo_says_when_somebody_else_changed_the_file,
    a_patch_is_applied_as_a_whole_or_not_at_all,
    a_file_is_written_only_as_asked,
    a_failed_write_is_not_remembered,
    a_protected_file_is_told_to_be_one,
    a_patch_that_fails_at_a_mode_leaves_the_modes_as_they_were,
];

/// A sandbox in which the mode of `b` cannot be changed.
struct Stubborn(Arc<DynSandbox>);

impl Sandbox for Stubborn {
    fn kind(&self) -> &str {
        self.0.kind()
    }

    fn isolates(&self) -> bool {
        self.0.isolates()
    }

    async fn exec(&self, mut command: ExecRequest) -> Result<ExecResult, ToolError> {
        if command.command.first().is_some_and(|word| word == "chmod")
            && command.command.last().is_some_and(|word| word == "b")
        {
            command.command = vec!["false".to_owned()];
        }
        self.0.exec(command).await
    }

    async fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), ToolError> {
        self.0.write_file(path, contents).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        self.0.read_file(path).await
    }
}

async fn a_patch_that_fails_at_a_mode_leaves_the_modes_as_they_were(backend: Backend) {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(backend).await;
    let mode = |name: &str| std::fs::metadata(bench.folder.join(name)).unwrap().permissions().mode() & 0o777;
    for name in ["a", "b"] {
        bench.sandbox.write_file(name, b"text\n").await.unwrap();
    }
    let before = (mode("a"), mode("b"));
    assert_eq!(before.0 & 0o111, 0);
    let sandbox = Arc::new(Stubborn(bench.sandbox.clone()));
    let run = Run::builder(standard().unwrap()).sandbox("default", sandbox).build().unwrap();
    let one = |name: &str| format!("diff --git a/{name} b/{name}\nold mode 100644\nnew mode 100755\n");
    let arguments = json!({"patch": one("a") + &one("b")});
    let result = run.call(ToolCall::new("1", "apply_patch", arguments)).await.unwrap();
    let message = result.error.unwrap().message;
    assert!(message.ends_with("nothing was changed"), "{message}");
    assert_eq!((mode("a"), mode("b")), before);
}

async fn a_protected_file_is_told_to_be_one(backend: Backend) {
    if backend == Backend::Local {
        // Nothing is protected there.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sandbox = backend.open(SandboxPolicy::for_workspace(folder.path())).await;
    let run = Run::builder(standard().unwrap()).sandbox("default", sandbox).build().unwrap();
    for path in [".envrc", ".git/config"] {
        let call = ToolCall::new("1", "write_file", json!({"path": path, "content": "x"}));
        let error = run.call(call).await.unwrap().error.unwrap();
        assert_eq!((error.kind, error.message), (ErrorKind::Permission, format!("`{path}` is protected")));
        assert!(error.hint.is_some_and(|hint| hint.contains("`protect`")));
    }
    let patch = "*** Begin Patch\n*** Add File: .envrc\n+x\n*** End Patch\n";
    for (tool, arguments, path) in [
        ("text_editor", json!({"command": "create", "path": ".bashrc", "file_text": "x"}), ".bashrc"),
        ("apply_patch", json!({"patch": patch}), ".envrc"),
    ] {
        let error = run.call(ToolCall::new("1", tool, arguments)).await.unwrap().error.unwrap();
        assert_eq!(error.kind, ErrorKind::Permission, "{}", error.message);
        assert!(error.message.contains(&format!("{path}` is protected")), "{}", error.message);
    }
}

/// Texts that careless editors damage.
const TEXTS: [&str; 8] = [
    "\tone\n\t\tX\n  \tthree\n",
    "one\r\nX\r\nthree\r\n",
    "one\r\nX\nthree\r\n",
    "one\nX",
    "X",
    "\u{feff}naïve ✓ 日本語\nX\n\u{2028}\u{85}\n",
    "a\n\n\nX\n\n\n",
    "trailing  \nX\t \nend \x0c\n",
];

async fn no_byte_outside_an_edit_changes(backend: Backend) {
    let bench = Bench::new(backend).await;
    let long = format!("{}\nX\n{}", "é".repeat(200_000), "y".repeat(200_000));
    for text in TEXTS.into_iter().chain([long.as_str()]) {
        let wanted = text.replace('X', "changed");
        let path = json!("f.txt");
        bench.write("f.txt", text);
        bench.text("edit_file", json!({"path": path, "old_string": "X", "new_string": "changed"})).await;
        assert_eq!(bench.read("f.txt"), wanted, "edit_file");
        bench.write("f.txt", text);
        let edit = json!({"command": "str_replace", "path": path, "old_str": "X", "new_str": "changed"});
        bench.text("text_editor", edit).await;
        assert_eq!(bench.read("f.txt"), wanted, "text_editor");
        bench.text("text_editor", json!({"command": "undo_edit", "path": path})).await;
        assert_eq!(bench.read("f.txt"), text, "undo_edit");
        let whole: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        let (at, line) = whole.iter().enumerate().find(|(_, line)| line.contains('X')).unwrap();
        let changed = line.replace('X', "changed");
        let patch = format!("--- a/f.txt\n+++ b/f.txt\n@@ -{0} +{0} @@\n-{line}\n+{changed}\n", at + 1);
        bench.text("apply_patch", json!({"patch": patch})).await;
        // A new line of a file with mixed endings ends in a bare newline.
        let mixed = text.contains("\r\n") && text.matches('\n').count() != text.matches("\r\n").count();
        assert_eq!(
            bench.read("f.txt"),
            if mixed { text.replace("X\n", "changed\n") } else { wanted },
            "apply_patch"
        );
    }
}

async fn a_run_undoes_its_own_edits_in_order(backend: Backend) {
    let bench = Bench::new(backend).await;
    let editor = async |arguments: serde_json::Value| bench.text("text_editor", arguments).await;
    editor(json!({"command": "create", "path": "a.txt", "file_text": "v0"})).await;
    for step in 0..3 {
        let (old_str, new_str) = (format!("v{step}"), format!("v{}", step + 1));
        editor(json!({"command": "str_replace", "path": "a.txt", "old_str": old_str, "new_str": new_str}))
            .await;
    }
    for wanted in ["v2", "v1", "v0"] {
        // The same file under another name is the same file.
        editor(json!({"command": "undo_edit", "path": "./a.txt"})).await;
        assert_eq!(bench.read("a.txt"), wanted);
    }
    editor(json!({"command": "undo_edit", "path": "a.txt"})).await;
    assert!(!bench.folder.join("a.txt").exists(), "undoing the creation removes the file");
}

async fn two_runs_do_not_share_a_history(backend: Backend) {
    let (one, two) = (Bench::new(backend).await, Bench::new(backend).await);
    one.text("text_editor", json!({"command": "create", "path": "a", "file_text": "x"})).await;
    two.write("a", "x");
    let (kind, message) = two.error("text_editor", json!({"command": "undo_edit", "path": "a"})).await;
    assert_eq!(kind, ErrorKind::Unknown);
    assert!(message.contains("can be undone"), "{message}");
}

async fn undo_says_when_somebody_else_changed_the_file(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("a", "one");
    bench
        .text(
            "text_editor",
            json!({"command": "insert", "path": "a", "insert_line": 1, "insert_text": "two"}),
        )
        .await;
    bench.text("bash", json!({"command": "echo more >> a"})).await;
    let told = bench.text("text_editor", json!({"command": "undo_edit", "path": "a"})).await;
    assert!(told.contains("changed by something else"), "{told}");
    assert_eq!(bench.read("a"), "one");
}

async fn a_patch_is_applied_as_a_whole_or_not_at_all(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("a.txt", "one\ntwo\n");
    bench.write("old.txt", "gone\n");
    let good = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/d/new.txt\n@@ -0,0 +1 @@\n+new\n\
        --- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    bench.text("apply_patch", json!({"patch": good, "dry_run": true})).await;
    assert_eq!(bench.read("a.txt"), "one\ntwo\n");
    let told = bench.text("apply_patch", json!({"input": good})).await;
    assert_eq!(told, "changed a.txt\ncreated d/new.txt\ndeleted old.txt");
    assert_eq!((bench.read("a.txt"), bench.read("d/new.txt")), ("one\n2\n".into(), "new\n".into()));
    assert!(!bench.folder.join("old.txt").exists());
    let bad = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/d/new.txt\n+++ b/d/new.txt\n@@ -1 +1 @@\n-other\n+x\n";
    let (_, message) = bench.error("apply_patch", json!({"patch": bad})).await;
    assert_eq!(message, "hunk 1 does not fit d/new.txt: line 1 is `new`, and the hunk has `other`");
    assert_eq!(bench.read("a.txt"), "one\n2\n", "the part that fits was not applied either");
    let (kind, _) =
        bench.error("apply_patch", json!({"patch": "--- nope\n+++ nope\n@@ -1 +1 @@\n-a\n+b\n"})).await;
    assert_eq!(kind, ErrorKind::FileNotFound);
}

async fn a_file_is_written_only_as_asked(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.text("write_file", json!({"path": "d/e/a.txt", "content": "one\r\n"})).await;
    assert!(
        bench
            .error("write_file", json!({"path": "d/e/a.txt", "content": "x"}))
            .await
            .1
            .contains("already exists")
    );
    bench.text("write_file", json!({"path": "d/e/a.txt", "content": "two", "if_exists": "append"})).await;
    assert_eq!(bench.read("d/e/a.txt"), "one\r\ntwo");
    bench.text("write_file", json!({"file_path": "d/e/a.txt", "text": "x", "if_exists": "overwrite"})).await;
    assert_eq!(bench.read("d/e/a.txt"), "x");
    assert_eq!(
        bench.error("write_file", json!({"path": "d", "content": "x"})).await.0,
        ErrorKind::IsADirectory
    );
}

async fn a_failed_write_is_not_remembered(backend: Backend) {
    if backend == Backend::Local {
        return;
    }
    let bench = Bench::new(backend).await;
    let create = json!({"command": "create", "path": "/usr/x.txt", "file_text": "x"});
    let (kind, _) = bench.error("text_editor", create).await;
    assert_eq!(kind, ErrorKind::Permission);
    let (kind, _) = bench.error("text_editor", json!({"command": "undo_edit", "path": "/usr/x.txt"})).await;
    assert_eq!(kind, ErrorKind::Unknown);
}
