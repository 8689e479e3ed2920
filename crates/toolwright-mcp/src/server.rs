//! The server: offers the tools of a run to one client, over any two streams.
//!
//! Every call goes through [`Dispatch`], so it is validated, approved, bounded and recorded like a model's. Both eras
//! are spoken on one connection: a request that carries its revision in `_meta` is answered without a session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use toolwright_core::{CallNote, CancelToken, Dispatch, ToolCall, ToolError, ToolSpec, Watch, text};

use crate::bridge;
use crate::client::OnLog;
use crate::jsonrpc::{
    self, BUSY, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, METHOD_NOT_FOUND, Message, PARSE_ERROR,
    RpcError, UNSUPPORTED_VERSION,
};
use crate::protocol::{
    CLIENT_CAPABILITIES_KEY, Implementation, LATEST_SESSION_VERSION, SERVER_INFO_KEY, SESSION_VERSIONS,
    STATELESS_VERSION, ToolDefinition, VERSION_KEY,
};
use crate::transport::lines::{Line, LineReader, write_lines};

/// How long a cancelled call may take to clean up.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// Offers the tools of a run to MCP clients. Cloning is cheap; each connection is served on its own.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    dispatch: Arc<dyn Dispatch>,
    info: Implementation,
    instructions: Option<String>,
    page_size: usize,
    max_calls: usize,
    drain: Duration,
    on_log: Option<OnLog>,
    tools: Arc<RwLock<Arc<Vec<ToolSpec>>>>,
}

impl Server {
    /// Offers the tools behind this door.
    pub fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        let tools = Arc::new(RwLock::new(Arc::new(dispatch.specs())));
        Server {
            inner: Arc::new(Inner {
                dispatch,
                info: Implementation::ours(),
                instructions: None,
                page_size: 250,
                max_calls: 1024,
                drain: Duration::from_secs(10),
                on_log: None,
                tools,
            }),
        }
    }

    /// What the server calls itself.
    #[must_use]
    pub fn info(mut self, info: Implementation) -> Self {
        Arc::make_mut(&mut self.inner).info = info;
        self
    }

    /// What the server says about how to use it.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.inner).instructions = Some(text.into());
        self
    }

    /// How many tools one page of the list holds.
    #[must_use]
    pub fn page_size(mut self, tools: usize) -> Self {
        Arc::make_mut(&mut self.inner).page_size = tools.max(1);
        self
    }

    /// How many calls of one client may run at once.
    #[must_use]
    pub fn max_calls(mut self, calls: usize) -> Self {
        Arc::make_mut(&mut self.inner).max_calls = calls;
        self
    }

    /// How long calls may go on after the client closed its side.
    #[must_use]
    pub fn drain(mut self, time: Duration) -> Self {
        Arc::make_mut(&mut self.inner).drain = time;
        self
    }

    /// Is told what went wrong inside, which clients are not.
    #[must_use]
    pub fn on_log(mut self, on_log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.inner).on_log = Some(Arc::new(on_log));
        self
    }

    /// Serves one client over this process's standard streams until it closes its side. Nothing else may write to
    /// stdout meanwhile.
    pub async fn serve_stdio(&self) -> std::io::Result<()> {
        self.serve(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves one client until it closes its side; calls that are under way then are finished first.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        let (out, lines) = mpsc::channel(256);
        let mut writer = tokio::spawn(write_lines(lines, output));
        let session = Arc::new(Session {
            server: self.inner.clone(),
            out,
            version: Mutex::new(None),
            calls: Mutex::default(),
            ended: CancelToken::new(),
            next_call: AtomicU64::new(1),
        });
        let _end = session.ended.clone().drop_guard();
        let reading = session.read_all(input);
        let read = tokio::select! {
            read = reading => read,
            // The client no longer reads, so nobody waits for the calls either.
            written = &mut writer => return written.unwrap_or(Ok(())),
        };
        let drained = tokio::time::timeout(self.inner.drain, session.idle()).await;
        if drained.is_err() {
            session.ended.cancel();
            let _ = tokio::time::timeout(CANCEL_GRACE * 2, session.idle()).await;
        }
        drop(session);
        let _ = tokio::time::timeout(self.inner.drain, &mut writer).await;
        writer.abort();
        read
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("info", &self.inner.info).finish_non_exhaustive()
    }
}

