//! What each method means, whichever way the request came.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolwright_core::{ErrorKind, ToolError, text};

use super::rounds::Rounds;
use super::{CompletionRequest, Era, Inner, LogLevel, Outcome, Peer, Request, Watching, call, hub};
use crate::jsonrpc::{
    INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError, UNSUPPORTED_VERSION,
};
use crate::protocol::{
    CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, SERVER_INFO_KEY, SESSION_VERSIONS, STATELESS_VERSION,
    TASKS_EXTENSION, ToolDefinition, VERSION_KEY,
};

/// How many values one completion proposes.
const MAX_COMPLETIONS: usize = 100;

/// What a request without a session says of itself in `_meta`.
pub(super) struct Introduction {
    pub(super) capabilities: Arc<Value>,
    pub(super) log_level: Option<LogLevel>,
}

/// Reads `_meta` of a request without a session.
pub(super) fn introduction(params: &Value) -> Result<Introduction, RpcError> {
    let meta = params.get("_meta");
    let said = |key: &str| meta.and_then(|meta| meta.get(key));
    let Some(version) = said(VERSION_KEY) else {
        return Err(RpcError::new(INVALID_PARAMS, format!("`_meta` needs `{VERSION_KEY}`, a text")));
    };
    if version.as_str() != Some(STATELESS_VERSION) {
        let mut error = RpcError::new(UNSUPPORTED_VERSION, "this revision is not spoken here");
        error.data = Some(json!({"supported": [STATELESS_VERSION], "requested": version}));
        return Err(error);
    }
    let Some(capabilities) = said(CLIENT_CAPABILITIES_KEY).filter(|said| said.is_object()) else {
        let message = format!("`_meta` needs `{CLIENT_CAPABILITIES_KEY}`, an object");
        return Err(RpcError::new(INVALID_PARAMS, message));
    };
    let log_level = said(LOG_LEVEL_KEY).and_then(Value::as_str).and_then(LogLevel::from_word);
    Ok(Introduction { capabilities: Arc::new(capabilities.clone()), log_level })
}

impl Inner {
    /// What the server says it can do.
    pub(super) fn capabilities(&self, era: Era) -> Value {
        let mut can = Map::from_iter([("tools".to_owned(), json!({"listChanged": true}))]);
        if self.resources.is_some() {
            let (told, subscribe) = (self.watching() == Watching::Told, self.watching() != Watching::No);
            can.insert("resources".to_owned(), json!({"listChanged": told, "subscribe": subscribe}));
        }
        if self.prompts.is_some() {
            can.insert("prompts".to_owned(), json!({"listChanged": true}));
        }
        if self.completions.is_some() {
            can.insert("completions".to_owned(), json!({}));
        }
        if era.is_stateless() {
            if !self.task_support.is_empty() {
                can.insert("extensions".to_owned(), json!({TASKS_EXTENSION: {}}));
            }
        } else {
            can.insert("logging".to_owned(), json!({}));
        }
        can.into()
    }

    /// Answers a request to its end.
    pub(super) async fn answer(self: Arc<Self>, request: Request, method: String, params: Value) -> Outcome {
        let stateless = request.era.is_stateless();
        let outcome = match method.as_str() {
            "tools/call" => return call::answer(&self, request, params).await,
            "subscriptions/listen" if stateless => {
                let outcome = hub::listen(&self, &request, &params).await;
                return outcome.map(|outcome| outcome.map(|result| self.finish(result, request.era)));
            }
            "prompts/get" if self.prompts.is_some() => return self.get_prompt(&request, &params).await,
            "resources/read" if self.resources.is_some() => {
                return self.read_resource(&request, &params).await;
            }
            "tools/list" => match self.refreshed_tools().await {
                Ok(tools) => self.page("tools", tools.as_slice(), ToolDefinition::of, &params, stateless),
                Err(error) => Err(error),
            },
            "prompts/list" => match &self.prompts {
                Some(prompts) => self.page("prompts", &prompts.list(), Clone::clone, &params, stateless),
                None => Err(no_method(&method)),
            },
            "resources/list" => match &self.resources {
                Some(known) => {
                    // Looking through folders may take a while.
                    let known = known.clone();
                    let listed = tokio::task::spawn_blocking(move || known.list()).await.unwrap_or_default();
                    self.page("resources", &listed, Clone::clone, &params, stateless)
                }
                None => Err(no_method(&method)),
            },
            "resources/templates/list" => match &self.resources {
                Some(known) => {
                    self.page("resourceTemplates", &known.templates(), Clone::clone, &params, stateless)
                }
                None => Err(no_method(&method)),
            },
            "completion/complete" => self.complete(&params).await,
            "server/discover" if stateless => Ok(self.discover()),
            "tasks/get" | "tasks/update" | "tasks/cancel" if stateless && !self.task_support.is_empty() => {
                self.tasks.answer(&request, &method, &params)
            }
            _ if !stateless => self.answer_in_session(&request, &method, &params),
            _ => Err(no_method(&method)),
        };
        Some(outcome.map(|result| self.finish(result, request.era)))
    }

