//! One request with its surroundings: era, client, and the way back.

use std::sync::Arc;

use toolwright_core::CancelToken;

use super::readers::Readers;
use super::session::Session;
use crate::jsonrpc::{self, Id};
use crate::protocol::{
    ClientCapabilities, LogLevel, ProgressToken, STATELESS_VERSION, ServerNotification, TASKS_EXTENSION,
};

/// The revision in which a request is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Era {
    pub(super) version: &'static str,
}

impl Era {
    pub(super) const STATELESS: Era = Era { version: STATELESS_VERSION };

    pub(super) fn is_stateless(self) -> bool {
        self.version == STATELESS_VERSION
    }
}

/// One request, and everything beside its parameters that is needed to answer it.
#[derive(Clone)]
pub(super) struct IncomingRequest {
    pub(super) id: Id,
    pub(super) era: Era,
    /// The abilities that the client names.
    pub(super) capabilities: Arc<ClientCapabilities>,
    /// The least severe log messages to send; `None` sends no log messages.
    pub(super) log_level: Option<LogLevel>,
    /// Names the request in progress notifications; `None` when the client does not want any.
    pub(super) progress_token: Option<ProgressToken>,
    /// The session, in the era that has them.
    pub(super) session: Option<Arc<Session>>,
    /// Where messages that belong to this request go.
    pub(super) sender: ClientSender,
    /// Fires when nobody waits for the answer any more.
    pub(super) cancel: CancelToken,
    /// The client's identity, as far as it was established: state made for one client is of no use to
    /// another.
    pub(super) subject: Arc<str>,
}

impl IncomingRequest {
    /// True when the client can answer questions about tasks (the tasks extension).
    pub(super) fn knows_tasks(&self) -> bool {
        self.capabilities.extensions.contains_key(TASKS_EXTENSION)
    }
}

/// Sends messages to a client.
#[derive(Clone)]
pub(super) struct ClientSender {
    pub(super) messages: tokio::sync::mpsc::Sender<Vec<u8>>,
    /// Fires when the stream is to be closed early; the client comes back for the rest. Pipes have no such
    /// thing.
    pub(super) hang_up: CancelToken,
    audience: Audience,
}

/// The reader of messages that are sent before the answer.
#[derive(Clone)]
pub(super) enum Audience {
    /// The other end of the connection.
    Connected,
    /// A client that may lose the stream, and come back for it.
    Returning(Readers),
    /// Nobody: the client takes the answer, and nothing else.
    Nobody,
}

impl ClientSender {
    pub(super) fn new(messages: tokio::sync::mpsc::Sender<Vec<u8>>, audience: Audience) -> Self {
        ClientSender { messages, hang_up: CancelToken::new(), audience }
    }

    /// False when a question would reach nobody.
    pub(super) fn takes_questions(&self) -> bool {
        !matches!(self.audience, Audience::Nobody)
    }

    /// Waits until nobody reads any more, nor will.
    pub(super) async fn abandoned(&self) {
        match &self.audience {
            Audience::Connected | Audience::Nobody => self.messages.closed().await,
            Audience::Returning(readers) => tokio::select! {
                () = self.messages.closed() => {}
                () = readers.gone() => {}
            },
        }
    }

    /// Sends a notification, unless the client does not read: then it is dropped.
    pub(super) fn try_notify(&self, notification: &ServerNotification) -> bool {
        let line = jsonrpc::notification(notification.method(), notification);
        self.messages.try_send(line).is_ok()
    }
}
