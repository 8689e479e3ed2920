//! What is written down, and what is read back.

use std::io::Write as _;

use serde_json::json;
use toolwright_core::{Secret, ToolError};
use toolwright_runtime::{Durability, EventKind, Run, RunEnd, Transcript};

use crate::support::{Ears, add, bare, call, plain, tools};

#[tokio::test]
async fn a_transcript_holds_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let ears = Ears::default();
    let run = ears
        .on(Run::builder(tools([add()])).transcript(&path, [], Durability::Machine).unwrap())
        .build()
        .unwrap();
    run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap();
    run.finish(RunEnd::Done).unwrap();
    let transcript = Transcript::load(&path).unwrap();
    assert_eq!(transcript.events.len(), ears.events().len());
    for (read, heard) in transcript.events.iter().zip(ears.events()) {
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(&heard).unwrap());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_torn_tail_is_mended_and_open_calls_are_closed_on_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let run =
        Run::builder(tools([add()])).transcript(&path, [], Durability::Process).unwrap().build().unwrap();
    run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap();
    drop(run);
    let whole = std::fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(lines.len(), 3);
    // Cut the file at every byte: it always reads, and reopening always mends it.
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let complete = whole[..cut].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(Transcript::load(&path).unwrap().events.len(), complete);
        let run =
            Run::builder(tools([add()])).transcript(&path, [], Durability::Process).unwrap().build().unwrap();
        drop(run);
        let mended = Transcript::load(&path).unwrap();
        assert!(!mended.torn && mended.open_calls().is_empty());
        let interrupted = mended
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::CallFinished { interrupted: true, .. }))
            .count();
        assert_eq!(interrupted, usize::from(complete == 2), "cut at {cut}");
        for (index, event) in mended.events.iter().enumerate() {
            assert_eq!(event.seq, index as u64);
        }
    }
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_number() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{{\"seq\":0,\"time\":\"2026-01-01T00:00:00.000000Z\",\"event\":\"run_started\",\"version\":1,\"run_id\":\"r\",\"tools\":[]}}").unwrap();
    writeln!(file, "garbage").unwrap();
    writeln!(file, "more").unwrap();
    let error = Transcript::load(file.path()).unwrap_err();
    assert_eq!(error.line(), Some(2));
}

#[tokio::test]
async fn secrets_are_gone_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let leaky = plain("leaky", |context| async move {
        context.progress(0.5, None, "using sk-live-0123456789");
        Err(ToolError::new("refused for sk-live-0123456789 at /?key=sk-live-0123456789"))
    });
    let echo = toolwright_core::ToolDef::dynamic(
        {
            let mut spec = toolwright_core::ToolSpec::new("echo", "Echoes.");
            spec.parameters = json!({"type": "object"});
            spec
        },
        |_, arguments: serde_json::Value| async move { arguments },
    );
    let secrets = [Secret::new("sk-live-0123456789")];
    let run = Run::builder(tools([leaky, echo]))
        .transcript(&path, secrets, Durability::Process)
        .unwrap()
        .build()
        .unwrap();
    run.call(bare("leaky")).await.unwrap();
    let result =
        run.call(call("echo", json!({"password": "hunter2", "note": "sk-live-0123456789"}))).await.unwrap();
    assert!(result.to_text().contains("hunter2"), "the model's own result is not changed");
    run.call(call("echo", json!("{\"api_key\": \"plain-value\""))).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sk-live-0123456789") && !text.contains("hunter2"), "{text}");
    assert!(!text.contains("plain-value"), "{text}");
    assert!(Transcript::load(&path).is_ok());
}

#[tokio::test]
async fn a_transcript_that_cannot_be_written_ends_the_run() {
    let on = |path: &str| {
        Run::builder(tools([add()])).transcript(std::path::Path::new(path), [], Durability::Process)
    };
    assert!(on("/no/such/folder/x").err().unwrap().to_string().contains("/no/such/folder/x"));
    let device = on("/dev/full").err().unwrap();
    assert_eq!(std::error::Error::source(&device).unwrap().to_string(), "it is not a regular file");

    struct Full;
    impl toolwright_runtime::EventSink for Full {
        fn take(&self, event: &toolwright_runtime::Event) -> Result<(), ToolError> {
            if event.seq < 2 { Ok(()) } else { Err(ToolError::fatal("the disk is full")) }
        }
    }
    let run = Run::builder(tools([add()])).on_event(Full).build().unwrap();
    let error = run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap_err();
    assert!(error.is_fatal() && error.message().contains("disk is full"));
}
