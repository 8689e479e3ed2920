//! The Chrome DevTools Protocol over a pair of pipes: JSON messages, each ended by a zero byte.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

/// The longest message of a browser. A picture of a page has a few megabytes.
const MAX_MESSAGE: usize = 64 << 20;

/// How long a command may take when nothing else is stated.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a command failed.
#[derive(Debug, Clone)]
pub(crate) enum CdpError {
    /// The browser ended.
    Closed,
    /// No answer in time.
    Timeout(&'static str),
    /// The browser refused it.
    Refused(String),
}

impl fmt::Display for CdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CdpError::Closed => f.write_str("the browser ended"),
            CdpError::Timeout(method) => write!(f, "the page did not respond in time (`{method}`)"),
            CdpError::Refused(message) => f.write_str(message),
        }
    }
}

/// An event of a browser, or of one of its sessions.
pub(crate) struct CdpEvent {
    pub(crate) session: Option<String>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Incoming {
    id: Option<u64>,
    session_id: Option<String>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<IncomingError>,
}

#[derive(Deserialize)]
struct IncomingError {
    message: String,
}

type CommandResult = Result<Value, CdpError>;

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Cdp {
    inner: Arc<CdpInner>,
}

struct CdpInner {
    out: mpsc::UnboundedSender<Vec<u8>>,
    pending: Mutex<HashMap<u64, oneshot::Sender<CommandResult>>>,
    next: AtomicU64,
    closed: AtomicBool,
}

impl Cdp {
    /// Takes the two ends of a browser's pipes. `on_event` runs for each event, in order, and must not block;
    /// `on_close` runs once.
    pub(crate) fn start(
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
        on_event: impl Fn(&Cdp, CdpEvent) + Send + 'static,
        on_close: impl FnOnce() + Send + 'static,
    ) -> Cdp {
        let (out, queue) = mpsc::unbounded_channel();
        let inner = CdpInner {
            out,
            pending: Mutex::default(),
            next: AtomicU64::new(1),
            closed: AtomicBool::new(false),
        };
        let cdp = Cdp { inner: Arc::new(inner) };
        tokio::spawn(write_all(writer, queue));
        let weak = Arc::downgrade(&cdp.inner);
        tokio::spawn(async move {
            let mut messages = MessageReader { reader, buffer: Vec::new(), searched: 0 };
            while let Some(message) = messages.next().await {
                let Some(inner) = weak.upgrade() else { break };
                let cdp = Cdp { inner };
                // A message that is not in the protocol's form is not ours to understand.
                let Ok(incoming) = serde_json::from_slice::<Incoming>(&message) else { continue };
                cdp.dispatch(incoming, &on_event);
            }
            if let Some(inner) = weak.upgrade() {
                inner.closed.store(true, Ordering::Release);
                lock(&inner.pending).clear();
            }
            on_close();
        });
        cdp
    }

    fn dispatch(&self, incoming: Incoming, on_event: &impl Fn(&Cdp, CdpEvent)) {
        match (incoming.id, incoming.method) {
            (Some(id), _) => {
                let waiting = lock(&self.inner.pending).remove(&id);
                let reply = match incoming.error {
                    Some(error) => Err(CdpError::Refused(error.message)),
                    None => Ok(incoming.result),
                };
                if let Some(waiting) = waiting {
                    let _ = waiting.send(reply);
                }
            }
            (None, Some(method)) => {
                on_event(self, CdpEvent { session: incoming.session_id, method, params: incoming.params });
            }
            (None, None) => {}
        }
    }

    /// Whether the browser has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::Acquire)
    }

    /// Sends a command without waiting for its answer.
    pub(crate) fn post(&self, session: Option<&str>, method: &'static str, params: Value) {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        self.write(id, session, method, params);
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn send(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
    ) -> CommandResult {
        self.send_within(session, method, params, COMMAND_TIMEOUT).await
    }

    /// The same with a time limit of its own.
    pub(crate) async fn send_within(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
        limit: Duration,
    ) -> CommandResult {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.inner.pending).insert(id, sender);
        let entry = PendingEntry { inner: &self.inner, id };
        if self.is_closed() {
            return Err(CdpError::Closed);
        }
        self.write(id, session, method, params);
        let reply = tokio::time::timeout(limit, receiver).await;
        drop(entry);
        match reply {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(CdpError::Closed),
            Err(_) => Err(CdpError::Timeout(method)),
        }
    }

    fn write(&self, id: u64, session: Option<&str>, method: &str, params: Value) {
        let mut message = json!({"id": id, "method": method, "params": params});
        if let (Some(session), Some(message)) = (session, message.as_object_mut()) {
            message.insert("sessionId".to_owned(), session.into());
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        // A writer that is gone means a browser that is gone; the reader reports it.
        let _ = self.inner.out.send(bytes);
    }
}

/// Forgets a command whose caller no longer waits.
struct PendingEntry<'a> {
    inner: &'a CdpInner,
    id: u64,
}

impl Drop for PendingEntry<'_> {
    fn drop(&mut self) {
        lock(&self.inner.pending).remove(&self.id);
    }
}

async fn write_all(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(bytes) = queue.recv().await {
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// Messages, read with a bound.
struct MessageReader {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    buffer: Vec<u8>,
    searched: usize,
}

impl MessageReader {
    /// The next message; `None` at the end of the stream and after a message that is too long.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = unsearched.iter().position(|byte| *byte == 0) {
                let end = self.searched + at;
                let rest = self.buffer.split_off(end + 1);
                let mut message = std::mem::replace(&mut self.buffer, rest);
                message.pop();
                self.searched = 0;
                return Some(message);
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_MESSAGE {
                return None;
            }
            self.buffer.reserve(64 << 10);
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_reach_their_commands_and_events_the_listener() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = events.clone();
        let cdp = Cdp::start(
            Box::new(reader),
            Box::new(writer),
            move |_, event| lock(&seen).push(event.method),
            || {},
        );
        let browser = tokio::spawn(async move {
            let mut bytes = vec![0; 4096];
            let mut got = Vec::new();
            while got.iter().filter(|byte| **byte == 0).count() < 2 {
                let count = theirs.read(&mut bytes).await.unwrap();
                got.extend_from_slice(&bytes[..count]);
            }
            theirs
                .write_all(b"{\"method\":\"A.b\",\"params\":{}}\0not json\0{\"id\":2,\"error\":{\"message\":\"no\"}}\0")
                .await
                .unwrap();
            theirs.write_all(b"{\"id\":1,\"result\":{\"x\":1}}\0").await.unwrap();
            drop(theirs);
        });
        let (first, second) =
            tokio::join!(cdp.send(None, "One.a", json!({})), cdp.send(Some("s"), "Two.b", json!({})));
        assert_eq!(first.unwrap()["x"], 1);
        assert!(matches!(second, Err(CdpError::Refused(why)) if why == "no"));
        assert_eq!(*lock(&events), ["A.b"]);
        browser.await.unwrap();
        assert!(matches!(cdp.send(None, "Three.c", json!({})).await, Err(CdpError::Closed)));
        assert!(lock(&cdp.inner.pending).is_empty());
    }
}
