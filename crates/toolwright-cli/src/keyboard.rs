//! Lines of the person at the terminal, for as long as somebody waits for them.

use std::cell::RefCell;
use std::io::BufRead as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

/// How often to look whether the answer is still wanted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

thread_local! {
    /// Lives as long as somebody waits for what this thread asks.
    static WANTED: RefCell<Weak<()>> = const { RefCell::new(Weak::new()) };
}

/// True once a chat has the keyboard to itself.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the keyboard to a chat, for good: its keys are read elsewhere, and nobody can be asked for a line any more.
pub fn take() {
    TAKEN.store(true, Ordering::Relaxed);
}

/// True when nobody can be asked for a line, because a chat reads all keys.
pub fn is_taken() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// Asks on a thread that may wait for a person. When nobody waits for the answer any more, as after Ctrl-C, the lines of
/// the question end.
pub async fn ask<T: Send + 'static>(
    question: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let wanted = Arc::new(());
    let told = Arc::downgrade(&wanted);
    let asking = tokio::task::spawn_blocking(move || {
        WANTED.set(told);
        question()
    });
    let answer = asking.await;
    drop(wanted);
    answer
}

/// Forgets what was typed so far: it was no answer to a question that nobody had seen. A terminal hands out one line at a
/// time, so nothing of it waits in this program.
pub fn forget() {
    // What is no terminal has nothing to forget.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

/// The next line; `None` when there is nobody, or nobody who waits for it, or a chat reads all lines. Only inside [`ask`].
pub fn line() -> Option<String> {
    let wanted = || WANTED.with_borrow(|wanted| wanted.strong_count() > 0);
    let stdin = std::io::stdin();
    loop {
        if is_taken() || !wanted() {
            return None;
        }
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    matches!(read, Ok(1..)).then(|| line.trim().to_owned())
}
