//! Whole loops through the runtime with real servers: a good call, a call that breaks the schema, a picture,
//! a cancel in mid-stream; whole and streamed, over every format that a server here speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{
    Content, DynModel, ErrorKind, Message, Model as _, ModelErrorKind, ModelOptions, Secret, ToolChoice,
    ToolDef, ToolOutput, ToolSpec, Toolset,
};
use toolwright_models::tokens::Tokens;
use toolwright_models::{ModelSettings, RetryPolicy, VendorModel, connect};
use toolwright_runtime::{LoopOptions, LoopOutcome, Run, RunEnd, RunError};

use crate::peers;
use crate::support::Conversation;

/// A tool whose schema and answer are given.
fn tool(name: &str, parameters: Value, answer: impl Fn() -> ToolOutput + Send + Sync + 'static) -> ToolDef {
    let mut spec = ToolSpec::new(name, "Measures something.");
    spec.parameters = parameters;
    ToolDef::dynamic(spec, move |_, _| {
        let answer = answer();
        async move { Ok::<_, toolwright_core::ToolError>(answer) }
    })
}

fn measure() -> Value {
    json!({"type": "object", "properties": {
        "unit": {"enum": ["m", "km"]}, "places": {"type": "integer", "minimum": 1, "maximum": 3}
    }, "required": ["unit", "places"], "additionalProperties": false})
}

fn options() -> ModelOptions {
    ModelOptions { max_tokens: Some(300), temperature: Some(0.0), ..ModelOptions::default() }
}

/// Asks once for a tool, then leaves the model free.
async fn go(model: &DynModel, tool: ToolDef, streamed: bool) -> Result<LoopOutcome, RunError> {
    let name = tool.spec().name.to_string();
    let mut builder = Run::builder(Toolset::new().with(tool).unwrap());
    if streamed {
        builder = builder.on_delta(|_| {});
    }
    let run = builder.build().unwrap();
    let how =
        LoopOptions { tool_choice: ToolChoice::Tool(name), options: options(), ..LoopOptions::default() };
    let messages = vec![Message::system("Be brief."), Message::user("Measure it.")];
    run.generate_loop(model, messages, &how).await
}

fn results(outcome: &LoopOutcome) -> Vec<&toolwright_core::ToolResult> {
    let results = outcome.messages.iter().filter_map(|message| match message {
        Message::Tool(result) => Some(result),
        _ => None,
    });
    results.collect()
}

/// What every server must manage.
async fn check(model: &DynModel, streamed: bool, what: &str) {
    let outcome =
        go(model, tool("tape.measure", measure(), || ToolOutput::text("3.14")), streamed).await.unwrap();
    assert_eq!(
        (outcome.completion().as_str(), &outcome.end),
        ("OK", &Some(RunEnd::Done)),
        "{what}: {outcome:?}"
    );
    assert!(
        !results(&outcome).is_empty() && results(&outcome).iter().all(|r| !r.is_error()),
        "{what}: {outcome:?}"
    );

    // The server's grammar does not hold this bound, so the call is wrong: the model is told, and the run
    // goes on.
    let bounded =
        json!({"type": "object", "properties": {"x": {"type": "number", "minimum": 1e9}}, "required": ["x"]});
    let outcome = go(model, tool("bounded", bounded, || ToolOutput::text("never")), streamed).await.unwrap();
    let first = results(&outcome)[0];
    assert_eq!(first.error.as_ref().map(|error| error.kind), Some(ErrorKind::Parsing), "{what}: {outcome:?}");
    assert_eq!(
        (outcome.completion().as_str(), &outcome.end),
        ("OK", &Some(RunEnd::Done)),
        "{what}: {outcome:?}"
    );
}

/// A server under load may close a connection that is about to be used again; that is tried again at once.
const QUICK: RetryPolicy = RetryPolicy {
    retries: 2,
    first: Duration::from_millis(10),
    longest: Duration::from_millis(20),
    budget: Duration::from_secs(5),
};

