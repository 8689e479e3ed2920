//! The handshake: which revision is used, and how the server describes itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolwright_core::{CancelToken, text};

use super::Client;
use super::calls::CallOrigin;
use super::requests::Ask;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{METHOD_NOT_FOUND, UNSUPPORTED_VERSION};
use crate::protocol::{
    ClientNotification, ClientRequest, DiscoverResult, Empty, Implementation, InitializeParams,
    InitializeResult, LATEST_SESSION_VERSION, ListenParams, SESSION_VERSIONS, STATELESS_VERSION,
    SubscriptionFilter, server_info,
};

/// How long the stream for what a server says unasked may take to open before the session goes on without
/// waiting.
const LISTEN_TIME: Duration = Duration::from_secs(2);

/// How long a server may take to answer whether it speaks the newest revision, before it is greeted in the
/// older way. Some do not answer at all what they do not know.
const DISCOVER_TIME: Duration = Duration::from_secs(10);

/// How long a server that refused the newer transport may take to show that it speaks the older one.
const STREAM_TIME: Duration = Duration::from_secs(10);

/// The first and the longest pause before it is opened again.
const LISTEN_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What was agreed with a server when the session began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionInfo {
    /// The revision in use.
    pub version: String,
    /// The name and version that the server gives itself.
    pub server: Implementation,
    /// The server's instructions for models.
    pub instructions: Option<String>,
    /// The server's capabilities.
    pub capabilities: Value,
}

impl Client {
    /// Begins the session. A process is asked in the older way first, which every server of that era answers;
    /// an address in the newer one, where a refusal costs one round trip and nothing else.
    pub(super) async fn handshake(mut self) -> Result<Client, McpError> {
        let newer_first = self.connection.link().is_some_and(|link| !link.is_legacy());
        let info = if newer_first {
            let (heard, time) = (self.connection.heard(), self.options.start_timeout);
            match self.discover((time / 2).min(DISCOVER_TIME)).await {
                Err(error) if error.supports(STATELESS_VERSION) => self.discover(time).await,
                // Servers that do not know the question refuse it, or answer it with anything at all.
                Err(error) if matches!(error.kind(), McpErrorKind::Refused | McpErrorKind::Protocol) => {
                    self.initialize_either_way().await
                }
                // An error of the server's own, a stream without an answer, or nothing.
                Err(error)
                    if error.kind() == McpErrorKind::Timeout
                        || error.kind() == McpErrorKind::Closed && self.connection.heard() != heard =>
                {
                    match self.initialize_either_way().await {
                        // It knows the newest revision only, and was busy.
                        Err(error) if is_newer(&error) => self.discover(time).await,
                        other => other,
                    }
                }
                other => other,
            }
        } else {
            match self.initialize().await {
                Err(error) if is_newer(&error) => self.discover(self.options.start_timeout).await,
                other => other,
            }
        };
        match info {
            Ok(info) => {
                self.info = info;
                self.listen().await;
                Ok(self)
            }
            Err(error) => {
                self.connection.close(error.clone());
                self.gone.cancelled().await;
                let kind = match error.kind() {
                    McpErrorKind::Unauthorized => McpErrorKind::Unauthorized,
                    _ => McpErrorKind::Start,
                };
                Err(McpError::new(kind, format!("the server did not start: {error}")))
            }
        }
    }

    fn set_version(&self, version: Option<&str>) {
        if let Some(link) = self.connection.link() {
            link.set_version(version);
        }
    }

    async fn initialize(&self) -> Result<SessionInfo, McpError> {
        self.set_version(None);
        let request = ClientRequest::Initialize(InitializeParams {
            protocol_version: LATEST_SESSION_VERSION.to_owned(),
            capabilities: self.connection.questions.capabilities(None),
            client_info: self.options.client_info.clone(),
        });
        let ask = Ask::new(&request, self.options.start_timeout);
        let info = read_initialize(self.connection.request(ask).await?)?;
        self.set_version(Some(&info.version));
        self.connection.notify(&ClientNotification::Initialized(serde_json::Map::new()));
        Ok(info)
    }

