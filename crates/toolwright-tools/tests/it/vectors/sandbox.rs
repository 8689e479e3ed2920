//! Sandboxes as Inspect has them: what a command, a file or a name comes to.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};
use toolwright_core::{
    DynSandbox, ErrorKind, ExecRequest, MAX_READ_FILE, Preparation, RunScope, ToolError, Toolset,
};
use toolwright_runtime::Run;
use toolwright_sandbox::SandboxPolicy;

use super::{Vector, finish, tally, to_run};
use crate::support::{Backend, Bench, cases};

cases![
    sandboxes_answer_as_in_inspect,
    the_user_of_a_sandbox_may_be_named,
    files_beyond_the_limit_are_not_read,
    files_and_a_setup_script_are_there_when_a_run_begins,
    a_setup_script_that_fails_is_told,
    a_private_folder_is_gone_with_its_sandbox,
];

async fn sandbox(backend: Backend) -> Arc<DynSandbox> {
    backend.open(SandboxPolicy::private()).await
}

/// What the exceptions of Inspect are here.
fn wanted(observed: &Value) -> Value {
    let class = observed["raises"].as_str().or_else(|| observed["result"].as_str());
    match class {
        Some("PermissionError") => json!("permission"),
        Some("FileNotFoundError") => json!("file_not_found"),
        Some("IsADirectoryError") => json!("is_a_directory"),
        Some("SandboxTimeoutError" | "TimeoutError") => json!("timeout"),
        Some("ValueError") => json!("parsing"),
        Some("ProcessLookupError") => json!("sandbox_unavailable"),
        Some("NotImplementedError") => Value::Null,
        Some(other) => panic!("{other}"),
        None => observed.clone(),
    }
}

fn told<T>(result: Result<T, ToolError>, value: impl Fn(T) -> Value) -> Value {
    match result {
        Ok(result) => value(result),
        Err(error) => json!(error.kind().as_str()),
    }
}

async fn exec(sandbox: &DynSandbox, given: &Value) -> Value {
    let command: Vec<String> = match &given["exec"] {
        Value::String(script) => vec!["bash".to_owned(), "-c".to_owned(), script.clone()],
        list => serde_json::from_value(list.clone()).unwrap(),
    };
    let mut request = ExecRequest::new(command.iter().map(|word| word.replace("\\0", "\0")));
    request.input = given["input"].as_str().map(|text| text.as_bytes().to_vec());
    request.cwd = given["cwd"].as_str().map(str::to_owned);
    request.timeout = given["timeout"].as_u64().map(Duration::from_secs);
    // Where a time-out is not kept this would take as long as the command does.
    let result = tokio::time::timeout(Duration::from_secs(40), sandbox.exec(request)).await.unwrap();
    told(result, |result| {
        let success = result.success();
        json!({"success": success, "returncode": result.code, "stdout": result.stdout, "stderr": result.stderr})
    })
}

async fn outcome(sandbox: &Arc<DynSandbox>, vector: &Vector) -> Value {
    let nothing = |()| Value::Null;
    match vector.id.as_str() {
        "sb.write_read" => {
            let written = sandbox.write_file("a/b/c.txt", b"x\r\ny").await;
            json!([told(written, nothing), told(sandbox.read_text("a/b/c.txt").await, Value::String)])
        }
        "sb.read_missing" => told(sandbox.read_file("nope.txt").await, |_| Value::Null),
        "sb.read_dir" => told(sandbox.read_file("a").await, |_| Value::Null),
        "sb.write_dir" => told(sandbox.write_file("a", b"x").await, nothing),
        "sb.connection_local" => told(sandbox.connection(None).await, |way| json!(way.map(|_| "a way in"))),
        "sb.name_unknown" => {
            let mut scope = RunScope::default();
            scope.sandboxes.insert("default".to_owned(), sandbox.clone());
            // There, a name that does not exist is a wrong argument.
            match scope.sandbox(Some("zzz")) {
                Err(error) if error.message().contains("there are: default") => json!("parsing"),
                other => json!(other.is_ok()),
            }
        }
        "sb.none" => told(RunScope::default().sandbox(None), |_| Value::Null),
        _ => exec(&**sandbox, &vector.given).await,
    }
}

