//! One client in the era of sessions: what was agreed on, what is under way, and what the server asked it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolwright_core::CancelToken;

use super::watch::Watch;
use super::{Inner, LogLevel, Outlet};
use crate::jsonrpc::{self, INVALID_PARAMS, INVALID_REQUEST, Id, RpcError};
use crate::protocol::{LATEST_SESSION_VERSION, SESSION_VERSIONS};

/// How many resources one client may watch.
const MAX_SUBSCRIPTIONS: usize = 1000;

/// The most a client may say about what it can do: it is kept as long as the session.
const MAX_CAPABILITIES: usize = 64 * 1024;

pub(super) struct Session {
    agreed: OnceLock<Agreed>,
    /// The requests under way, so that each can be cancelled.
    calls: Mutex<HashMap<Id, CancelToken>>,
    /// Fires when the client is gone.
    pub(super) ended: CancelToken,
    /// Fires when the client can answer nothing any more: it closed its side, or is gone.
    pub(super) silent: CancelToken,
    asked: Mutex<HashMap<i64, oneshot::Sender<Result<Value, RpcError>>>>,
    next_question: AtomicI64,
    log_level: AtomicU8,
    watched: Mutex<HashMap<String, Watch>>,
}

/// What `initialize` settled.
pub(super) struct Agreed {
    pub(super) version: &'static str,
    pub(super) capabilities: Arc<Value>,
}

impl Session {
    pub(super) fn new() -> Self {
        let ended = CancelToken::new();
        Session {
            agreed: OnceLock::new(),
            calls: Mutex::default(),
            silent: ended.child_token(),
            ended,
            asked: Mutex::default(),
            next_question: AtomicI64::new(1),
            log_level: AtomicU8::new(LogLevel::Info as u8),
            watched: Mutex::default(),
        }
    }

    pub(super) fn agreed(&self) -> Option<&Agreed> {
        self.agreed.get()
    }

    /// Begins the session.
    pub(super) fn initialize(&self, server: &Inner, params: &Value) -> Result<Value, RpcError> {
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(RpcError::new(INVALID_PARAMS, "`protocolVersion` is missing"));
        };
        let version =
            SESSION_VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(LATEST_SESSION_VERSION);
        let capabilities = params.get("capabilities").filter(|said| said.is_object()).cloned();
        if capabilities.as_ref().is_some_and(|said| said.to_string().len() > MAX_CAPABILITIES) {
            let problem = format!("`capabilities` has more than {MAX_CAPABILITIES} bytes");
            return Err(RpcError::new(INVALID_PARAMS, problem));
        }
        let agreed = Agreed { version, capabilities: Arc::new(capabilities.unwrap_or_else(|| json!({}))) };
        if self.agreed.set(agreed).is_err() {
            return Err(RpcError::new(INVALID_REQUEST, "the session has begun already"));
        }
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": server.capabilities(super::Era { version }),
            "serverInfo": server.info
        });
        if let (Value::Object(members), Some(text)) = (&mut result, &server.instructions) {
            members.insert("instructions".to_owned(), json!(text));
        }
        Ok(result)
    }

    pub(super) fn log_level(&self) -> LogLevel {
        LogLevel::from_number(self.log_level.load(Ordering::Relaxed))
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Begins to watch a resource; an error when there are too many.
    pub(super) fn watch(&self, server: &Inner, uri: &str) -> Result<(), RpcError> {
        let mut watched = self.watched();
        if watched.contains_key(uri) {
            return Ok(());
        }
        if watched.len() >= MAX_SUBSCRIPTIONS {
            return Err(RpcError::new(
                INVALID_PARAMS,
                format!("at most {MAX_SUBSCRIPTIONS} resources can be watched"),
            ));
        }
        watched.insert(uri.to_owned(), server.watch(uri, false)?);
        Ok(())
    }

    pub(super) fn unwatch(&self, uri: &str) {
        self.watched().remove(uri);
    }

    pub(super) fn watches(&self, uri: &str) -> bool {
        self.watched().contains_key(uri)
    }

    /// Everything the client watches.
    pub(super) fn all_watched(&self) -> Vec<String> {
        self.watched().keys().cloned().collect()
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, Watch>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, HashMap<Id, CancelToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request on the list of those under way, for as long as the guard lives.
    pub(super) fn enter(self: &Arc<Self>, id: &Id, most: usize) -> Result<UnderWay, RpcError> {
        let mut calls = self.calls();
        if calls.contains_key(id) {
            return Err(RpcError::new(INVALID_REQUEST, "a request with this id is under way"));
        }
        if calls.len() >= most {
            return Err(RpcError::new(jsonrpc::BUSY, format!("at most {most} calls may run at once")));
        }
        let cancel = self.ended.child_token();
        calls.insert(id.clone(), cancel.clone());
        Ok(UnderWay { session: self.clone(), id: id.clone(), cancel })
    }

    /// Takes what the client sends besides requests.
    pub(super) fn notified(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled" {
            let id = params.get("requestId").and_then(|id| serde_json::from_value(id.clone()).ok());
            let call = id.and_then(|id: Id| self.calls().get(&id).cloned());
            if let Some(call) = call {
                call.cancel();
            }
        }
    }

    /// Asks the client something, and waits for its answer as long as somebody reads the question: a person may think about
    /// it for hours, but a client that crashed would be waited for just as long.
    pub(super) async fn ask(
        &self,
        outlet: &Outlet,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, RpcError>, &'static str> {
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.asked().insert(id, reply);
        let _forget = Asked { session: self, id };
        let message = jsonrpc::request(&Id::Number(id), method, params);
        outlet.messages.send(message).await.map_err(|_| "the client has gone")?;
        tokio::select! {
            answer = answer => answer.map_err(|_| "the client has gone"),
            () = self.silent.cancelled() => Err("the client has gone"),
            () = outlet.abandoned() => Err("the client has gone"),
        }
    }

    /// Hands an answer of the client to who asked; an answer to nobody is dropped.
    pub(super) fn answered(&self, id: &Id, outcome: Result<Value, RpcError>) {
        let Id::Number(id) = id else { return };
        if let Some(waiting) = self.asked().remove(id) {
            let _ = waiting.send(outcome);
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, RpcError>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        while !self.calls().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

/// Keeps a request in the list until its answer is on its way.
pub(super) struct UnderWay {
    session: Arc<Session>,
    id: Id,
    pub(super) cancel: CancelToken,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.session.calls().remove(&self.id);
    }
}

struct Asked<'a> {
    session: &'a Session,
    id: i64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.session.asked().remove(&self.id);
    }
}
