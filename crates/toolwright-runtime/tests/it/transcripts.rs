//! What is written down, and what is read back.

use std::io::Write as _;

use serde_json::json;
use toolwright_core::{Secret, ToolError};
use toolwright_runtime::{Durability, EventKind, Run, RunEnd, RunLimits, Transcript};

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
    // Cut the file at every byte: it always reads, and reopening always mends it, once enough is there to be
    // certain that it is ours.
    let certain = "{\"seq\":0,\"time\":\"2026-01-01T00:00:00.000000Z\",\"event\":\"".len();
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        if (1..certain).contains(&cut) {
            let opened = Run::builder(tools([add()])).transcript(&path, [], Durability::Process);
            assert!(opened.is_err() && std::fs::read(&path).unwrap() == whole[..cut], "cut at {cut}");
            continue;
        }
        let complete = whole[..cut].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(Transcript::load(&path).unwrap().events.len(), complete);
        let run =
            Run::builder(tools([add()])).transcript(&path, [], Durability::Process).unwrap().build().unwrap();
        drop(run);
        let repaired = Transcript::load(&path).unwrap();
        assert!(!repaired.torn && repaired.open_calls().is_empty());
        let interrupted = repaired
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::CallFinished { interrupted: true, .. }))
            .count();
        assert_eq!(interrupted, usize::from(complete == 2), "cut at {cut}");
        for (index, event) in repaired.events.iter().enumerate() {
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

#[test]
fn a_file_that_is_no_transcript_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let event =
        "{\"seq\":0,\"time\":\"2026-01-01T00:00:00.000000Z\",\"event\":\"middle_left_out\",\"messages\":1}\n";
    for text in [
        "precious",
        "one line\nand another",
        "{",
        "{\"seq",
        "{\"seq\":1,\"mine\":\"all my data\"}",
        "{\"seq\":0,\"time\":\"now\",\"mine\":\"all my data, and then some more of it\"}",
        "{}\n",
        "\n",
        &format!("{event}a note\n"),
        &format!("{event}a note"),
        &format!("{event}{{\"seq\":7,"),
    ] {
        std::fs::write(&path, text).unwrap();
        let opened = Run::builder(tools([add()])).transcript(&path, [], Durability::Process);
        let error = opened.err().expect(text);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(error.to_string().contains("notes.txt"), "{error}");
    }
    for torn in ["{", "{\"seq\":1", "{\"seq\":1,\"time\":\"20"] {
        std::fs::write(&path, format!("{event}{torn}")).unwrap();
        Run::builder(tools([add()])).transcript(&path, [], Durability::Process).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), event);
    }
}

#[tokio::test]
async fn what_is_nested_very_deep_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let run =
        Run::builder(tools([add()])).transcript(&path, [], Durability::Process).unwrap().build().unwrap();
    for levels in [100, 119, 126, 500] {
        let result = run.call(call("add", json!({"x": deep(levels), "y": 2}))).await.unwrap();
        assert!(result.error.is_some());
    }
    drop(run);
    let transcript = Transcript::load(&path).unwrap();
    let started = transcript.events.iter().filter_map(|event| match &event.kind {
        EventKind::CallStarted { arguments, .. } => Some(arguments.clone()),
        _ => None,
    });
    let started: Vec<_> = started.collect();
    assert_eq!(started[0], json!({"x": deep(100), "y": 2}));
    assert_eq!(started.len(), 4);
}

#[tokio::test]
async fn the_frame_of_the_record_is_never_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let year = toolwright_runtime::format_time(std::time::SystemTime::now());
    let words = ["policy", "approve", "100000", "content", "call_started", "unknown", "message", "arguments"];
    let secrets = words.into_iter().chain([year.split_at(6).0, "000000"]).map(Secret::new);
    let busy = plain("busy", |context| async move {
        context.progress(100_000.0, Some(1_000_000.0), "policy of today");
        Err(ToolError::new("the policy of 100000"))
    });
    let policy = toolwright_runtime::Policy::from_yaml("- {tools: '*', decision: approve}").unwrap();
    let limits = toolwright_runtime::RunLimits { tool_calls: Some(1), ..Default::default() };
    let ears = Ears::default();
    let builder = Run::builder(tools([busy])).policy(policy).limits(limits);
    let run = ears.on(builder.transcript(&path, secrets, Durability::Process).unwrap()).build().unwrap();
    run.call(bare("busy")).await.unwrap();
    run.call(bare("busy")).await.unwrap();
    run.finish(RunEnd::Done).unwrap();
    let read = Transcript::load(&path).unwrap();
    assert_eq!(read.events.len(), ears.events().len());
    for (read, heard) in read.events.iter().zip(ears.events()) {
        assert_eq!(
            (read.seq, std::mem::discriminant(&read.kind)),
            (heard.seq, std::mem::discriminant(&heard.kind))
        );
    }
    let said: Vec<String> = read
        .events
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::CallFinished { error, .. } => error.map(|error| error.message),
            EventKind::CallDecided { approver, .. } => Some(approver),
            _ => None,
        })
        .collect();
    assert_eq!(said[..2], ["policy", "the [redacted] of [redacted]"], "{said:?}");
}

#[tokio::test]
async fn a_cut_through_a_secret_leaves_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let leaky = plain("leaky", |context| async move {
        for text in ["the key is hunter2-", "hunter3 and more"] {
            let note = toolwright_core::CallNote::Output { stream: "stdout".into(), text: text.into() };
            context.note(note);
        }
        Ok(format!("{}hunter2-hunter3{}", "a".repeat(40), "b".repeat(40)))
    });
    let builder = Run::builder(tools([leaky])).max_output(94);
    let secrets = [Secret::new("hunter2-hunter3")];
    let run = builder.transcript(&path, secrets, Durability::Process).unwrap().build().unwrap();
    let result = run.call(bare("leaky")).await.unwrap();
    assert!(result.to_text().contains("ahunter2\n[…"), "the model's own result is not changed: {result:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter") && !text.contains("nter3"), "{text}");
    assert!(text.contains("\"the key is \"") && text.contains("\"[redacted] and more\""), "{text}");
    assert!(Transcript::load(&path).is_ok());
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

#[tokio::test]
async fn a_limit_that_cannot_be_written_is_no_quiet_end() {
    struct Full;
    impl toolwright_runtime::EventSink for Full {
        fn take(&self, event: &toolwright_runtime::Event) -> Result<(), ToolError> {
            match event.kind {
                EventKind::LimitHit { .. } => Err(ToolError::fatal("the disk is full")),
                _ => Ok(()),
            }
        }
    }
    let limits = RunLimits { tool_calls: Some(0), ..RunLimits::default() };
    let run = Run::builder(tools([add()])).limits(limits).on_event(Full).build().unwrap();
    let error = run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap_err();
    assert!(error.is_fatal() && error.message().contains("disk is full"), "{error}");
    assert!(
        matches!(run.ended(), Some(RunEnd::Failed { message }) if message.contains("disk is full")),
        "{:?}",
        run.ended()
    );
}