async fn sandboxes_answer_as_in_inspect(backend: Backend) {
    let sandbox = sandbox(backend).await;
    let mut tally = tally();
    for vector in to_run("inspect/sandbox").into_iter().filter(|vector| vector.area == "sandbox") {
        let got = outcome(&sandbox, &vector).await;
        tally.check(&vector.id, &wanted(&vector.observed), &got);
    }
    finish(&tally);
}

async fn the_user_of_a_sandbox_may_be_named(backend: Backend) {
    let sandbox = sandbox(backend).await;
    let whoami = async |user: Option<String>| {
        let mut request = ExecRequest::new(["id", "-un"]);
        request.user = user;
        sandbox.exec(request).await.map(|result| result.stdout.trim().to_owned())
    };
    let own = whoami(None).await.unwrap();
    assert_eq!(whoami(Some(own.clone())).await.unwrap(), own);
    assert_eq!(
        whoami(Some("nobody-of-that-name".to_owned())).await.unwrap_err().kind(),
        ErrorKind::Permission
    );
}

async fn files_beyond_the_limit_are_not_read(backend: Backend) {
    let sandbox = sandbox(backend).await;
    let size = format!("{}", MAX_READ_FILE + 1);
    sandbox.exec(ExecRequest::new(["truncate", "-s", &size, "big"])).await.unwrap();
    assert_eq!(sandbox.read_file("big").await.unwrap_err().kind(), ErrorKind::OutputLimit);
}

async fn files_and_a_setup_script_are_there_when_a_run_begins(backend: Backend) {
    let (first, second) = (sandbox(backend).await, sandbox(backend).await);
    let builder =
        || Run::builder(Toolset::new()).sandbox("first", first.clone()).sandbox("second", second.clone());
    let preparation = Preparation::new()
        .file("hello.txt", "inline contents")
        .file("second:deep/er/b.bin", [0xff, 0x00])
        .setup("#!/bin/sh\ncat hello.txt > setup_ran; echo hi >> setup_ran");
    builder().prepare(&preparation).await.unwrap();
    assert_eq!(first.read_text("setup_ran").await.unwrap(), "inline contentshi\n");
    assert_eq!(second.read_file("deep/er/b.bin").await.unwrap(), [0xff, 0x00]);
    // Without isolation the folder for temporary files has scripts of others.
    if backend == Backend::Process {
        let left = first.exec(ExecRequest::new(["ls", "/tmp"])).await.unwrap().stdout;
        assert!(!left.contains("toolwright-setup-"), "{left}");
    }
    // Nothing is written when a name leads nowhere.
    let wrong = Preparation::new().file("a.txt", "x").file("other:x.txt", "data");
    let error = builder().prepare(&wrong).await.err().unwrap();
    assert!(error.kind() == ErrorKind::Parsing && error.message().contains("`other`"), "{error:?}");
    assert_eq!(first.read_file("a.txt").await.unwrap_err().kind(), ErrorKind::FileNotFound);
    let none = Preparation::new().setup("true").carry_out(&IndexMap::new()).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::SandboxUnavailable);
}

async fn a_setup_script_that_fails_is_told(backend: Backend) {
    let sandbox = sandbox(backend).await;
    let sandboxes = [("default".to_owned(), sandbox)].into_iter().collect();
    let run = async |script: &str| Preparation::new().setup(script).carry_out(&sandboxes).await;
    let error = run("echo broken >&2; exit 3").await.unwrap_err();
    assert!(error.message().contains("code 3: broken"), "{error:?}");
    assert!(run("#!/no/such/interpreter\n").await.is_err());
    run("cd /tmp && true").await.unwrap();
}

async fn a_private_folder_is_gone_with_its_sandbox(backend: Backend) {
    let bench = Bench::of(backend, []).await;
    let sandbox = sandbox(backend).await;
    let here = sandbox.exec(ExecRequest::new(["pwd"])).await.unwrap().stdout;
    let host = match backend {
        Backend::Local => std::path::PathBuf::from(here.trim()),
        // The private workspace has another name outside.
        Backend::Process => return drop(bench),
    };
    assert!(host.is_dir());
    drop(sandbox);
    for _ in 0..600 {
        if !host.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} is still there", host.display());
}