    /// The methods that only sessions have.
    fn answer_in_session(&self, request: &Request, method: &str, params: &Value) -> Result<Value, RpcError> {
        let session = request.session.as_ref().ok_or_else(|| no_method(method))?;
        let uri = || {
            let uri = params.get("uri").and_then(Value::as_str);
            uri.ok_or_else(|| RpcError::new(INVALID_PARAMS, "`uri` is missing"))
        };
        match method {
            "ping" => {}
            "logging/setLevel" => {
                let word = params.get("level").and_then(Value::as_str);
                let level = word.and_then(LogLevel::from_word);
                let unknown = || RpcError::new(INVALID_PARAMS, "`level` is not one of the protocol's words");
                session.set_log_level(level.ok_or_else(unknown)?);
            }
            "resources/subscribe" if self.watching() != Watching::No => session.watch(self, uri()?)?,
            "resources/unsubscribe" if self.watching() != Watching::No => session.unwatch(uri()?),
            _ => return Err(no_method(method)),
        }
        Ok(json!({}))
    }

    fn discover(&self) -> Value {
        let versions = [STATELESS_VERSION].into_iter().chain(SESSION_VERSIONS.into_iter().rev());
        let mut result = json!({
            "supportedVersions": versions.collect::<Vec<_>>(),
            "capabilities": self.capabilities(Era::STATELESS),
            "ttlMs": 0,
            "cacheScope": "private"
        });
        if let (Value::Object(members), Some(text)) = (&mut result, &self.instructions) {
            members.insert("instructions".to_owned(), json!(text));
        }
        result
    }

