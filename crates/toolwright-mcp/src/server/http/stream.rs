//! The events of one request, kept so that a client that lost its connection can go on where it was.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use toolwright_core::CancelToken;
use toolwright_util::lock;

use super::body::{self, ResponseBody};
use crate::server::readers::Readers;
/// How many bytes of a stream are kept; the oldest events go first. The largest message has room.
const MAX_BYTES: usize = 20 * 1024 * 1024;

/// How many bytes of all streams together are kept: a few of the largest messages. Beyond them complete
/// streams are forgotten, and the others keep their latest events only.
pub(super) const MAX_BYTES_IN_ALL: usize = 64 * 1024 * 1024;

/// How many bytes those are.
const FEW_BYTES: usize = 1024 * 1024;

/// How long a client waits before it comes back, in milliseconds.
const RETRY: u32 = 500;

/// A stream says something at least this often.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(super) struct EventStream {
    id: u64,
    kept: Mutex<EventBuffer>,
    grown: Notify,
    readers: Readers,
    /// The bytes of all streams.
    in_all: Arc<AtomicUsize>,
}

#[derive(Default)]
struct EventBuffer {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
    /// Since when nothing is to come any more.
    done: Option<Instant>,
    /// When somebody was first sent everything.
    delivered: Option<Instant>,
}

impl EventStream {
    /// A stream that begins with the event that tells a client from where to go on.
    pub(super) fn new(id: u64, readers: Readers, in_all: Arc<AtomicUsize>) -> Self {
        let stream = EventStream { id, kept: Mutex::default(), grown: Notify::new(), readers, in_all };
        stream.add(|id| body::priming(id, RETRY));
        stream
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// How many bytes it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Since when nothing is to come any more.
    pub(super) fn done(&self) -> Option<Instant> {
        self.kept().done
    }

    /// When somebody was first sent everything.
    pub(super) fn delivered(&self) -> Option<Instant> {
        self.kept().delivered
    }

    fn kept(&self) -> MutexGuard<'_, EventBuffer> {
        lock(&self.kept)
    }

    fn add(&self, event: impl FnOnce(&str) -> Bytes) {
        let mut kept = self.kept();
        let number = kept.next;
        let event = event(&format!("{}-{number}", self.id));
        kept.next += 1;
        kept.bytes += event.len();
        let in_all = self.in_all.fetch_add(event.len(), Ordering::Relaxed) + event.len();
        kept.events.push_back((number, event));
        let most = if in_all > MAX_BYTES_IN_ALL { FEW_BYTES } else { MAX_BYTES };
        while kept.bytes > most && kept.events.len() > 1 {
            let gone = kept.events.pop_front().map_or(0, |(_, event)| event.len());
            kept.bytes -= gone;
            self.in_all.fetch_sub(gone, Ordering::Relaxed);
        }
        drop(kept);
        self.grown.notify_waiters();
    }

    pub(super) fn push(&self, message: &[u8]) {
        self.add(|id| body::event(message, Some(id)));
    }

    pub(super) fn finish(&self) {
        self.kept().done = Some(Instant::now());
        self.grown.notify_waiters();
    }

    /// The events from this one on, as they come, until the stream is done or `hang_up` fires. Clients of
    /// older revisions do not know the first event, which has no content.
    pub(super) fn follow(self: Arc<Self>, mut from: u64, hang_up: CancelToken) -> ResponseBody {
        let (frames, read) = mpsc::channel(16);
        let reading = self.readers.enter();
        tokio::spawn(async move {
            let _reading = reading;
            loop {
                let grown = self.grown.notified();
                tokio::pin!(grown);
                // Listening begins before looking, so that nothing falls between the two.
                grown.as_mut().enable();
                let (ready, done): (Vec<Bytes>, bool) = {
                    let kept = self.kept();
                    let ready = kept.events.iter().filter(|(number, _)| *number >= from);
                    let ready = ready.map(|(_, event)| event.clone()).collect();
                    from = kept.next;
                    (ready, kept.done.is_some())
                };
                for event in ready {
                    if frames.send(event).await.is_err() {
                        return;
                    }
                }
                if done {
                    self.kept().delivered.get_or_insert_with(Instant::now);
                    return;
                }
                if hang_up.is_cancelled() {
                    return;
                }
                tokio::select! {
                    () = grown => {}
                    () = hang_up.cancelled() => {}
                    () = frames.closed() => return,
                    () = tokio::time::sleep(SIGN_OF_LIFE) => {
                        if frames.send(body::sign_of_life()).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
        ResponseBody::Events { frames: read, _gone: None }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.in_all.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

/// The stream and the event an id of ours names.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}
