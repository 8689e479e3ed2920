//! Commands and programs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_core::{CallNote, ErrorKind, RunScope, Tool as _, ToolCall, ToolContext, ToolDef, Toolset};
use toolwright_runtime::{Event, EventKind, Run};
use toolwright_sandbox::SandboxPolicy;
use toolwright_tools::{Options, bash, python};

use crate::sessions::running;
use crate::support::{Backend, Bench, cases};

cases![
    a_shell_tells_output_errors_and_a_bad_end,
    a_timeout_stops_the_whole_tree_and_keeps_the_output,
    what_was_printed_before_the_end_of_the_call_is_kept,
    programs_run_without_a_shell,
    python_reads_its_program_whole,
    aliases_are_accepted,
    a_named_sandbox_is_the_one_used,
    secrets_of_the_caller_are_not_in_the_environment,
    search_finds_lines_in_many_files,
    a_thought_changes_nothing,
    an_approver_sees_the_code,
    output_is_told_while_a_command_runs,
    a_plan_with_a_goal_is_kept_and_told,
    a_cancelled_command_is_killed_without_being_waited_for,
    tools_of_marsys_take_what_they_take_there,
    a_numbered_file_is_shown_as_inspect_shows_it,
    search_path_of_the_policy_holds_in_shells,
    folder_of_a_command_is_reported_as_the_command_sees_it,
];

/// Without a run around it: a run would stop waiting for it after half a second.
async fn a_cancelled_command_is_killed_without_being_waited_for(backend: Backend) {
    let bench = Bench::new(backend).await;
    for (number, tool) in ["bash", "python_execute"].into_iter().enumerate() {
        let word = format!("7{number}{}{}", backend as u8, std::process::id());
        let command = format!("setsid sleep {word}; :");
        let arguments = match tool {
            "bash" => json!({"command": command}),
            _ => json!({"code": format!("import os; os.system({command:?})"), "timeout": 600}),
        };
        let mut scope = RunScope::default();
        scope.sandboxes.insert("default".to_owned(), bench.sandbox.clone());
        let context = ToolContext::detached_in(scope);
        let tool = toolwright_tools::resolve(tool).unwrap();
        let call = tool.call(&context, arguments);
        let cancel = async {
            let begun = async {
                while !running(&word) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), begun).await.unwrap();
            context.cancel_token().cancel();
        };
        let both = async { tokio::join!(call, cancel).0 };
        let error = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        let gone = async {
            while running(&word) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap();
    }
}

async fn a_shell_tells_output_errors_and_a_bad_end(backend: Backend) {
    let bench = Bench::new(backend).await;
    assert_eq!(bench.text("bash", json!({"command": "echo out; echo err >&2"})).await, "err\n\nout\n");
    assert_eq!(bench.text("bash", json!({"command": "printf x; exit 3"})).await, "x\n[exit code 3]");
    assert_eq!(bench.text("bash", json!({"command": "kill -9 $$"})).await, "[ended by signal 9]");
    let result = bench.call("bash", json!({"command": "exit 4"})).await;
    assert_eq!(result.metadata["exit_code"], 4);
    bench.text("bash", json!({"command": "mkdir -p sub && cd sub && X=1 && echo kept > file"})).await;
    assert_eq!(bench.text("bash", json!({"command": "echo \"$X\"; cat sub/file"})).await, "\nkept\n");
}

async fn a_timeout_stops_the_whole_tree_and_keeps_the_output(backend: Backend) {
    let options = Options::new().timeout(Duration::from_millis(700));
    let bench = Bench::of(backend, [bash(&options), python(&options)]).await;
    let marker = format!("{}", std::process::id() + 50_000_000);
    let command = format!("echo before; (setsid sleep {marker} &); sleep {marker} & sleep {marker}");
    let result = bench.call("bash", json!({"command": command})).await;
    assert_eq!(result.error.as_ref().unwrap().kind, ErrorKind::Timeout);
    assert!(result.to_text().contains("before"), "{}", result.to_text());
    let deadline = Instant::now() + Duration::from_secs(30);
    while running(&marker) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!running(&marker), "the call is over and its processes are not");
    let result = bench.call("python", json!({"code": "print('a', flush=True)\nwhile True: pass"})).await;
    assert_eq!(result.error.as_ref().unwrap().kind, ErrorKind::Timeout);
}

