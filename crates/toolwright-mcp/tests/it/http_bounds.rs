//! What one client over HTTP may take of a server, and what becomes of the others.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use toolwright_core::{BoxFuture, CancelToken, ToolDef, ToolError, ToolOutput, ToolSpec, Toolset};
use toolwright_mcp::{
    HttpOptions, Peer, Resource, ResourceBody, ResourceContents, Resources, Server, TaskSupport,
};
use toolwright_runtime::Run;

use crate::http::{Served, initialize, meta, request};
use crate::support::{PATIENCE, until_status};

/// A server with one tool, `hold`, whose calls end when there are permits for them.
struct Holding {
    served: Served,
    permits: Arc<Semaphore>,
    stop: CancelToken,
    running: tokio::task::JoinHandle<()>,
}

async fn holding(change: impl FnOnce(&mut HttpOptions), configure: impl FnOnce(Server) -> Server) -> Holding {
    let permits = Arc::new(Semaphore::new(0));
    let waiting = permits.clone();
    let hold = ToolDef::dynamic(ToolSpec::new("hold", "Waits."), move |_, _| {
        let waiting = waiting.clone();
        async move {
            waiting.acquire_owned().await.map_err(|_| ToolError::new("closed"))?.forget();
            Ok::<_, ToolError>(ToolOutput::text("held"))
        }
    });
    let run = Run::builder(Toolset::new().with(hold).unwrap()).build().unwrap();
    let mut options = HttpOptions::default();
    change(&mut options);
    let server = configure(Server::new(run.dispatch()));
    let listening = server.listen("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let served = Served::at(listening.address());
    let stop = CancelToken::new();
    let running = tokio::spawn(listening.run(stop.clone()));
    Holding { served, permits, stop, running }
}

#[tokio::test]
async fn one_address_cannot_take_every_connection() {
    let server = holding(|options| options.max_connections_each = 3, |server| server).await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        let served = Served::at(server.served.address.parse().unwrap());
        calls.push(tokio::spawn(async move { served.alone(&[], "tools/call", hold()).await.status }));
        // There is room for one connection whose client is not known yet.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let ping = async || server.served.alone(&[], "tools/list", json!({})).await.status;
    until_status(503, ping).await;
    let refused = server.served.raw(b"").await;
    assert_eq!((refused.status, refused.body.trim()), (503, "this address has too many connections"));
    server.permits.add_permits(3);
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    until_status(200, ping).await;
}

/// A resource that is larger than all the buffers on the way.
struct Large;

impl Resources for Large {
    fn list(&self) -> Vec<Resource> {
        Vec::new()
    }

    fn read<'a>(
        &'a self,
        _peer: &'a Peer,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<ResourceContents>>, ToolError>> {
        let body = ResourceBody::Text("x".repeat(12 * 1024 * 1024));
        let contents = ResourceContents { uri: uri.to_owned(), mime_type: None, body };
        Box::pin(async { Ok(Some(vec![contents])) })
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_does_not_read_what_it_asked_for_is_sent_away() {
    let server = holding(
        |options| {
            options.max_connections = 1;
            options.unread_time = Duration::from_millis(500);
        },
        |server| server.resources(Large),
    )
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut greedy = socket.connect(server.served.address.parse().unwrap()).await.unwrap();
    let body = request("resources/read", json!({"uri": "test://large", "_meta": meta()})).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: resources/read\r\nMcp-Name: test://large\r\nContent-Length: {}\r\n\r\n",
        server.served.address,
        body.len()
    );
    greedy.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut first = [0; 12];
    greedy.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // There is room for one connection, and this one holds it until it is closed.
    let mut other = TcpStream::connect(&server.served.address).await.unwrap();
    other.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, other.read_to_string(&mut answer)).await.expect("its turn").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn hold() -> Value {
    json!({"name": "hold", "arguments": {}})
}

#[tokio::test]
async fn a_client_has_so_many_calls_at_once_in_whichever_era() {
    let server = holding(|_| {}, |server| server.max_calls(2)).await;
    let session = server.served.session(&[]).await;
    let (url, id) = (server.served.address.clone(), session.clone());
    let alone = {
        let served = Served::at(url.parse().unwrap());
        tokio::spawn(async move { served.alone(&[], "tools/call", hold()).await })
    };
    let in_session = {
        let served = Served::at(url.parse().unwrap());
        tokio::spawn(
            async move { served.post(&[("Mcp-Session-Id", &id)], &request("tools/call", hold())).await },
        )
    };
    let list = async || server.served.alone(&[], "tools/list", json!({})).await.status;
    until_status(503, list).await;
    let busy = server.served.alone(&[], "tools/list", json!({})).await;
    assert!(busy.body.contains("at most 2 calls may run at once"), "{}", busy.body);
    let headers = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(server.served.post(&headers, &request("ping", json!({}))).await.status, 503);
    server.permits.add_permits(2);
    for call in [alone, in_session] {
        let answer = call.await.unwrap();
        assert!(answer.body.contains("held"), "{}", answer.body);
    }
    assert_eq!(list().await, 200);
}

#[tokio::test]
async fn who_only_listens_does_not_hold_up_the_end() {
    let server = holding(|_| {}, |server| server.drain(PATIENCE * 10)).await;
    let session = server.served.session(&[]).await;
    let mut listening = Vec::new();
    for head in [
        format!("GET /mcp HTTP/1.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: 0\r\n"),
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"
            .to_owned(),
    ] {
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta()});
        let body = if head.starts_with("POST") { request("subscriptions/listen", params).to_string() } else { String::new() };
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let mut connection = TcpStream::connect(&server.served.address).await.unwrap();
        let whole = format!("{head}Host: {}\r\n{length}\r\n{body}", server.served.address);
        connection.write_all(whole.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        connection.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        listening.push(connection);
    }
    server.stop.cancel();
    tokio::time::timeout(PATIENCE, server.running).await.expect("an end").unwrap();
}

