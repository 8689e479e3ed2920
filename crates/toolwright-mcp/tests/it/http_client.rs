//! Our client over HTTP: against our own server, and against servers that mean no good.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use toolwright_core::{BoxFuture, ErrorKind, Form, FormReply, Person, Secret, ToolSource as _};
use toolwright_mcp::{
    Answers, Browser, Client, ClientOptions, HttpTarget, McpErrorKind, McpServer, OAuthOptions, Proxies,
    ResourceBody, ServerStatus,
};

use crate::http::serve;
use crate::support::eventually;

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.start_timeout = SOON;
    options.request_timeout = SOON;
    options
}

/// A person who gives the same answer to everything.
struct Ada;

impl Person for Ada {
    async fn answer(&self, form: &Form) -> FormReply {
        let schema = form.schema();
        let fields = schema["properties"].as_object().unwrap();
        let content = fields.iter().map(|(name, field)| {
            let value = if field["type"] == "boolean" { json!(true) } else { json!("Ada") };
            (name.clone(), value)
        });
        FormReply::Accepted(content.collect())
    }
}

pub(crate) async fn with_ada(url: String) -> Client {
    let mut options = options();
    let mut answers = Answers::default();
    answers.person = Some(Arc::new(Ada));
    options.answers = answers;
    Client::dial(&HttpTarget::new(url), options).await.unwrap()
}