async fn what_was_printed_before_the_end_of_the_call_is_kept(backend: Backend) {
    let tool = bash(&Options::new()).with_timeout(Duration::from_secs(2));
    let bench = Bench::of(backend, [tool]).await;
    // On a machine that is busy enough the command may not be gone when the call has to end.
    for _ in 0..10 {
        let result = bench.call("bash", json!({"command": "echo before; sleep 3600"})).await;
        assert_eq!(result.error.as_ref().unwrap().kind, ErrorKind::Timeout);
        if result.to_text().contains("before") {
            return;
        }
    }
    panic!("the output was lost ten times");
}

async fn programs_run_without_a_shell(backend: Backend) {
    let bench = Bench::new(backend).await;
    let echo = json!({"command": "printf", "args": ["%s|", "$HOME", "a b", ";ls"]});
    assert_eq!(bench.text("run_process", echo).await, "$HOME|a b|;ls|");
    let (kind, message) = bench.error("run_process", json!({"command": "ls", "args": ["nope"]})).await;
    assert_eq!(kind, ErrorKind::Unknown);
    assert!(message.starts_with("exit code 2:\n") && message.contains("nope"), "{message}");
    assert_eq!(
        bench.error("run_process", json!({"command": "no-such-program"})).await.0,
        ErrorKind::FileNotFound
    );
    let slow = json!({"command": "sleep", "args": ["20"], "timeout": 0.3});
    assert_eq!(bench.error("run_process", slow).await.0, ErrorKind::Timeout);
    for timeout in [0.0, -1.0, 1e300] {
        let call = json!({"command": "true", "timeout": timeout});
        assert_eq!(bench.error("run_process", call).await.0, ErrorKind::Parsing, "{timeout}");
    }
}

async fn search_path_of_the_policy_holds_in_shells(backend: Backend) {
    let folder = tempfile::tempdir().unwrap();
    let path = "/opt/venv/bin:/usr/bin:/bin";
    let mut policy = SandboxPolicy::private();
    policy.workspace = Some(folder.path().canonicalize().unwrap());
    policy.env.set.insert("PATH".to_owned(), path.to_owned());
    let tools = [bash(&Options::new()), python(&Options::new())];
    let set = tools.into_iter().fold(Toolset::new(), |set, tool| set.with(tool).unwrap());
    let run = Run::builder(set).sandbox("default", backend.open(policy).await).build().unwrap();
    for (tool, arguments) in [
        ("bash", json!({"command": "echo $PATH"})),
        ("python", json!({"code": "import os; print(os.environ['PATH'])"})),
    ] {
        let result = run.call(ToolCall::new("1", tool, arguments)).await.unwrap();
        assert_eq!(result.to_text(), format!("{path}\n"), "{tool}");
    }
}

async fn folder_of_a_command_is_reported_as_the_command_sees_it(backend: Backend) {
    let tools = ["shell_execute", "python_execute"].map(|name| toolwright_tools::resolve(name).unwrap());
    let bench = Bench::of(backend, tools).await;
    bench.write("sub/file", "");
    for (tool, arguments) in [
        ("shell_execute", json!({"command": "pwd"})),
        ("shell_execute", json!({"command": "pwd", "working_dir": "/sub"})),
        ("python_execute", json!({"code": "import os; print(os.getcwd())"})),
        ("python_execute", json!({"code": "import os; print(os.getcwd()); os._exit(3)"})),
    ] {
        let value = bench.value(tool, arguments.clone()).await;
        let shown = value["stdout"].as_str().unwrap().trim_end();
        if !shown.is_empty() {
            assert_eq!(value["cwd"], shown, "{tool} {arguments}");
        }
        let sub = arguments["working_dir"] == "/sub";
        assert!(value["cwd"].as_str().unwrap().ends_with("/sub") == sub, "{value}");
    }
}

async fn python_reads_its_program_whole(backend: Backend) {
    let bench = Bench::new(backend).await;
    assert_eq!(bench.text("python", json!({"code": "1+1"})).await, "");
    assert_eq!(bench.text("python", json!({"code": "print('é', 6*7)"})).await, "é 42\n");
    let told = bench.text("python", json!({"code": "raise SystemExit(3)"})).await;
    assert_eq!(told, "[exit code 3]");
    assert_eq!(bench.text("run_python_script", json!({"script": "print(1)"})).await, "1\n");
    let (_, message) = bench.error("run_python_script", json!({"script": "1/0"})).await;
    assert!(message.contains("ZeroDivisionError"), "{message}");
}

