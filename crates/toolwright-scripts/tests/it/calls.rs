//! Calls of scripts: what they are given, what they return, how they fail.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_core::{BoxFuture, Content, ErrorKind, ToolCall, ToolResult, Toolset};
use toolwright_runtime::Run;
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy};
use toolwright_scripts::{ScriptOptions, read_scripts};

pub(crate) type Test = (&'static str, &'static str, fn() -> BoxFuture<'static, ()>);

pub(crate) fn tests() -> Vec<Test> {
    vec![
        ("definitions_are_read_and_the_others_are_named", "sh", || Box::pin(definitions())),
        ("a_script_for_argc_runs_without_it", "bash", || Box::pin(argc())),
        ("arguments_of_models_are_never_shell_code", "bash", || Box::pin(quoting())),
        ("a_python_file_with_run_is_called", "python3", || Box::pin(python())),
        ("a_javascript_file_with_run_is_called", "node", || Box::pin(javascript())),
        ("variables_and_json_output_are_typed", "sh", || Box::pin(variables())),
        ("a_definition_beside_a_program_is_enough", "perl", || Box::pin(beside())),
        ("a_failure_has_its_code_and_the_end_of_stderr", "bash", || Box::pin(failure())),
        ("a_script_that_was_changed_is_not_run", "bash", || Box::pin(changed())),
        ("a_script_that_does_not_end_is_stopped", "bash", || Box::pin(stuck())),
        ("variables_that_are_needed_must_be_set", "bash", || Box::pin(needed())),
    ]
}

/// Whether a program is there, in a folder that sandboxes show.
pub(crate) fn has(program: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "command -v \"$0\"", program]).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A folder with the scripts, in which they run.
struct Opened {
    run: Run,
    tools: Toolset,
    left_out: Vec<(String, String)>,
    folder: TempDir,
}

impl Opened {
    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.run.call(ToolCall::new("1", tool, arguments)).await.unwrap()
    }
}

async fn open_with(pattern: &str, options: &ScriptOptions) -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), tools.join(entry.file_name())).unwrap();
    }
    reopen(folder, pattern, options).await
}

async fn reopen(folder: TempDir, pattern: &str, options: &ScriptOptions) -> Opened {
    let scripts = read_scripts(folder.path(), pattern, options).unwrap();
    let left_out = scripts.left_out.into_iter().map(|one| (one.name, one.reason)).collect();
    let policy =
        SandboxPolicy { workspace: Some(folder.path().canonicalize().unwrap()), ..SandboxPolicy::default() };
    let sandbox = Arc::new(ProcessSandbox::open(policy).await.unwrap());
    let run = Run::builder(scripts.tools.clone()).sandbox("default", sandbox).build().unwrap();
    Opened { run, tools: scripts.tools, left_out, folder }
}

async fn open(pattern: &str) -> Opened {
    open_with(pattern, &ScriptOptions::default()).await
}

async fn definitions() {
    let opened = open("tools/*").await;
    let names: Vec<String> = opened.tools.iter().map(|entry| entry.tool.spec().name.to_string()).collect();
    assert_eq!(names, ["count", "echo", "fails", "greet", "join", "weather"]);
    let left_out: Vec<&str> = opened.left_out.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(left_out, ["plain.txt", "two.sh"]);
    assert!(opened.left_out[0].1.contains("no definition"), "{:?}", opened.left_out);
    let greet = opened.tools.get("greet").unwrap().tool.spec().clone();
    assert_eq!(greet.description, "Greet somebody.\n\nSeveral languages are known.");
    let language = &greet.parameters["properties"]["language"];
    assert_eq!(
        *language,
        json!({"type": "string", "enum": ["en", "de"], "default": "en", "description": "The language"})
    );
    assert_eq!(greet.parameters["required"], json!(["name"]));
    for pattern in ["tools/*.none", "tools/[a-"] {
        let none = read_scripts(opened.folder.path(), pattern, &ScriptOptions::default()).unwrap();
        assert!(none.tools.is_empty() && none.left_out.is_empty());
    }
    for pattern in ["nowhere/*", "tools/gone.sh", ""] {
        assert!(read_scripts(opened.folder.path(), pattern, &ScriptOptions::default()).is_err(), "{pattern}");
    }
}

