//! The sessions of the older era, by the id each client was given.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use toolwright_core::CancelToken;
use toolwright_util::lock;

use super::stream::{EventStream, MAX_BYTES_IN_ALL};
use crate::random::random_name;
use crate::server::readers::Readers;
use crate::server::session::Session;
/// How long a session is kept without a request when others want its place, and a result that nobody fetched
/// in any case.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How long a session is kept that nobody uses. A client may be left open for a working day, and not each
/// begins a new session when its own is gone.
const UNUSED: Duration = Duration::from_secs(8 * 60 * 60);

/// How many streams of one session are kept for a client that may come back.
const MAX_STREAMS: usize = 64;

/// How many bytes of complete streams one session keeps. The largest message has room.
const MAX_BYTES: usize = 20 * 1024 * 1024;

pub(super) struct Sessions {
    known: Mutex<HashMap<String, Arc<HttpSession>>>,
    most: usize,
    /// How long a delivered result is kept: its connection may have been lost nevertheless.
    return_time: Duration,
    /// The bytes of all streams.
    bytes: Arc<AtomicUsize>,
}

pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    /// Who began it; nobody else may use it.
    subject: Arc<str>,
    used: Mutex<Instant>,
    streams: Mutex<HashMap<u64, Arc<EventStream>>>,
    next_stream: AtomicU64,
    bytes: Arc<AtomicUsize>,
    /// Fires when the streams that never end by themselves are to be closed.
    closing: CancelToken,
    /// Closes the stream the client listens on.
    listening: Mutex<CancelToken>,
    /// How many such streams there are; there may be two for a moment.
    listeners: AtomicUsize,
}