async fn aliases_are_accepted(backend: Backend) {
    let bench = Bench::new(backend).await;
    bench.write("a", "1\n2\n3\n");
    assert_eq!(bench.text("bash", json!({"cmd": "echo hi"})).await, "hi\n");
    assert_eq!(bench.text("python", json!({"script": "print(1)"})).await, "1\n");
    assert_eq!(bench.text("read_file", json!({"file_path": "a", "offset": 1, "limit": 1})).await, "2\n");
    assert_eq!(bench.error("bash", json!({"cmd": "a", "command": "b"})).await.0, ErrorKind::Parsing);
    assert_eq!(bench.error("bash", json!({"comand": "b"})).await.0, ErrorKind::Parsing);
}

async fn a_named_sandbox_is_the_one_used(backend: Backend) {
    let (one, two) = (Bench::new(backend).await, Bench::new(backend).await);
    let tools = toolwright_tools::standard_with(&Options::new().in_sandbox("other")).unwrap();
    let run = toolwright_runtime::Run::builder(tools)
        .sandbox("default", one.sandbox.clone())
        .sandbox("other", two.sandbox.clone())
        .build()
        .unwrap();
    let call = |tool: &str, arguments| ToolCall::new("1", tool, arguments);
    run.call(call("bash", json!({"command": "echo x > here"}))).await.unwrap();
    run.call(call("write_file", json!({"path": "there", "content": "x"}))).await.unwrap();
    assert!(two.folder.join("here").exists() && two.folder.join("there").exists());
    assert!(!one.folder.join("here").exists() && !one.folder.join("there").exists());
    let wrong = bash(&Options::new().in_sandbox("nope"));
    let result = Bench::of(backend, [wrong]).await.call("bash", json!({"command": "id"})).await;
    assert_eq!(result.error.unwrap().kind, ErrorKind::SandboxUnavailable);
}

async fn secrets_of_the_caller_are_not_in_the_environment(backend: Backend) {
    let bench = Bench::new(backend).await;
    let seen = bench.text("bash", json!({"command": "env | cut -d= -f1 | sort"})).await;
    for name in std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("CARGO_") || name.contains("KEY"))
    {
        assert!(!seen.lines().any(|line| line == name), "{name} is passed on");
    }
}

async fn search_finds_lines_in_many_files(backend: Backend) {
    let bench = Bench::new(backend).await;
    for n in 0..450 {
        bench.write(&format!("d/{}/f{n}.txt", n % 7), format!("line one\nnumber {n}\n"));
    }
    bench.write("d/binary", b"number 3\0");
    let found = bench.value("grep_files", json!({"pattern": r"^number \d*7$", "files_glob": "d"})).await;
    assert_eq!((&found["total_matches"], &found["files_searched"]), (&json!(45), &json!(450)));
    assert_eq!(found["matches"].as_array().unwrap().len(), 45);
    let pattern = "(a*)*b";
    let hostile = bench.call("grep_files", json!({"pattern": pattern, "files_glob": "d/**/*.txt"})).await;
    assert!(hostile.error.is_none(), "a hostile pattern takes no time: {:?}", hostile.error);
    let (_, message) = bench.error("grep_files", json!({"pattern": "(", "files_glob": "d"})).await;
    assert!(message.contains("not a regular expression"), "{message}");
    let names = bench.value("glob_files", json!({"pattern": "**/f1?.txt"})).await;
    assert_eq!(names.as_array().unwrap().len(), 10);
}

async fn an_approver_sees_the_code(_: Backend) {
    let view = |tool: &ToolDef, arguments: serde_json::Value| {
        tool.prepared(arguments).unwrap().description.unwrap().view.call.unwrap()
    };
    let shown = view(&bash(&Options::new()), json!({"command": " ls -la \n"}));
    assert_eq!((shown.title.as_deref(), shown.content.as_str()), (Some("bash"), "```bash\nls -la\n```\n"));
    let shown = view(&python(&Options::new()), json!({"code": "print('```')"}));
    assert_eq!(shown.content, "````python\nprint('```')\n````\n");
}

