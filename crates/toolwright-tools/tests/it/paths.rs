//! Paths that are not what they seem.

use serde_json::{Value, json};
use toolwright_core::ErrorKind;

use crate::support::{Backend, Bench, cases};

cases![
    a_leading_dash_is_a_name,
    a_nul_byte_is_refused_by_every_tool,
    folders_and_missing_files_have_their_kinds,
    links_are_followed_inside_and_lead_nowhere_outside,
    names_with_odd_characters_are_kept,
    files_that_cannot_be_searched_are_counted,
    files_that_are_too_large_or_no_files_are_typed_errors,
    a_run_without_a_sandbox_is_refused,
    no_path_ends_a_run,
    info_is_told_of_files_folders_and_links,
    a_missing_file_names_the_one_that_was_meant,
    a_rule_about_a_path_holds_however_the_path_is_written,
    what_holds_the_place_of_a_file_is_not_shown,
];

async fn files_that_cannot_be_searched_are_counted(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("good", "needle\n");
    bench.write("empty", "");
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"odd\xff");
    std::fs::write(bench.folder.join(odd), "needle\n").unwrap();
    // A path that is too long to be opened as a whole.
    let folder = "d".repeat(200);
    let deep =
        format!("for i in $(seq 25); do mkdir {folder} && cd {folder} || exit 1; done; echo needle > deep");
    bench.text("bash", json!({"cmd": deep})).await;
    let found = bench.value("grep_files", json!({"pattern": "needle", "files_glob": "."})).await;
    let matches = json!([{"file": "good", "line_number": 1, "content": "needle"}]);
    assert_eq!(
        found,
        json!({"total_matches": 1, "files_searched": 2, "matches": matches, "files_not_read": 2})
    );
    bench.text("bash", json!({"cmd": format!("rm -r {folder}")})).await;
}

async fn a_leading_dash_is_a_name(backend: Backend) {
    let bench = Bench::new(backend).await;
    for name in ["-rf", "--help", "-n", "!", "(", "-exec"] {
        bench.text("write_file", json!({"path": name, "content": "needle\n"})).await;
        assert_eq!(bench.text("read_file", json!({"path": name})).await, "needle\n");
        let info = bench.value("file_info", json!({"path": name})).await;
        assert_eq!(info["size"], 7, "{name}");
        let found = bench.value("grep_files", json!({"pattern": "needle", "files_glob": name})).await;
        assert_eq!(found["total_matches"], 1, "{name}");
        assert!(
            bench.text("grep", json!({"pattern": "needle", "path": name})).await.contains("needle"),
            "{name}"
        );
        bench.text("text_editor", json!({"command": "view", "path": name})).await;
    }
    for folder in ["-d", "!d"] {
        bench.write(&format!("{folder}/inner.txt"), "x");
        let listed = bench.text("list_files", json!({"path": folder})).await;
        assert_eq!(listed, format!("{folder}/inner.txt"));
        let globbed = bench.text("glob_files", json!({"pattern": "*.txt", "path": folder})).await;
        assert!(globbed.contains("inner.txt"), "{globbed}");
    }
    assert!(bench.text("grep", json!({"pattern": "-e needle", "path": "."})).await.contains("no matches"));
}

async fn a_nul_byte_is_refused_by_every_tool(backend: Backend) {
    let bench = Bench::new(backend).await;
    let bad = "a\u{0}b";
    let calls: [(&str, Value); 17] = [
        ("bash", json!({"command": bad})),
        ("python", json!({"code": bad})),
        ("run_process", json!({"command": bad})),
        ("run_process", json!({"command": "echo", "args": [bad]})),
        ("run_python_script", json!({"script": bad})),
        ("read_file", json!({"path": bad})),
        ("write_file", json!({"path": bad, "content": ""})),
        ("edit_file", json!({"path": bad, "old_string": "x", "new_string": "y"})),
        ("list_files", json!({"path": bad})),
        ("list_directory", json!({"path": bad})),
        ("glob_files", json!({"pattern": bad})),
        ("grep_files", json!({"pattern": "x", "files_glob": bad})),
        ("grep", json!({"pattern": bad})),
        ("grep", json!({"pattern": "x", "glob": bad})),
        ("file_info", json!({"path": bad})),
        ("text_editor", json!({"command": "view", "path": bad})),
        ("apply_patch", json!({"patch": format!("--- {bad}\n+++ {bad}\n@@ -1 +1 @@\n-a\n+b\n")})),
    ];
    for (tool, arguments) in calls {
        let (kind, message) = bench.error(tool, arguments).await;
        assert_eq!(kind, ErrorKind::Parsing, "{tool}: {message}");
    }
}