    /// Begins a session at an address. One that takes no messages may be that of the stream of a server of
    /// 2024-11-05, as the protocol's rules for older servers say.
    async fn initialize_either_way(&self) -> Result<SessionInfo, McpError> {
        let refused = match self.initialize().await {
            // It was refused by the status alone.
            Err(error) if error.kind() == McpErrorKind::Refused && error.code().is_none() => error,
            other => return other,
        };
        let Some(link) = self.connection.link() else { return Err(refused) };
        let time = self.options.start_timeout.min(STREAM_TIME);
        match link.open_legacy(&self.connection, time).await {
            Ok(()) => self.initialize().await,
            Err(_) => Err(refused),
        }
    }

    async fn discover(&self, time: Duration) -> Result<SessionInfo, McpError> {
        self.set_version(Some(STATELESS_VERSION));
        let request = ClientRequest::Discover(Empty {});
        let meta = self.introduction(&CallOrigin::default());
        read_discover(self.connection.request(Ask { meta, ..Ask::new(&request, time) }).await?)
    }

    /// Listens for notifications, where that needs a stream of its own.
    async fn listen(&self) {
        let changes = self.info.capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true));
        if !self.is_stateless() {
            if let Some(link) = self.connection.link().filter(|link| !link.is_legacy()) {
                let opened = CancelToken::new();
                tokio::spawn(link.clone().listen(Arc::downgrade(&self.connection), opened.clone()));
                let _ = tokio::time::timeout(LISTEN_TIME, opened.cancelled()).await;
            }
            return;
        }
        if !changes {
            return;
        }
        let notifications = SubscriptionFilter { tools_list_changed: true, ..SubscriptionFilter::default() };
        let request = ClientRequest::Listen(ListenParams { notifications });
        let meta = self.introduction(&CallOrigin::default());
        let (weak, closed) = (Arc::downgrade(&self.connection), self.connection.closed().clone());
        tokio::spawn(async move {
            // It is answered when the server ends it; nobody minds when it does not know it.
            let forever = Duration::from_secs(365 * 24 * 3600);
            let mut pause = LISTEN_PAUSE;
            loop {
                let Some(connection) = weak.upgrade() else { return };
                let since = Instant::now();
                let ask = Ask { meta: meta.clone(), ..Ask::new(&request, forever) };
                let ended = tokio::select! {
                    ended = connection.request(ask) => ended,
                    () = closed.cancelled() => return,
                };
                if ended.is_err_and(|error| error.kind() != McpErrorKind::Closed) {
                    return;
                }
                // A stream that breaks off is begun again. Nobody knows what changed in between.
                drop(connection);
                pause = if since.elapsed() > LONGEST_PAUSE { LISTEN_PAUSE } else { pause };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = closed.cancelled() => return,
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                if let Some(connection) = weak.upgrade() {
                    connection.tools_may_differ();
                }
            }
        });
    }
}

/// Whether a server refused `initialize` because it is of the era after it.
fn is_newer(error: &McpError) -> bool {
    matches!(error.code(), Some(METHOD_NOT_FOUND | UNSUPPORTED_VERSION))
}

fn read_initialize(answer: Value) -> Result<SessionInfo, McpError> {
    let answer: InitializeResult<Value> = serde_json::from_value(answer).map_err(|error| {
        McpError::new(McpErrorKind::Protocol, format!("its answer to `initialize` is malformed: {error}"))
    })?;
    if !SESSION_VERSIONS.contains(&answer.protocol_version.as_str()) {
        let version = text::clip(&answer.protocol_version, 100);
        return Err(McpError::new(
            McpErrorKind::Protocol,
            format!("it supports protocol version `{version}` only"),
        ));
    }
    Ok(SessionInfo {
        version: answer.protocol_version,
        server: answer.server_info,
        instructions: answer.instructions,
        capabilities: answer.capabilities,
    })
}

fn read_discover(answer: Value) -> Result<SessionInfo, McpError> {
    let server = server_info(&answer);
    let answer: DiscoverResult<Value> = serde_json::from_value(answer).map_err(|error| {
        McpError::new(
            McpErrorKind::Protocol,
            format!("its answer to `server/discover` is malformed: {error}"),
        )
    })?;
    if !answer.supported_versions.iter().any(|version| version == STATELESS_VERSION) {
        let versions = text::clip(&answer.supported_versions.join(", "), 200);
        return Err(McpError::new(
            McpErrorKind::Protocol,
            format!("it supports protocol versions {versions} only"),
        ));
    }
    Ok(SessionInfo {
        version: STATELESS_VERSION.to_owned(),
        server: server.unwrap_or_default(),
        instructions: answer.instructions,
        capabilities: answer.capabilities,
    })
}