async fn argc() {
    let opened = open("tools/greet.sh").await;
    let greeted = opened.call("greet", json!({"name": "Ann"})).await;
    // What it prints beside its result is not part of it.
    assert_eq!((&greeted.error, greeted.to_text().as_str()), (&None, "Hello Ann\n"));
    let arguments =
        json!({"name": "Ann", "language": "de", "times": 2, "loud": true, "titles": ["Dr.", "h.c."]});
    let greeted = opened.call("greet", arguments).await.to_text();
    assert!(greeted.lines().count() == 2 && greeted.starts_with("HALLO DR."), "{greeted}");
    for arguments in
        [json!({}), json!({"name": "Ann", "language": "fr"}), json!({"name": "Ann", "times": "many"})]
    {
        let refused = opened.call("greet", arguments.clone()).await;
        assert_eq!(refused.error.unwrap().kind, ErrorKind::Parsing, "{arguments}");
    }
}

async fn quoting() {
    let opened = open("tools/*.sh").await;
    for name in
        ["'; touch $PWD/bad; echo '", "$(touch bad)", "`touch bad`", "a\nb \"c\" \\ $HOME", "-n", "--help"]
    {
        let greeted = opened.call("greet", json!({"name": name})).await;
        assert_eq!(greeted.to_text(), format!("Hello {name}\n"), "{greeted:?}");
        let printed = opened.call("fails", json!({"code": 0, "words": [name]})).await;
        assert!(printed.to_text().contains(&format!("word <{name}>")), "{printed:?}");
    }
    assert!(!opened.folder.path().join("bad").exists());
}

async fn python() {
    let opened = open("tools/weather.py").await;
    let result = opened.call("weather", json!({"city": "Köln", "tags": ["wind"]})).await;
    let value: Value = serde_json::from_str(&result.to_text()).unwrap();
    let expected = json!({"city": "Köln", "unit": "c", "days": null, "tags": ["wind"], "tool": "weather"});
    assert_eq!(value, expected, "{result:?}");
}

async fn javascript() {
    let opened = open("tools/join.js").await;
    let result = opened.call("join", json!({"words": ["a", "b"], "by": "space"})).await;
    assert_eq!(result.to_text(), "a b", "{result:?}");
}

async fn variables() {
    let opened = open("tools/count.sh").await;
    let result = opened.call("count", json!({"text": "a\nb\nab", "prefix": "a"})).await;
    assert_eq!((&result.error, &result.content), (&None, &vec![Content::json(json!({"lines": 2}))]));
}

async fn beside() {
    let opened = open("tools/echo.pl").await;
    let result = opened.call("echo", json!({"value": [1, "x"]})).await;
    assert_eq!(result.to_text(), "{\"value\":[1,\"x\"]}", "{result:?}");
}

async fn failure() {
    let opened = open("tools/fails.sh").await;
    let result = opened.call("fails", json!({"code": 7})).await;
    let error = result.error.clone().unwrap();
    assert_eq!(error.message, "the script ended with exit code 7:\nwhat went wrong");
    assert!(result.to_text().contains("some output"), "{result:?}");
}

async fn changed() {
    let opened = open("tools/fails.sh").await;
    let path = opened.folder.path().join("tools/fails.sh");
    std::fs::write(&path, "#!/bin/bash\necho other\n").unwrap();
    let error = opened.call("fails", json!({})).await.error.unwrap();
    assert!(error.kind == ErrorKind::Permission && error.message.contains("no longer"), "{error:?}");
    std::fs::remove_file(&path).unwrap();
    assert!(opened.call("fails", json!({})).await.error.is_some());
}

async fn stuck() {
    let folder = tempfile::tempdir().unwrap();
    let script = "# @describe Waits.\n# @option --x\necho begun\nsleep 1000 & sleep 1000\n";
    std::fs::write(folder.path().join("wait.sh"), script).unwrap();
    let mut options = ScriptOptions::default();
    options.timeout = Some(Duration::from_secs(1));
    let opened = reopen(folder, "wait.sh", &options).await;
    let since = Instant::now();
    let result = opened.call("wait", json!({})).await;
    assert_eq!(result.error.as_ref().unwrap().kind, ErrorKind::Timeout);
    assert!(result.to_text().contains("begun"), "{result:?}");
    assert!(since.elapsed() < Duration::from_secs(10));
}

async fn needed() {
    let script = "# @describe Shows.\n# @flag --x\n# @env SHOWN! What is shown\necho \"$SHOWN $HIDDEN\"\n";
    let with = |env: &[(&str, &str)]| {
        let mut options = ScriptOptions::default();
        options.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        async move {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("show.sh"), script).unwrap();
            reopen(folder, "show.sh", &options).await.call("show", json!({})).await
        }
    };
    let error = with(&[]).await.error.unwrap();
    assert!(error.message.contains("`SHOWN`") && error.hint.unwrap().contains("scripts: {env: [SHOWN]}"));
    assert_eq!(with(&[("SHOWN", "seen")]).await.to_text(), "seen \n");
}
