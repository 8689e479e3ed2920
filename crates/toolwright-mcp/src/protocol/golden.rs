//! Every message against its example in `testdata/mcp`: read, and written unchanged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::result::CacheScope;
use super::*;
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

macro_rules! golden {
    ($file:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../../../../testdata/mcp/", $file))).unwrap()
    };
}

fn entries(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn text(message: &Value, key: &str) -> String {
    message[key].as_str().unwrap().to_owned()
}

fn same<T: DeserializeOwned + Serialize>(name: &str, message: &Value) {
    let read: T = serde_json::from_value(message.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(serde_json::to_value(read).unwrap(), *message, "{name}");
}

#[derive(Serialize)]
struct Params {
    #[serde(flatten)]
    request: ClientRequest,
    #[serde(rename = "_meta", skip_serializing_if = "RequestMeta::is_empty")]
    meta: RequestMeta,
}

#[test]
fn requests_are_read_and_written_unchanged() {
    let mut seen = Vec::new();
    for (name, message) in entries(golden!("requests.json")) {
        let method = Method::of(&text(&message, "method")).unwrap_or_else(|| panic!("{name}"));
        let mut params = message["params"].clone();
        let meta = RequestMeta::take(&mut params);
        let request = ClientRequest::read(method, params).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(request.method(), method, "{name}");
        assert_eq!(serde_json::to_value(Params { request, meta }).unwrap(), message["params"], "{name}");
        seen.push(method);
    }
    assert!(Method::ALL.iter().all(|(method, _)| seen.contains(method)), "a method has no example");
}

#[test]
fn server_requests_and_their_answers_are_read_and_written_unchanged() {
    for (name, message) in entries(golden!("server_requests.json")) {
        same::<ServerRequest>(&name, &message);
        let request: ServerRequest = serde_json::from_value(message.clone()).unwrap();
        assert_eq!(request.method(), text(&message, "method"));
        assert_eq!(serde_json::to_value(request.params()).unwrap(), message["params"], "{name}");
    }
    for (method, answers) in entries(golden!("client_answers.json")) {
        for answer in answers.as_array().unwrap() {
            match method.as_str() {
                "elicitation/create" => same::<ElicitResult>(&method, answer),
                "sampling/createMessage" => same::<SampleResult>(&method, answer),
                _ => same::<RootsResult>(&method, answer),
            }
        }
    }
}

#[test]
fn notifications_are_read_and_written_unchanged() {
    let all = golden!("notifications.json");
    for message in all["server"].as_array().unwrap() {
        let read = ServerNotification::read(&text(message, "method"), message["params"].clone()).unwrap();
        assert_eq!(read.method(), text(message, "method"));
        assert_eq!(serde_json::to_value(read).unwrap(), message["params"]);
    }
    for message in all["client"].as_array().unwrap() {
        let read = ClientNotification::read(&text(message, "method"), message["params"].clone()).unwrap();
        assert_eq!(read.method(), text(message, "method"));
        assert_eq!(serde_json::to_value(read).unwrap(), message["params"]);
    }
}

#[test]
fn results_are_read_and_written_unchanged() {
    for (name, message) in entries(golden!("results.json")) {
        match name.as_str() {
            "initialize" => same::<InitializeResult>(&name, &message),
            "discover" => same::<WithCache<DiscoverResult>>(&name, &message),
            "list tools" => same::<ListToolsResult>(&name, &message),
            "list prompts" => same::<ListPromptsResult>(&name, &message),
            "list resources" => same::<ListResourcesResult>(&name, &message),
            "list templates" => same::<ListTemplatesResult>(&name, &message),
            "read a resource" => same::<ReadResourceResult>(&name, &message),
            "complete" => same::<CompleteResult>(&name, &message),
            "input required" => same::<InputRequired>(&name, &message),
            "create a task" => same::<CreateTaskResult>(&name, &message),
            other => panic!("`{other}` has no type"),
        }
    }
}

/// The examples of messages that we write and do not read as they are.
#[test]
fn written_results_are_as_in_the_examples() {
    let task = |status| CreateTaskResult {
        task_id: "t1".to_owned(),
        status,
        created_at: "c".to_owned(),
        last_updated_at: "u".to_owned(),
        ttl_ms: 1,
        poll_interval_ms: 2,
    };
    let detailed =
        |status| DetailedTask { task: task(status), result: None, error: None, input_requests: None };
    let done = ResultMessage {
        result_type: Some(ResultType::Complete),
        ..ResultBody::CallTool(CallResult::default()).into()
    };
    for (name, message) in entries(golden!("written.json")) {
        let written: ResultMessage = match name.as_str() {
            "call a tool" => {
                let blocks = message["content"].as_array().unwrap().iter().cloned();
                let result = CallResult {
                    content: blocks.map(|block| ContentBlock::read(block).unwrap()).collect(),
                    is_error: false,
                    structured_content: Some(json!({"result": [1]})),
                };
                let meta = entries(message["_meta"].clone());
                ResultMessage {
                    meta,
                    result_type: Some(ResultType::Complete),
                    ..ResultBody::CallTool(result).into()
                }
            }
            "call a tool in a session" => {
                ResultBody::CallTool(CallResult { is_error: true, ..CallResult::default() }).into()
            }
            "get a prompt" => ResultBody::GetPrompt(GetPromptResult {
                description: Some("Reviews.".to_owned()),
                messages: vec![WirePromptMessage {
                    role: Role::User,
                    content: ContentBlock::text("Review a.rs."),
                }],
            })
            .into(),
            "empty" => ResultBody::Empty(Empty {}).into(),
            "input required" => ResultBody::InputRequired(InputRequired {
                request_state: Some(json!("s")),
                ..InputRequired::default()
            })
            .into(),
            "a task that ended" => ResultBody::DetailedTask(DetailedTask {
                result: Some(Box::new(done.clone())),
                ..detailed(TaskStatus::Completed)
            })
            .into(),
            "a task that failed" => ResultBody::DetailedTask(DetailedTask {
                error: Some(RpcError::new(-32603, "broken")),
                ..detailed(TaskStatus::Failed)
            })
            .into(),
            "a task with questions" => {
                let question = json!({"method": "roots/list", "params": {}});
                ResultBody::DetailedTask(DetailedTask {
                    input_requests: Some(Map::from_iter([("ask-1".to_owned(), question)])),
                    ..detailed(TaskStatus::InputRequired)
                })
                .into()
            }
            other => panic!("`{other}` is not written here"),
        };
        assert_eq!(serde_json::to_value(written).unwrap(), message, "{name}");
    }
}

#[test]
fn tasks_of_both_eras_are_read() {
    let newer = entries(golden!("written.json"))["a task that ended"].clone();
    let task = Task::read(newer);
    assert_eq!((task.status, task.poll_interval()), (Some(TaskStatus::Completed), Some(2)));
    assert_eq!(task.result["isError"], json!(false));
    let older =
        json!({"taskId": "t", "status": "working", "ttl": null, "pollInterval": 40, "statusMessage": "m"});
    let task = Task::read(older);
    assert_eq!((task.poll_interval(), task.status_message.as_deref()), (Some(40), Some("m")));
    let odd = Task::read(json!({"taskId": 5, "status": "dancing", "inputRequests": [], "error": "x"}));
    assert_eq!((odd.task_id, odd.status, odd.error), (None, None, None));
}

/// Members of the wrong type: an error where the member is needed, and nothing where it is optional.
#[test]
fn hostile_shapes_are_typed_errors_or_ignored() {
    let shapes = [
        json!(null),
        json!([]),
        json!([["a"], {}, {}]),
        json!("text"),
        json!(1e300),
        json!({"name": [], "uri": {}, "taskId": 1, "level": "LOUD", "ref": {"type": "ref/x"}}),
        json!({"_meta": [], "arguments": [], "cursor": {}, "notifications": 1, "inputResponses": "x"}),
        json!({"name": "n", "arguments": null, "inputResponses": [], "protocolVersion": 3}),
        json!({"notifications": {"resourceSubscriptions": vec!["u"; 1001]}}),
        json!({"protocolVersion": "x", "capabilities": {"a": "x".repeat(100_000)}}),
    ];
    for (method, _) in Method::ALL {
        for shape in &shapes {
            let mut params = shape.clone();
            RequestMeta::take(&mut params);
            if let Err(error) = ClientRequest::read(method, params) {
                assert_eq!(error.code, INVALID_PARAMS, "{method:?} {shape}");
                assert!(error.message.len() < 200, "{error:?}");
            }
        }
    }
    let refused = |method, params: Value| ClientRequest::read(method, params).is_err();
    assert!(refused(Method::CallTool, json!({"arguments": {}})));
    assert!(refused(Method::CallTool, json!({"name": "n", "arguments": "{}"})));
    assert!(refused(Method::ListTools, json!({"cursor": 3})));
    assert!(refused(Method::SetLevel, json!({"level": "LOUD"})));
    assert!(refused(Method::Listen, json!({})));
    assert!(refused(Method::Listen, shapes[8].clone()));
    assert!(refused(Method::Initialize, json!(["2025-11-25", {}, {}])));
    assert!(refused(Method::Initialize, shapes[9].clone()));
    assert!(!refused(Method::ListTools, json!({"cursor": null})));
    for (method, params) in
        [("notifications/progress", json!([1, 2])), ("notifications/cancelled", json!({}))]
    {
        assert_eq!(ServerNotification::read(method, params), None, "{method}");
    }
}

/// Optional members of the wrong type count as absent, as `null` does.
#[test]
fn optional_members_of_the_wrong_type_count_as_absent() {
    let capabilities: ClientCapabilities = serde_json::from_value(json!({
        "elicitation": [], "sampling": true, "roots": null, "extensions": "all", "unknown": {}
    }))
    .unwrap();
    assert_eq!(capabilities, ClientCapabilities::default());
    let capabilities: ClientCapabilities =
        serde_json::from_value(json!({"elicitation": {}, "sampling": {"tools": {}}})).unwrap();
    assert!(
        capabilities.elicitation.is_some_and(|ways| ways.takes_forms()) && capabilities.sampling.is_some()
    );
    let meta = json!({"progressToken": [], "io.modelcontextprotocol/logLevel": "LOUD"});
    let mut params = json!({"_meta": meta, "name": "n"});
    assert!(RequestMeta::take(&mut params).is_empty());
    assert_eq!(params, json!({"name": "n"}));
    let mut meta = RequestMeta { version: Some(Value::Null), ..RequestMeta::default() };
    assert_eq!(meta.introduction().unwrap_err().code, crate::jsonrpc::UNSUPPORTED_VERSION);
}

#[test]
fn cache_hints_are_the_words_of_the_protocol() {
    assert_eq!(serde_json::to_value(CacheHint::NEVER).unwrap(), json!({"ttlMs": 0, "cacheScope": "private"}));
    assert_eq!(CacheHint::NEVER.cache_scope, CacheScope::Private);
}
