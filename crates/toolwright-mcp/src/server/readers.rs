//! Counts the readers of a stream of messages. A client over HTTP may lose its connection and come back, so a
//! stream without readers is abandoned only after a while.

use std::time::Duration;

use tokio::sync::watch;

/// The readers of a stream. Cloning is cheap; clones count together.
#[derive(Clone)]
pub(super) struct Readers {
    count: watch::Sender<usize>,
    /// How long a client may take to come back.
    patience: Duration,
}

impl Readers {
    pub(super) fn new(patience: Duration) -> Self {
        Readers { count: watch::Sender::new(0), patience }
    }

    /// Counts one more until the guard is dropped.
    pub(super) fn enter(&self) -> ReaderGuard {
        self.count.send_modify(|count| *count += 1);
        ReaderGuard(self.count.clone())
    }

    /// Waits until nobody has read for as long as a client may take to come back.
    pub(super) async fn gone(&self) {
        let mut count = self.count.subscribe();
        // The sender is ours, so waiting cannot fail.
        while count.wait_for(|count| *count == 0).await.is_ok() {
            let back = count.wait_for(|count| *count > 0);
            if tokio::time::timeout(self.patience, back).await.is_err() {
                return;
            }
        }
    }
}

/// One reader, until it is dropped.
pub(super) struct ReaderGuard(watch::Sender<usize>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_is_gone_when_it_does_not_come_back_in_time() {
        let (second, start) = (Duration::from_secs(1), tokio::time::Instant::now());
        let readers = Readers::new(second * 60);
        let reading = readers.enter();
        let coming_and_going = async {
            tokio::time::sleep(second * 600).await;
            drop(reading);
            tokio::time::sleep(second * 59).await;
            let _again = readers.enter();
            tokio::time::sleep(second * 600).await;
        };
        tokio::join!(readers.gone(), coming_and_going);
        assert_eq!(start.elapsed().as_secs(), 600 + 59 + 600 + 60);
    }
}
