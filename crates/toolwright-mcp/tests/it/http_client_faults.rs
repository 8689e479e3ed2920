//! Servers and gateways with faults that are met in the field: they repeat what they were sent, forget their
//! sessions, refuse what they do not know in ways of their own, and say `null`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{Secret, ToolCall, ToolSource as _};
use toolwright_mcp::{Client, HttpTarget, McpErrorKind, McpServer};
use toolwright_runtime::Run;

use crate::http_client::{SILENCE, answer, greeting, options, result, scripted};
use crate::support::{PATIENCE, eventually};

/// What a client is told by a server that repeats the header it was sent, in its own way.
async fn repeated(repeat: impl Fn(&Value, &str) -> String + Send + Sync + 'static) -> String {
    let server = scripted(move |head, request| {
        let sent = head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default();
        greeting(&request).unwrap_or_else(|| repeat(&request, sent))
    })
    .await;
    let target =
        HttpTarget::new(&server.url).header("Authorization", Secret::new("Bearer sk-live-0123456789"));
    let client = Client::dial(&target, options()).await.unwrap();
    match client.call_tool("t", json!({}), PATIENCE, None).await {
        Ok(output) => output.to_text(),
        Err(error) => error.message().to_owned(),
    }
}

#[tokio::test]
async fn a_server_that_repeats_the_token_does_not_make_us_repeat_it() {
    let gateway = repeated(|_, sent| {
        // The token is where a clip of 200 characters would leave a part of it.
        answer("502 Bad Gateway", "", &format!("{}{sent}", "x".repeat(190)))
    });
    assert_eq!(gateway.await, format!("the server answered 502: {}[secret]", "x".repeat(190)));
    let error = |code: &'static str, sent: &str, id: &Value| {
        let said = json!({"code": -32000, "message": format!("bad token {}", &sent[7..]), "data": sent});
        let body = json!({"jsonrpc": "2.0", "id": id, "error": said}).to_string();
        answer(code, "Content-Type: application/json\r\n", &body)
    };
    let refused = repeated(move |request, sent| error("200 OK", sent, &request["id"]));
    assert_eq!(refused.await, "bad token [secret]");
    let nobodys = repeated(move |_, sent| error("400 Bad Request", sent, &Value::Null));
    assert_eq!(nobodys.await, "bad token [secret]");
    let content = repeated(|request, sent| {
        result(request, json!({"content": [{"type": "text", "text": format!("headers: {sent}")}]}))
    });
    assert_eq!(content.await, "headers: [secret]");
    let failed = repeated(|request, sent| {
        let content = json!([{"type": "text", "text": format!("curl -H '{sent}'")}]);
        let event =
            json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content, "isError": true}});
        answer("200 OK", "Content-Type: text/event-stream\r\n", &format!("data: {event}\n\n"))
    });
    assert_eq!(failed.await, "curl -H '[secret]'");
}

fn error(status: &str, id: &Value, code: i64, message: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string();
    answer(status, "Content-Type: application/json\r\n", &body)
}

/// A server with sessions that knows the latest only, and forgets the first once it is called. What is asked
/// in a session it does not know is refused like this. Gives its address, and counts the sessions.
async fn forgetful(
    refuse: impl Fn(&Value) -> String + Send + Sync + 'static,
) -> (crate::http_client::Scripted, Arc<AtomicUsize>) {
    let sessions = Arc::new(AtomicUsize::new(0));
    let counted = sessions.clone();
    let server = scripted(move |head, request| {
        let session = counted.load(Ordering::SeqCst);
        let known = head.to_ascii_lowercase().contains(&format!("mcp-session-id: s{session}"));
        match request["method"].as_str() {
            Some("server/discover") | None => answer("405 Method Not Allowed", "", ""),
            Some("initialize") => {
                let id = counted.fetch_add(1, Ordering::SeqCst) + 1;
                let said = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
                    "serverInfo": {"name": "s", "version": "1"}
                });
                result(&request, said).replacen("\r\n", &format!("\r\nMcp-Session-Id: s{id}\r\n"), 1)
            }
            Some("notifications/initialized") => answer("202 Accepted", "", ""),
            _ if !known => refuse(&request),
            Some("prompts/list") => error("404 Not Found", &request["id"], -32601, "no such method"),
            Some("tools/call") if session == 1 => refuse(&request),
            Some("tools/call") => result(&request, json!({"content": [{"type": "text", "text": "again"}]})),
            _ => greeting(&request).unwrap(),
        }
    })
    .await;
    (server, sessions)
}

#[tokio::test]
async fn a_session_that_is_lost_is_begun_again_and_the_call_made_again() {
    const MISSING: &str = "Bad Request: No valid session ID provided";
    let check = async |refuse: fn(&Value) -> String| {
        let (server, sessions) = forgetful(refuse).await;
        let source = McpServer::builder("s", HttpTarget::new(&server.url))
            .first_pause(Duration::from_millis(10))
            .build();
        let run = Run::builder(source.tools().await.unwrap()).build().unwrap();
        for _ in 0..2 {
            let called = run.call(ToolCall::new("1", "t", json!({}))).await.unwrap();
            assert_eq!(called.to_text(), "again");
        }
        assert_eq!(sessions.load(Ordering::SeqCst), 2);
    };
    check(|_| answer("404 Not Found", "", "")).await;
    check(|request| error("404 Not Found", &request["id"], -32001, "Session not found")).await;
    check(|request| {
        let body = json!({"jsonrpc": "2.0", "id": request["id"]}).to_string();
        answer("404 Not Found", "Content-Type: application/json\r\n", &body)
    })
    .await;
    check(|_| error("400 Bad Request", &Value::Null, -32000, MISSING)).await;
    check(|_| error("400 Bad Request", &json!("server-error"), -32600, MISSING)).await;
    check(|_| answer("400 Bad Request", "", "Invalid or missing session ID")).await;
}