    /// One page of a list.
    fn page<T, W: Serialize>(
        &self,
        key: &str,
        items: &[T],
        to_wire: impl Fn(&T) -> W,
        params: &Value,
        stateless: bool,
    ) -> Result<Value, RpcError> {
        let start = match params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix("from-")?.parse::<usize>().ok())
                .ok_or_else(|| RpcError::new(INVALID_PARAMS, "the cursor is not one of ours"))?,
        };
        if start > items.len() {
            return Err(RpcError::new(INVALID_PARAMS, "the cursor is past the end"));
        }
        let end = (start + self.page_size).min(items.len());
        let page: Vec<W> = items.get(start..end).unwrap_or_default().iter().map(to_wire).collect();
        let mut result = json!({key: page});
        if let Value::Object(members) = &mut result {
            if end < items.len() {
                members.insert("nextCursor".to_owned(), json!(format!("from-{end}")));
            }
            if stateless {
                not_cached(members);
            }
        }
        Ok(result)
    }

    async fn get_prompt(&self, request: &Request, params: &Value) -> Outcome {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let what = ("prompts/get", name, &arguments);
        let work = async {
            let prompts = self.prompts.as_ref().ok_or_else(|| no_method("prompts/get"))?;
            let unknown =
                || RpcError::new(INVALID_PARAMS, format!("there is no prompt `{}`", text::clip(name, 200)));
            let known = prompts.list().into_iter().find(|prompt| prompt.name == name).ok_or_else(unknown)?;
            let Value::Object(given) = &arguments else {
                return Err(RpcError::new(INVALID_PARAMS, "`arguments` must be an object"));
            };
            let missing =
                known.arguments.iter().find(|wanted| wanted.required && !given.contains_key(&wanted.name));
            if let Some(missing) = missing {
                let message = format!("the prompt `{name}` needs the argument `{}`", missing.name);
                return Err(RpcError::new(INVALID_PARAMS, message));
            }
            let peer = Peer::new(request.clone(), Rounds::open(&self.state_key, request, what, params)?);
            let outcome = prompts.get(&peer, name, given).await;
            if let Some(instead) = peer.instead(&self.state_key, what) {
                return instead;
            }
            let result = outcome.map_err(|error| self.failed("the prompt", &error))?;
            Ok(result.ok_or_else(unknown)?.to_wire())
        };
        self.unless_cancelled(request, work).await
    }

    async fn read_resource(&self, request: &Request, params: &Value) -> Outcome {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let what = ("resources/read", uri, &Value::Null);
        let work = async {
            let resources = self.resources.as_ref().ok_or_else(|| no_method("resources/read"))?;
            let peer = Peer::new(request.clone(), Rounds::open(&self.state_key, request, what, params)?);
            let outcome = resources.read(&peer, uri).await;
            if let Some(instead) = peer.instead(&self.state_key, what) {
                return instead;
            }
            let contents = outcome.map_err(|error| self.failed("the resource", &error))?;
            let Some(contents) = contents.filter(|contents| !contents.is_empty()) else {
                let code = if request.era.is_stateless() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
                let mut error = RpcError::new(code, "there is no such resource");
                error.data = Some(json!({"uri": text::clip(uri, 2000)}));
                return Err(error);
            };
            let mut result = Map::from_iter([("contents".to_owned(), json!(contents))]);
            if request.era.is_stateless() {
                not_cached(&mut result);
            }
            Ok(result.into())
        };
        self.unless_cancelled(request, work).await
    }

    async fn complete(&self, params: &Value) -> Result<Value, RpcError> {
        let completions = self.completions.as_ref().ok_or_else(|| no_method("completion/complete"))?;
        let said = |path: &str| params.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let is_prompt = said("/ref/type").as_deref() == Some("ref/prompt");
        let of = said(if is_prompt { "/ref/name" } else { "/ref/uri" });
        let (Some(of), Some(argument)) = (of, said("/argument/name")) else {
            return Err(RpcError::new(INVALID_PARAMS, "`ref` and `argument` say what a value is wanted for"));
        };
        let value = said("/argument/value").unwrap_or_default();
        let request = CompletionRequest { of, is_prompt, argument, value };
        let mut values =
            completions.complete(&request).await.map_err(|error| self.failed("the completion", &error))?;
        let total = values.len();
        values.truncate(MAX_COMPLETIONS);
        Ok(json!({"completion": {"values": values, "total": total, "hasMore": total > MAX_COMPLETIONS}}))
    }

    async fn unless_cancelled(
        &self,
        request: &Request,
        work: impl Future<Output = Result<Value, RpcError>>,
    ) -> Outcome {
        tokio::select! {
            biased;
            outcome = work => Some(outcome.map(|result| self.finish(result, request.era))),
            () = request.cancel.cancelled() => None,
        }
    }

    /// A tool's error says itself what a client may know; what is fatal is for the log only.
    pub(super) fn failed(&self, what: &str, error: &ToolError) -> RpcError {
        if error.kind() == ErrorKind::Fatal {
            self.log(&format!("{what} failed: {error}"));
            return RpcError::new(INTERNAL_ERROR, format!("{what} failed; the server's log says why"));
        }
        let code = match error.kind() {
            ErrorKind::Parsing => INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        RpcError::new(code, error.message())
    }

    /// What every result of the stateless revision says besides.
    pub(super) fn finish(&self, mut result: Value, era: Era) -> Value {
        if era.is_stateless()
            && let Value::Object(members) = &mut result
        {
            members.entry("resultType").or_insert_with(|| json!("complete"));
            if let Value::Object(meta) = members.entry("_meta").or_insert_with(|| json!({})) {
                meta.insert(SERVER_INFO_KEY.to_owned(), json!(self.info));
            }
        }
        result
    }
}

/// Lists and contents may differ from one client to the next and from one moment to the next.
fn not_cached(members: &mut Map<String, Value>) {
    members.insert("ttlMs".to_owned(), json!(0));
    members.insert("cacheScope".to_owned(), json!("private"));
}

fn no_method(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{}`", text::clip(method, 200)))
}