#[tokio::test]
async fn who_never_sends_a_head_is_sent_away() {
    let server = holding(|options| options.head_time = Duration::from_millis(300), |server| server).await;
    for said in ["", "POST /mcp HTTP/1.1\r\nHost: loc"] {
        let mut connection = TcpStream::connect(&server.served.address).await.unwrap();
        connection.write_all(said.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let end = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "a connection without a head was kept");
    }
}

/// F13: half a head keeps nobody waiting at the end, and strangers leave room for clients.
#[tokio::test]
async fn strangers_with_half_a_head_keep_out_no_client_and_do_not_hold_up_the_end() {
    let options = |options: &mut toolwright_mcp::HttpOptions| options.max_connections_each = 8;
    let server = holding(options, |server| server).await;
    let mut strangers = Vec::new();
    for _ in 0..30 {
        let mut connection = TcpStream::connect(&server.served.address).await.unwrap();
        connection.write_all(b"POST /mcp HTTP/1.1\r\nHost: loc").await.unwrap();
        strangers.push(connection);
        // The server sees them one after the other.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let session = server.served.session(&[]).await;
    let ping = server.served.post(&[("Mcp-Session-Id", &session)], &request("ping", json!({}))).await;
    assert_eq!(ping.status, 200);
    let start = std::time::Instant::now();
    server.stop.cancel();
    tokio::time::timeout(PATIENCE, server.running).await.expect("an end").unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop(strangers);
}

#[tokio::test]
async fn what_is_kept_for_a_client_is_bounded() {
    let server = holding(|_| {}, |server| server.resources(Large)).await;
    let long = "x".repeat(100_000);
    let mut greedy = initialize();
    greedy["params"]["capabilities"] = json!({"experimental": {"x": long}});
    let refused = server.served.post(&[], &greedy).await;
    assert_eq!((refused.status, refused.code()), (400, -32602));
    let session = server.served.session(&[]).await;
    let watch = request("resources/subscribe", json!({"uri": format!("test://{long}")}));
    let refused = server.served.post(&[("Mcp-Session-Id", &session)], &watch).await;
    assert_eq!(refused.code(), -32602);
}

#[tokio::test]
async fn nobody_is_kept_out_by_sessions_that_others_began() {
    let server = holding(|options| options.max_sessions = 2, |server| server).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(server.served.session(&[]).await);
    }
    let ping = async |id: &str| {
        server.served.post(&[("Mcp-Session-Id", id)], &request("ping", json!({}))).await.status
    };
    // The one that rested longest made room.
    assert_eq!((ping(&ids[0]).await, ping(&ids[1]).await, ping(&ids[2]).await), (404, 200, 200));
}

