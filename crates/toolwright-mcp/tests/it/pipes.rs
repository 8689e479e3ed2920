//! Our client against our server, over the pipes of a real process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolwright_core::{Content, ErrorKind, Media, ToolCall, ToolDef, ToolSource as _, ToolSpec, Toolset};
use toolwright_mcp::{Client, ClientOptions, McpServer, ServerStatus};
use toolwright_runtime::{Event, EventKind, Policy, Run};

use crate::support::{PATIENCE, eventually, everything, is_running, script};

const SOON: Duration = Duration::from_secs(20);

async fn client() -> Client {
    Client::start(&everything(), ClientOptions::default()).await.unwrap()
}

#[tokio::test]
async fn the_greeting_says_who_and_which_revision() {
    let client = client().await;
    assert_eq!(client.info().version, "2025-11-25");
    assert_eq!(client.info().server.name, "toolwright");
    client.ping().await.unwrap();
    client.close().await;
    assert!(client.ping().await.is_err());
}

#[tokio::test]
async fn tools_are_listed_in_order_with_schemas_and_annotations() {
    let listing = client().await.list_tools().await.unwrap();
    let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names[..3], ["test_simple_text", "test_image_content", "test_audio_content"]);
    let add = listing.tools.iter().find(|tool| tool.name == "add").unwrap();
    assert_eq!(add.description.as_deref(), Some("Adds two numbers."));
    assert_eq!(add.input_schema["properties"]["x"]["type"], "integer");
    assert_eq!(add.output_schema.as_ref().unwrap()["properties"]["result"]["type"], "integer");
    assert_eq!(add.annotations.as_ref().unwrap().read_only_hint, Some(true));
    assert!(listing.left_out.is_empty());
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let command = everything().env("EVERYTHING_MORE_TOOLS", "1000");
    let client = Client::start(&command, ClientOptions::default()).await.unwrap();
    let listing = client.list_tools().await.unwrap();
    assert_eq!(listing.tools.iter().filter(|tool| tool.name.starts_with("more_")).count(), 1000);
    assert_eq!(listing.tools.last().unwrap().name, "more_0999");
}

#[tokio::test]
async fn every_kind_of_content_arrives() {
    let client = client().await;
    let call = |name: &'static str| client.call_tool(name, json!({}), SOON, None);
    assert_eq!(
        call("test_simple_text").await.unwrap().content,
        [Content::text("This is a simple text response for testing.")]
    );
    let picture = call("test_image_content").await.unwrap().content;
    assert!(matches!(&picture[..], [Content::Image(picture)] if picture.mime_type == "image/png"));
    assert_eq!(call("test_audio_content").await.unwrap().content, [Content::audio("audio/wav", b"RIFF")]);
    let many = call("test_multiple_content_types").await.unwrap();
    assert_eq!(
        many.content,
        [
            Content::text("Multiple content types test:"),
            Content::image("image/png", b"\x89PNG\r\n\x1a\n"),
            Content::document("application/pdf", "a.pdf", b"%PDF"),
            Content::Video(Media::from_bytes("video/mp4", b"mp4")),
            Content::link("file:///srv/a.txt", "a.txt"),
            Content::text(r#"{"blocks":5}"#),
        ]
    );
    // Some clients show their model a structured result alone, so this one stands in the text.
    assert_eq!(many.structured, None);
    assert_eq!(many.metadata["pages"], json!(1));
}

#[tokio::test]
async fn structured_results_and_errors_arrive() {
    let client = client().await;
    let sum = client.call_tool("add", json!({"x": 1, "y": 2}), SOON, None).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"result": 3})));
    let error = client.call_tool("test_error_handling", json!({}), SOON, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert!(error.message().contains("intentionally returns an error"), "{error}");
    let wrong = client.call_tool("add", json!({"x": "one"}), SOON, None).await.unwrap_err();
    assert!(wrong.message().contains("the arguments do not fit"), "{wrong}");
    let unknown = client.call_tool("subtract", json!({}), SOON, None).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Parsing);
    let broken = client.call_tool("break_down", json!({}), SOON, None).await.unwrap_err();
    assert!(!broken.message().contains("secret"), "{broken}");
    // One broken call leaves the server as it was.
    assert!(client.call_tool("add", json!({"x": 1, "y": 2}), SOON, None).await.is_ok());
}

