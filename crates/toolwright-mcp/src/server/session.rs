//! One client in the era of sessions: the agreed revision, the requests under way, and the questions of the
//! server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use serde_json::Value;
use tokio::sync::oneshot;
use toolwright_core::{CancelToken, text};
use toolwright_util::lock;

use super::watch::Watch;
use super::{ClientSender, Inner};
use crate::jsonrpc::{self, INVALID_PARAMS, INVALID_REQUEST, Id, RpcError};
use crate::protocol::{
    ClientCapabilities, ClientNotification, InitializeParams, InitializeResult, LATEST_SESSION_VERSION,
    LogLevel, ResultBody, SESSION_VERSIONS, ServerRequest,
};

/// The longest name of a client that is kept.
const MAX_CLIENT_NAME: usize = 200;

/// How many resources one client may watch.
const MAX_SUBSCRIPTIONS: usize = 1000;

pub(super) struct Session {
    agreed: OnceLock<Agreed>,
    /// The requests under way, so that each can be cancelled.
    calls: Mutex<HashMap<Id, CancelToken>>,
    /// Fires when the client is gone.
    pub(super) ended: CancelToken,
    /// Fires when the client can no longer answer questions: it closed its side, or is gone.
    pub(super) silent: CancelToken,
    asked: Mutex<HashMap<i64, oneshot::Sender<Result<Value, RpcError>>>>,
    next_question: AtomicI64,
    log_level: AtomicU8,
    watched: Mutex<HashMap<String, Watch>>,
}

/// The outcome of `initialize`.
pub(super) struct Agreed {
    pub(super) version: &'static str,
    pub(super) capabilities: Arc<ClientCapabilities>,
    /// The name that the client gave itself.
    client: Box<str>,
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

    /// The name that the client gave itself; empty before `initialize`.
    pub(super) fn client(&self) -> &str {
        self.agreed().map_or("", |agreed| &agreed.client)
    }

    /// Begins the session, once.
    pub(super) fn initialize(&self, server: &Inner, params: Value) -> Result<ResultBody, RpcError> {
        let InitializeParams { protocol_version: wanted, capabilities, client_info } =
            InitializeParams::read(params)?;
        let version =
            SESSION_VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(LATEST_SESSION_VERSION);
        let client = text::clip(&client_info.name, MAX_CLIENT_NAME).into();
        if self.agreed.set(Agreed { version, capabilities: Arc::new(capabilities), client }).is_err() {
            return Err(RpcError::new(INVALID_REQUEST, "the session is already initialized"));
        }
        Ok(ResultBody::Initialize(InitializeResult {
            protocol_version: version.to_owned(),
            capabilities: server.capabilities(super::Era { version }),
            server_info: server.info.clone(),
            instructions: server.instructions.clone(),
        }))
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
        lock(&self.watched)
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, HashMap<Id, CancelToken>> {
        lock(&self.calls)
    }

    /// Registers a request as under way, for as long as the guard lives.
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

    /// Acts on a notification of the client.
    pub(super) fn notified(&self, notification: Option<ClientNotification>) {
        if let Some(ClientNotification::Cancelled(params)) = notification {
            let call = self.calls().get(&params.request_id).cloned();
            if let Some(call) = call {
                call.cancel();
            }
        }
    }

    /// Asks the client something, and waits for its answer as long as the question has a reader: a person may
    /// think about it for hours, but a client that crashed would be waited for just as long.
    pub(super) async fn ask(
        &self,
        sender: &ClientSender,
        question: &ServerRequest,
    ) -> Result<Result<Value, RpcError>, &'static str> {
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.asked().insert(id, reply);
        let _forget = OpenQuestion { session: self, id };
        let message = jsonrpc::request(&Id::Number(id), question.method(), &question.params());
        sender.messages.send(message).await.map_err(|_| "the client has gone")?;
        tokio::select! {
            answer = answer => answer.map_err(|_| "the client has gone"),
            () = self.silent.cancelled() => Err("the client has gone"),
            () = sender.abandoned() => Err("the client has gone"),
        }
    }

    /// Delivers an answer of the client; one to no open question is dropped.
    pub(super) fn answered(&self, id: &Id, outcome: Result<Value, RpcError>) {
        let Id::Number(id) = id else { return };
        if let Some(waiting) = self.asked().remove(id) {
            let _ = waiting.send(outcome);
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, RpcError>>>> {
        lock(&self.asked)
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

struct OpenQuestion<'a> {
    session: &'a Session,
    id: i64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.session.asked().remove(&self.id);
    }
}
