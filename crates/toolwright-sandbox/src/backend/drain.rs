//! Output beyond the limit, drained by a thread of its own.
//!
//! A pipe that is waited for by the reactor wakes it with every write, which costs both sides more than the
//! bytes do. A stream that has passed the limit is therefore taken off the reactor and looked at every tenth
//! of a millisecond, which a wide pipe bridges, by a thread that does nothing else; the async threads
//! meanwhile keep the time. Of such a stream only the end will be wanted, and that is whatever waits in the
//! pipe last: all that waits before it is thrown away by the kernel, without being copied. A stream that
//! falls silent is read, and goes back to the reactor.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use toolwright_util::lock;

use tokio::net::unix::pipe;

use crate::capture::{Capture, KEPT_END};
use crate::sys;

/// The pause between passes. At full speed this is a third of a pipe of [`WIDE`] bytes.
const PAUSE: Duration = Duration::from_micros(100);
/// After this many passes without a byte the stream is silent.
const SILENT_LOOKS: usize = 100;
/// The most reads in one pass, so that the owner of the capture can take the lock.
const READS: usize = 64;
/// Only a pipe this wide is worth it.
pub(crate) const WIDE: usize = 1024 * 1024;

/// A capture while a thread fills it. The owner can take it out at any time; the thread then stops.
#[derive(Debug)]
pub(crate) struct SharedCapture(Mutex<Option<Capture>>);

impl SharedCapture {
    pub(crate) fn new(capture: Capture) -> Arc<SharedCapture> {
        Arc::new(SharedCapture(Mutex::new(Some(capture))))
    }

    pub(crate) fn take(&self) -> Option<Capture> {
        lock(&self.0).take()
    }
}

/// How one pass over the pipe, or all of them, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrainStatus {
    /// The stream is over, or its capture was dropped.
    Over,
    /// Bytes came.
    Busy,
    /// Nothing came.
    Silent,
}

/// Drains a stream until it ends, or falls silent and is given back.
pub(crate) async fn drain(from: pipe::Receiver, lent: Weak<SharedCapture>) -> Option<pipe::Receiver> {
    let fd = from.into_nonblocking_fd().ok()?;
    let watched = tokio::task::spawn_blocking(move || (watch(&fd, &lent), fd)).await;
    match watched {
        Ok((DrainStatus::Silent | DrainStatus::Busy, fd)) => pipe::Receiver::from_owned_fd(fd).ok(),
        _ => None,
    }
}

fn watch(fd: &OwnedFd, lent: &Weak<SharedCapture>) -> DrainStatus {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null").ok();
    let (mut silent, mut left) = (0, 0);
    while silent < SILENT_LOOKS {
        let Some(lent) = lent.upgrade() else { return DrainStatus::Over };
        match look(fd, nowhere.as_ref(), &lent, &mut left) {
            DrainStatus::Over => return DrainStatus::Over,
            DrainStatus::Busy => silent = 0,
            DrainStatus::Silent => silent += 1,
        }
        drop(lent);
        std::thread::sleep(PAUSE);
    }
    DrainStatus::Silent
}

/// Discards all waiting bytes but the end, which stays in the pipe (`left`) and is read once nothing follows
/// it.
fn look(fd: &OwnedFd, nowhere: Option<&File>, lent: &SharedCapture, left: &mut usize) -> DrainStatus {
    let mut capture = lock(&lent.0);
    let Some(capture) = capture.as_mut() else { return DrainStatus::Over };
    let before = std::mem::take(left);
    let waiting = sys::waiting(fd.as_fd()).unwrap_or(0);
    if let Some(nowhere) = nowhere.filter(|_| capture.is_over() && waiting > before) {
        *left = waiting;
        let Some(beyond) = waiting.checked_sub(KEPT_END) else { return DrainStatus::Busy };
        if let Ok(moved) = sys::splice(fd.as_fd(), nowhere.as_fd(), beyond) {
            capture.skip(moved);
            *left -= moved;
            return DrainStatus::Busy;
        }
        *left = 0;
    }
    read(fd, capture)
}

/// Reads what is there.
fn read(fd: &OwnedFd, capture: &mut Capture) -> DrainStatus {
    for read in 0..READS {
        match sys::read(fd.as_fd(), capture.space()) {
            Ok(0) => return DrainStatus::Over,
            Ok(count) => drop(capture.filled(count)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return if read == 0 { DrainStatus::Silent } else { DrainStatus::Busy };
            }
            Err(_) => return DrainStatus::Over,
        }
    }
    DrainStatus::Busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn pipe() -> (OwnedFd, std::fs::File) {
        let (read, write) = sys::pipe().unwrap();
        sys::set_nonblocking(read.as_fd(), true).unwrap();
        (read, write.into())
    }

    #[test]
    fn a_stream_is_watched_until_it_ends_falls_silent_or_is_not_wanted() {
        let (read, mut write) = pipe();
        let lent = SharedCapture::new(Capture::new(1 << 20));
        write.write_all(b"some").unwrap();
        assert_eq!(watch(&read, &Arc::downgrade(&lent)), DrainStatus::Silent);
        write.write_all(b" more").unwrap();
        drop(write);
        assert_eq!(watch(&read, &Arc::downgrade(&lent)), DrainStatus::Over);
        assert_eq!(lent.take().unwrap().finish().text, "some more");
        let (read, _write) = pipe();
        assert_eq!(watch(&read, &Arc::downgrade(&lent)), DrainStatus::Over);
        assert_eq!(watch(&read, &Weak::new()), DrainStatus::Over);
    }

    #[test]
    fn head_and_tail_are_those_of_the_stream_whatever_is_thrown_away_between() {
        let limit = 1 << 20;
        for (size, width) in
            [(9_000_001, 100), (9_000_001, 65_536), (1_500_000, 4_096), (50_000_000, 1 << 20)]
        {
            let all: Vec<u8> = (0..size).map(|at: u32| b'a' + (at / 7 % 23) as u8).collect();
            let (start, rest) = all.split_at(limit + 1);
            let mut capture = Capture::new(limit);
            capture.push(start);
            let lent = SharedCapture::new(capture);
            let (read, mut write) = pipe();
            sys::widen_pipe(read.as_fd(), WIDE);
            std::thread::scope(|scope| {
                // Single bytes at the end, so that the stream ends slowly.
                let (fast, slow) = rest.split_at(rest.len() - 1_000);
                scope.spawn(move || {
                    fast.chunks(width)
                        .chain(slow.chunks(1))
                        .for_each(|piece| write.write_all(piece).unwrap());
                });
                while watch(&read, &Arc::downgrade(&lent)) != DrainStatus::Over {}
            });
            let mut whole = Capture::new(limit);
            whole.push(&all);
            assert!(lent.take().unwrap().finish() == whole.finish(), "{size} bytes in pieces of {width}");
        }
    }
}