async fn folders_and_missing_files_have_their_kinds(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("d/a", "x");
    for (tool, arguments, wanted) in [
        ("read_file", json!({"path": "d"}), ErrorKind::IsADirectory),
        ("read_file", json!({"path": "nope"}), ErrorKind::FileNotFound),
        ("read_file", json!({"path": "d/a/b"}), ErrorKind::FileNotFound),
        ("edit_file", json!({"path": "d", "old_string": "a", "new_string": "b"}), ErrorKind::IsADirectory),
        ("edit_file", json!({"path": "nope", "old_string": "a", "new_string": "b"}), ErrorKind::FileNotFound),
        ("list_directory", json!({"path": "nope"}), ErrorKind::FileNotFound),
        ("list_directory", json!({"path": "d/a"}), ErrorKind::Unknown),
    ] {
        let (kind, message) = bench.error(tool, arguments.clone()).await;
        // Going on below a file is an error, whatever the system calls it.
        let fits = kind == wanted || (arguments["path"] == "d/a/b" && kind != ErrorKind::Fatal);
        assert!(fits, "{tool} {arguments}: {kind} {message}");
    }
}

async fn links_are_followed_inside_and_lead_nowhere_outside(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("real.txt", "inside\n");
    std::os::unix::fs::symlink("real.txt", bench.folder.join("link.txt")).unwrap();
    assert_eq!(bench.text("read_file", json!({"path": "link.txt"})).await, "inside\n");
    bench
        .text("edit_file", json!({"path": "link.txt", "old_string": "inside", "new_string": "changed"}))
        .await;
    assert_eq!(bench.read("real.txt"), "changed\n");
    assert!(bench.folder.join("link.txt").is_symlink(), "the link stays a link");
    if backend == Backend::Local {
        return;
    }
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("key"), "hunter2").unwrap();
    std::os::unix::fs::symlink(secret.path(), bench.folder.join("out")).unwrap();
    let direct = secret.path().join("key").display().to_string();
    let climbing = format!("../../../../../../..{direct}");
    for path in ["out/key", &direct, &climbing] {
        let (kind, message) = bench.error("read_file", json!({"path": path})).await;
        assert_eq!(kind, ErrorKind::FileNotFound, "{path}: {message}");
    }
    for path in ["out/key", &direct, &climbing] {
        // A path in a private folder of the sandbox may be written there; the file outside stays as it is.
        bench.call("write_file", json!({"path": path, "content": "x", "if_exists": "overwrite"})).await;
        assert_eq!(std::fs::read_to_string(secret.path().join("key")).unwrap(), "hunter2", "{path}");
    }
    let found = bench.value("grep_files", json!({"pattern": "hunter2", "files_glob": "**/*"})).await;
    assert_eq!(found["total_matches"], 0);
}

async fn names_with_odd_characters_are_kept(backend: Backend) {
    let bench = Bench::new(backend).await;
    for name in
        ["a b", "né ✓", "two\nlines", "tab\there", "quote'\"", "$(touch x)", "`x`;ls", "*", "back\\slash"]
    {
        bench.text("write_file", json!({"path": name, "content": "n"})).await;
        assert_eq!(bench.text("read_file", json!({"path": name})).await, "n", "{name:?}");
        let entries = bench.value("list_directory", json!({})).await;
        let names: Vec<&str> =
            entries.as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
        assert!(names.contains(&name), "{name:?} in {names:?}");
    }
    assert!(!bench.folder.join("x").exists(), "nothing was run");
}

async fn files_that_are_too_large_or_no_files_are_typed_errors(backend: Backend) {
    let bench = Bench::new(backend).await;
    std::fs::File::create(bench.folder.join("huge")).unwrap().set_len(200 << 20).unwrap();
    assert_eq!(bench.error("read_file", json!({"path": "huge"})).await.0, ErrorKind::OutputLimit);
    let edit = json!({"path": "huge", "old_string": "x", "new_string": "y"});
    assert_eq!(bench.error("edit_file", edit).await.0, ErrorKind::OutputLimit);
    let found = bench.value("grep_files", json!({"pattern": "x", "files_glob": "huge"})).await;
    assert_eq!(found, json!({"total_matches": 0, "files_searched": 0, "matches": [], "files_too_large": 1}));
    bench.write("bin", [0xff, 0xfe, 0x00]);
    assert_eq!(bench.error("read_file", json!({"path": "bin"})).await.0, ErrorKind::UnicodeDecode);
    bench.text("bash", json!({"command": "mkfifo pipe"})).await;
    let (kind, message) = bench.error("read_file", json!({"path": "pipe"})).await;
    assert_ne!(kind, ErrorKind::Fatal, "{message}");
    for path in ["pipe", "/dev/zero"] {
        let wanted = (ErrorKind::Permission, format!("{path} is not a regular file"));
        assert_eq!(bench.error("grep", json!({"pattern": "x", "path": path})).await, wanted);
    }
    bench.write("folder/file", "needle\n");
    bench.text("bash", json!({"command": "mkfifo folder/pipe"})).await;
    let found = bench.text("grep", json!({"pattern": "needle", "path": "folder"})).await;
    assert_eq!(found, "folder/file:1:needle");
}