#[tokio::test]
async fn tools_resources_and_prompts_are_used_without_a_session() {
    let server = serve(None).await;
    let client = with_ada(server.url()).await;
    assert_eq!(client.info().version, "2026-07-28");
    client.ping().await.unwrap();
    assert!(client.list_tools().await.unwrap().tools.len() > 30);
    let sum = client.call_tool("add", json!({"x": 1, "y": 2}), SOON, None).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"result": 3})));
    let error = client.call_tool("test_error_handling", json!({}), SOON, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let noting = seen.clone();
    let on_progress = Arc::new(move |done, _, _| noting.lock().unwrap().push(done));
    client.call_tool("test_tool_with_progress", json!({}), SOON, Some(on_progress)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [0.0, 50.0, 100.0]);
    let name = "test_input_required_result_multi_round";
    let answer = client.call_tool(name, json!({}), SOON, None).await.unwrap();
    assert_eq!(answer.to_text(), r#"{"name":"Ada"} and {"color":"Ada"}"#);
    let mirrored =
        client.call_tool("test_x_mcp_header", json!({"region": "Zürich "}), SOON, None).await.unwrap();
    assert!(mirrored.to_text().contains("Zürich "));
    let resources = client.list_resources().await.unwrap();
    assert_eq!(resources[0].uri, "test://static-text");
    let content = client.read_resource("test://static-text").await.unwrap();
    assert!(matches!(&content[0].body, ResourceBody::Text(text) if text.starts_with("This is the content")));
    assert_eq!(client.read_resource("test://nothing").await.unwrap_err().code(), Some(-32602));
    assert_eq!(client.list_resource_templates().await.unwrap()[0].uri_template, "test://template/{id}/data");
    assert_eq!(client.list_prompts().await.unwrap().len(), 5);
    let arguments = Map::from_iter([("arg1".to_owned(), json!("a")), ("arg2".to_owned(), json!("b"))]);
    let prompt = client.get_prompt("test_prompt_with_arguments", arguments).await.unwrap();
    assert_eq!(
        prompt.messages[0].content.as_text().as_deref(),
        Some("Prompt with arguments: arg1='a', arg2='b'")
    );
    let asked = client.get_prompt("test_input_required_result_prompt", Map::new()).await.unwrap();
    assert_eq!(asked.messages[0].content.as_text().as_deref(), Some("The context is Ada"));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_by_hanging_up() {
    let server = serve(None).await;
    let client = with_ada(server.url()).await;
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let call = json!({"seconds": 600.0, "witness": witness});
    let late = client.call_tool("wait", call, Duration::from_millis(300), None).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    eventually("the tool was stopped", || witness.exists()).await;
    assert_eq!(client.call_tool("test_simple_text", json!({}), SOON, None).await.unwrap().content.len(), 1);
}

#[tokio::test]
async fn changed_tools_are_heard_of() {
    let server = serve(None).await;
    let client = with_ada(server.url()).await;
    assert!(!client.tools_changed());
    // The stream that tells of changes may still be opening.
    for _ in 0..50 {
        client.call_tool("test_trigger_tool_change", json!({}), SOON, None).await.unwrap();
        if client.tools_changed() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody said that the tools changed");
}

#[tokio::test]
async fn a_header_can_carry_the_token() {
    let server = serve(Some("secret")).await;
    let refused = Client::dial(&HttpTarget::new(server.url()), options()).await.unwrap_err();
    assert!(!refused.to_string().contains("secret"), "{refused}");
    let target = HttpTarget::new(server.url()).header("Authorization", Secret::new("Bearer secret"));
    assert!(!format!("{target:?}").contains("Bearer secret"));
    let client = Client::dial(&target, options()).await.unwrap();
    client.list_tools().await.unwrap();
}

#[tokio::test]
async fn a_server_is_supervised_like_any_other() {
    let server = serve(None).await;
    let source = McpServer::builder("web", HttpTarget::new(server.url())).prefix("web_").build();
    assert!(source.tools().await.unwrap().get("web_add").is_some());
    assert!(matches!(source.state().status, ServerStatus::Started { pid: None, .. }));
    let gone = McpServer::builder("gone", HttpTarget::new("http://127.0.0.1:1/mcp")).build();
    assert_eq!(gone.tools().await.unwrap().names().count(), 0);
    assert!(matches!(gone.state().status, ServerStatus::Failed { .. }));
    for wrong in ["not an address", "file:///etc/passwd", "ftp://localhost/mcp"] {
        let error = Client::dial(&HttpTarget::new(wrong), options()).await.unwrap_err();
        assert_eq!(error.kind(), McpErrorKind::Start, "{wrong}");
    }
}

#[tokio::test]
async fn resources_and_prompts_can_be_tools() {
    let server = serve(None).await;
    let source =
        McpServer::builder("web", HttpTarget::new(server.url())).prefix("web_").reading_tools().build();
    let run = toolwright_runtime::Run::builder(source.tools().await.unwrap()).build().unwrap();
    let call = async |name: &str, arguments: Value| {
        let result = run.call(toolwright_core::ToolCall::new("1", name, arguments)).await.unwrap();
        assert_eq!(result.error, None);
        result.to_text()
    };
    assert!(call("web_list_resources", json!({})).await.contains("test://template/{id}/data"));
    let text = call("web_read_resource", json!({"uri": "test://static-text"})).await;
    assert_eq!(text, "This is the content of the static text resource.");
    assert!(call("web_list_prompts", json!({})).await.contains("test_simple_prompt"));
    let prompt = call("web_get_prompt", json!({"name": "test_simple_prompt"})).await;
    assert!(prompt.contains("This is a simple prompt for testing."), "{prompt}");
}

/// A server that answers each request with what the script says, and keeps the requests.
pub(crate) struct Scripted {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

/// In place of an answer: nothing, while the connection stays open.
pub(crate) const SILENCE: &str = "silence";

type Script = dyn Fn(&str, Value) -> String + Send + Sync;

pub(crate) async fn scripted(script: impl Fn(&str, Value) -> String + Send + Sync + 'static) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, script): (_, Arc<Script>) = (requests.clone(), Arc::new(script));
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let (seen, script) = (seen.clone(), script.clone());
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut chunk = [0; 4096];
                loop {
                    let text = String::from_utf8_lossy(&request).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n") {
                        let length = head.to_ascii_lowercase();
                        let length = length.split("content-length: ").nth(1);
                        let length =
                            length.and_then(|rest| rest.lines().next()?.trim().parse().ok()).unwrap_or(0);
                        if body.len() >= length {
                            let said = serde_json::from_str(body).unwrap_or_else(|_| body.into());
                            let answer = script(head, said);
                            seen.lock().unwrap().push(text);
                            if answer == SILENCE {
                                return std::future::pending().await;
                            }
                            let _ = connection.write_all(answer.as_bytes()).await;
                            let _ = connection.shutdown().await;
                            return;
                        }
                    }
                    match connection.read(&mut chunk).await {
                        Ok(1..) => request.extend_from_slice(&chunk),
                        _ => return,
                    }
                    request.retain(|byte| *byte != 0);
                    chunk = [0; 4096];
                }
            });
        }
    });
    Scripted { url, requests }
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

