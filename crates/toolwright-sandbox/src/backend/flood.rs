//! Output beyond the limit, drained by a thread of its own.
//!
//! A pipe that is waited for by the reactor wakes it with every write, which costs both sides more than the bytes do. A
//! stream that has passed the limit is therefore taken off the reactor and looked at every tenth of a millisecond, which a
//! wide pipe bridges, by a thread that does nothing else; the async threads meanwhile keep the time. A stream that falls
//! silent goes back to them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::net::unix::pipe;

use crate::capture::Capture;
use crate::sys;

/// How long to wait between looks. At full speed this is a third of a pipe of [`WIDE`] bytes.
const PAUSE: Duration = Duration::from_micros(100);
/// After so many looks without a byte the stream is silent.
const SILENT_LOOKS: usize = 100;
/// The most reads in one look, so that whoever wants the capture gets it.
const READS: usize = 64;
/// Only a pipe this wide is worth it.
pub(crate) const WIDE: usize = 1024 * 1024;

/// A capture while a thread fills it. The owner can take it out at any time; the thread then stops.
#[derive(Debug)]
pub(crate) struct Lent(Mutex<Option<Capture>>);

impl Lent {
    pub(crate) fn new(capture: Capture) -> Arc<Lent> {
        Arc::new(Lent(Mutex::new(Some(capture))))
    }

    pub(crate) fn take(&self) -> Option<Capture> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// How a look, or the whole of them, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The stream is over, or nobody wants it any more.
    Over,
    /// Bytes came.
    Busy,
    /// Nothing came.
    Silent,
}

/// Drains a stream until it ends, or falls silent and is given back.
pub(crate) async fn drain(from: pipe::Receiver, lent: Weak<Lent>) -> Option<pipe::Receiver> {
    let fd = from.into_nonblocking_fd().ok()?;
    let watched = tokio::task::spawn_blocking(move || (watch(&fd, &lent), fd)).await;
    match watched {
        Ok((Look::Silent | Look::Busy, fd)) => pipe::Receiver::from_owned_fd(fd).ok(),
        _ => None,
    }
}

fn watch(fd: &OwnedFd, lent: &Weak<Lent>) -> Look {
    let mut silent = 0;
    while silent < SILENT_LOOKS {
        match lent.upgrade().map_or(Look::Over, |lent| look(fd, &lent)) {
            Look::Over => return Look::Over,
            Look::Busy => silent = 0,
            Look::Silent => silent += 1,
        }
        std::thread::sleep(PAUSE);
    }
    Look::Silent
}

/// Reads what is there.
fn look(fd: &OwnedFd, lent: &Lent) -> Look {
    let mut capture = lent.0.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(capture) = capture.as_mut() else { return Look::Over };
    for read in 0..READS {
        match sys::read(fd.as_fd(), capture.space()) {
            Ok(0) => return Look::Over,
            Ok(count) => drop(capture.filled(count)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return if read == 0 { Look::Silent } else { Look::Busy };
            }
            Err(_) => return Look::Over,
        }
    }
    Look::Busy
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
        let lent = Lent::new(Capture::new(1 << 20));
        write.write_all(b"some").unwrap();
        assert_eq!(watch(&read, &Arc::downgrade(&lent)), Look::Silent);
        write.write_all(b" more").unwrap();
        drop(write);
        assert_eq!(watch(&read, &Arc::downgrade(&lent)), Look::Over);
        assert_eq!(lent.take().unwrap().finish().text, "some more");
        let (read, _write) = pipe();
        assert_eq!(watch(&read, &Arc::downgrade(&lent)), Look::Over);
        assert_eq!(watch(&read, &Weak::new()), Look::Over);
    }
}