async fn a_run_without_a_sandbox_is_refused(_: Backend) {
    let run = toolwright_runtime::Run::builder(toolwright_tools::standard().unwrap()).build().unwrap();
    for (tool, arguments) in
        [("bash", json!({"command": "id"})), ("read_file", json!({"path": "/etc/passwd"}))]
    {
        let result = run.call(toolwright_core::ToolCall::new("1", tool, arguments)).await.unwrap();
        assert_eq!(result.error.unwrap().kind, ErrorKind::SandboxUnavailable);
    }
}

async fn no_path_ends_a_run(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("file", "x");
    std::os::unix::fs::symlink("nowhere/at/all", bench.folder.join("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", bench.folder.join("loop")).unwrap();
    let long = "x".repeat(300);
    let deep = vec!["y".repeat(200); 19].join("/");
    for path in [
        "dangling",
        "dangling/a",
        "loop",
        "loop/a",
        "file/a",
        &long,
        &deep,
        "/dev/full/x",
        "/proc/self/mem",
        ".",
    ] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x", "if_exists": "overwrite"})),
            ("edit_file", json!({"path": path, "old_string": "x", "new_string": "x"})),
            ("text_editor", json!({"command": "view", "path": path})),
            ("text_editor", json!({"command": "create", "path": path, "file_text": "x"})),
            ("list_files", json!({"path": path, "depth": 1})),
            ("grep_files", json!({"pattern": "x", "files_glob": path})),
            ("file_info", json!({"path": path})),
        ] {
            // A fatal error would be an `Err` here, and end the run.
            let outcome = bench.run.call(toolwright_core::ToolCall::new("1", tool, arguments)).await;
            assert!(outcome.is_ok(), "{tool} {path}: {outcome:?}");
        }
    }
}

async fn info_is_told_of_files_folders_and_links(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("d/a.md", "12345");
    std::os::unix::fs::symlink("d/a.md", bench.folder.join("l")).unwrap();
    std::os::unix::fs::symlink("nowhere", bench.folder.join("dangling")).unwrap();
    let info = async |path: &str| bench.value("file_info", json!({"path": path})).await;
    let file = info("d/a.md").await;
    assert_eq!(
        (&file["type"], &file["size"], &file["mime_type"]),
        (&json!("file"), &json!(5), &json!("text/markdown"))
    );
    assert!(file["modified"].as_str().unwrap().ends_with('Z'));
    assert_eq!(info("d").await["type"], "directory");
    assert_eq!((&info("l").await["type"], &info("l").await["size"]), (&json!("symlink"), &json!(5)));
    assert_eq!(info("dangling").await, json!({"exists": false}));
}

async fn a_missing_file_names_the_one_that_was_meant(backend: Backend) {
    let bench = Bench::new(backend).await;
    for path in ["notes.md", "src/main.rs", "src/config.yaml", "README.md"] {
        bench.write(path, "x");
    }
    let hint = async |tool: &str, arguments: Value| {
        bench.call(tool, arguments).await.error.unwrap().hint.unwrap_or_default()
    };
    for (path, wanted) in [
        ("note.md", "did you mean notes.md?"),
        ("src/mian.rs", "did you mean src/main.rs?"),
        ("scr/main.rs", "did you mean src?"),
        ("readme", "did you mean README.md?"),
        ("src/config.yml", "did you mean src/config.yaml?"),
        ("zzzzzz", ""),
        ("/nowhere/at/all", ""),
        ("$(touch pwned)", ""),
    ] {
        assert_eq!(hint("read_file", json!({"path": path})).await, wanted);
        assert_eq!(
            hint("edit_file", json!({"path": path, "old_string": "a", "new_string": "b"})).await,
            wanted
        );
    }
    assert_eq!(hint("list_directory", json!({"path": "sr"})).await, "did you mean src?");
    let viewed = hint("text_editor", json!({"command": "view", "path": "note.md"})).await;
    assert!(viewed.ends_with("/notes.md?"), "{viewed}");
    assert!(!bench.folder.join("pwned").exists());
}

