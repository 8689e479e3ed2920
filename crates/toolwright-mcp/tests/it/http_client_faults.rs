//! Servers and gateways with faults that are met in the field: they repeat what they were sent, forget their sessions, refuse
//! what they do not know in ways of their own, and say `null`.

use serde_json::{Value, json};
use toolwright_core::Secret;
use toolwright_mcp::{Client, HttpTarget};

use crate::http_client::{answer, greeting, options, result, scripted};
use crate::support::PATIENCE;

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
