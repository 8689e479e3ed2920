//! Messages over HTTP: each is posted, and answered with JSON or with a stream of events.
//!
//! A stream that breaks off before the answer is taken up again where it stopped, when the server gave its
//! events ids. The older transport, with a single event stream, is supported too.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use toolwright_core::{CancelToken, Secret, text};
use toolwright_net::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolwright_net::reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use toolwright_net::{Dial, Proxies, Reach, SseEvent, SseReader};
use toolwright_util::lock;

use crate::client::connection::ServerConnection;
use crate::client::target::HttpTarget;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{self, MAX_MESSAGE_BYTES, METHOD_NOT_FOUND, SESSION_NOT_FOUND};
use crate::oauth::{Challenge, OAuth};
use crate::protocol::STATELESS_VERSION;
use crate::transport::secret_scrubber::SecretScrubber;

/// The longest id of a session, which goes back with every request.
const MAX_SESSION_ID: usize = 1024;

/// How often a stream is taken up again before it is given up.
const MAX_RESUMES: u32 = 5;

/// How often one message is sent again with another token.
const MAX_TOKENS: u32 = 3;

/// How long to wait before a stream is taken up again, when the server does not say.
const RESUME_PAUSE: Duration = Duration::from_millis(500);

/// The bounds of the pause that a server may ask for: it may neither cause a flood of requests nor keep us
/// away.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How many messages that expect no answer may be on their way at once: answers to what a server asks,
/// mostly. One that asks more than it takes answers for gets none.
const MAX_UNASKED: usize = 64;

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 * 1024;

/// A message on its way.
pub(crate) struct Outgoing {
    pub(crate) message: Vec<u8>,
    /// The id, when an answer is expected.
    pub(crate) id: Option<i64>,
    pub(crate) method: String,
    /// The value of `Mcp-Name`.
    pub(crate) name: Option<String>,
    /// Headers for arguments.
    pub(crate) headers: Vec<(String, String)>,
}

/// The connection to one server.
pub(crate) struct Link {
    client: Client,
    url: Url,
    headers: HeaderMap,
    oauth: Option<Arc<OAuth>>,
    /// Removes our secrets from what the server sends back.
    scrubber: SecretScrubber,
    learned: Mutex<Learned>,
    under_way: Mutex<HashMap<i64, AbortHandle>>,
    unasked: Arc<Semaphore>,
    /// Whether the older transport is spoken.
    legacy: AtomicBool,
}

/// What the server's answers have set.
#[derive(Default)]
struct Learned {
    version: Option<String>,
    session: Option<String>,
    /// Where messages go in the older transport.
    endpoint: Option<Url>,
}

