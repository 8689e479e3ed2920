//! Results: one type that holds that of every method, and the envelope around each.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    CallResult, CompleteResult, CreateTaskResult, DetailedTask, DiscoverResult, Empty, GetPromptResult,
    InitializeResult, ListPromptsResult, ListResourcesResult, ListTemplatesResult, ListToolsResult,
    ReadResourceResult,
};

/// The result of a method of our server.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum ResultBody {
    Empty(Empty),
    Initialize(InitializeResult),
    Discover(WithCache<DiscoverResult>),
    ListTools(ListToolsResult),
    CallTool(CallResult),
    ListPrompts(ListPromptsResult),
    GetPrompt(GetPromptResult),
    ListResources(ListResourcesResult),
    ListTemplates(ListTemplatesResult),
    ReadResource(ReadResourceResult),
    Complete(CompleteResult),
    InputRequired(InputRequired),
    CreateTask(CreateTaskResult),
    DetailedTask(DetailedTask),
}

/// A result that says for how long it may be kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WithCache<T> {
    #[serde(flatten)]
    pub(crate) body: T,
    #[serde(flatten)]
    pub(crate) cache: CacheHint,
}

/// Whether a client may keep a result, and share it (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CacheHint {
    pub(crate) ttl_ms: u64,
    pub(crate) cache_scope: CacheScope,
}

/// Who may share a result that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CacheScope {
    Private,
}

impl CacheHint {
    /// Lists and contents may differ from one client to the next and from one moment to the next.
    pub(crate) const NEVER: CacheHint = CacheHint { ttl_ms: 0, cache_scope: CacheScope::Private };
}

/// What a result is (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultType {
    Complete,
    /// The client must answer questions, and make the request again.
    InputRequired,
    /// The call goes on as a task.
    Task,
}

impl ResultType {
    /// The type that an answer names.
    pub(crate) fn of(answer: &Value) -> Option<Self> {
        ResultType::deserialize(answer.get("resultType")?).ok()
    }
}

/// The questions of a server that stand in place of a result (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InputRequired {
    pub(crate) input_requests: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_state: Option<Value>,
}

impl InputRequired {
    /// Reads what a server asks; members of other types count as absent.
    pub(crate) fn read(answer: Value) -> Self {
        let Value::Object(mut members) = answer else { return InputRequired::default() };
        let input_requests = match members.remove("inputRequests") {
            Some(Value::Object(requests)) => requests,
            _ => Map::new(),
        };
        InputRequired { input_requests, request_state: members.remove("requestState") }
    }
}

/// A result as it is sent.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ResultMessage {
    #[serde(flatten)]
    pub(crate) body: ResultBody,
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub(crate) meta: Map<String, Value>,
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    pub(crate) result_type: Option<ResultType>,
}

impl From<ResultBody> for ResultMessage {
    fn from(body: ResultBody) -> Self {
        let result_type = match &body {
            ResultBody::InputRequired(_) => Some(ResultType::InputRequired),
            ResultBody::CreateTask(_) => Some(ResultType::Task),
            _ => None,
        };
        ResultMessage { body, meta: Map::new(), result_type }
    }
}

/// One page of a list, as any server sends it: the entries are read one by one.
#[derive(Debug)]
pub(crate) struct PageOf {
    pub(crate) entries: Vec<Value>,
    pub(crate) next_cursor: Option<String>,
}

impl PageOf {
    /// Reads the list of that name; `None` when there is none.
    pub(crate) fn read(page: Value, key: &str) -> Option<Self> {
        let Value::Object(mut members) = page else { return None };
        let Some(Value::Array(entries)) = members.remove(key) else { return None };
        let next_cursor = match members.remove("nextCursor") {
            Some(Value::String(cursor)) => Some(cursor),
            _ => None,
        };
        Some(PageOf { entries, next_cursor })
    }
}