async fn a_thought_changes_nothing(backend: Backend) {
    let bench = Bench::new(backend).await;
    assert_eq!(bench.text("think", json!({"thought": "hm"})).await, "");
    let plan = json!({"plan": [{"step": "a", "status": "anything"}], "explanation": "why"});
    bench.text("update_plan", plan).await;
    bench.text("todo_write", json!({"todos": [{"content": "a", "status": "pending"}]})).await;
    let odd = json!({"todos": [{"content": "a", "status": "someday"}]});
    assert_eq!(bench.error("todo_write", odd).await.0, ErrorKind::Parsing);
}

async fn output_is_told_while_a_command_runs(backend: Backend) {
    let bench = Bench::new(backend).await;
    let heard: Arc<Mutex<Vec<(String, String, bool)>>> = Arc::default();
    let (ears, folder) = (heard.clone(), bench.folder.clone());
    let sink = move |event: &Event| {
        if let EventKind::CallNoted { note: CallNote::Output { stream, text }, .. } = &event.kind {
            let over = folder.join("over").exists();
            ears.lock().unwrap().push((stream.clone(), text.clone(), over));
        }
    };
    let run = Run::builder(toolwright_tools::standard().unwrap())
        .sandbox("default", bench.sandbox.clone())
        .on_event(sink)
        .build()
        .unwrap();
    let script = "printf 'fir'; sleep 0.2; echo st; while ! [ -e go ]; do sleep 0.05; done; echo second >&2; printf end; echo > over";
    let call = run.call(ToolCall::new("1", "bash", json!({"command": script})));
    let go = async {
        while heard.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.write("go", "");
    };
    let (result, ()) = tokio::join!(call, go);
    assert_eq!(result.unwrap().to_text(), "second\n\nfirst\nend");
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    assert_eq!(heard[0], ("stdout".to_owned(), "first\n".to_owned(), false));
    let rest: Vec<_> = heard[1..].iter().map(|(stream, text, _)| (stream.as_str(), text.as_str())).collect();
    assert_eq!(rest, [("stderr", "second\n"), ("stdout", "end")]);
}

async fn a_plan_with_a_goal_is_kept_and_told(backend: Backend) {
    let names =
        ["plan_create", "plan_read", "plan_update", "plan_add_item", "plan_remove_item", "plan_clear"];
    let bench = Bench::of(backend, names.map(|name| toolwright_tools::resolve(name).unwrap())).await;
    assert!(
        bench.error("plan_update", json!({"item_id": "1", "status": "pending"})).await.1.contains("no plan")
    );
    let item =
        |title: &str| json!({"title": title, "content": format!("do {title}"), "active_form": "doing"});
    for items in [vec![item("a")], (0..21).map(|n| item(&n.to_string())).collect()] {
        assert_eq!(bench.error("plan_create", json!({"items": items})).await.0, ErrorKind::Parsing);
    }
    let high = json!({"title": "B", "content": "do b", "priority": "high"});
    bench.text("plan_create", json!({"goal": "G", "items": [{"title": "A", "content": "do a"}, high]})).await;
    let read = bench.text("plan_read", json!({})).await;
    assert_eq!(
        read,
        "Goal: G\nProgress: 0/2 (0%)\n\n1. [ ] A (id: 1)\n   do a\n2. [ ] B [HIGH] (id: 2)\n   do b"
    );
    let (kind, message) = bench.error("plan_update", json!({"item_id": "zz", "status": "completed"})).await;
    assert!(kind == ErrorKind::Parsing && message.contains("1 (A), 2 (B)"), "{message}");
    assert_eq!(
        bench.error("plan_update", json!({"item_id": "1", "status": "someday"})).await.0,
        ErrorKind::Parsing
    );
    bench.text("plan_update", json!({"item_id": "1", "status": "in_progress"})).await;
    let second = bench.error("plan_update", json!({"item_id": "2", "status": "in_progress"})).await;
    assert!(second.1.contains("one item at a time"), "{second:?}");
    let done = bench.text("plan_update", json!({"item_id": "1", "status": "completed"})).await;
    assert_eq!(done, "updated `A`: completed");
    assert_eq!(bench.text("plan_add_item", item("C")).await, "added `C` (id: 3)");
    assert_eq!(bench.text("plan_remove_item", json!({"item_id": "2"})).await, "removed `B`");
    let read = bench.text("plan_read", json!({})).await;
    assert_eq!(read, "Goal: G\nProgress: 1/2 (50%)\n\n1. [x] A (id: 1)\n   do a\n2. [ ] C (id: 3)\n   do C");
    bench.text("plan_clear", json!({})).await;
    assert!(bench.error("plan_read", json!({})).await.1.contains("no plan"));
}

