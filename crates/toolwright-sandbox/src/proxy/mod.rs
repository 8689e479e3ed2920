//! The only way out of a sandbox that may reach chosen hosts: a proxy in the runtime, listening inside the
//! sandbox.
//!
//! The sandbox's network has nothing but loopback. Its keeper makes the listening socket in there and hands
//! it to the runtime, which accepts, reads one request, asks the rules, resolves the name itself, checks
//! every address, and dials exactly the address it checked. Programs that ignore the proxy have no route;
//! names not on the list are not resolved. A tunnel carries TLS or HTTP for the host it was opened to; other
//! protocols need a rule that ends with `/raw`.

mod client_hello;
mod request;
mod serve;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::net::{TcpListener, lookup_host};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use toolwright_core::BoxFuture;
use toolwright_net::{Host, HostRules, Reach};
use toolwright_util::lock;

/// Where programs in the sandbox find the proxy.
pub(crate) const PORT: u16 = 3128;
/// Connections at once; the oldest gives way to a new one.
const MAX_CONNECTIONS: usize = 256;
/// Names looked up in a minute; a name can carry data to the server that resolves it.
const MAX_LOOKUPS: usize = 300;
/// How many addresses of a name are tried.
const MAX_ADDRESSES: usize = 4;
/// How many events are kept.
const MAX_EVENTS: usize = 256;

/// One request of a sandbox for a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetworkEvent {
    /// The host in its one form.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why it was refused; nothing means it was open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// How names become addresses.
type Resolve = dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// A running proxy. Dropping it closes all its connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    task: JoinHandle<()>,
    desk: Arc<Desk>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// Serves a listening socket, whichever network it was made in.
    pub(crate) fn start(listener: OwnedFd, rules: HostRules) -> io::Result<Proxy> {
        let resolve = |name: String, port| {
            Box::pin(async move { Ok(lookup_host((name, port)).await?.collect()) }) as BoxFuture<'static, _>
        };
        Self::start_with(listener, rules, Box::new(resolve))
    }

    fn start_with(listener: OwnedFd, rules: HostRules, resolve: Box<Resolve>) -> io::Result<Proxy> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let desk = Arc::new(Desk { rules, resolve, lookups: Mutex::default(), events: Mutex::default() });
        let task = tokio::spawn(accept(listener, desk.clone()));
        Ok(Proxy { task, desk })
    }

    /// The requests so far, the latest last.
    pub(crate) fn events(&self) -> Vec<NetworkEvent> {
        lock(&self.desk.events).iter().cloned().collect()
    }
}

/// Accepts connections until the sandbox closes; beyond the limit, the oldest is dropped.
async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    let mut open: JoinSet<()> = JoinSet::new();
    let mut order: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    order.retain(|one| !one.is_finished());
                    if order.len() >= MAX_CONNECTIONS && let Some(oldest) = order.pop_front() {
                        oldest.abort();
                    }
                    let desk = desk.clone();
                    order.push_back(open.spawn(async move { serve::connection(stream, &desk).await }));
                }
                // Out of descriptors, most likely; some will come back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

/// Where connections ask what they may do.
struct Desk {
    rules: HostRules,
    resolve: Box<Resolve>,
    lookups: Mutex<VecDeque<Instant>>,
    events: Mutex<VecDeque<NetworkEvent>>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Desk {
    /// The addresses that may be dialled for a host, every one of them checked.
    async fn addresses(&self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, request::ProxyRefusal> {
        let outcome = self.decide(host, port).await;
        self.record(host, port, outcome.as_ref().err().map(|(_, words)| *words));
        outcome
    }

    fn record(&self, host: &Host, port: u16, refused: Option<&str>) {
        let mut events = lock(&self.events);
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(NetworkEvent { host: host.to_string(), port, refused: refused.map(str::to_owned) });
    }

    async fn decide(&self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, request::ProxyRefusal> {
        if !self.rules.allow(host, port) {
            return Err((403, "the policy of this sandbox does not open this host and port"));
        }
        // Named by the policy itself, so it may be private.
        if let Some(addresses) = host.fixed_addresses(port) {
            return Ok(addresses);
        }
        if !self.may_look_up() {
            return Err((429, "too many names were looked up in a minute"));
        }
        let name = host.to_string();
        let found = tokio::time::timeout(serve::PATIENCE, (self.resolve)(name.clone(), port)).await;
        let found = found.map_err(|_| (504, "the name could not be resolved in time"))?;
        let found = found.map_err(|_| (502, "the name could not be resolved"))?;
        let mut open = Reach::Hosts(self.rules.clone())
            .admitted(&name, port, found)
            .map_err(|_| (403, "the name leads to addresses that are not on the public network"))?;
        open.truncate(MAX_ADDRESSES);
        Ok(open)
    }

    fn may_look_up(&self) -> bool {
        let mut lookups = lock(&self.lookups);
        while lookups.front().is_some_and(|time| time.elapsed() > Duration::from_secs(60)) {
            lookups.pop_front();
        }
        if lookups.len() >= MAX_LOOKUPS {
            return false;
        }
        lookups.push_back(Instant::now());
        true
    }
}

/// The variables that make programs use the proxy. They reach what listens inside directly, unless a rule
/// means the machine outside by the same name.
pub(crate) fn variables(rules: &HostRules) -> impl Iterator<Item = (String, String)> {
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .into_iter()
        .flat_map(|name| [name.to_owned(), name.to_lowercase()]);
    let outside = |host: &&str| rules.name(host) || rules.name(&format!("[{host}]"));
    let inside: Vec<&str> =
        ["localhost", "127.0.0.1", "::1"].into_iter().filter(|host| !outside(host)).collect();
    let bypass = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), inside.join(",")));
    proxies.map(|name| (name, format!("http://127.0.0.1:{PORT}"))).chain(bypass)
}

#[cfg(test)]
mod tests;
