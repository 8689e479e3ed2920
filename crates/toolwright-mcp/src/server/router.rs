//! From a method to its handler.
//!
//! `offers` is the table of what this server answers in which era; the transports read a request with `read`,
//! and `answer` has it handled and completes the result, in this one place, with what every result of its era
//! carries.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_core::{ErrorKind, ToolError, text};

use super::response::Response;
use super::{CompletionRequest, Era, IncomingRequest, Inner, Watching, call, hub, read};
use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::protocol::{
    CacheHint, ClientRequest, CompleteParams, CompleteResult, Completion, DiscoverResult, Empty, ListChanged,
    Method, ResourcesCapability, ResultBody, ResultType, SERVER_INFO_KEY, SESSION_VERSIONS,
    STATELESS_VERSION, ServerCapabilities, TASKS_EXTENSION, WithCache,
};

/// The most values that one completion proposes.
const MAX_COMPLETIONS: usize = 100;

impl Inner {
    /// Whether this server answers the method in this era.
    fn offers(&self, method: Method, era: Era) -> bool {
        let stateless = era.is_stateless();
        match method {
            Method::ListTools | Method::CallTool => true,
            Method::ListPrompts | Method::GetPrompt => self.prompts.is_some(),
            Method::ListResources | Method::ListTemplates | Method::ReadResource => self.resources.is_some(),
            Method::Subscribe | Method::Unsubscribe => !stateless && self.watching() != Watching::No,
            Method::Complete => self.completions.is_some(),
            Method::Ping | Method::SetLevel => !stateless,
            Method::Discover | Method::Listen => stateless,
            Method::GetTask | Method::UpdateTask | Method::CancelTask => {
                stateless && !self.task_support.is_empty()
            }
            // The transports answer `initialize`, once a session.
            Method::Initialize | Method::TaskResult => false,
        }
    }

    /// Reads a request, if its method is offered.
    pub(super) fn read(&self, era: Era, method: &str, params: Value) -> Result<ClientRequest, RpcError> {
        match Method::of(method).filter(|method| self.offers(*method, era)) {
            Some(method) => ClientRequest::read(method, params),
            None => {
                let problem = format!("there is no method `{}`", text::clip(method, 200));
                Err(RpcError::new(METHOD_NOT_FOUND, problem))
            }
        }
    }

    /// Answers a request.
    pub(super) async fn answer(self: Arc<Self>, request: IncomingRequest, call: ClientRequest) -> Response {
        let era = request.era;
        let response = self.route(request, call).await;
        self.complete(response, era)
    }

    async fn route(self: &Arc<Self>, request: IncomingRequest, call: ClientRequest) -> Response {
        use ClientRequest as R;
        let era = request.era;
        match call {
            R::CallTool(params) => call::answer(self, request, params).await,
            R::ListTools(page) => self.list_tools(&request, &page).await.into(),
            R::ListPrompts(page) => self.list_prompts(&page, era).into(),
            R::GetPrompt(params) => read::unless_cancelled(&request, self.get_prompt(&request, params)).await,
            R::ListResources(page) => self.list_resources(&page, era).await.into(),
            R::ListTemplates(page) => self.list_templates(&page, era).into(),
            R::ReadResource(params) => {
                read::unless_cancelled(&request, self.read_resource(&request, params)).await
            }
            R::Subscribe(params) => in_session(&request, |session| session.watch(self, &params.uri)),
            R::Unsubscribe(params) => in_session(&request, |session| {
                session.unwatch(&params.uri);
                Ok(())
            }),
            R::SetLevel(params) => in_session(&request, |session| {
                session.set_log_level(params.level);
                Ok(())
            }),
            R::Complete(params) => self.propose(params).await.into(),
            R::Discover(_) => ResultBody::Discover(self.discover()).into(),
            R::Listen(params) => hub::listen(self, &request, params.notifications).await,
            R::GetTask(params) => self.tasks.get(&request, &params.task_id).into(),
            R::UpdateTask(params) => self.tasks.update(&request, params).into(),
            R::CancelTask(params) => self.tasks.stop(&request, &params.task_id).into(),
            R::Ping(_) | R::Initialize(_) | R::TaskResult(_) => ResultBody::Empty(Empty {}).into(),
        }
    }

    /// Adds to a result what every result of its era carries.
    pub(super) fn complete(&self, mut response: Response, era: Era) -> Response {
        if era.is_stateless()
            && let Response::Result(result) = &mut response
        {
            result.result_type.get_or_insert(ResultType::Complete);
            result.meta.insert(SERVER_INFO_KEY.to_owned(), json!(self.info));
        }
        response
    }

    /// The abilities of this server.
    pub(super) fn capabilities(&self, era: Era) -> ServerCapabilities {
        let stateless = era.is_stateless();
        let mut extensions = Map::new();
        if stateless && !self.task_support.is_empty() {
            extensions.insert(TASKS_EXTENSION.to_owned(), json!({}));
        }
        ServerCapabilities {
            tools: Some(ListChanged { list_changed: true }),
            resources: self.resources.as_ref().map(|_| ResourcesCapability {
                list_changed: self.watching() == Watching::Announced,
                subscribe: self.watching() != Watching::No,
            }),
            prompts: self.prompts.as_ref().map(|_| ListChanged { list_changed: true }),
            completions: self.completions.as_ref().map(|_| Empty {}),
            logging: (!stateless).then_some(Empty {}),
            extensions,
        }
    }

    fn discover(&self) -> WithCache<DiscoverResult> {
        let versions = [STATELESS_VERSION].into_iter().chain(SESSION_VERSIONS.into_iter().rev());
        let body = DiscoverResult {
            supported_versions: versions.map(str::to_owned).collect(),
            capabilities: self.capabilities(Era::STATELESS),
            instructions: self.instructions.clone(),
        };
        WithCache { body, cache: CacheHint::NEVER }
    }

    async fn propose(&self, params: CompleteParams) -> Result<ResultBody, RpcError> {
        let Some(completions) = &self.completions else { return Ok(ResultBody::Empty(Empty {})) };
        let request = CompletionRequest::from(params);
        let mut values =
            completions.complete(&request).await.map_err(|error| self.failed("the completion", &error))?;
        let total = values.len();
        values.truncate(MAX_COMPLETIONS);
        let completion = Completion { values, total, has_more: total > MAX_COMPLETIONS };
        Ok(ResultBody::Complete(CompleteResult { completion }))
    }

    /// The error of a tool for its client. The cause of a fatal one is for the log only.
    pub(super) fn failed(&self, what: &str, error: &ToolError) -> RpcError {
        if error.kind() == ErrorKind::Fatal {
            self.log(&format!("{what} failed: {error}"));
            return RpcError::new(INTERNAL_ERROR, format!("{what} failed; see the log of the server"));
        }
        let code = match error.kind() {
            ErrorKind::Parsing => INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        RpcError::new(code, error.message())
    }
}

/// Does something with the session of a request, which methods of the era with sessions have.
fn in_session(
    request: &IncomingRequest,
    work: impl FnOnce(&super::session::Session) -> Result<(), RpcError>,
) -> Response {
    match &request.session {
        Some(session) => work(session).map(|()| ResultBody::Empty(Empty {})).into(),
        None => RpcError::new(METHOD_NOT_FOUND, "this method needs a session").into(),
    }
}