fn model(vendor: &str, base: &str, key: &str) -> VendorModel {
    let settings = ModelSettings::new().base_url(base).key(Secret::new(key)).retry(QUICK);
    connect(vendor, settings, |_| None).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn loops_with_llama_cpp() {
    let server = match peers::llama() {
        Ok(server) => server,
        Err(missing) => return println!("skipped loops_with_llama_cpp: {missing}"),
    };
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    for vendor in ["llama.cpp", "anthropic-compatible", "openai"] {
        let model = model(&format!("{vendor}/tiny"), &base, "none");
        for streamed in [false, true] {
            check(&model, streamed, &format!("{vendor}, streamed: {streamed}")).await;
        }
        cancelled(&model, vendor).await;
    }
    pictures(&base).await;

    // The server counts for the one API that has a way to ask.
    let conversation = Conversation::of([Message::user("hello there")]);
    let counted =
        model("anthropic-compatible/tiny", &base, "none").count_tokens(conversation.request()).await.unwrap();
    assert!(matches!(counted, Tokens::Counted(1..100)), "{counted:?}");
    let guessed = model("llama.cpp/tiny", &base, "none").count_tokens(conversation.request()).await.unwrap();
    assert!(matches!(guessed, Tokens::Estimated(1..100)), "{guessed:?}");
}

/// Several calls in one answer, over each format: all are made, and their results go back together.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_calls_with_llama_cpp() {
    let server = match peers::llama_with_parallel_calls() {
        Ok(server) => server,
        Err(missing) => return println!("skipped parallel_calls_with_llama_cpp: {missing}"),
    };
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    for vendor in ["llama.cpp", "anthropic-compatible", "openai"] {
        let model = model(&format!("{vendor}/tiny"), &base, "none");
        for streamed in [false, true] {
            let what = format!("{vendor}, streamed: {streamed}");
            let mut most = 0;
            // Each answer has several calls with a chance of one half.
            for _ in 0..40 {
                let outcome = go_warm(&model, streamed).await.unwrap();
                let done = (outcome.completion(), outcome.end.clone());
                assert_eq!(done, ("OK".to_owned(), Some(RunEnd::Done)), "{what}: {outcome:?}");
                let asked = match &outcome.messages[2] {
                    Message::Assistant(said) => said.tool_calls.len(),
                    other => panic!("{what}: {other:?}"),
                };
                let results = results(&outcome);
                assert_eq!(results.len(), asked, "{what}: {outcome:?}");
                assert!(results.iter().all(|result| result.to_text() == "3.14"), "{what}: {outcome:?}");
                let ids: std::collections::HashSet<_> =
                    results.iter().map(|result| &result.call_id).collect();
                assert_eq!(ids.len(), asked, "{what}: ids repeat");
                most = most.max(asked);
                if most > 1 {
                    break;
                }
            }
            assert!(most > 1, "{what}: never more than one call");
        }
    }
}

/// The same with chance: ties in the model's table fall either way.
async fn go_warm(model: &DynModel, streamed: bool) -> Result<LoopOutcome, RunError> {
    let tool = tool("tape.measure", measure(), || ToolOutput::text("3.14"));
    let mut builder = Run::builder(Toolset::new().with(tool).unwrap());
    if streamed {
        builder = builder.on_delta(|_| {});
    }
    let options = ModelOptions { temperature: Some(1.0), max_tokens: Some(2000), ..options() };
    let how = LoopOptions {
        tool_choice: ToolChoice::Any,
        choice_after: Some(ToolChoice::Auto),
        options,
        ..LoopOptions::default()
    };
    let messages = vec![Message::system("Be brief."), Message::user("Measure it.")];
    builder.build().unwrap().generate_loop(model, messages, &how).await
}