impl Inner {
    fn refreshed_tools(&self) -> Arc<Vec<ToolSpec>> {
        let tools = Arc::new(self.dispatch.specs());
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools.clone();
        tools
    }

    /// The tool of that name. The list is looked at again before a name is called unknown.
    fn tool(&self, name: &str) -> Option<(Arc<Vec<ToolSpec>>, usize)> {
        let known = self.tools.read().unwrap_or_else(PoisonError::into_inner).clone();
        let place = |tools: &[ToolSpec]| tools.iter().position(|spec| *spec.name == *name);
        if let Some(at) = place(&known) {
            return Some((known, at));
        }
        let fresh = self.refreshed_tools();
        place(&fresh).map(|at| (fresh, at))
    }

    fn log(&self, text: &str) {
        if let Some(on_log) = &self.on_log {
            on_log(text);
        }
    }
}

/// One client.
struct Session {
    server: Arc<Inner>,
    out: mpsc::Sender<Vec<u8>>,
    /// The revision agreed on in `initialize`.
    version: Mutex<Option<&'static str>>,
    /// The calls under way, so that each can be cancelled.
    calls: Mutex<HashMap<Id, CancelToken>>,
    /// Fires when the client is gone.
    ended: CancelToken,
    next_call: AtomicU64,
}

/// How one request is to be answered.
#[derive(Clone, Copy, PartialEq)]
struct Era {
    version: &'static str,
}

impl Era {
    const STATELESS: Era = Era { version: STATELESS_VERSION };

    fn is_stateless(self) -> bool {
        self.version == STATELESS_VERSION
    }
}

impl Session {
    async fn read_all(self: &Arc<Self>, input: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let mut lines = LineReader::new(input, jsonrpc::MAX_MESSAGE_BYTES);
        loop {
            let reply = match lines.next().await? {
                Line::End => return Ok(()),
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => None,
                Line::Whole(line) => match jsonrpc::parse(line) {
                    Ok(message) => self.take(message),
                    Err(malformed) => {
                        let error = RpcError::new(malformed.code, malformed.problem);
                        Some(jsonrpc::response(malformed.id.as_ref(), Err(error)))
                    }
                },
                Line::TooLong => {
                    let most = jsonrpc::MAX_MESSAGE_BYTES;
                    let error = RpcError::new(PARSE_ERROR, format!("a message has at most {most} bytes"));
                    Some(jsonrpc::response(None, Err(error)))
                }
            };
            if let Some(reply) = reply
                && self.out.send(reply).await.is_err()
            {
                return Ok(());
            }
        }
    }