#[tokio::test]
async fn progress_grows_and_is_told_while_the_call_runs() {
    let client = client().await;
    /// How far, of how much, and in what words.
    type Step = (f64, Option<f64>, Option<String>);
    let seen: Arc<Mutex<Vec<Step>>> = Arc::default();
    let noting = seen.clone();
    let on_progress =
        Arc::new(move |done, total, message| noting.lock().unwrap().push((done, total, message)));
    client.call_tool("test_tool_with_progress", json!({}), SOON, Some(on_progress)).await.unwrap();
    let seen: Vec<f64> = seen.lock().unwrap().iter().map(|(done, ..)| *done).collect();
    assert_eq!(seen, [0.0, 50.0, 100.0]);
}

#[tokio::test]
async fn a_call_that_is_dropped_or_late_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let client = client().await;
    for way in ["late", "dropped"] {
        let witness = folder.path().join(way);
        let arguments = json!({"seconds": 600, "witness": witness.to_str()});
        if way == "late" {
            let late =
                client.call_tool("wait", arguments, Duration::from_millis(200), None).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::Timeout);
        } else {
            let call = client.call_tool("wait", arguments, SOON, None);
            assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
        }
        eventually("the tool was stopped", || witness.exists()).await;
    }
    // The server goes on answering, so it still lives.
    client.ping().await.unwrap();
    let sum = client.call_tool("add", json!({"x": 1, "y": 2}), SOON, None).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"result": 3})));
    assert!(client.closed().is_none());
}

#[tokio::test]
async fn many_calls_run_at_once_and_each_gets_its_own_answer() {
    let client = Arc::new(client().await);
    let mut calls = tokio::task::JoinSet::new();
    for index in 0..64 {
        let client = client.clone();
        calls.spawn(async move {
            client.call_tool("wait", json!({"seconds": 0.3}), SOON, None).await.unwrap();
            let sum = client.call_tool("add", json!({"x": index, "y": 1000}), SOON, None).await.unwrap();
            assert_eq!(sum.structured, Some(json!({"result": 1000 + index})));
        });
    }
    calls.join_all().await;
}

#[tokio::test]
async fn a_large_text_and_a_long_call_arrive_whole() {
    let client = client().await;
    let large = client.call_tool("echo", json!({"text": "0123456789", "times": 500_000}), SOON, None).await;
    assert_eq!(large.unwrap().to_text().len(), 5_000_000);
    let long = client.call_tool("wait", json!({"seconds": 2}), SOON, None).await.unwrap();
    assert_eq!(long.to_text(), "waited");
    let too_large =
        client.call_tool("echo", json!({"text": "0123456789", "times": 2_000_000}), SOON, None).await;
    assert!(too_large.unwrap_err().message().contains("larger than"));
}

#[tokio::test]
async fn a_servers_tools_join_a_run_and_take_its_whole_path() {
    let notes: Arc<Mutex<Vec<f64>>> = Arc::default();
    let noting = notes.clone();
    let server = McpServer::builder("everything", everything())
        .tools(["add", "test_*", "!*audio*"])
        .prefix("e_")
        .build();
    assert_eq!(server.state().status, ServerStatus::Configured);
    let run = Run::builder(Toolset::new())
        .source(server.clone())
        .on_event(move |event: &Event| {
            if let EventKind::CallNoted { note: toolwright_core::CallNote::Progress { done, .. }, .. } =
                &event.kind
            {
                noting.lock().unwrap().push(*done);
            }
        })
        .build()
        .unwrap();
    let result = run.call(ToolCall::new("1", "e_add", json!({"x": "40", "y": 2}))).await.unwrap();
    assert_eq!(result.structured, Some(json!({"result": 42})));
    let result = run.call(ToolCall::new("2", "e_add", json!({"x": "many"}))).await.unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Parsing);
    run.call(ToolCall::new("3", "e_test_tool_with_progress", json!({}))).await.unwrap();
    assert_eq!(*notes.lock().unwrap(), [0.0, 50.0, 100.0]);
    let missing = run.call(ToolCall::new("4", "e_test_audio_content", json!({}))).await.unwrap();
    assert_eq!(missing.error.unwrap().kind, ErrorKind::Parsing);

    let ServerStatus::Started { pid: Some(pid), .. } = server.state().status else { panic!("{server:?}") };
    assert_eq!(server.state().starts, 1);
    server.stop().await;
    assert!(!is_running(pid));
    // Needed again, started again.
    let result = run.call(ToolCall::new("5", "e_add", json!({"x": 1, "y": 1}))).await.unwrap();
    assert_eq!(result.error, None);
    assert_eq!(server.state().starts, 2);
}