/// A picture reaches a server that cannot see as words, or as an error that says so; never as a hang or a
/// lost result.
async fn pictures(base: &str) {
    let png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00";
    let shot = || {
        tool("shot", json!({"type": "object", "properties": {}}), || ToolOutput {
            content: vec![Content::image("image/png", png)],
            ..ToolOutput::default()
        })
    };
    // This vendor's models only read, so the picture is described.
    let outcome = go(&model("deepseek/tiny", base, "none"), shot(), true).await.unwrap();
    assert_eq!((outcome.completion().as_str(), &outcome.end), ("OK", &Some(RunEnd::Done)), "{outcome:?}");
    for vendor in ["llama.cpp", "anthropic-compatible", "openai"] {
        match go(&model(&format!("{vendor}/tiny"), base, "none"), shot(), false).await {
            Ok(outcome) => assert_eq!(outcome.completion(), "OK", "{vendor}"),
            Err(RunError::Model(error)) => {
                assert!(
                    matches!(error.kind(), ModelErrorKind::Unavailable | ModelErrorKind::Request),
                    "{vendor}: {error}"
                );
                assert!(error.to_string().contains("image"), "{vendor}: {error}");
            }
            Err(other) => panic!("{vendor}: {other}"),
        }
    }
}

/// A cancel while arguments of two thousand letters come in ends the run at once, and the server is free
/// again.
async fn cancelled(model: &VendorModel, what: &str) {
    let long = json!({"type": "object", "properties": {"x": {"type": "string", "minLength": 2000}}, "required": ["x"]});
    let heard = Arc::new(AtomicUsize::new(0));
    let (told, listening) = (Arc::new(tokio::sync::Notify::new()), heard.clone());
    let teller = told.clone();
    let run = Run::builder(Toolset::new().with(tool("long", long, || ToolOutput::text("never"))).unwrap())
        .on_delta(move |_| {
            listening.fetch_add(1, Ordering::SeqCst);
            teller.notify_one();
        })
        .build()
        .unwrap();
    let how = LoopOptions {
        tool_choice: ToolChoice::Any,
        options: ModelOptions { max_tokens: Some(4000), ..options() },
        ..LoopOptions::default()
    };
    let answering = run.generate_loop(model, vec![Message::user("Measure it.")], &how);
    let cancelling = async {
        told.notified().await;
        run.cancel();
    };
    let (outcome, ()) = tokio::join!(answering, cancelling);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.end, outcome.messages.len()), (Some(RunEnd::Cancelled), 1), "{what}");
    assert!(heard.load(Ordering::SeqCst) > 0, "{what}");
    let conversation = Conversation::of([Message::user("x")]);
    let next = tokio::time::timeout(Duration::from_secs(60), model.generate(conversation.request())).await;
    assert!(next.is_ok_and(|reply| reply.is_ok()), "{what}: the server is still busy");
}

#[tokio::test(flavor = "multi_thread")]
async fn loops_with_bedrock_converse() {
    let (llama, server) = match peers::llama().and_then(|llama| Ok((peers::ministack(&llama)?, llama))) {
        Ok((server, llama)) => (llama, server),
        Err(missing) => return println!("skipped loops_with_bedrock_converse: {missing}"),
    };
    let base = format!("http://127.0.0.1:{}", server.port);
    // It tells services apart by what the signature is for, so it is not asked with a bearer token.
    let environment = |name: &str| {
        let keys = [
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ];
        keys.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let settings = ModelSettings::new().base_url(&base).retry(QUICK);
    let model = connect("bedrock/anthropic.claude-3-haiku-20240307-v1:0", settings, environment).unwrap();
    for streamed in [false, true] {
        check(&model, streamed, &format!("streamed: {streamed}")).await;
    }
    drop(llama);
}

#[tokio::test(flavor = "multi_thread")]
async fn loops_with_gemini() {
    let (llama, server, key) = match peers::llama().and_then(|llama| Ok((peers::litellm(&llama)?, llama))) {
        Ok(((server, key), llama)) => (llama, server, key),
        Err(missing) => return println!("skipped loops_with_gemini: {missing}"),
    };
    let model = model("google/local", &format!("http://127.0.0.1:{}/v1beta", server.port), &key);
    for streamed in [false, true] {
        check(&model, streamed, &format!("streamed: {streamed}")).await;
    }
    drop(llama);
}