    /// Deals with one message; calls go on by themselves, everything else is answered at once.
    fn take(self: &Arc<Self>, message: Message) -> Option<Vec<u8>> {
        match message {
            Message::Request { id, method, params } => {
                let outcome = match self.era(&method, &params) {
                    Ok(era) if method == "tools/call" => match self.begin_call(&id, params, era) {
                        Ok(()) => return None,
                        Err(error) => Err(error),
                    },
                    Ok(era) => self.answer(&method, &params, era).map(|result| self.finish(result, era)),
                    Err(error) => Err(error),
                };
                Some(jsonrpc::response(Some(&id), outcome))
            }
            Message::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    let id = params.get("requestId").and_then(|id| serde_json::from_value(id.clone()).ok());
                    let call = id.and_then(|id: Id| self.calls().get(&id).cloned());
                    if let Some(call) = call {
                        call.cancel();
                    }
                }
                None
            }
            // We ask nothing, so nothing can be an answer.
            Message::Response { .. } => None,
        }
    }

    /// Which revision a request is made in.
    fn era(&self, method: &str, params: &Value) -> Result<Era, RpcError> {
        let meta = params.get("_meta");
        if method == "initialize" {
            return Ok(Era { version: LATEST_SESSION_VERSION });
        }
        if let Some(version) = meta.and_then(|meta| meta.get(VERSION_KEY)) {
            if version.as_str() != Some(STATELESS_VERSION) {
                let mut error = RpcError::new(UNSUPPORTED_VERSION, "this revision is not spoken here");
                error.data = Some(json!({"supported": [STATELESS_VERSION], "requested": version}));
                return Err(error);
            }
            let said = meta.and_then(|meta| meta.get(CLIENT_CAPABILITIES_KEY));
            if !said.is_some_and(Value::is_object) {
                let message = format!("`_meta` needs `{CLIENT_CAPABILITIES_KEY}`, an object");
                return Err(RpcError::new(INVALID_PARAMS, message));
            }
            return Ok(Era::STATELESS);
        }
        match *self.version.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(version) => Ok(Era { version }),
            None if method == "ping" => Ok(Era { version: LATEST_SESSION_VERSION }),
            None => Err(RpcError::new(INVALID_REQUEST, "the session begins with `initialize`")),
        }
    }

    fn answer(&self, method: &str, params: &Value, era: Era) -> Result<Value, RpcError> {
        match method {
            "initialize" => self.initialize(params),
            "ping" => Ok(json!({})),
            "tools/list" => self.list(params, era),
            "server/discover" if era.is_stateless() => {
                let versions = [STATELESS_VERSION].into_iter().chain(SESSION_VERSIONS.into_iter().rev());
                let mut result = json!({
                    "supportedVersions": versions.collect::<Vec<_>>(),
                    "capabilities": {"tools": {}},
                    "ttlMs": 0,
                    "cacheScope": "private"
                });
                if let (Value::Object(members), Some(text)) = (&mut result, &self.server.instructions) {
                    members.insert("instructions".to_owned(), json!(text));
                }
                Ok(result)
            }
            _ => {
                let method = text::clip(method, 200);
                Err(RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{method}`")))
            }
        }
    }

    fn initialize(&self, params: &Value) -> Result<Value, RpcError> {
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(RpcError::new(INVALID_PARAMS, "`protocolVersion` is missing"));
        };
        let version =
            SESSION_VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(LATEST_SESSION_VERSION);
        let mut agreed = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        if agreed.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "the session has begun already"));
        }
        *agreed = Some(version);
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": self.server.info
        });
        if let (Value::Object(members), Some(text)) = (&mut result, &self.server.instructions) {
            members.insert("instructions".to_owned(), json!(text));
        }
        Ok(result)
    }

    fn list(&self, params: &Value, era: Era) -> Result<Value, RpcError> {
        let start = match params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix("from-")?.parse::<usize>().ok())
                .ok_or_else(|| RpcError::new(INVALID_PARAMS, "the cursor is not one of ours"))?,
        };
        let tools = self.server.refreshed_tools();
        if start > tools.len() {
            return Err(RpcError::new(INVALID_PARAMS, "the cursor is past the end"));
        }
        let end = (start + self.server.page_size).min(tools.len());
        let page = tools.get(start..end).unwrap_or_default();
        let page: Vec<ToolDefinition> = page.iter().map(ToolDefinition::of).collect();
        let mut result = json!({"tools": page});
        if let Value::Object(members) = &mut result {
            if end < tools.len() {
                members.insert("nextCursor".to_owned(), json!(format!("from-{end}")));
            }
            if era.is_stateless() {
                members.insert("ttlMs".to_owned(), json!(0));
                members.insert("cacheScope".to_owned(), json!("private"));
            }
        }
        Ok(result)
    }

    /// What every result of the stateless revision says besides.
    fn finish(&self, mut result: Value, era: Era) -> Value {
        if era.is_stateless()
            && let Value::Object(members) = &mut result
        {
            members.insert("resultType".to_owned(), json!("complete"));
            if let Value::Object(meta) = members.entry("_meta").or_insert_with(|| json!({})) {
                meta.insert(SERVER_INFO_KEY.to_owned(), json!(self.server.info));
            }
        }
        result
    }

    /// Checks a call and lets it run by itself.
    fn begin_call(self: &Arc<Self>, id: &Id, mut params: Value, era: Era) -> Result<(), RpcError> {
        let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let name = params.get("name").and_then(Value::as_str).ok_or_else(|| invalid("`name` is missing"))?;
        let Some((tools, at)) = self.server.tool(name) else {
            return Err(invalid(&format!("there is no tool `{}`", text::clip(name, 200))));
        };
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        let token = token.filter(|token| token.is_string() || token.is_number());
        let arguments = match params.get_mut("arguments").map(Value::take) {
            None | Some(Value::Null) => json!({}),
            Some(arguments @ Value::Object(_)) => arguments,
            Some(_) => return Err(invalid("`arguments` must be an object")),
        };
        let cancel = {
            let mut calls = self.calls();
            if calls.contains_key(id) {
                return Err(RpcError::new(INVALID_REQUEST, "a call with this id is under way"));
            }
            if calls.len() >= self.server.max_calls {
                let most = self.server.max_calls;
                return Err(RpcError::new(BUSY, format!("at most {most} calls may run at once")));
            }
            let cancel = self.ended.child_token();
            calls.insert(id.clone(), cancel.clone());
            cancel
        };
        let Some(spec) = tools.get(at) else { return Err(invalid("the tool is gone")) };
        let call_id = format!("mcp-{}", self.next_call.fetch_add(1, Ordering::Relaxed));
        let call = ToolCall::new(call_id, spec.name.clone(), arguments);
        let (session, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            let _under_way = UnderWay { session: &session, id: &id };
            let outcome = session.run_call(call, token, &cancel).await;
            // Who cancelled a call wants no answer to it.
            let Some(outcome) = outcome else { return };
            let answer = match (outcome, tools.get(at)) {
                (Ok(result), Some(spec)) => {
                    let mut answer = bridge::write_result(result, spec);
                    downgrade(&mut answer, era);
                    Ok(session.finish(answer, era))
                }
                (Ok(_), None) => Err(RpcError::new(INTERNAL_ERROR, "the tool is gone")),
                (Err(error), _) => {
                    session.server.log(&format!("the call failed: {error}"));
                    Err(RpcError::new(INTERNAL_ERROR, "the tool could not be run; the server's log says why"))
                }
            };
            let mut line = jsonrpc::response(Some(&id), answer);
            if line.len() > jsonrpc::MAX_MESSAGE_BYTES {
                let most = jsonrpc::MAX_MESSAGE_BYTES;
                let error = RpcError::new(INTERNAL_ERROR, format!("the result is larger than {most} bytes"));
                line = jsonrpc::response(Some(&id), Err(error));
            }
            let _ = session.out.send(line).await;
        });
        Ok(())
    }

    /// Runs a call to its end; `None` when it was cancelled.
    async fn run_call(
        &self,
        call: ToolCall,
        token: Option<Value>,
        cancel: &CancelToken,
    ) -> Option<Result<toolwright_core::ToolResult, ToolError>> {
        let dispatch = &self.server.dispatch;
        let call_id = call.id.clone();
        let mut work = match token {
            Some(token) => dispatch.dispatch_watched(call, self.progress(token)),
            None => dispatch.dispatch(call),
        };
        tokio::select! {
            biased;
            outcome = &mut work => Some(outcome),
            () = cancel.cancelled() => {
                dispatch.cancel(&call_id);
                let _ = tokio::time::timeout(CANCEL_GRACE, work).await;
                None
            }
        }
    }

    /// Sends on how far a call has come. Progress grows, or is not sent; nor is it when the client does not read.
    fn progress(&self, token: Value) -> Watch {
        let out = self.out.clone();
        let last = Mutex::new(f64::NEG_INFINITY);
        Arc::new(move |note| {
            let CallNote::Progress { done, total, message } = note else { return };
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if *done <= *last || !done.is_finite() {
                return;
            }
            *last = *done;
            let mut params = json!({"progressToken": token, "progress": done});
            if let Value::Object(members) = &mut params {
                members.extend(total.map(|total| ("total".to_owned(), json!(total))));
                members.extend(message.as_ref().map(|text| ("message".to_owned(), json!(text))));
            }
            let _ = out.try_send(jsonrpc::notification("notifications/progress", params));
        })
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Id, CancelToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no call is under way.
    async fn idle(&self) {
        while !self.calls().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Keeps a call in the list until its answer is on its way.
struct UnderWay<'a> {
    session: &'a Session,
    id: &'a Id,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.session.calls().remove(self.id);
    }
}

/// Says in the words of an older revision what it has no word for.
fn downgrade(answer: &mut Value, era: Era) {
    let (no_links, no_sounds) = (era.version < "2025-06-18", era.version < "2025-03-26");
    if !no_links {
        return;
    }
    let Value::Object(members) = answer else { return };
    members.shift_remove("structuredContent");
    let Some(Value::Array(blocks)) = members.get_mut("content") else { return };
    for block in blocks {
        let member = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let older = match member("type") {
            "resource_link" => Some(json!({
                "type": "text", "text": format!("{}: {}", member("name"), member("uri"))
            })),
            "audio" if no_sounds => Some(json!({"type": "resource", "resource": {
                "uri": "toolwright:///audio", "mimeType": member("mimeType"), "blob": member("data")
            }})),
            _ => None,
        };
        if let Some(older) = older {
            *block = older;
        }
    }
}