impl Link {
    pub(crate) fn new(target: &HttpTarget) -> Result<Self, McpError> {
        let bad = |why: String| McpError::new(McpErrorKind::Start, why);
        let url =
            Url::parse(&target.url).map_err(|_| bad(format!("`{}` is not an address", target.to_text())))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("`{}` is not an http or https address", target.to_text())));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &target.headers {
            let unusable = || bad(format!("the header `{name}` cannot be sent"));
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        // An authorization server may be reached over https though the server is not.
        let proxies = target.proxies.leading_to(&url);
        let https = url.scheme() == "https" || target.oauth.is_some() || proxies.need_tls();
        let (connect, read, reach) = (target.connect, target.read, Reach::Anywhere);
        let dial = Dial { https, connect, read, proxies, reach };
        let client = dial.client().map_err(|error| bad(error.to_string()))?;
        // An explicit `Authorization` header disables OAuth.
        let oauth = target.oauth.clone().filter(|_| !headers.contains_key("authorization"));
        let (http, proxies) = (client.clone(), Proxies::clone(&target.proxies));
        let oauth =
            oauth.map(|options| OAuth::new(http, proxies, url.clone(), options).map(Arc::new)).transpose()?;
        Ok(Link {
            client,
            scrubber: SecretScrubber::new(&url, &target.headers),
            url,
            headers,
            oauth,
            learned: Mutex::default(),
            under_way: Mutex::default(),
            unasked: Arc::new(Semaphore::new(MAX_UNASKED)),
            legacy: AtomicBool::new(target.legacy),
        })
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        lock(&self.learned)
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<i64, AbortHandle>> {
        lock(&self.under_way)
    }

    /// Sets the revision that is used from now on; `None` during the handshake.
    pub(crate) fn set_version(&self, version: Option<&str>) {
        self.learned().version = version.map(str::to_owned);
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.learned().version.as_deref() == Some(STATELESS_VERSION)
    }

    /// Sends a message and sees to its answer.
    pub(crate) fn send(self: &Arc<Self>, connection: &Arc<ServerConnection>, outgoing: Outgoing) {
        let (link, connection) = (self.clone(), connection.clone());
        let id = outgoing.id;
        let place = match id {
            Some(_) => None,
            None => match self.unasked.clone().try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) => return,
            },
        };
        // Held until the task is on the list, so that a task that is done at once finds itself there.
        let mut under_way = self.under_way();
        let task = tokio::spawn(async move {
            let _place = place;
            let outcome = link.exchange(&connection, &outgoing).await;
            if let Some(id) = outgoing.id {
                link.under_way().remove(&id);
                let missing = || McpError::new(McpErrorKind::Protocol, "the server did not answer");
                connection.answer(id, Err(outcome.err().unwrap_or_else(missing)));
            } else if let Err(error) = outcome {
                connection.log(&error.to_string());
            }
        });
        if let Some(id) = id {
            under_way.insert(id, task.abort_handle());
        }
    }

    /// Hangs up on a request nobody waits for any more.
    pub(crate) fn abort(&self, id: i64) {
        let task = self.under_way().remove(&id);
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Ends the session, as far as the server still listens.
    pub(crate) fn end(self: &Arc<Self>) {
        let under_way = std::mem::take(&mut *self.under_way());
        under_way.into_values().for_each(|task| task.abort());
        let Some(session) = self.learned().session.take() else { return };
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let link = self.clone();
        tokio::spawn(async move {
            let token = link.token().await;
            let request = link.request(Method::DELETE, link.url.clone(), token.as_ref());
            let request = request.header("mcp-session-id", session);
            let _ = request.timeout(Duration::from_secs(2)).send().await;
        });
    }

    async fn exchange(
        &self,
        connection: &Arc<ServerConnection>,
        outgoing: &Outgoing,
    ) -> Result<(), McpError> {
        let response = self.post(outgoing).await;
        if let Some(trouble) = self.oauth.as_ref().and_then(|oauth| oauth.take_trouble()) {
            connection.log(&trouble);
        }
        let response = response?;
        connection.note_life();
        let status = response.status();
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok())
            && outgoing.method == "initialize"
            && status.is_success()
        {
            if session.len() > MAX_SESSION_ID {
                let problem = format!("the server's session id is longer than {MAX_SESSION_ID} bytes");
                return Err(McpError::new(McpErrorKind::Limit, problem));
            }
            self.learned().session = Some(session.to_owned());
        }
        if !status.is_success() {
            return self.refused(connection, outgoing, response).await;
        }
        let kind = kind(&response);
        let Some(id) = outgoing.id else { return Ok(()) };
        if self.is_legacy() {
            return self.wait_for(connection, id).await;
        }
        match kind.as_str() {
            "text/event-stream" => self.events(connection, response, id).await,
            "application/json" => {
                let body = read(response, MAX_MESSAGE_BYTES).await?;
                self.take(connection, &body, None)
            }
            _ => Err(McpError::new(
                McpErrorKind::Protocol,
                "the server's answer is neither JSON nor a stream of events",
            )),
        }
    }

    /// In the older transport answers come over the one stream.
    async fn wait_for(&self, connection: &Arc<ServerConnection>, id: i64) -> Result<(), McpError> {
        while connection.waits_for(id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Posts a message, with another token when the server wants one.
    async fn post(&self, outgoing: &Outgoing) -> Result<Response, McpError> {
        self.with_tokens(|token| {
            let url = self.learned().endpoint.clone().unwrap_or_else(|| self.url.clone());
            let mut request = self
                .with_token(Method::POST, url, token)
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            {
                let said = self.learned();
                if let Some(version) = &said.version {
                    request = request.header("mcp-protocol-version", version);
                }
                if let Some(session) = &said.session {
                    request = request.header("mcp-session-id", session);
                }
            }
            if self.is_stateless() {
                request = request.header("mcp-method", &outgoing.method);
                if let Some(name) = &outgoing.name {
                    request = request.header("mcp-name", encoded(name));
                }
                for (name, value) in &outgoing.headers {
                    request = request.header(format!("mcp-param-{name}"), encoded(value));
                }
            }
            request.body(outgoing.message.clone())
        })
        .await
    }

    /// Sends a request, and again with another token when the server wants one.
    async fn with_tokens(
        &self,
        request: impl Fn(Option<&Secret>) -> RequestBuilder,
    ) -> Result<Response, McpError> {
        let mut tries = 0;
        loop {
            let token = self.token().await;
            let response = request(token.as_ref()).send().await.map_err(|cause| unreachable(&cause))?;
            let challenge = Challenge::read(response.status(), response.headers());
            let (Some(oauth), Some(challenge)) = (&self.oauth, challenge) else { return Ok(response) };
            tries += 1;
            if tries > MAX_TOKENS {
                return Ok(response);
            }
            drop(response);
            oauth.answer(&challenge, token.as_ref()).await?;
        }
    }

    /// Tells when a person is asked whether we may use the server; `None` where that never happens.
    pub(crate) fn asking(&self) -> Option<tokio::sync::watch::Receiver<bool>> {
        self.oauth.as_ref().map(|oauth| oauth.asking())
    }

    async fn token(&self) -> Option<Secret> {
        match &self.oauth {
            Some(oauth) => oauth.token().await,
            None => None,
        }
    }

    fn with_token(&self, method: Method, url: Url, token: Option<&Secret>) -> RequestBuilder {
        let request = self.client.request(method, url).headers(self.headers.clone());
        match token {
            Some(token) => {
                self.scrubber.sent(token);
                request.bearer_auth(token.expose())
            }
            None => request,
        }
    }

    fn request(&self, method: Method, url: Url, token: Option<&Secret>) -> RequestBuilder {
        let request = self.with_token(method, url, token);
        match &self.learned().version {
            Some(version) => request.header("mcp-protocol-version", version),
            None => request,
        }
    }

    /// Handles a failed HTTP response. A JSON-RPC error in it counts as the server's answer.
    async fn refused(
        &self,
        connection: &Arc<ServerConnection>,
        outgoing: &Outgoing,
        response: Response,
    ) -> Result<(), McpError> {
        let status = response.status();
        if status.is_redirection() {
            let message = format!(
                "the server answered {} and points elsewhere; redirects are not followed",
                status.as_u16()
            );
            return Err(McpError::new(McpErrorKind::Protocol, message));
        }
        let has_session = self.learned().session.is_some();
        let body = read(response, ERROR_BODY).await.unwrap_or_default();
        if has_session && forgot_session(status, &body, outgoing.id) {
            let ended =
                McpError::new(McpErrorKind::Closed, "connection closed: the server ended the session");
            // Other requests may have been begun before; of this one it is known that it was not. What a task
            // belongs to was.
            if let Some(id) = outgoing.id.filter(|_| !outgoing.method.starts_with("tasks/")) {
                // Who asks again at once must not do so in this session.
                connection.doom(ended.clone());
                connection.answer(id, Err(ended.clone().unheard()));
            }
            connection.close(ended.clone());
            return Err(ended);
        }
        let is_error = jsonrpc::parse(&body).is_ok_and(|message| {
            matches!(message, jsonrpc::RpcMessage::Response { id: jsonrpc::Id::Number(id), .. } if Some(id) == outgoing.id)
        });
        if is_error {
            return self.take(connection, &body, None);
        }
        // An error without an id still says what is wrong.
        let said = serde_json::from_slice::<serde_json::Value>(&body).ok();
        let error = said
            .as_ref()
            .and_then(|said| said.get("error"))
            .and_then(|error| serde_json::from_value::<jsonrpc::RpcError>(error.clone()).ok());
        if let Some(mut error) = error {
            self.scrubber.error(&mut error);
            return Err(McpError::refused(&error));
        }
        let kind = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => McpErrorKind::Unauthorized,
            // These may be better another time.
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => McpErrorKind::Closed,
            status if status.is_client_error() => McpErrorKind::Refused,
            _ => McpErrorKind::Closed,
        };
        let shown = self.scrubber.words(&String::from_utf8_lossy(&body));
        let shown = toolwright_core::text::visible(&text::clip(&shown, 200));
        Err(McpError::new(kind, format!("the server answered {}: {shown}", status.as_u16())))
    }

    /// Reads a stream until the answer is there, taking it up again when it breaks off.
    async fn events(
        &self,
        connection: &Arc<ServerConnection>,
        response: Response,
        id: i64,
    ) -> Result<(), McpError> {
        let mut response = Some(response);
        let mut place = StreamPosition::default();
        let mut resumes = 0;
        loop {
            let before = place.last_id.clone();
            let broke = match response.take() {
                Some(response) => self.follow(connection, response, &mut place, Some(id)).await.err(),
                None => None,
            };
            if !connection.waits_for(id) {
                return Ok(());
            }
            if let Some(error) = broke
                && error.kind() != McpErrorKind::Closed
            {
                return Err(error);
            }
            let closed =
                || McpError::new(McpErrorKind::Closed, "the server closed the stream before it answered");
            let last = place.last_id.clone().filter(|_| !self.is_stateless()).ok_or_else(closed)?;
            // A server may close the stream of a long call as often as it likes, as long as it gets on.
            resumes = if before == place.last_id { resumes + 1 } else { 1 };
            if resumes > MAX_RESUMES {
                return Err(closed());
            }
            tokio::time::sleep(place.pause(resumes - 1)).await;
            let answered = self.with_tokens(|token| self.listen_request(Some(&last), token)).await;
            response = answered.ok().filter(|response| response.status() == StatusCode::OK);
        }
    }

    fn listen_request(&self, last_id: Option<&str>, token: Option<&Secret>) -> RequestBuilder {
        let mut request =
            self.request(Method::GET, self.url.clone(), token).header("accept", "text/event-stream");
        if let Some(session) = &self.learned().session {
            request = request.header("mcp-session-id", session);
        }
        match last_id {
            Some(last_id) => request.header("last-event-id", last_id),
            None => request,
        }
    }

    /// Takes the messages of a stream until it ends, or the awaited answer has come.
    async fn follow(
        &self,
        connection: &Arc<ServerConnection>,
        mut response: Response,
        place: &mut StreamPosition,
        until: Option<i64>,
    ) -> Result<(), McpError> {
        let mut reader = SseReader::new(MAX_MESSAGE_BYTES);
        loop {
            let chunk = response.chunk().await.map_err(|cause| unreachable(&cause))?;
            let Some(chunk) = chunk else { return Ok(()) };
            let events =
                reader.push(&chunk).map_err(|error| McpError::new(McpErrorKind::Limit, error.to_string()))?;
            place.last_id = reader.last_id().map(str::to_owned).or(place.last_id.take());
            place.retry = reader.retry().or(place.retry);
            for event in events {
                self.event(connection, &event, until)?;
            }
            if until.is_some_and(|id| !connection.waits_for(id)) {
                return Ok(());
            }
        }
    }

    /// Takes an event of the stream that answers `of`, if it answers a request.
    fn event(
        &self,
        connection: &Arc<ServerConnection>,
        event: &SseEvent,
        of: Option<i64>,
    ) -> Result<(), McpError> {
        if event.name == "endpoint" && self.is_legacy() {
            let endpoint = self.url.join(event.data.trim()).ok();
            let endpoint = endpoint.filter(|endpoint| endpoint.origin() == self.url.origin());
            let other = || McpError::new(McpErrorKind::Protocol, "the server's endpoint is on another site");
            self.learned().endpoint = Some(endpoint.ok_or_else(other)?);
            return Ok(());
        }
        if event.data.is_empty() || !matches!(event.name.as_str(), "" | "message") {
            return Ok(());
        }
        self.take(connection, event.data.as_bytes(), of)
    }

    /// Takes a message, without what the server repeats of our secrets. `of` is the request it was sent
    /// beside.
    fn take(
        &self,
        connection: &Arc<ServerConnection>,
        message: &[u8],
        of: Option<i64>,
    ) -> Result<(), McpError> {
        let mut message = jsonrpc::parse(message).map_err(|malformed| {
            let message = format!("the server's answer is not JSON-RPC: {}", malformed.problem);
            McpError::new(McpErrorKind::Protocol, message)
        })?;
        self.scrubber.message(&mut message);
        connection.take(message, of);
        Ok(())
    }

    /// Listens for notifications and questions of the server until the session ends. `opened` fires once the
    /// server has answered for the first time: a question that a request causes before that might be missed.
    pub(crate) async fn listen(self: Arc<Self>, connection: Weak<ServerConnection>, opened: CancelToken) {
        // How many streams, or attempts at one, brought nothing.
        let (mut place, mut in_vain) = (StreamPosition::default(), 0);
        let (mut connected_before, mut refused) = (false, false);
        let _opened = opened.clone().drop_guard();
        loop {
            let token = self.token().await;
            let response = self.listen_request(place.last_id.as_deref(), token.as_ref()).send().await;
            opened.cancel();
            let Some(live) = connection.upgrade() else { return };
            let closed = live.closed().clone();
            match response {
                Ok(response) if response.status() == StatusCode::OK => {
                    if connected_before && place.last_id.is_none() {
                        // Nobody knows what was said in between.
                        live.tools_may_differ();
                    }
                    let (heard, since) = (live.heard(), Instant::now());
                    tokio::select! {
                        _ = self.follow(&live, response, &mut place, None) => {}
                        () = closed.cancelled() => return,
                    }
                    if live.heard() != heard || since.elapsed() >= LONGEST_PAUSE {
                        in_vain = 0;
                    }
                    (connected_before, refused) = (true, false);
                    drop(live);
                }
                // Nobody asked for this stream, so no person is asked for a token for it: one that can be
                // renewed is, once.
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                    drop(live);
                    let Some(oauth) = &self.oauth else { return };
                    if !refused {
                        oauth.refresh(token.as_ref()).await;
                    }
                    // A call may yet have somebody sign in.
                    refused = true;
                }
                // A gateway that is busy may be better another time. Any other answer says that there is no
                // such stream for us.
                Ok(response) if !may_be_better(response.status(), connected_before) => return,
                Ok(_) | Err(_) => drop(live),
            }
            tokio::select! {
                () = tokio::time::sleep(place.pause(in_vain)) => {}
                () = closed.cancelled() => return,
            }
            in_vain += 1;
        }
    }

    /// Opens the one stream of the older transport, and waits until the server has said where messages go.
    pub(crate) async fn open_legacy(
        self: &Arc<Self>,
        connection: &Arc<ServerConnection>,
        time: Duration,
    ) -> Result<(), McpError> {
        let start = |message: String| McpError::new(McpErrorKind::Start, message);
        let response = tokio::select! {
            biased;
            response = self.with_tokens(|token| self.listen_request(None, token)) => response?,
            () = connection.run_out(time) => return Err(start(format!("the server did not answer within {time:?}"))),
        };
        if response.status() != StatusCode::OK {
            let kind = match response.status() {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => McpErrorKind::Unauthorized,
                _ => McpErrorKind::Start,
            };
            return Err(McpError::new(kind, format!("the server answered {}", response.status().as_u16())));
        }
        if kind(&response) != "text/event-stream" {
            return Err(start("the server's answer is not an event stream".to_owned()));
        }
        self.legacy.store(true, Ordering::Release);
        let (link, weak) = (self.clone(), Arc::downgrade(connection));
        let closed = connection.closed().clone();
        tokio::spawn(async move {
            let Some(live) = weak.upgrade() else { return };
            let mut place = StreamPosition::default();
            let ended = tokio::select! {
                ended = link.follow(&live, response, &mut place, None) => ended,
                () = closed.cancelled() => return,
            };
            let why = ended.err().unwrap_or_else(|| McpError::new(McpErrorKind::Closed, "connection closed"));
            live.close(why);
        });
        let told = async {
            while self.learned().endpoint.is_none() && connection.closed_reason().is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = tokio::time::timeout(time, told).await.is_ok();
        match connection.closed_reason() {
            Some(why) => Err(why),
            None if in_time => Ok(()),
            None => Err(start("the server does not say where messages go".to_owned())),
        }
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.legacy.load(Ordering::Acquire)
    }
}