async fn tools_of_marsys_take_what_they_take_there(backend: Backend) {
    let names = [
        "shell_grep",
        "shell_wc",
        "shell_head",
        "shell_tail",
        "shell_execute",
        "python_execute",
        "search_files",
        "file_operations",
    ];
    let edit = toolwright_tools::resolve("marsys.edit_file").unwrap();
    let theirs = names.map(|name| toolwright_tools::resolve(name).unwrap());
    let bench = Bench::of(backend, theirs.into_iter().chain([edit])).await;
    bench.write("f", (1..=10).map(|n| format!("line {n}\n")).collect::<String>());
    let why = "to see";
    let grep = json!({"pattern": "line 7", "file_or_dir": "f", "line_numbers": false, "reasoning": why});
    assert_eq!(
        bench.value("shell_grep", grep).await["matches"],
        json!([{"file": "f", "line_number": null, "line": "line 7"}])
    );
    let words =
        bench.value("shell_wc", json!({"file_path": "f", "count_type": "lines", "reasoning": why})).await;
    assert_eq!((&words["lines"], &words["words"]), (&json!(10), &json!(20)));
    let head = bench.value("shell_head", json!({"file_path": "f", "num_lines": -8})).await;
    assert_eq!(head["lines"], json!(["line 1", "line 2"]));
    for follow in [false, true] {
        let tail = json!({"file_path": "f", "num_lines": 1, "follow": follow});
        assert_eq!(bench.value("shell_tail", tail).await["lines"], json!(["line 10"]));
    }
    assert!(bench.error("shell_tail", json!({"file_path": "none", "follow": true})).await.1.contains("none"));
    let found =
        bench.value("search_files", json!({"query": "line 3", "timeout": 60, "reasoning": why})).await;
    assert_eq!(found["total_matches"], 1);
    assert_eq!(
        bench.error("search_files", json!({"query": "x", "timeout": 1e-9})).await.0,
        ErrorKind::Timeout
    );
    let read =
        bench.value("file_operations", json!({"operation": "READ", "path": "/f", "reasoning": why})).await;
    assert_eq!(read["path"], "f");
    let ran = bench.value("shell_execute", json!({"command": "exit 3", "reasoning": why})).await;
    assert_eq!(
        (&ran["return_code"], &ran["exit_code"], &ran["timed_out"]),
        (&json!(3), &json!(3), &json!(false))
    );
    assert_eq!(ran["error"], json!(null));
    bench.write("d/e/x", "");
    let below = bench.value("shell_execute", json!({"command": "ls", "working_dir": "./d/e"})).await;
    assert_eq!(below["stdout"], "x\n");
    let program = bench.value("python_execute", json!({"code": "pass"})).await;
    assert_eq!(program.get("error"), Some(&json!(null)));
    let replace = json!({"search": "line 2\nline 3", "replace": "two"});
    let dry = bench.value("edit_file", json!({"path": "f", "changes": replace, "dry_run": true})).await;
    assert_eq!(dry["preview"], "-line 2\n-line 3\n+two\n");
    let diff = "@@ -1,2 +1,2 @@\n-line 1\n+one\n line 2\n";
    let dry = bench.value("edit_file", json!({"path": "f", "changes": diff, "dry_run": true})).await;
    assert_eq!((&dry["preview"], &dry["hunks_total"]), (&json!(diff), &json!(1)));
    let done = bench.value("edit_file", json!({"path": "f", "changes": diff})).await;
    assert_eq!(done.get("preview"), None);
    assert_eq!((&done["strategy_used"], &done["warnings"]), (&json!("exact_match"), &json!([])));
    assert!(bench.read("f").starts_with("one\nline 2\n"));
}

async fn a_numbered_file_is_shown_as_inspect_shows_it(backend: Backend) {
    let bench = Bench::of(backend, [toolwright_tools::resolve("inspect_ai.tool.read_file").unwrap()]).await;
    bench.write("f", b"a\r\nb\xffc\n");
    assert_eq!(bench.text("read_file", json!({"file_path": "f"})).await, "1\ta\r\n2\tb\u{fffd}c");
}