pub(crate) fn result(request: &Value, result: Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
    answer("200 OK", "Content-Type: application/json\r\n", &body)
}

/// What every scripted server says first.
pub(crate) fn greeting(request: &Value) -> Option<String> {
    match request["method"].as_str()? {
        "server/discover" => Some(result(
            request,
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}),
        )),
        "tools/list" => {
            Some(result(request, json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})))
        }
        _ => None,
    }
}

/// Calls a tool of a server that greets well and then answers like this.
async fn check_call(kind: ErrorKind, words: &str, script: impl Fn(&Value) -> String + Send + Sync + 'static) {
    let server = scripted(move |_, request| greeting(&request).unwrap_or_else(|| script(&request))).await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    let error = client.call_tool("t", json!({}), SOON, None).await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(words), "{error}");
    client.list_tools().await.expect("the client goes on");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let trap = scripted(|_, _| answer("200 OK", "", "")).await;
    let to = format!("Location: {}\r\n", trap.url);
    check_call(ErrorKind::Unknown, "redirects are not followed", move |_| {
        answer("307 Temporary Redirect", &to, "")
    })
    .await;
    assert!(trap.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    check_call(ErrorKind::OutputLimit, "larger than", |_| {
        answer("200 OK", "Content-Type: application/json\r\n", &"x".repeat(17 * 1024 * 1024))
    })
    .await;
}

#[tokio::test]
async fn an_event_without_end_is_cut_off() {
    check_call(ErrorKind::OutputLimit, "over", |_| {
        let event = format!("data: {}", "x".repeat(17 * 1024 * 1024));
        answer("200 OK", "Content-Type: text/event-stream\r\n", &event)
    })
    .await;
}

#[tokio::test]
async fn an_answer_to_something_else_is_no_answer() {
    check_call(ErrorKind::Unknown, "did not answer", |request| {
        let other = json!({"id": request["id"].as_i64().unwrap() + 1000});
        result(&other, json!({"content": []}))
    })
    .await;
}

#[tokio::test]
async fn a_page_is_no_answer() {
    check_call(ErrorKind::Unknown, "neither JSON nor a stream", |_| {
        answer("200 OK", "Content-Type: text/html\r\n", "<h1>It works!</h1>")
    })
    .await;
}