/// How far a stream was read.
#[derive(Default)]
struct StreamPosition {
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl StreamPosition {
    /// How long to wait before the stream is taken up again: what the server says, doubled each time it was
    /// in vain, within bounds of our own.
    fn pause(&self, in_vain: u32) -> Duration {
        let said = self.retry.unwrap_or(RESUME_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        said.saturating_mul(1 << in_vain.min(16)).min(LONGEST_PAUSE)
    }
}

/// Whether to try again after a stream was refused with this status. Servers that notice late that the one we
/// `had` broke off refuse the next until then, with 409 or 400.
fn may_be_better(status: StatusCode, had: bool) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT => true,
        StatusCode::BAD_REQUEST => had,
        StatusCode::NOT_IMPLEMENTED => false,
        status => status.is_server_error(),
    }
}

/// Whether a refusal means that the server no longer knows our session.
fn forgot_session(status: StatusCode, body: &[u8], asked: Option<i64>) -> bool {
    let said: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let code = said.pointer("/error/code").and_then(serde_json::Value::as_i64);
    let answers = asked.is_some() && said.get("id").and_then(serde_json::Value::as_i64) == asked;
    let of_sessions = || {
        let words = match said.pointer("/error/message").and_then(serde_json::Value::as_str) {
            Some(message) => message.to_lowercase(),
            None => String::from_utf8_lossy(body.get(..1000).unwrap_or(body)).to_lowercase(),
        };
        words.contains("session")
    };
    match status {
        // Some servers answer so to methods they do not have, and to calls that they have begun with.
        StatusCode::NOT_FOUND if code == Some(METHOD_NOT_FOUND) => false,
        // Without an error it answers nothing, whatever its id.
        StatusCode::NOT_FOUND => {
            !answers || code.is_none() || code == Some(SESSION_NOT_FOUND) || of_sessions()
        }
        // "No valid session ID provided" of servers made with the official packages, once they were started
        // again. It does not answer the request: an error that has its id may be about anything.
        StatusCode::BAD_REQUEST => !answers && of_sessions(),
        _ => false,
    }
}