#[tokio::test]
async fn a_server_cannot_talk_its_way_past_a_policy() {
    let calls = |trusted: bool| async move {
        let builder = McpServer::builder("everything", everything());
        let server = if trusted { builder.trust_annotations() } else { builder }.build();
        let run = Run::builder(Toolset::new()).source(server).policy(Policy::cautious()).build().unwrap();
        run.call(ToolCall::new("1", "add", json!({"x": 1, "y": 1})))
            .await
            .unwrap()
            .error
            .map(|error| error.kind)
    };
    assert_eq!(calls(false).await, Some(ErrorKind::Approval));
    assert_eq!(calls(true).await, None);
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_server() {
    let server = McpServer::builder("everything", everything()).build();
    server.tools().await.unwrap();
    let ServerStatus::Started { pid: Some(pid), .. } = server.state().status else { panic!("{server:?}") };
    assert!(is_running(pid));
    drop(server);
    eventually("the server ended", || !is_running(pid)).await;
}

#[tokio::test]
async fn a_tool_has_a_time_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let builder = McpServer::builder("everything", everything()).timeout(PATIENCE);
    let server = builder.tool_timeout("wait", Duration::from_millis(200)).build();
    let run = Run::builder(Toolset::new()).source(server.clone()).build().unwrap();
    let arguments = json!({"seconds": 600, "witness": witness.to_str()});
    let late = run.call(ToolCall::new("1", "wait", arguments)).await.unwrap();
    assert_eq!(late.error.unwrap().kind, ErrorKind::Timeout);
    eventually("the tool was stopped", || witness.exists()).await;
    let other = run.call(ToolCall::new("2", "add", json!({"x": 1, "y": 1}))).await.unwrap();
    assert_eq!(other.error, None);
    assert_eq!(server.state().starts, 1, "the server answered that it lives, so it was left alone");
}

#[tokio::test]
async fn a_server_works_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let where_am_i = r#"init; tools 2; read -r line; answer 3 "{\"content\":[{\"type\":\"text\",\"text\":\"$(pwd -P)\"}]}"; forever"#;
    let server = McpServer::builder("script", script(where_am_i).folder(folder.path())).build();
    let run = Run::builder(Toolset::new()).source(server).build().unwrap();
    let told = run.call(ToolCall::new("1", "add", json!({}))).await.unwrap();
    assert_eq!(told.to_text(), folder.path().canonicalize().unwrap().to_str().unwrap());
}

/// A gateway: the tools that a run finds in its sources are offered to clients of a server.
#[tokio::test]
async fn the_tools_of_a_runs_sources_are_offered() {
    let tool = |name: &'static str| {
        ToolDef::dynamic(ToolSpec::new(name, "Answers."), move |_, _| async move { name })
    };
    let source = Toolset::new().with(tool("far")).unwrap();
    let own = Toolset::new().with(tool("near")).unwrap();
    for list_first in [true, false] {
        let run = Run::builder(own.clone()).source(source.clone()).build().unwrap();
        let server = toolwright_mcp::Server::new(run.dispatch());
        let ((input, far_output), (far_input, output)) = (tokio::io::duplex(4096), tokio::io::duplex(4096));
        let serving = tokio::spawn(async move { server.serve(far_input, far_output).await });
        let client = Client::connect(input, output, ClientOptions::default()).await.unwrap();
        if list_first {
            let listed = client.list_tools().await.unwrap().tools;
            assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["near", "far"]);
        }
        let said = client.call_tool("far", json!({}), Duration::from_secs(60), None).await.unwrap();
        assert_eq!(said.to_text(), "far");
        assert!(!client.tools_changed(), "the first listing is not a change");
        drop(client);
        serving.await.unwrap().unwrap();
    }
}