#[tokio::test]
async fn garbage_is_no_answer() {
    check_call(ErrorKind::Unknown, "not JSON-RPC", |_| {
        answer("200 OK", "Content-Type: application/json\r\n", "{{{{")
    })
    .await;
    check_call(ErrorKind::Unknown, "not JSON-RPC", |_| {
        answer("200 OK", "Content-Type: text/event-stream\r\n", "data: [[[[\n\n")
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error() {
    check_call(ErrorKind::Unknown, "closed the stream", |_| {
        answer("200 OK", "Content-Type: text/event-stream\r\n", ": nothing\n\n")
    })
    .await;
}

#[tokio::test]
async fn errors_of_the_server_are_told() {
    check_call(ErrorKind::Unknown, "500", |_| answer("500 Internal Server Error", "", "oh \u{1b}[2J no"))
        .await;
    check_call(ErrorKind::Permission, "401", |_| answer("401 Unauthorized", "", "")).await;
}

#[tokio::test]
async fn a_server_that_always_asks_for_more_is_given_up() {
    check_call(ErrorKind::OutputLimit, "rounds", |request| {
        result(request, json!({"resultType": "input_required", "inputRequests": {}, "requestState": "x"}))
    })
    .await;
}

#[tokio::test]
async fn a_server_that_asks_for_what_is_not_offered_gets_nothing() {
    check_call(ErrorKind::Unknown, "not offered", |request| {
        let question = json!({"method": "sampling/createMessage", "params": {"messages": []}});
        result(request, json!({"resultType": "input_required", "inputRequests": {"a": question}}))
    })
    .await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error() {
    check_call(ErrorKind::Unknown, "", |_| {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\""
            .to_owned()
    })
    .await;
}

#[tokio::test]
async fn what_is_packed_is_not_unpacked() {
    // We ask for no compression, so a small body that would unfold into a large one is only a wrong body.
    check_call(ErrorKind::Unknown, "", |_| {
        let headers = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
        answer("200 OK", headers, "\u{1f}\u{8b}\u{8}\u{0}")
    })
    .await;
}

#[tokio::test]
async fn no_http_at_all_is_an_error() {
    check_call(ErrorKind::Unknown, "", |_| "SSH-2.0-OpenSSH_9.9\r\n".to_owned()).await;
    check_call(ErrorKind::Unknown, "", |_| String::new()).await;
}

#[tokio::test]
async fn headers_without_end_are_cut_off() {
    check_call(ErrorKind::Unknown, "", |_| {
        let headers = format!("X-Long: {}\r\n", "h".repeat(2_000_000));
        answer("200 OK", &headers, "{}")
    })
    .await;
}

#[tokio::test]
async fn events_of_others_and_comments_are_passed_over() {
    let server = scripted(|_, request| {
        greeting(&request).unwrap_or_else(|| {
            let mut events = ": nothing to see\n\n".repeat(50_000);
            for id in 1000..3000 {
                events.push_str(&format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n"));
            }
            events.push_str("event: junk\ndata: {{{\n\nretry: 0\n\nid: \u{0}\n\n");
            let last = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": "ok"}]}});
            answer("200 OK", "Content-Type: text/event-stream\r\n", &format!("{events}data: {last}\n\n"))
        })
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    // Junk among the events may end the call, but never the client.
    let called = client.call_tool("t", json!({}), SOON, None).await;
    assert!(called.as_ref().map_or(true, |output| output.to_text() == "ok"), "{called:?}");
    client.list_tools().await.unwrap();
}

#[tokio::test]
async fn a_session_id_that_is_no_header_is_not_sent_back() {
    let server = scripted(|_, request| match request["method"].as_str() {
        Some("initialize") => {
            let said = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": said}).to_string();
            let id = format!("Content-Type: application/json\r\nMcp-Session-Id: {}\r\n", "s".repeat(100_000));
            answer("200 OK", &id, &body)
        }
        Some("tools/list") => greeting(&request).unwrap(),
        _ => answer("405 Method Not Allowed", "", ""),
    })
    .await;
    if let Ok(client) = Client::dial(&HttpTarget::new(&server.url), options()).await {
        let _ = client.list_tools().await;
    }
    let longest = server.requests.lock().unwrap().iter().map(String::len).max().unwrap_or_default();
    assert!(longest < 20_000, "a request of {longest} bytes was made of us");
}

/// A browser that must not be opened.
struct Never;

impl Browser for Never {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:5/callback".to_owned()
    }

    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>> {
        panic!("the browser was opened: {page}");
    }
}

/// Dials a server that wants a token and describes itself like this.
async fn check_authorization(
    words: &str,
    challenge: &str,
    describe: impl Fn(&str, &str) -> Value + Send + Sync + 'static,
) {
    let challenge = challenge.to_owned();
    let server = scripted(move |head, _| {
        let host =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
        let own = format!("http://{}", host.unwrap_or_default());
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path == "/mcp" {
            return answer("401 Unauthorized", &format!("WWW-Authenticate: Bearer{challenge}\r\n"), "");
        }
        match describe(path, &own) {
            Value::Null => answer("404 Not Found", "", ""),
            document => answer("200 OK", "Content-Type: application/json\r\n", &document.to_string()),
        }
    })
    .await;
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(Arc::new(Never));
    let error = Client::dial(&HttpTarget::new(&server.url).oauth(oauth), options()).await.unwrap_err();
    assert_eq!(error.kind(), McpErrorKind::Unauthorized, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// The server, its description and the authorization server that it names are asked of the proxy; a server on
/// this machine is not.
#[tokio::test]
async fn a_server_is_reached_through_a_proxy() {
    let description =
        json!({"resource": "http://mcp.invalid/mcp", "authorization_servers": ["https://as.invalid"]});
    let proxy = scripted(move |head, _| match head.split(' ').nth(1).unwrap_or_default() {
        "http://mcp.invalid/mcp" => answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", ""),
        "http://mcp.invalid/.well-known/oauth-protected-resource/mcp" => {
            answer("200 OK", "Content-Type: application/json\r\n", &description.to_string())
        }
        _ => answer("502 Bad Gateway", "", ""),
    })
    .await;
    let proxies = Proxies::all(proxy.url.strip_suffix("/mcp").unwrap()).unwrap();
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(Arc::new(Never));
    let target = HttpTarget::new("http://mcp.invalid/mcp").oauth(oauth).proxies(proxies.clone());
    Client::dial(&target, options()).await.unwrap_err();
    let asked = proxy.requests.lock().unwrap().clone();
    for line in [
        "POST http://mcp.invalid/mcp ",
        "GET http://mcp.invalid/.well-known/oauth-protected-resource/mcp ",
        "CONNECT as.invalid:443 ",
    ] {
        assert!(asked.iter().any(|request| request.starts_with(line)), "{line}: {asked:?}");
    }
    let server = serve(None).await;
    let client = Client::dial(&HttpTarget::new(server.url()).proxies(proxies), options()).await.unwrap();
    client.ping().await.unwrap();
    assert_eq!(proxy.requests.lock().unwrap().len(), asked.len());
}

/// A server on this machine is reached without a proxy, and who guards it elsewhere with one.
#[tokio::test]
async fn who_guards_a_local_server_is_reached_through_a_proxy() {
    let proxy = scripted(|_, _| answer("502 Bad Gateway", "", "")).await;
    let server = scripted(|head, _| {
        let lower = head.to_ascii_lowercase();
        let host = lower.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        if head.split(' ').nth(1) == Some("/mcp") {
            return answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "");
        }
        let said = json!({"resource": format!("http://{host}/mcp"), "authorization_servers": ["https://as.invalid"]});
        answer("200 OK", "Content-Type: application/json\r\n", &said.to_string())
    })
    .await;
    let mut oauth = OAuthOptions::default();
    oauth.browser = Some(Arc::new(Never));
    let proxies = Proxies::all(proxy.url.strip_suffix("/mcp").unwrap()).unwrap();
    Client::dial(&HttpTarget::new(&server.url).oauth(oauth).proxies(proxies), options()).await.unwrap_err();
    let asked = proxy.requests.lock().unwrap().clone();
    assert!(
        !asked.is_empty() && asked.iter().all(|request| request.starts_with("CONNECT as.invalid:443 ")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn descriptions_of_other_servers_are_not_believed() {
    check_authorization("that of another server", "", |_, _| {
        json!({"resource": "https://bank.example/mcp", "authorization_servers": ["https://as.example"]})
    })
    .await;
    let elsewhere = r#" resource_metadata="http://evil.example/x""#;
    check_authorization("another site", elsewhere, |_, _| Value::Null).await;
}

#[tokio::test]
async fn authorization_servers_that_are_not_safe_are_not_used() {
    for issuer in
        ["http://169.254.169.254/latest", "http://as.example", "file:///etc/passwd", "javascript:alert(1)"]
    {
        check_authorization(
            "not a safe address",
            "",
            move |_, own| json!({"resource": format!("{own}/mcp"), "authorization_servers": [issuer]}),
        )
        .await;
    }
}

#[tokio::test]
async fn an_authorization_server_must_be_who_it_says() {
    check_authorization("that of another one", "", |path, own| match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]})
        }
        _ => json!({"issuer": "https://other.example", "token_endpoint": format!("{own}/token")}),
    })
    .await;
    check_authorization("PKCE", "", |path, own| match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]})
        }
        _ => json!({
            "issuer": own, "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token")
        }),
    })
    .await;
    check_authorization("not a safe address", "", |path, own| match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]})
        }
        _ => json!({
            "issuer": own, "token_endpoint": "http://evil.example/token", "code_challenge_methods_supported": ["S256"]
        }),
    })
    .await;
}