#[tokio::test]
async fn a_call_that_may_have_been_begun_is_not_made_again() {
    let (server, sessions) = forgetful(|request| match request["params"]["arguments"]["slow"].as_bool() {
        Some(true) => SILENCE.to_owned(),
        _ => answer("404 Not Found", "", ""),
    })
    .await;
    let source = McpServer::builder("s", HttpTarget::new(&server.url)).build();
    let run = Run::builder(source.tools().await.unwrap()).build().unwrap();
    let slow = run.call(ToolCall::new("1", "t", json!({"slow": true})));
    let quick = async {
        // Once the server has the other.
        let at_work = || server.requests.lock().unwrap().iter().any(|request| request.contains("slow"));
        eventually("the slow call is under way", at_work).await;
        run.call(ToolCall::new("2", "t", json!({}))).await
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!(quick.unwrap().to_text(), "again");
    assert!(slow.unwrap().error.unwrap().message.contains("the server ended the session"));
    let made = server.requests.lock().unwrap().iter().filter(|request| request.contains("slow")).count();
    assert_eq!((made, sessions.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn a_call_that_is_answered_with_404_is_not_made_again() {
    let (server, sessions) =
        forgetful(|request| error("404 Not Found", &request["id"], -32000, "half of it was deleted")).await;
    let source = McpServer::builder("s", HttpTarget::new(&server.url)).build();
    let run = Run::builder(source.tools().await.unwrap()).build().unwrap();
    let called = run.call(ToolCall::new("1", "t", json!({}))).await.unwrap();
    assert_eq!(called.error.unwrap().message, "half of it was deleted");
    let made =
        server.requests.lock().unwrap().iter().filter(|request| request.contains("tools/call")).count();
    assert_eq!((made, sessions.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_refusal_that_is_about_something_else_ends_no_session() {
    let (server, sessions) =
        forgetful(|request| error("400 Bad Request", &request["id"], -32602, "no such session of yours"))
            .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    assert_eq!(client.list_prompts().await.unwrap_err().code(), Some(-32601));
    let refused = client.call_tool("t", json!({}), PATIENCE, None).await.unwrap_err();
    assert_eq!(refused.message(), "no such session of yours");
    assert_eq!((client.closed().is_none(), sessions.load(Ordering::SeqCst)), (true, 1));
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counting = calls.clone();
    let server = scripted(move |_, request| match request["method"].as_str() {
        Some("server/discover") | None => answer("405 Method Not Allowed", "", ""),
        Some("initialize") => {
            let said = json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}
            });
            result(&request, said).replacen("\r\n", "\r\nMcp-Session-Id: s\r\n", 1)
        }
        Some("tools/call") => {
            counting.fetch_add(1, Ordering::SeqCst);
            error("404 Not Found", &request["id"], -32001, "Session not found")
        }
        _ => greeting(&request).unwrap_or_else(|| answer("202 Accepted", "", "")),
    })
    .await;
    let source = McpServer::builder("s", HttpTarget::new(&server.url)).build();
    let run = Run::builder(source.tools().await.unwrap()).build().unwrap();
    let called = run.call(ToolCall::new("1", "t", json!({}))).await.unwrap();
    assert!(called.error.unwrap().message.contains("the server ended the session"));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_list_of_very_large_pages_is_given_up() {
    let pages = Arc::new(AtomicUsize::new(0));
    let counting = pages.clone();
    let server = scripted(move |_, request| match request["method"].as_str() {
        Some("tools/list") => {
            let page = counting.fetch_add(1, Ordering::SeqCst);
            let tool = json!({"name": "t", "description": "x".repeat(12 * 1024 * 1024), "inputSchema": {}});
            result(&request, json!({"tools": [tool], "nextCursor": format!("{page}")}))
        }
        _ => greeting(&request).unwrap(),
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(error.to_string(), "the list of tools is larger than 64 MiB");
    assert_eq!((error.kind(), pages.load(Ordering::SeqCst)), (McpErrorKind::Limit, 6));
}

#[tokio::test]
async fn a_server_that_does_not_know_the_newest_question_is_greeted_in_the_older_way() {
    let events = || answer("200 OK", "Content-Type: text/event-stream\r\n", "");
    for unknown in [answer("500 Internal Server Error", "", "oh"), events(), SILENCE.to_owned()] {
        let (said, name) = (unknown.clone(), format!("{unknown:?}"));
        let server = scripted(move |_, request| match request["method"].as_str() {
            Some("server/discover") => said.clone(),
            Some("initialize") => {
                let about = json!({"name": "older", "version": "1"});
                let capabilities = json!({"tools": {}});
                let said = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about});
                result(&request, said)
            }
            Some("notifications/initialized") => answer("202 Accepted", "", ""),
            _ => greeting(&request).unwrap_or_else(|| answer("405 Method Not Allowed", "", "")),
        })
        .await;
        let mut options = options();
        options.start_timeout = if unknown == SILENCE { Duration::from_secs(6) } else { PATIENCE };
        let client = Client::dial(&HttpTarget::new(&server.url), options).await;
        let client = client.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(client.info().version, "2025-06-18", "{name}");
        assert_eq!(client.list_tools().await.unwrap().tools.len(), 1, "{name}");
    }
}
