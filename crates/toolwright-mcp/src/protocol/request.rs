//! Requests: the methods, the parameters of each, and the rounds of a request that is made again with
//! answers.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    CallParams, CompleteParams, ElicitParams, Empty, GetPromptParams, InitializeParams, ListenParams,
    SampleParams, SetLevelParams, TaskParams, UpdateTaskParams,
};
use crate::jsonrpc::{INVALID_PARAMS, RpcError};

/// The methods that clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    Initialize,
    Discover,
    Ping,
    ListTools,
    CallTool,
    ListPrompts,
    GetPrompt,
    ListResources,
    ListTemplates,
    ReadResource,
    Subscribe,
    Unsubscribe,
    Complete,
    SetLevel,
    Listen,
    GetTask,
    UpdateTask,
    CancelTask,
    /// The result of a task (2025-11-25). Our client calls it; our server has no such tasks.
    TaskResult,
}

impl Method {
    pub(super) const ALL: [(Method, &'static str); 19] = [
        (Method::CallTool, "tools/call"),
        (Method::ListTools, "tools/list"),
        (Method::Initialize, "initialize"),
        (Method::Discover, "server/discover"),
        (Method::Ping, "ping"),
        (Method::ListPrompts, "prompts/list"),
        (Method::GetPrompt, "prompts/get"),
        (Method::ListResources, "resources/list"),
        (Method::ListTemplates, "resources/templates/list"),
        (Method::ReadResource, "resources/read"),
        (Method::Subscribe, "resources/subscribe"),
        (Method::Unsubscribe, "resources/unsubscribe"),
        (Method::Complete, "completion/complete"),
        (Method::SetLevel, "logging/setLevel"),
        (Method::Listen, "subscriptions/listen"),
        (Method::GetTask, "tasks/get"),
        (Method::UpdateTask, "tasks/update"),
        (Method::CancelTask, "tasks/cancel"),
        (Method::TaskResult, "tasks/result"),
    ];

    /// The method of that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(method, _)| *method == self).map_or("", |(_, name)| name)
    }
}

/// A request of a client, with its parameters. Writing one writes the parameters; `_meta` stands beside them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ClientRequest {
    Initialize(InitializeParams),
    Discover(Empty),
    Ping(Empty),
    ListTools(PageParams),
    CallTool(CallParams),
    ListPrompts(PageParams),
    GetPrompt(GetPromptParams),
    ListResources(PageParams),
    ListTemplates(PageParams),
    ReadResource(UriParams),
    Subscribe(UriParams),
    Unsubscribe(UriParams),
    Complete(CompleteParams),
    SetLevel(SetLevelParams),
    Listen(ListenParams),
    GetTask(TaskParams),
    UpdateTask(UpdateTaskParams),
    CancelTask(TaskParams),
    TaskResult(TaskParams),
}

impl ClientRequest {
    /// Reads the parameters of a method, once. `_meta` was taken out before.
    pub(crate) fn read(method: Method, params: Value) -> Result<Self, RpcError> {
        use ClientRequest as R;
        if method == Method::Initialize {
            return InitializeParams::read(params).map(R::Initialize);
        }
        let params = match params {
            Value::Object(members) => members,
            // Members that are required are missed by what reads them, with their names.
            _ => Map::new(),
        };
        Ok(match method {
            Method::Initialize | Method::Discover => R::Discover(Empty {}),
            Method::Ping => R::Ping(Empty {}),
            Method::ListTools => R::ListTools(PageParams::read(&params)?),
            Method::CallTool => R::CallTool(CallParams::read(params)?),
            Method::ListPrompts => R::ListPrompts(PageParams::read(&params)?),
            Method::GetPrompt => R::GetPrompt(GetPromptParams::read(params)?),
            Method::ListResources => R::ListResources(PageParams::read(&params)?),
            Method::ListTemplates => R::ListTemplates(PageParams::read(&params)?),
            Method::ReadResource => {
                let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
                R::ReadResource(UriParams { uri, round: Round::take(&mut { params })? })
            }
            Method::Subscribe => R::Subscribe(typed(params, "`uri` is missing")?),
            Method::Unsubscribe => R::Unsubscribe(typed(params, "`uri` is missing")?),
            Method::Complete => {
                R::Complete(typed(params, "`ref` and `argument` must name what is to be completed")?)
            }
            Method::SetLevel => R::SetLevel(typed(params, "`level` is not a log level of the protocol")?),
            Method::Listen => R::Listen(ListenParams::read(params)?),
            Method::GetTask => R::GetTask(typed(params, "`taskId` is missing")?),
            Method::UpdateTask => R::UpdateTask(typed(params, "`taskId` is missing")?),
            Method::CancelTask => R::CancelTask(typed(params, "`taskId` is missing")?),
            Method::TaskResult => R::TaskResult(typed(params, "`taskId` is missing")?),
        })
    }