async fn a_rule_about_a_path_holds_however_the_path_is_written(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("private/key", "secret\n");
    bench.write("open/x", "x\n");
    let rules = json!([
        {"tools": "*", "decision": "approve"},
        {"tools": "*", "when": {"path": ["private*", "/memories/private*"]}, "decision": "reject"},
        {"tools": "memory", "when": {"new_path": "/memories/private*"}, "decision": "reject"},
    ]);
    let policy = toolwright_runtime::Policy::from_value(rules).unwrap();
    let theirs = toolwright_tools::resolve("marsys.read_file").unwrap().with_name("marsys_read_file");
    let tools = toolwright_tools::standard().unwrap().with(theirs).unwrap();
    let run = toolwright_runtime::Run::builder(tools).sandbox("default", bench.sandbox.clone());
    let run = run.policy(policy).build().unwrap();
    let outcome = async |tool: &str, arguments: Value| {
        let result = run.call(toolwright_core::ToolCall::new("1", tool, arguments)).await.unwrap();
        result.error.map(|error| error.kind)
    };
    for path in
        ["private/key", "./private/key", "open/../private/key", "private//key", "./open/.././private/./key"]
    {
        for (tool, more) in [
            ("read_file", json!({})),
            ("write_file", json!({"content": "", "if_exists": "overwrite"})),
            ("edit_file", json!({"old_string": "secret", "new_string": ""})),
            ("text_editor", json!({"command": "view"})),
            ("grep", json!({"pattern": "secret"})),
            ("file_info", json!({})),
        ] {
            let mut arguments = more.clone();
            arguments["path"] = json!(path);
            assert_eq!(outcome(tool, arguments).await, Some(ErrorKind::Approval), "{tool} {path}");
        }
    }
    // Their root is the folder of the run.
    for path in ["/private/key", "//open/../private/key", "private/key"] {
        assert_eq!(
            outcome("marsys_read_file", json!({"path": path})).await,
            Some(ErrorKind::Approval),
            "{path}"
        );
    }
    assert_eq!(outcome("marsys_read_file", json!({"path": "/private/../open/x"})).await, None);
    assert_eq!(bench.read("private/key"), "secret\n");
    assert_eq!(outcome("read_file", json!({"path": "private/../open/x"})).await, None);
    for path in [
        "/memories/a/../private/x",
        "/memories//private/x",
        "\\memories\\private\\x",
        "/memories/./private/x",
    ] {
        let create = json!({"command": "create", "path": path, "file_text": "x"});
        assert_eq!(outcome("memory", create).await, Some(ErrorKind::Approval), "{path}");
        let rename = json!({"command": "rename", "old_path": "/memories/a", "new_path": path});
        assert_eq!(outcome("memory", rename).await, Some(ErrorKind::Approval), "{path}");
    }
    let inside = json!({"command": "create", "path": "/memories/private/../a", "file_text": "x"});
    assert_eq!(outcome("memory", inside).await, None);
}

async fn what_holds_the_place_of_a_file_is_not_shown(backend: Backend) {
    let mut tools = toolwright_tools::standard().unwrap();
    let theirs = toolwright_tools::resolve("marsys.list_files").unwrap().with_name("marsys_list_files");
    let more = ["shell_find", "shell_grep"].map(|name| toolwright_tools::resolve(name).unwrap());
    for tool in more.into_iter().chain([theirs]) {
        tools = tools.with(tool).unwrap();
    }
    let bench = Bench::with(backend, tools).await;
    assert_eq!(bench.text("list_files", json!({"path": "."})).await, "there are no files in .");
    assert_eq!(bench.value("marsys_list_files", json!({"path": "."})).await["file_count"], 0);
    let found = bench.value("shell_find", json!({"path": ".", "type": "f"})).await;
    assert_eq!(found["total_found"], 0, "{found}");
    let (kind, message) = bench.error("read_file", json!({"path": "profile"})).await;
    assert_eq!(kind, ErrorKind::FileNotFound, "{message}");
    let missing = bench.call("read_file", json!({"path": "bash_profil"})).await;
    assert_eq!(missing.error.unwrap().hint, None);
    let here = bench.folder.display().to_string();
    for (mode, wanted) in [
        ("content", "sub/.bash_profile:1:bash_login"),
        ("files_with_matches", "sub/.bash_profile"),
        ("count", "sub/.bash_profile:1"),
    ] {
        let _ = std::fs::remove_dir_all(bench.folder.join("sub"));
        for path in [".", here.as_str()] {
            let grep = json!({"pattern": "bash_login", "path": path, "output_mode": mode});
            assert_eq!(bench.text("grep", grep).await, "no matches", "{path} {mode}");
        }
        // One of somebody's own is found.
        bench.write("sub/.bash_profile", "bash_login\n");
        let grep = json!({"pattern": "bash_login", "path": ".", "output_mode": mode});
        assert_eq!(bench.text("grep", grep).await, format!("./{wanted}"));
    }
    for folder in [".", "/"] {
        let grep = json!({"pattern": "bash_login", "file_or_dir": folder, "recursive": true});
        let found = bench.value("shell_grep", grep).await;
        assert_eq!(
            (&found["total_matches"], &found["matches"][0]["file"]),
            (&json!(1), &json!("sub/.bash_profile"))
        );
    }
}
