//! Questions answered in lines at the terminal, one at a time.

use std::io::BufRead as _;
use std::io::Write as _;
use std::sync::{Arc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

use crate::console::Console;
use crate::lines;

/// How often to check whether the asker still waits.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// One open question. Nothing is locked while it waits for a line: others may still write.
pub struct Dialogue {
    console: Console,
    /// Dropped by the asker when it no longer waits, as after Ctrl-C.
    asker: Weak<()>,
}

impl Console {
    /// Asks on a thread that may block, once no other question is open. Only lines typed after that are
    /// answers. `None` if nobody answers, the asker stops waiting, or a chat reads all keys: then what is
    /// typed is not for this question, and stays.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Dialogue) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let turn = self.question_turn().await;
        if self.chat_reads_keys() {
            return None;
        }
        let asker = Arc::new(());
        let dialogue = Dialogue { console: self.clone(), asker: Arc::downgrade(&asker) };
        let asking = tokio::task::spawn_blocking(move || {
            // Held by the thread, so that the next question begins when this one has let go of the keyboard.
            let _turn = turn;
            dialogue.discard_typed();
            question(&dialogue)
        });
        let answer = asking.await;
        drop(asker);
        answer.ok().flatten()
    }
}

impl Dialogue {
    /// Prints a message, as [`Console::say`] does.
    pub fn say(&self, text: impl std::fmt::Display) {
        self.console.say(text);
    }

    /// Prints text wrapped to the terminal, without a line end; further rows of a line are indented by `hang`
    /// more.
    pub fn print(&self, text: &str, hang: usize) {
        let mut stderr = self.console.stderr().lock();
        let columns = lines::columns(&stderr).unwrap_or(usize::MAX / 2);
        let _ = write!(stderr, "{}", lines::wrapped(text, columns, hang)).and_then(|()| stderr.flush());
    }

    /// Prints the question and reads a line. `None` at EOF, when the asker stopped waiting, or once a chat
    /// reads all keys.
    pub fn line(&self, question: &str) -> Option<String> {
        let mut stderr = self.console.stderr().lock();
        write!(stderr, "{question}").and_then(|()| stderr.flush()).ok()?;
        drop(stderr);
        let stdin = self.console.stdin();
        loop {
            if self.console.chat_reads_keys() || self.asker.strong_count() == 0 {
                return None;
            }
            match poll(&mut [PollFd::new(stdin, PollFlags::IN)], Some(&CHECK_INTERVAL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
        let mut line = String::new();
        let read = stdin.lock().read_line(&mut line);
        matches!(read, Ok(1..)).then(|| line.trim().to_owned())
    }

    /// Discards what was typed before the question was shown: it cannot be an answer. A terminal delivers one
    /// line at a time, so nothing of it is in this program's own buffer.
    fn discard_typed(&self) {
        // Fails where stdin is not a terminal, which has nothing to discard.
        let _ = tcflush(self.console.stdin(), QueueSelector::IFlush);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::console::Output;

    #[tokio::test]
    async fn questions_take_turns_and_one_that_is_given_up_is_not_asked() {
        let console = Console::new(Output::Text);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (answer, answered) = std::sync::mpsc::channel::<()>();
        let asking = console.clone();
        let first = tokio::spawn(async move {
            let question = move |_: &Dialogue| {
                let _ = begun.send(());
                answered.recv().ok()
            };
            asking.ask(question).await
        });
        has_begun.await.unwrap();
        let (shown, was_shown) = std::sync::mpsc::channel();
        let second = console.ask(move |_| shown.send(()).ok());
        assert!(tokio::time::timeout(Duration::from_millis(50), second).await.is_err());
        answer.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Some(()));
        assert_eq!(console.ask(|_| Some(3)).await, Some(3));
        assert!(was_shown.try_recv().is_err());
    }
}