    pub(crate) fn method(&self) -> Method {
        use ClientRequest as R;
        match self {
            R::Initialize(_) => Method::Initialize,
            R::Discover(_) => Method::Discover,
            R::Ping(_) => Method::Ping,
            R::ListTools(_) => Method::ListTools,
            R::CallTool(_) => Method::CallTool,
            R::ListPrompts(_) => Method::ListPrompts,
            R::GetPrompt(_) => Method::GetPrompt,
            R::ListResources(_) => Method::ListResources,
            R::ListTemplates(_) => Method::ListTemplates,
            R::ReadResource(_) => Method::ReadResource,
            R::Subscribe(_) => Method::Subscribe,
            R::Unsubscribe(_) => Method::Unsubscribe,
            R::Complete(_) => Method::Complete,
            R::SetLevel(_) => Method::SetLevel,
            R::Listen(_) => Method::Listen,
            R::GetTask(_) => Method::GetTask,
            R::UpdateTask(_) => Method::UpdateTask,
            R::CancelTask(_) => Method::CancelTask,
            R::TaskResult(_) => Method::TaskResult,
        }
    }

    /// The name that the `Mcp-Name` header repeats: of a tool or prompt, the address of a resource, the id of
    /// a task.
    pub(crate) fn name(&self) -> Option<&str> {
        use ClientRequest as R;
        let name = match self {
            R::CallTool(params) => &params.name,
            R::GetPrompt(params) => &params.name,
            R::ReadResource(params) | R::Subscribe(params) | R::Unsubscribe(params) => &params.uri,
            R::GetTask(params) | R::CancelTask(params) | R::TaskResult(params) => &params.task_id,
            R::UpdateTask(params) => &params.task_id,
            _ => return None,
        };
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// The part of the request that changes from round to round, where there are rounds.
    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match self {
            ClientRequest::CallTool(params) => Some(&mut params.round),
            ClientRequest::GetPrompt(params) => Some(&mut params.round),
            ClientRequest::ReadResource(params) => Some(&mut params.round),
            _ => None,
        }
    }
}

fn typed<T: DeserializeOwned>(params: Map<String, Value>, problem: &str) -> Result<T, RpcError> {
    serde_json::from_value(Value::Object(params)).map_err(|_| RpcError::new(INVALID_PARAMS, problem))
}

/// What a client brings back when it makes a request again (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Round {
    /// The answers to the questions of the round before, by the names the server gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_responses: Option<Map<String, Value>>,
    /// The server's own state, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_state: Option<Value>,
}

impl Round {
    /// Takes the members out of a request's parameters.
    pub(super) fn take(params: &mut Map<String, Value>) -> Result<Self, RpcError> {
        let input_responses = match params.remove("inputResponses") {
            None => None,
            Some(Value::Object(answers)) => Some(answers),
            Some(_) => return Err(RpcError::new(INVALID_PARAMS, "`inputResponses` must be an object")),
        };
        Ok(Round { input_responses, request_state: params.remove("requestState") })
    }
}

/// The parameters of a list: where its page begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PageParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<String>,
}

impl PageParams {
    fn read(params: &Map<String, Value>) -> Result<Self, RpcError> {
        let cursor = match params.get("cursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(cursor)) => Some(cursor.clone()),
            Some(_) => return Err(RpcError::new(INVALID_PARAMS, "the cursor is not one of this server")),
        };
        Ok(PageParams { cursor })
    }
}

/// The parameters of `resources/read`, `resources/subscribe` and `resources/unsubscribe`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UriParams {
    pub(crate) uri: String,
    #[serde(flatten)]
    pub(crate) round: Round,
}

/// A request of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
pub(crate) enum ServerRequest {
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitParams),
    #[serde(rename = "sampling/createMessage")]
    Sample(Box<SampleParams>),
    #[serde(rename = "roots/list")]
    ListRoots(Empty),
}

impl ServerRequest {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            ServerRequest::Elicit(_) => "elicitation/create",
            ServerRequest::Sample(_) => "sampling/createMessage",
            ServerRequest::ListRoots(_) => "roots/list",
        }
    }

    /// The parameters.
    pub(crate) fn params(&self) -> ServerRequestParams<'_> {
        match self {
            ServerRequest::Elicit(params) => ServerRequestParams::Elicit(params),
            ServerRequest::Sample(params) => ServerRequestParams::Sample(params),
            ServerRequest::ListRoots(params) => ServerRequestParams::ListRoots(params),
        }
    }

    /// The capability that a client needs to answer it.
    pub(crate) fn capability(&self) -> &'static str {
        match self {
            ServerRequest::Elicit(_) => "elicitation",
            ServerRequest::Sample(_) => "sampling",
            ServerRequest::ListRoots(_) => "roots",
        }
    }
}

/// The parameters of a request of a server, for writing them.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ServerRequestParams<'p> {
    Elicit(&'p ElicitParams),
    Sample(&'p SampleParams),
    ListRoots(&'p Empty),
}
