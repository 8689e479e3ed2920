//! The server over streamable HTTP: both eras on one address.
//!
//! Requests without a session need nothing that another instance would not have. `gate` checks the `Host` and
//! `Origin` headers, the token and the rate before anything is read; `endpoint` handles POST, GET and DELETE,
//! `post` the eras, `exchange` the way to an answer, `header_consistency` the headers that repeat the body,
//! `sessions` and `stream` the era with sessions.

mod bearer;
mod body;
mod endpoint;
mod exchange;
mod gate;
mod header_consistency;
mod keyed_counter;
mod post;
mod responses;
mod sessions;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use toolwright_core::{CancelToken, Secret};
use toolwright_net::{Lobby, LobbyGuest, Proxies};

use self::bearer::Bearer;
pub use self::bearer::ResourceServer;
use self::gate::Gate;
use self::keyed_counter::KeyedCounter;
use self::sessions::Sessions;
use super::Inner;

/// The response to an address that has as many connections as it may.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\
    Content-Type: text/plain\r\nContent-Length: 39\r\n\r\nthis address has too many connections\r\n";

/// How long a new connection may take to send the head of a request that may use the server.
const FIRST_REQUEST: Duration = Duration::from_secs(30);

/// The shortest and the longest pause between two sweeps of expired sessions and results.
const SWEEP: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

/// How the server behaves over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The path of the endpoint.
    pub path: String,
    /// Names under which the server may be reached, beside this machine's own (`localhost` and loopback
    /// addresses) and the address it listens on. A request for any other host is refused: a page on the web
    /// could have made it.
    pub hosts: Vec<String>,
    /// Origins of pages that may use the server, such as `https://app.example.com`. Without an entry, only
    /// pages the server itself would serve may.
    pub origins: Vec<String>,
    /// The token clients must present; `None` asks for none.
    pub token: Option<Secret>,
    /// Takes the tokens of an authorization server, in place of one token for all.
    pub resource_server: Option<ResourceServer>,
    /// The proxies on the way to that authorization server.
    pub proxies: Proxies,
    /// The longest request, in bytes.
    pub max_body: usize,
    /// How many requests a second each client may make; `None` sets no limit. Bursts of twice as many are
    /// fine.
    pub rate: Option<u32>,
    /// How many connections may be open at once.
    pub max_connections: usize,
    /// How many of them one address may have, so that nobody takes them all. A load balancer is one address.
    pub max_connections_each: usize,
    /// How long a client may leave unread what it is sent before its connection is closed, where the system
    /// knows that.
    pub unread_time: Duration,
    /// How long a client may take to come back for a stream that it lost, before what it was asked there
    /// counts as unanswered. As long a result is kept that was delivered.
    pub return_time: Duration,
    /// How many sessions may be open at once.
    pub max_sessions: usize,
    /// How long a client may take to send the head of a request, the next one on its connection included.
    /// Load balancers keep connections for a minute, and must not find one closed that they are about to use.
    pub head_time: Duration,
    /// How long the rest of a request may take to arrive.
    pub body_time: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            path: "/mcp".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            token: None,
            resource_server: None,
            proxies: Proxies::none(),
            max_body: 4 * 1024 * 1024,
            rate: None,
            max_connections: 1024,
            max_connections_each: 256,
            unread_time: Duration::from_secs(60),
            // Clients come back within seconds. Who has not for a minute has crashed, or asks for something
            // else.
            return_time: Duration::from_secs(60),
            max_sessions: 1000,
            head_time: Duration::from_secs(75),
            body_time: Duration::from_secs(30),
        }
    }
}

/// A server that listens. Dropping it closes the address.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
}

/// What all connections share.
struct Site {
    server: Arc<Inner>,
    options: HttpOptions,
    gate: Gate,
    bearer: Option<Bearer>,
    sessions: Sessions,
    /// The requests that each client has under way.
    calls: Arc<KeyedCounter<Arc<str>>>,
    /// Fires when no more clients are let in: what would never end by itself ends now.
    closing: CancelToken,
    /// Fires when work that is under way must stop.
    stop: CancelToken,
}

