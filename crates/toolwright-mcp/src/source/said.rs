//! What a server wrote for people last: when it does not start, that says why.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_core::text::{clip, visible};

/// The last lines. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Said(Arc<Mutex<VecDeque<String>>>);

impl Said {
    /// How many lines are kept, and how many bytes of each.
    const LINES: usize = 10;
    const EACH: usize = 500;

    pub(super) fn add(&self, line: &str) {
        let line = visible(&clip(line, Self::EACH));
        let mut lines = self.kept();
        if lines.back() == Some(&line) {
            return;
        }
        if lines.len() >= Self::LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.kept().iter().cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
