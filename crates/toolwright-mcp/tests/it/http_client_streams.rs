//! Streams that break off, and how often a server may have us come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolSource as _};
use toolwright_mcp::{Client, HttpTarget, McpErrorKind, McpServer, OAuthOptions};

use crate::http_client::{answer, options, result, scripted};
use crate::support::{PATIENCE, eventually};
use crate::token_refresh::Person;

/// The answers of a server that knows sessions, and nothing newer.
fn session(request: &Value) -> Option<String> {
    match request["method"].as_str()? {
        "initialize" => {
            let greeting = json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "s", "version": "1"}
            });
            Some(result(request, greeting).replacen("\r\n", "\r\nMcp-Session-Id: s1\r\n", 1))
        }
        "notifications/initialized" => Some(answer("202 Accepted", "", "")),
        "tools/list" => {
            Some(result(request, json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})))
        }
        "server/discover" => Some(answer("400 Bad Request", "", "")),
        _ => None,
    }
}

fn events(body: &str) -> String {
    answer("200 OK", "Content-Type: text/event-stream\r\n", body)
}

#[tokio::test]
async fn a_server_cannot_have_us_knock_without_end() {
    let (knocks, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let counting = knocks.clone();
    let server = scripted(move |head, request| {
        session(&request).unwrap_or_else(|| {
            if head.starts_with("GET") {
                counting.fetch_add(1, Ordering::Relaxed);
            }
            events("retry: 0\n\n")
        })
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    eventually("it is listened to again", || knocks.load(Ordering::Relaxed) >= 4).await;
    // The first pause is 100 ms, and each one that brings nothing is twice as long: four take 700 ms at
    // least.
    assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
    drop(client);
}

#[tokio::test]
async fn a_long_call_may_be_taken_up_again_as_often_as_it_gets_on() {
    let resumed = Arc::new(AtomicUsize::new(0));
    let counting = resumed.clone();
    let server = scripted(move |head, request| {
        if let Some(said) = session(&request) {
            return said;
        }
        let lower = head.to_ascii_lowercase();
        match lower.split("last-event-id: ").nth(1) {
            Some(last) => {
                let (id, last) = last.lines().next().unwrap().split_once('-').unwrap();
                let next = last.parse::<usize>().unwrap() + 1;
                counting.fetch_add(1, Ordering::Relaxed);
                if next < 12 {
                    return events(&format!("id: {id}-{next}\nretry: 0\ndata: \n\n"));
                }
                let done = json!({"jsonrpc": "2.0", "id": id.parse::<i64>().unwrap(), "result": {"content": [{"type": "text", "text": "done"}]}});
                events(&format!("id: {id}-{next}\ndata: {done}\n\n"))
            }
            None if head.starts_with("GET") => answer("405 Method Not Allowed", "", ""),
            None => events(&format!("id: {}-0\nretry: 0\ndata: \n\n", request["id"])),
        }
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    let done = client.call_tool("t", json!({}), PATIENCE, None).await.unwrap();
    assert_eq!((done.to_text().as_str(), resumed.load(Ordering::Relaxed)), ("done", 12));
}

#[tokio::test]
async fn a_call_that_does_not_get_on_is_given_up() {
    let server = scripted(move |head, request| {
        session(&request).unwrap_or_else(|| match head.starts_with("GET") {
            true if !head.to_ascii_lowercase().contains("last-event-id") => {
                answer("405 Method Not Allowed", "", "")
            }
            _ => events("id: same\nretry: 0\ndata: \n\n"),
        })
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    let error = client.call_tool("t", json!({}), PATIENCE, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert!(error.message().contains("closed the stream before it answered"), "{error}");
}

#[tokio::test]
async fn tools_that_could_not_be_listed_are_listed_later() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counting = lists.clone();
    let server = scripted(move |head, request| {
        if request["method"] == "tools/list" {
            return match counting.fetch_add(1, Ordering::Relaxed) {
                1 => answer("500 Internal Server Error", "", "not now"),
                number => result(&request, json!({"tools": [{"name": format!("t{number}"), "inputSchema": {}}]})),
            };
        }
        session(&request).unwrap_or_else(|| match head.starts_with("GET") {
            true => events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\nretry: 30000\n\n"),
            false => answer("404 Not Found", "", ""),
        })
    })
    .await;
    let source =
        McpServer::builder("s", HttpTarget::new(&server.url)).options(|own| *own = options()).build();
    // The change is heard of, listing the tools fails, and the change is not forgotten for that.
    let start = Instant::now();
    loop {
        let tools = source.tools().await.unwrap();
        if tools.get("t2").is_some() {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", tools.names().collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lists.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn who_is_told_of_a_failure_may_look_at_the_state() {
    let slot: Arc<std::sync::OnceLock<McpServer>> = Arc::default();
    let (looking, seen) = (slot.clone(), Arc::new(AtomicUsize::new(0)));
    let counting = seen.clone();
    let source = McpServer::builder("gone", HttpTarget::new("http://127.0.0.1:1/mcp"))
        .on_log(move |_| {
            if let Some(server) = looking.get() {
                let _ = server.state();
                counting.fetch_add(1, Ordering::Relaxed);
            }
        })
        .build();
    slot.set(source.clone()).unwrap();
    let asked = tokio::spawn(async move { source.tools().await.map(|tools| tools.names().count()) });
    let asked = tokio::time::timeout(PATIENCE, asked).await.expect("no deadlock").unwrap();
    assert_eq!((asked.unwrap(), seen.load(Ordering::Relaxed)), (0, 1));
}

#[tokio::test]
async fn the_older_transport_does_not_wait_for_ever() {
    // A server that takes the connection and says nothing.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = HttpTarget::new(format!("http://{}/sse", listener.local_addr().unwrap())).legacy_sse();
    let mut short = options();
    short.start_timeout = Duration::from_millis(300);
    let error =
        tokio::time::timeout(PATIENCE, Client::dial(&target, short)).await.expect("in time").unwrap_err();
    assert!(error.to_string().contains("did not answer within 300ms"), "{error}");
}

#[tokio::test]
async fn the_older_transport_notices_silence() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = HttpTarget::new(format!("http://{}/sse", listener.local_addr().unwrap())).legacy_sse();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut head = [0; 4];
            let _ = connection.read_exact(&mut head).await;
            let said = match &head {
                b"GET " => {
                    "200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n"
                }
                _ => "202 Accepted\r\nContent-Length: 0\r\n\r\n",
            };
            let _ = connection.write_all(format!("HTTP/1.1 {said}").as_bytes()).await;
            // The stream stays open, and nothing comes any more.
            open.push(connection);
        }
    });
    let target = target.sse_read_timeout(Duration::from_millis(500));
    let dialled = tokio::time::timeout(PATIENCE, Client::dial(&target, options())).await;
    let error = dialled.expect("in time").unwrap_err();
    assert!(error.to_string().contains("the server fell silent"), "{error}");
}

/// A server of 2024-11-05 at `/sse`, which refuses everything that is posted there with this status.
async fn older_server(status: &'static str) -> String {
    guarded_older_server(status, |_| None).await
}

/// The same, behind a guard that may answer in its place.
async fn guarded_older_server(
    status: &'static str,
    guard: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut stream: Option<tokio::net::TcpStream> = None;
        while let Ok((mut connection, _)) = listener.accept().await {
            let (mut text, mut chunk) = (String::new(), [0; 4096]);
            let whole = |text: &str| {
                let (head, body) = text.split_once("\r\n\r\n")?;
                let length = head.to_ascii_lowercase();
                let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
                (body.len() >= length).then(|| body.to_owned())
            };
            while whole(&text).is_none() {
                let read = connection.read(&mut chunk).await.unwrap_or(0);
                if read == 0 {
                    break;
                }
                text.push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
            if let Some(said) = guard(&text) {
                let _ = connection.write_all(said.as_bytes()).await;
                continue;
            }
            if text.starts_with("GET /sse") {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n";
                let _ =
                    connection.write_all(format!("{head}event: endpoint\ndata: /m?s=1\n\n").as_bytes()).await;
                stream = Some(connection);
                continue;
            }
            if !text.starts_with("POST /m?s=1") {
                let _ = connection.write_all(answer(status, "", "no").as_bytes()).await;
                continue;
            }
            let _ = connection.write_all(answer("202 Accepted", "", "").as_bytes()).await;
            let request: Value = serde_json::from_str(&whole(&text).unwrap()).unwrap();
            let Some((id, said)) = request.get("id").zip(session(&request)) else { continue };
            let said = said.split_once("\r\n\r\n").unwrap().1.to_owned();
            assert!(said.contains(&id.to_string()));
            if let Some(stream) = &mut stream {
                let _ = stream.write_all(format!("event: message\ndata: {said}\n\n").as_bytes()).await;
            }
        }
    });
    url
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_known_by_itself() {
    for status in ["404 Not Found", "405 Method Not Allowed", "400 Bad Request", "422 Unprocessable Content"]
    {
        let target = HttpTarget::new(older_server(status).await);
        let client = tokio::time::timeout(PATIENCE, Client::dial(&target, options())).await.expect("in time");
        let client = client.unwrap_or_else(|error| panic!("{status}: {error}"));
        assert_eq!(client.list_tools().await.unwrap().tools[0].name, "t", "{status}");
    }
}

#[tokio::test]
async fn an_address_without_a_server_says_what_it_said_first() {
    let page = scripted(|head, _| match head.starts_with("GET") {
        true => answer("200 OK", "Content-Type: text/html\r\n", "<p>Welcome</p>"),
        false => answer("405 Method Not Allowed", "", "posts are not taken"),
    })
    .await;
    let error = Client::dial(&HttpTarget::new(&page.url), options()).await.unwrap_err();
    assert!(error.to_string().contains("the server answered 405: posts are not taken"), "{error}");
}

#[tokio::test]
async fn the_older_transport_gets_a_token_too() {
    let url = guarded_older_server("405 Method Not Allowed", |text| {
        let lower = text.to_ascii_lowercase();
        let own = format!("http://{}", lower.split("host: ").nth(1)?.lines().next()?);
        let said = match text.split(' ').nth(1)? {
            "/.well-known/oauth-protected-resource/sse" => {
                json!({"resource": format!("{own}/sse"), "authorization_servers": [own]})
            }
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": own, "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"), "registration_endpoint": format!("{own}/register"),
                "code_challenge_methods_supported": ["S256"]
            }),
            "/register" => json!({"client_id": "us", "token_endpoint_auth_method": "none"}),
            "/token" => json!({"access_token": "token-1", "token_type": "Bearer"}),
            _ if lower.contains("authorization: bearer token-1") => return None,
            _ => return Some(answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "")),
        };
        Some(answer("200 OK", "Content-Type: application/json\r\n", &said.to_string()))
    })
    .await;
    let person = Arc::new(Person::default());
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(person.clone());
    let target = HttpTarget::new(&url).legacy_sse().oauth(oauth);
    let client = tokio::time::timeout(PATIENCE, Client::dial(&target, options())).await.expect("in time");
    assert_eq!(client.unwrap().list_tools().await.unwrap().tools[0].name, "t");
    assert_eq!(person.0.load(Ordering::SeqCst), 1);
    // Without anybody who could be asked, it says that it is a matter of tokens.
    let error = Client::dial(&HttpTarget::new(&url).legacy_sse(), options()).await.unwrap_err();
    assert_eq!(error.kind(), McpErrorKind::Unauthorized, "{error}");
}

#[tokio::test]
async fn a_gateway_that_is_busy_once_does_not_make_us_deaf() {
    let knocks = Arc::new(AtomicUsize::new(0));
    let counting = knocks.clone();
    let server = scripted(move |head, request| {
        session(&request).unwrap_or_else(|| match head.starts_with("GET") {
            true => match counting.fetch_add(1, Ordering::SeqCst) {
                0 => answer("503 Service Unavailable", "", ""),
                1 => events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\nretry: 10\n\n"),
                // It still holds the stream that just ended.
                2 => answer("409 Conflict", "", ""),
                3 => answer("400 Bad Request", "", "session already exists"),
                _ => events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\nretry: 30000\n\n"),
            },
            false => answer("202 Accepted", "", ""),
        })
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    eventually("it is heard that the tools changed", || client.tools_changed()).await;
    assert_eq!(knocks.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_server_without_a_stream_is_asked_for_it_once() {
    for status in [
        "404 Not Found",
        "405 Method Not Allowed",
        "403 Forbidden",
        "401 Unauthorized",
        "501 Not Implemented",
    ] {
        let knocks = Arc::new(AtomicUsize::new(0));
        let counting = knocks.clone();
        let server = scripted(move |head, request| {
            if head.starts_with("GET") {
                counting.fetch_add(1, Ordering::SeqCst);
            }
            session(&request).unwrap_or_else(|| answer(status, "", ""))
        })
        .await;
        let _client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
        // Twice the pause before it would be asked again.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(knocks.load(Ordering::SeqCst), 1, "{status}");
    }
}