impl HttpServer {
    pub(super) async fn bind(
        server: Arc<Inner>,
        address: SocketAddr,
        options: HttpOptions,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let gate = Gate::new(address, &options);
        let sessions = Sessions::new(options.max_sessions, options.return_time);
        let bearer = options.resource_server.clone();
        let bearer = bearer.map(|about| Bearer::new(about, &options.proxies)).transpose()?;
        let calls = KeyedCounter::new(server.max_calls);
        let (closing, stop) = (CancelToken::new(), CancelToken::new());
        let site = Site { server, options, gate, bearer, sessions, calls, closing, stop };
        Ok(HttpServer { listener, address, site: Arc::new(site) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers clients until `stop` fires. Then no new ones are let in, and what is under way is finished
    /// first.
    pub async fn run(self, stop: CancelToken) {
        let HttpServer { listener, site, .. } = self;
        let most = u32::try_from(site.options.max_connections).unwrap_or(u32::MAX).max(1);
        let places = Arc::new(Semaphore::new(most as usize));
        let connected = KeyedCounter::new(site.options.max_connections_each.max(1));
        // It ends with this function.
        let mut sweeping = tokio::task::JoinSet::new();
        let (swept, pause) = (site.clone(), site.options.return_time.clamp(SWEEP.0, SWEEP.1));
        sweeping.spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                swept.sessions.sweep();
            }
        });
        // However many strangers come, half of the room is left for clients that may use the server.
        let each = site.options.max_connections_each.min(site.options.max_connections);
        let lobby = Lobby::new(each / 2);
        loop {
            let place = tokio::select! {
                place = places.clone().acquire_owned() => place,
                () = stop.cancelled() => break,
            };
            let Ok(place) = place else { break };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let Ok((connection, from)) = accepted else {
                // Out of descriptors, most likely: those that are open will close.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(counted) = connected.enter(&gate::place_of(from.ip())) else {
                turn_away(connection);
                continue;
            };
            let _ = connection.set_nodelay(true);
            close_unread(&connection, site.options.unread_time);
            let (site, stop, guest) = (site.clone(), stop.clone(), lobby.enter());
            tokio::spawn(async move {
                let (_place, _counted, guest) = (place, counted, &guest);
                let service = hyper::service::service_fn(|request| {
                    let site = site.clone();
                    async move {
                        let answer = endpoint::respond(&site, from.ip(), guest, request).await;
                        Ok::<_, std::convert::Infallible>(answer)
                    }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(site.options.head_time)
                    .max_buf_size(64 * 1024)
                    .serve_connection(TokioIo::new(connection), service);
                let mut connection = std::pin::pin!(connection);
                tokio::select! {
                    // What a client does to its own connection concerns nobody else.
                    _ = connection.as_mut() => return,
                    () = unknown_for(guest, site.options.head_time.min(FIRST_REQUEST)) => return,
                    () = stop.cancelled() => {}
                }
                // A client that has asked for nothing yet has nothing to wait for.
                if guest.is_waiting() {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                let stopped = async {
                    site.stop.cancelled().await;
                    tokio::time::sleep(super::CANCEL_GRACE * 2).await;
                };
                tokio::select! {
                    _ = connection => {}
                    () = stopped => {}
                }
            });
        }
        drop(listener);
        site.closing.cancel();
        site.sessions.end_streams();
        let all = places.acquire_many(most);
        if tokio::time::timeout(site.server.drain, all).await.is_err() {
            site.stop.cancel();
            site.sessions.clear();
            let _ = tokio::time::timeout(super::CANCEL_GRACE * 2, places.acquire_many(most)).await;
        }
        site.stop.cancel();
        site.sessions.clear();
    }
}

/// Ends when a connection has to make room, or its client has not shown for so long that it may use the
/// server.
async fn unknown_for(guest: &LobbyGuest, time: Duration) {
    let late = async {
        tokio::time::sleep(time).await;
        if !guest.is_waiting() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = guest.turned_out() => {}
        () = late => {}
    }
}

/// Says why, as far as that fits into what the system sends by itself, and closes.
fn turn_away(connection: TcpStream) {
    use std::io::Write as _;
    if let Ok(mut connection) = connection.into_std() {
        let _ = connection.write(TOO_MANY);
    }
}

/// Has the system close a connection whose client does not read: nothing else would.
fn close_unread(connection: &TcpStream, time: Duration) {
    #[cfg(target_os = "linux")]
    {
        let time = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(connection, time);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (connection, time);
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}
