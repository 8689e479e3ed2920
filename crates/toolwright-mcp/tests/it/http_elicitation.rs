//! What a server asks a client over HTTP, and how long it waits for one that is gone.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolwright_core::{CancelToken, ToolDef, ToolSpec, Toolset};
use toolwright_mcp::{ClientApprover, HttpOptions, Server};
use toolwright_runtime::{Policy, Run};

use crate::http::{Served, initialize, request};
use crate::support::{PATIENCE, until_status};

/// A server with one tool, `act`, whose calls the person at the client must allow. It has one call at once.
async fn serve(return_time: Duration) -> Served {
    let act = ToolDef::dynamic(ToolSpec::new("act", "Acts."), |_, _| async { "acted" });
    let run = Run::builder(Toolset::new().with(act).unwrap())
        .policy(Policy::cautious())
        .approver(ClientApprover)
        .build()
        .unwrap();
    let mut options = HttpOptions::default();
    options.return_time = return_time;
    let server = Server::new(run.dispatch()).max_calls(1);
    let listening = server.listen("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let served = Served::at(listening.address());
    tokio::spawn(listening.run(CancelToken::new()));
    served
}

/// Begins a session in which a person can be asked.
async fn session(served: &Served) -> String {
    let mut greeting = initialize();
    greeting["params"]["capabilities"] = json!({"elicitation": {}});
    served.session_of(&[], &greeting).await
}

fn act() -> Value {
    request("tools/call", json!({"name": "act", "arguments": {}}))
}

/// Calls `act`, and reads until it is asked about.
async fn asked(served: &Served, session: &str) -> (TcpStream, Vec<u8>) {
    let body = act().to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n",
        served.address,
        body.len()
    );
    let mut connection = TcpStream::connect(&served.address).await.unwrap();
    connection.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("elicitation/create") {
        let got = tokio::time::timeout(PATIENCE, connection.read_buf(&mut read)).await.expect("a question");
        assert_ne!(got.unwrap(), 0, "{}", String::from_utf8_lossy(&read));
    }
    (connection, read)
}

#[tokio::test]
async fn a_client_that_was_asked_and_never_comes_back_is_not_waited_for() {
    let served = serve(Duration::from_millis(200)).await;
    let session = session(&served).await;
    let ping = async || {
        served
            .post(&[("Mcp-Session-Id", &session)], &json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
            .await
    };
    let (connection, _) = asked(&served, &session).await;
    assert_eq!(ping().await.status, 503, "the call waits for an answer");
    drop(connection);
    until_status(200, async || ping().await.status).await;
    // What became of the call is there for a client that comes back after all.
    let headers =
        [("Mcp-Session-Id", session.as_str()), ("Accept", "text/event-stream"), ("Last-Event-ID", "1-1")];
    let rest = served.send("GET", &headers, "").await;
    assert!(rest.body.contains("the client has gone"), "{}", rest.body);
    // Once it has it, it is not kept for long.
    until_status(400, async || served.send("GET", &headers, "").await.status).await;
}

#[tokio::test]
async fn a_person_may_think_for_as_long_as_their_client_is_there() {
    let served = serve(Duration::from_secs(1)).await;
    let session = session(&served).await;
    let (mut connection, mut read) = asked(&served, &session).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let answer =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"allow": true}}});
    assert_eq!(served.post(&[("Mcp-Session-Id", &session)], &answer).await.status, 202);
    tokio::time::timeout(PATIENCE, connection.read_to_end(&mut read)).await.expect("an end").unwrap();
    let read = String::from_utf8_lossy(&read);
    assert!(read.contains("acted"), "{read}");
}

#[tokio::test]
async fn a_client_that_takes_no_stream_is_not_asked() {
    let served = serve(PATIENCE).await;
    let session = session(&served).await;
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let answer = served.send("POST", &headers, &act().to_string()).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("the client cannot ask its user"), "{}", answer.body);
}