/// The media type of an answer.
fn kind(response: &Response) -> String {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A whole body, within its bounds.
async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= most => body.extend_from_slice(&chunk),
            Ok(Some(_)) => {
                return Err(McpError::new(
                    McpErrorKind::Limit,
                    format!("the answer is larger than {most} bytes"),
                ));
            }
            Ok(None) => return Ok(body),
            Err(cause) => return Err(unreachable(&cause)),
        }
    }
}

/// A connection that could not be made, or broke. Addresses may hold secrets, so they are not repeated.
fn unreachable(cause: &toolwright_net::reqwest::Error) -> McpError {
    let message = if cause.is_connect() {
        "the server cannot be reached"
    } else if cause.is_timeout() {
        "the server fell silent"
    } else {
        "the connection to the server broke"
    };
    McpError::new(McpErrorKind::Closed, format!("connection closed: {message}"))
}

/// A text as a header's value: as it is where that is safe, else in Base64.
pub(crate) fn encoded(text: &str) -> String {
    let safe = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    if safe && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_the_servers_within_our_bounds_and_grow() {
        let pause = |retry: Option<u64>, in_vain| {
            StreamPosition { retry: retry.map(Duration::from_millis), ..StreamPosition::default() }
                .pause(in_vain)
                .as_millis()
        };
        assert_eq!((pause(None, 0), pause(None, 1), pause(None, 2)), (500, 1000, 2000));
        assert_eq!((pause(Some(700), 0), pause(Some(700), 1)), (700, 1400));
        assert_eq!((pause(Some(0), 0), pause(Some(0), 3)), (100, 800));
        assert_eq!((pause(Some(u64::MAX), 0), pause(Some(0), u32::MAX)), (30_000, 30_000));
    }

    #[test]
    fn values_that_are_not_safe_in_a_header_are_encoded() {
        assert_eq!(encoded("us west 1"), "us west 1");
        assert_eq!(encoded(""), "");
        for text in [" a", "a ", "a\nb", "\ta", "Hello, 世界", "=?base64?x?="] {
            assert!(encoded(text).starts_with("=?base64?") && encoded(text).ends_with("?="), "{text}");
        }
    }
}
