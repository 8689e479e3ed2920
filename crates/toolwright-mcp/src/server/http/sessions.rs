//! The sessions of the older era, by the id each client was given.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolwright_core::CancelToken;

use super::stream::Stream;
use crate::random::random_name;
use crate::server::readers::Readers;
use crate::server::session::Session;

/// How long a session is kept without a request.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How many streams of one session are kept for a client that may come back.
const MAX_STREAMS: usize = 64;

/// How many bytes of complete streams one session keeps.
const MAX_BYTES: usize = 20 * 1024 * 1024;

pub(super) struct Sessions {
    known: Mutex<HashMap<String, Arc<HttpSession>>>,
    most: usize,
}

pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    /// Who began it; nobody else may use it.
    subject: Arc<str>,
    used: Mutex<Instant>,
    streams: Mutex<HashMap<u64, Arc<Stream>>>,
    next_stream: AtomicU64,
    /// Fires when the streams that never end by themselves are to be closed.
    closing: CancelToken,
    /// Closes the stream the client listens on.
    listening: Mutex<CancelToken>,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Sessions { known: Mutex::default(), most }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a new session; `None` when none may be kept.
    pub(super) fn add(&self, session: Arc<Session>, subject: Arc<str>) -> Option<String> {
        let mut known = self.known();
        if known.len() >= self.most {
            known.retain(|_, session| !session.has_expired());
        }
        if known.len() >= self.most {
            // Nobody can keep others out by beginning sessions, nor by leaving calls behind in them: whoever has most of
            // them loses the one that rested longest, and when all are busy the oldest of those, with its calls. Its
            // client is told that it is gone, and begins a new one.
            let crowded =
                |subject: &Arc<str>| known.values().filter(|other| other.subject == *subject).count();
            let mut counts: HashMap<&Arc<str>, usize> = HashMap::new();
            let oldest = known.iter().min_by_key(|(_, session)| {
                let count = counts.entry(&session.subject).or_insert_with(|| crowded(&session.subject));
                (std::cmp::Reverse(*count), !session.is_idle(), session.last_used())
            });
            let id = oldest.map(|(id, _)| id.clone())?;
            known.remove(&id).inspect(|session| session.end());
        }
        let id = random_name();
        let session = HttpSession {
            session,
            subject,
            used: Mutex::new(Instant::now()),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            closing: CancelToken::new(),
            listening: Mutex::default(),
        };
        known.insert(id.clone(), Arc::new(session));
        Some(id)
    }

    /// The session of that id, for the client that began it.
    pub(super) fn get(&self, id: &str, subject: &Arc<str>) -> Option<Arc<HttpSession>> {
        let session = self.known().get(id).filter(|session| session.subject == *subject).cloned()?;
        *session.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Some(session)
    }

    /// Ends a session; false when there is none.
    pub(super) fn end(&self, id: &str, subject: &Arc<str>) -> bool {
        let mut known = self.known();
        if known.get(id).is_none_or(|session| session.subject != *subject) {
            return false;
        }
        known.remove(id).inspect(|session| session.end());
        true
    }

    /// Closes the streams on which clients only listen.
    pub(super) fn end_streams(&self) {
        self.known().values().for_each(|session| session.closing.cancel());
    }

    pub(super) fn clear(&self) {
        self.known().drain().for_each(|(_, session)| session.end());
    }
}

impl HttpSession {
    /// Stops what the client asked for. Its calls hold the session as well, so they must be told.
    fn end(&self) {
        self.session.ended.cancel();
        self.closing.cancel();
    }

    fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        self.session.calls().is_empty()
    }

    fn has_expired(&self) -> bool {
        self.last_used().elapsed() >= IDLE && self.is_idle()
    }

    /// Begins to listen; fires when that is over. A message goes out on one stream only, so the one before is closed: its
    /// client has lost it, or it would not ask for another.
    pub(super) fn listen(&self) -> CancelToken {
        let listening = self.closing.child_token();
        let mut current = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, listening.clone()).cancel();
        listening
    }

    /// A new stream, which a client that lost its connection finds again.
    pub(super) fn new_stream(&self, readers: Readers) -> Arc<Stream> {
        let stream = Arc::new(Stream::new(self.next_stream.fetch_add(1, Ordering::Relaxed), readers));
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        while streams.len() >= MAX_STREAMS {
            // The oldest that is complete; only when none is, the oldest of all.
            let oldest =
                streams.values().min_by_key(|stream| (!stream.is_done(), stream.id())).map(|old| old.id());
            let Some(oldest) = oldest else { break };
            streams.remove(&oldest);
        }
        let mut kept: usize = streams.values().map(|stream| stream.bytes()).sum();
        while kept > MAX_BYTES {
            let oldest = streams.values().filter(|stream| stream.is_done()).min_by_key(|stream| stream.id());
            let Some((id, bytes)) = oldest.map(|old| (old.id(), old.bytes())) else { break };
            streams.remove(&id);
            kept -= bytes;
        }
        streams.insert(stream.id(), stream.clone());
        stream
    }

    pub(super) fn stream(&self, id: u64) -> Option<Arc<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        self.end();
    }
}
