//! The lists, page by page, and reading resources and prompts.

use serde_json::Value;
use toolwright_core::{ToolSpec, text};

use super::response::Response;
use super::sealed_state::{Binding, SealedState};
use super::{Era, IncomingRequest, Inner, Peer, client_quirks};
use crate::jsonrpc::{INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError};
use crate::protocol::{
    CacheHint, Empty, GetPromptParams, ListPromptsResult, ListResourcesResult, ListTemplatesResult,
    ListToolsResult, PageParams, ReadResourceResult, ResultBody, UriParams,
};

/// One page of a list.
struct ListPage<T> {
    entries: Vec<T>,
    next_cursor: Option<String>,
    cache: Option<CacheHint>,
}

impl Inner {
    pub(super) async fn list_tools(
        &self,
        request: &IncomingRequest,
        page: &PageParams,
    ) -> Result<ResultBody, RpcError> {
        let tools = self.refreshed_tools().await?;
        let client = request.session.as_ref().map_or("", |session| session.client());
        let definition = |spec: &ToolSpec| client_quirks::definition(spec, client);
        let ListPage { entries: tools, next_cursor, cache } =
            self.page(&tools, definition, page, request.era)?;
        Ok(ResultBody::ListTools(ListToolsResult { tools, next_cursor, cache }))
    }

    pub(super) fn list_prompts(&self, page: &PageParams, era: Era) -> Result<ResultBody, RpcError> {
        let prompts = self.prompts.as_ref().map(|prompts| prompts.list()).unwrap_or_default();
        let ListPage { entries: prompts, next_cursor, cache } =
            self.page(&prompts, Clone::clone, page, era)?;
        Ok(ResultBody::ListPrompts(ListPromptsResult { prompts, next_cursor, cache }))
    }

    pub(super) async fn list_resources(&self, page: &PageParams, era: Era) -> Result<ResultBody, RpcError> {
        let resources = match self.resources.clone() {
            // Walking through folders may take a while.
            Some(known) => tokio::task::spawn_blocking(move || known.list()).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let ListPage { entries: resources, next_cursor, cache } =
            self.page(&resources, Clone::clone, page, era)?;
        Ok(ResultBody::ListResources(ListResourcesResult { resources, next_cursor, cache }))
    }

    pub(super) fn list_templates(&self, page: &PageParams, era: Era) -> Result<ResultBody, RpcError> {
        let templates = self.resources.as_ref().map(|known| known.templates()).unwrap_or_default();
        let ListPage { entries: resource_templates, next_cursor, cache } =
            self.page(&templates, Clone::clone, page, era)?;
        Ok(ResultBody::ListTemplates(ListTemplatesResult { resource_templates, next_cursor, cache }))
    }

    fn page<T, W>(
        &self,
        items: &[T],
        to_wire: impl Fn(&T) -> W,
        page: &PageParams,
        era: Era,
    ) -> Result<ListPage<W>, RpcError> {
        let invalid = |problem: &str| RpcError::new(INVALID_PARAMS, problem);
        let start = match &page.cursor {
            None => 0,
            Some(cursor) => cursor
                .strip_prefix("from-")
                .and_then(|start| start.parse::<usize>().ok())
                .ok_or_else(|| invalid("the cursor is not one of this server"))?,
        };
        if start > items.len() {
            return Err(invalid("the cursor is past the end"));
        }
        let end = start.saturating_add(self.page_size).min(items.len());
        Ok(ListPage {
            entries: items.get(start..end).unwrap_or_default().iter().map(to_wire).collect(),
            next_cursor: (end < items.len()).then(|| format!("from-{end}")),
            cache: era.is_stateless().then_some(CacheHint::NEVER),
        })
    }

    pub(super) async fn get_prompt(
        &self,
        request: &IncomingRequest,
        params: GetPromptParams,
    ) -> Result<Response, RpcError> {
        let Some(prompts) = &self.prompts else { return Ok(ResultBody::Empty(Empty {}).into()) };
        let GetPromptParams { name, arguments, round } = params;
        let unknown =
            || RpcError::new(INVALID_PARAMS, format!("there is no prompt `{}`", text::clip(&name, 200)));
        let known = prompts.list().into_iter().find(|prompt| prompt.name == name).ok_or_else(unknown)?;
        let missing =
            known.arguments.iter().find(|wanted| wanted.required && !arguments.contains_key(&wanted.name));
        if let Some(missing) = missing {
            let message = format!("the prompt `{name}` needs the argument `{}`", missing.name);
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
        let given = Value::Object(arguments.clone());
        let binding = Binding { method: "prompts/get", name: &name, arguments: &given };
        let peer = Peer::new(request.clone(), SealedState::open(&self.state_key, request, binding, round)?);
        let outcome = prompts.get(&peer, &name, &arguments).await;
        if let Some(instead) = peer.instead(&self.state_key, binding) {
            return Ok(instead);
        }
        let result = outcome.map_err(|error| self.failed("the prompt", &error))?;
        Ok(ResultBody::GetPrompt(result.ok_or_else(unknown)?.into_wire()).into())
    }

    pub(super) async fn read_resource(
        &self,
        request: &IncomingRequest,
        params: UriParams,
    ) -> Result<Response, RpcError> {
        let Some(resources) = &self.resources else { return Ok(ResultBody::Empty(Empty {}).into()) };
        let UriParams { uri, round } = params;
        let binding = Binding { method: "resources/read", name: &uri, arguments: &Value::Null };
        let peer = Peer::new(request.clone(), SealedState::open(&self.state_key, request, binding, round)?);
        let outcome = resources.read(&peer, &uri).await;
        if let Some(instead) = peer.instead(&self.state_key, binding) {
            return Ok(instead);
        }
        let contents = outcome.map_err(|error| self.failed("the resource", &error))?;
        let Some(contents) = contents.filter(|contents| !contents.is_empty()) else {
            let code = if request.era.is_stateless() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
            let mut error = RpcError::new(code, "there is no such resource");
            error.data = Some(serde_json::json!({"uri": text::clip(&uri, 2000)}));
            return Err(error);
        };
        let cache = request.era.is_stateless().then_some(CacheHint::NEVER);
        Ok(ResultBody::ReadResource(ReadResourceResult { contents, cache }).into())
    }
}

/// Does the work of a request, unless its client stops waiting first.
pub(super) async fn unless_cancelled(
    request: &IncomingRequest,
    work: impl Future<Output = Result<Response, RpcError>>,
) -> Response {
    tokio::select! {
        biased;
        outcome = work => outcome.into(),
        () = request.cancel.cancelled() => Response::Cancelled,
    }
}