impl Sessions {
    pub(super) fn new(most: usize, return_time: Duration) -> Self {
        Sessions { known: Mutex::default(), most, return_time, bytes: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        lock(&self.known)
    }

    /// Keeps a new session; `None` when none may be kept.
    pub(super) fn add(&self, session: Arc<Session>, subject: Arc<str>) -> Option<String> {
        let mut known = self.known();
        if known.len() >= self.most {
            known.retain(|_, session| !session.has_rested(IDLE));
        }
        if known.len() >= self.most {
            // A client cannot keep others out by beginning sessions, nor by leaving calls behind in them: the
            // client with the most sessions loses the one that was idle longest, and when all are busy the
            // oldest, with its calls. Its next request gets 404, and it begins a new one.
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
            bytes: self.bytes.clone(),
            closing: CancelToken::new(),
            listening: Mutex::default(),
            listeners: AtomicUsize::new(0),
        };
        known.insert(id.clone(), Arc::new(session));
        Some(id)
    }

    /// The session of that id, for the client that began it.
    pub(super) fn get(&self, id: &str, subject: &Arc<str>) -> Option<Arc<HttpSession>> {
        let session = self.known().get(id).filter(|session| session.subject == *subject).cloned()?;
        session.touch();
        Some(session)
    }

    /// Keeps what a call of the session left, within the bounds. A client that reads it just now gets all of
    /// it.
    pub(super) fn ended(&self, session: &HttpSession) {
        session.touch();
        session.prune();
        if self.bytes.load(Ordering::Relaxed) <= MAX_BYTES_IN_ALL {
            return;
        }
        let sessions: Vec<_> = self.known().values().cloned().collect();
        let mut kept: usize = sessions.iter().map(|session| session.kept()).sum();
        let done = |session: &Arc<HttpSession>| {
            let streams = session.streams();
            let done = streams.values().filter_map(|stream| {
                let since = stream.done()?;
                Some((stream.delivered().is_none(), since, stream.id(), stream.bytes()))
            });
            done.map(|found| (found, session.clone())).collect::<Vec<_>>()
        };
        let mut done: Vec<_> = sessions.iter().flat_map(done).collect();
        done.sort_by_key(|((undelivered, since, ..), _)| (*undelivered, *since));
        for ((_, _, id, bytes), session) in done {
            if kept <= MAX_BYTES_IN_ALL {
                break;
            }
            session.streams().remove(&id);
            kept -= bytes;
        }
    }

    /// Forgets what nobody will ask for any more. It is done from time to time.
    pub(super) fn sweep(&self) {
        self.known().retain(|_, session| {
            session.forget(self.return_time);
            let unused = session.has_rested(UNUSED);
            if unused {
                session.end();
            }
            !unused
        });
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
        *lock(&self.used)
    }

    fn is_idle(&self) -> bool {
        self.session.calls().is_empty()
    }

    fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    /// Whether nothing has happened in it for so long, and nobody listens.
    fn has_rested(&self, time: Duration) -> bool {
        self.last_used().elapsed() >= time && self.is_idle() && self.listeners.load(Ordering::Relaxed) == 0
    }

    /// Begins to listen. A message goes out on one stream only, so the one before is closed: its client has
    /// lost it, or it would not ask for another.
    pub(super) fn listen(self: &Arc<Self>) -> Listening {
        let over = self.closing.child_token();
        let mut current = lock(&self.listening);
        std::mem::replace(&mut *current, over.clone()).cancel();
        self.listeners.fetch_add(1, Ordering::Relaxed);
        Listening { session: self.clone(), over }
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, Arc<EventStream>>> {
        lock(&self.streams)
    }

    /// How many bytes its streams keep.
    fn kept(&self) -> usize {
        self.streams().values().map(|stream| stream.bytes()).sum()
    }

    /// Forgets complete streams until the others are within the bound: those first that were delivered, then
    /// the oldest.
    fn prune(&self) {
        let mut streams = self.streams();
        let mut done: Vec<_> = streams
            .values()
            .filter(|stream| stream.done().is_some())
            .map(|stream| (stream.delivered().is_none(), stream.id(), stream.bytes()))
            .collect();
        done.sort_unstable();
        let mut kept: usize = done.iter().map(|(_, _, bytes)| bytes).sum();
        for (_, id, bytes) in done {
            if kept <= MAX_BYTES {
                break;
            }
            streams.remove(&id);
            kept -= bytes;
        }
    }

    /// Forgets streams that were delivered so long ago, and those that nobody came back for.
    fn forget(&self, return_time: Duration) {
        let past =
            |since: Option<Instant>, time: Duration| since.is_some_and(|since| since.elapsed() >= time);
        self.streams()
            .retain(|_, stream| !past(stream.delivered(), return_time) && !past(stream.done(), IDLE));
    }

    /// A new stream, which a client that lost its connection finds again.
    pub(super) fn new_stream(&self, readers: Readers) -> Arc<EventStream> {
        let stream = Arc::new(EventStream::new(
            self.next_stream.fetch_add(1, Ordering::Relaxed),
            readers,
            self.bytes.clone(),
        ));
        let mut streams = self.streams();
        while streams.len() >= MAX_STREAMS {
            // The oldest that is complete; only when none is, the oldest of all.
            let oldest = streams
                .values()
                .min_by_key(|stream| (stream.done().is_none(), stream.id()))
                .map(|old| old.id());
            let Some(oldest) = oldest else { break };
            streams.remove(&oldest);
        }
        streams.insert(stream.id(), stream.clone());
        stream
    }

    pub(super) fn stream(&self, id: u64) -> Option<Arc<EventStream>> {
        self.streams().get(&id).cloned()
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        self.end();
    }
}

/// A client that listens to its session.
pub(super) struct Listening {
    session: Arc<HttpSession>,
    /// Fires when that is over.
    pub(super) over: CancelToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.touch();
        self.session.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn begin(sessions: &Sessions) -> Arc<HttpSession> {
        let id = sessions.add(Arc::new(Session::new()), "a".into()).unwrap();
        sessions.get(&id, &"a".into()).unwrap()
    }

    fn stream(session: &HttpSession) -> Arc<EventStream> {
        session.new_stream(Readers::new(Duration::ZERO))
    }

    /// A call of the session ends with a result of so many bytes.
    fn end(sessions: &Sessions, session: &HttpSession, stream: &EventStream, bytes: usize) {
        stream.push(&vec![b'x'; bytes]);
        stream.finish();
        sessions.ended(session);
    }

    fn ids(session: &HttpSession) -> Vec<u64> {
        let mut ids: Vec<_> = session.streams().keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn results_of_calls_that_ran_together_are_within_the_bound_when_they_end() {
        let sessions = Sessions::new(10, Duration::from_secs(60));
        let session = begin(&sessions);
        let streams: Vec<_> = (0..10).map(|_| stream(&session)).collect();
        streams.iter().for_each(|stream| end(&sessions, &session, stream, 8 * MIB));
        assert_eq!(ids(&session), [9, 10]);
        drop(streams);
        assert!(sessions.bytes.load(Ordering::Relaxed) <= MAX_BYTES);
    }

    #[tokio::test]
    async fn all_sessions_share_a_bound_and_what_was_delivered_goes_first() {
        let sessions = Sessions::new(100, Duration::from_secs(60));
        let all: Vec<_> = (0..20).map(|_| begin(&sessions)).collect();
        for (index, session) in all.iter().enumerate() {
            let stream = stream(session);
            end(&sessions, session, &stream, 8 * MIB);
            if index == 18 {
                read_all(stream).await;
            }
        }
        assert!(sessions.bytes.load(Ordering::Relaxed) <= MAX_BYTES_IN_ALL);
        let kept: Vec<_> = (0..20).filter(|index| !ids(&all[*index]).is_empty()).collect();
        assert_eq!(kept, [12, 13, 14, 15, 16, 17, 19], "seven of 8 MiB, with what is around them");
    }

    #[test]
    fn streams_without_end_share_the_bound_too() {
        let sessions = Sessions::new(100, Duration::from_secs(60));
        let session = begin(&sessions);
        let streams: Vec<_> = (0..60).map(|_| stream(&session)).collect();
        for _ in 0..40 {
            streams.iter().for_each(|stream| stream.push(&vec![b'x'; MIB / 4]));
        }
        assert!(sessions.bytes.load(Ordering::Relaxed) <= MAX_BYTES_IN_ALL + 60 * MIB);
    }

    #[tokio::test]
    async fn what_was_delivered_is_soon_forgotten_and_what_was_not_is_kept() {
        let sessions = Sessions::new(10, Duration::ZERO);
        let session = begin(&sessions);
        let (read, unread, open) = (stream(&session), stream(&session), stream(&session));
        end(&sessions, &session, &read, 10);
        end(&sessions, &session, &unread, 10);
        read_all(read).await;
        sessions.sweep();
        assert_eq!(ids(&session), [unread.id(), open.id()]);
    }

    #[test]
    fn sessions_that_nobody_uses_end_in_time() {
        let sessions = Sessions::new(10, Duration::ZERO);
        let (unused, heard, busy) = (begin(&sessions), begin(&sessions), begin(&sessions));
        let listening = heard.listen();
        let _call = busy.session.enter(&crate::jsonrpc::Id::Number(1), 1).unwrap();
        let fresh = begin(&sessions);
        let long_ago = Instant::now().checked_sub(UNUSED).unwrap();
        for session in [&unused, &heard, &busy] {
            *session.used.lock().unwrap() = long_ago;
        }
        sessions.sweep();
        let over = [&unused, &heard, &busy, &fresh].map(|session| session.session.ended.is_cancelled());
        assert_eq!((over, sessions.known().len()), ([true, false, false, false], 3));
        drop(listening);
        sessions.sweep();
        assert!(!heard.session.ended.is_cancelled(), "it was used until now");
    }

    async fn read_all(stream: Arc<EventStream>) {
        use http_body_util::BodyExt as _;
        stream.follow(0, CancelToken::new()).collect().await.unwrap();
    }
}