#[tokio::test]
async fn sessions_with_calls_under_way_make_room_last() {
    let server = holding(|options| options.max_sessions = 2, |server| server).await;
    let (busy, idle) = (server.served.session(&[]).await, server.served.session(&[]).await);
    let call = {
        let (served, id) = (Served::at(server.served.address.parse().unwrap()), busy.clone());
        tokio::spawn(
            async move { served.post(&[("Mcp-Session-Id", &id)], &request("tools/call", hold())).await },
        )
    };
    let ping = async |id: &str| {
        server.served.post(&[("Mcp-Session-Id", id)], &request("ping", json!({}))).await.status
    };
    // A session that waits for an answer has a call under way once a request with its id is refused.
    until_status(400, async || ping(&busy).await).await;
    assert_eq!(ping(&idle).await, 200, "it is used later than the other");
    let newer = server.served.session(&[]).await;
    assert_eq!((ping(&busy).await, ping(&idle).await, ping(&newer).await), (400, 404, 200));
    server.permits.add_permits(1);
    assert!(call.await.unwrap().body.contains("held"));
}

#[tokio::test]
async fn nobody_is_kept_out_by_calls_that_others_left_behind() {
    let server = holding(|options| options.max_sessions = 1, |server| server).await;
    for accept in ["application/json", "application/json, text/event-stream"] {
        let id = server.served.session(&[]).await;
        let call = {
            let (served, id) = (Served::at(server.served.address.parse().unwrap()), id.clone());
            let headers = [("Content-Type", "application/json"), ("Accept", accept)];
            let body = request("tools/call", hold()).to_string();
            tokio::spawn(async move {
                served.send("POST", &[&headers[..], &[("Mcp-Session-Id", &id)]].concat(), &body).await
            })
        };
        let again =
            async || server.served.post(&[("Mcp-Session-Id", &id)], &request("ping", json!({}))).await.status;
        until_status(400, again).await;
        server.served.session(&[]).await;
        let answer = tokio::time::timeout(PATIENCE, call).await.expect("the call ends").unwrap();
        // It has the id of the call: 404 would say that it was not begun.
        assert_eq!((answer.status, answer.code()), (200, -32600), "{}", answer.body);
        assert!(answer.body.contains(r#""id":1"#), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_client_that_listens_again_hears_everything_once() {
    let server = holding(|_| {}, |server| server).await;
    let session = server.served.session(&[]).await;
    let listen = async || {
        let mut connection = TcpStream::connect(&server.served.address).await.unwrap();
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n",
            server.served.address
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        connection.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        connection
    };
    let mut older = listen().await;
    let _newer = listen().await;
    let mut rest = String::new();
    tokio::time::timeout(PATIENCE, older.read_to_string(&mut rest))
        .await
        .expect("the older one ends")
        .unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn health_checks_need_no_known_host() {
    let server = holding(|_| {}, |server| server).await;
    let ask = async |path: &str, more: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: 10.1.2.3:3000\r\n{more}Connection: close\r\n\r\n");
        server.served.raw(head.as_bytes()).await.status
    };
    assert_eq!(ask("/health", "").await, 200);
    assert_eq!(ask("/health", "Origin: http://10.1.2.3:3000\r\n").await, 403);
    assert_eq!(ask("/mcp", "").await, 403);
}

#[tokio::test]
async fn a_call_that_its_client_cancelled_is_answered_with_nothing() {
    let server = holding(|_| {}, |server| server).await;
    let id = server.served.session(&[]).await;
    let call = {
        let (served, id) = (Served::at(server.served.address.parse().unwrap()), id.clone());
        let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
        let body = request("tools/call", hold()).to_string();
        tokio::spawn(
            async move { served.send("POST", &[json[0], json[1], ("Mcp-Session-Id", &id)], &body).await },
        )
    };
    let headers = [("Mcp-Session-Id", id.as_str())];
    let again = async || server.served.post(&headers, &request("ping", json!({}))).await.status;
    until_status(400, again).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(server.served.post(&headers, &cancel).await.status, 202);
    let answer = call.await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
}

#[tokio::test]
async fn a_call_that_ends_soon_leaves_no_task_behind() {
    let soon = TaskSupport::After(PATIENCE);
    let server = holding(|_| {}, |server| server.tasks(["*"], soon)).await;
    // More than may be kept, so each must be gone before the next.
    for _ in 0..300 {
        server.permits.add_permits(1);
        let mut params = hold();
        params["_meta"] = meta();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let headers =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "hold")];
        let answer = server.served.post(&headers, &request("tools/call", params)).await;
        assert!(answer.body.contains("held"), "{}", answer.body);
    }
}
