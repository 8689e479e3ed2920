//! Tools that a server runs as tasks only, under our client.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::ErrorKind;
use toolwright_mcp::{Client, ClientOptions, HttpTarget};

use crate::http::serve;
use crate::http_client::{answer, greeting, options, result, scripted, with_ada};
use crate::support::{Log, PATIENCE, eventually, script};

/// The first task is done when it is looked at the second time; the second one never is.
const TASKS: &str = r#"
read -r line; answer 1 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}'
calls=0 looks=0
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"method":"tools/list"'*) answer "$id" '{"tools":[{"name":"research","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}';;
    *'"method":"tools/call"'*'"task":{"ttl":'*) calls=$((calls+1)); answer "$id" "{\"task\":{\"taskId\":\"t$calls\",\"status\":\"working\",\"pollInterval\":1}}";;
    *'"method":"tasks/get"'*'"t1"'*) looks=$((looks+1)); status=working; [ $looks = 2 ] && status=completed
      answer "$id" "{\"taskId\":\"t1\",\"status\":\"$status\",\"statusMessage\":\"halfway\",\"pollInterval\":1}";;
    *'"method":"tasks/get"'*) answer "$id" '{"taskId":"t2","status":"working","pollInterval":1}';;
    *'"method":"tasks/result"'*'"t1"'*) answer "$id" '{"content":[{"type":"text","text":"found"}]}';;
    *'"method":"tasks/cancel"'*'"t2"'*) echo 'called off t2' >&2; answer "$id" '{}';;
    *'"method":"ping"'*) answer "$id" '{}';;
  esac
done
"#;

#[tokio::test]
async fn a_task_is_looked_at_until_it_is_done_and_called_off_when_nobody_waits() {
    let log = Log::default();
    let mut options = ClientOptions::default();
    (options.start_timeout, options.request_timeout, options.silence) = (PATIENCE, PATIENCE, PATIENCE);
    options.on_log = Some(Arc::new(log.sink()));
    let client = Client::start(&script(TASKS), options).await.unwrap();
    client.list_tools().await.unwrap();
    let said: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let noting = said.clone();
    let on_progress = Arc::new(move |_, _, message| noting.lock().unwrap().push(message));
    let found = client.call_tool("research", json!({}), PATIENCE, Some(on_progress)).await.unwrap();
    assert_eq!(found.to_text(), "found");
    assert_eq!(*said.lock().unwrap(), [Some("halfway".to_owned())]);
    let late = client.call_tool("research", json!({}), Duration::from_millis(300), None).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    eventually("the server is told", || log.text().contains("called off t2")).await;
}

#[tokio::test]
async fn a_call_that_a_server_makes_a_task_of_is_followed_to_its_end() {
    let server = serve(None).await;
    let client = with_ada(server.url()).await;
    let call = async |tool: &str, arguments: Value| client.call_tool(tool, arguments, PATIENCE, None).await;
    let slow = call("slow_compute", json!({"seconds": 0.1, "label": "it"})).await.unwrap();
    assert_eq!(slow.to_text(), "it is done");
    let failed = call("failing_job", json!({})).await.unwrap_err();
    assert!(failed.message().contains("the job failed, as it always does"), "{failed}");
    let broken = call("protocol_error_job", json!({})).await.unwrap_err();
    assert!(broken.message().contains("the job broke the protocol on purpose"), "{broken}");
    let asked = call("confirm_delete", json!({"filename": "a.txt"})).await.unwrap();
    assert!(asked.to_text().contains(r#""confirm":true"#), "{}", asked.to_text());
    assert_eq!(call("multi_input", json!({})).await.unwrap().to_text(), "2 answers came");
    assert_eq!(call("test_tool_with_task", json!({})).await.unwrap().to_text(), "Done for \"Ada\"");
}

#[tokio::test]
async fn a_look_that_fails_costs_no_task() {
    for (failures, done) in [(5, true), (6, false)] {
        let looks = AtomicU32::new(0);
        let server = scripted(move |_, request| {
            greeting(&request).unwrap_or_else(|| match request["method"].as_str() {
                Some("tools/call") => {
                    let made = json!({"taskId": "t1", "status": "working", "resultType": "task", "pollIntervalMs": 1});
                    result(&request, made)
                }
                Some("tasks/get") if looks.fetch_add(1, Ordering::Relaxed) < failures => {
                    answer("503 Service Unavailable", "", "busy")
                }
                Some("tasks/get") => {
                    let found = json!({"content": [{"type": "text", "text": "found"}]});
                    result(&request, json!({"taskId": "t1", "status": "completed", "result": found}))
                }
                _ => result(&request, json!({"resultType": "complete"})),
            })
        })
        .await;
        let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
        match client.call_tool("t", json!({}), PATIENCE, None).await {
            Ok(found) => assert!(done && found.to_text() == "found", "{found:?}"),
            Err(error) => assert!(!done && error.message().contains("503"), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_task_of_the_extension_is_called_off_when_nobody_waits() {
    let server = scripted(|_, request| {
        greeting(&request).unwrap_or_else(|| {
            let task = json!({"taskId": "t 1", "status": "working", "statusMessage": "halfway", "pollIntervalMs": 1});
            match request["method"].as_str() {
                Some("tools/call") => {
                    let mut made = task;
                    made["resultType"] = json!("task");
                    result(&request, made)
                }
                Some("tasks/get") => result(&request, task),
                _ => result(&request, json!({"resultType": "complete"})),
            }
        })
    })
    .await;
    let client = Client::dial(&HttpTarget::new(&server.url), options()).await.unwrap();
    let said: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let noting = said.clone();
    let on_progress = Arc::new(move |_, _, message| noting.lock().unwrap().push(message));
    let short = Duration::from_millis(300);
    let late = client.call_tool("t", json!({}), short, Some(on_progress)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    assert_eq!(*said.lock().unwrap(), [Some("halfway".to_owned())]);
    let cancelled = |request: &String| {
        let head = request.to_ascii_lowercase();
        head.contains("mcp-method: tasks/cancel") && head.contains("mcp-name: t 1")
    };
    let told = || server.requests.lock().unwrap().iter().any(cancelled);
    eventually("the server is told", told).await;
    let requests = server.requests.lock().unwrap().join("\n");
    assert!(requests.contains(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#), "{requests}");
}
