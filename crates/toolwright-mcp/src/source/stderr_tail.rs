//! The last lines that a server wrote for people: when it fails to start, they show why.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use toolwright_core::text::{clip, visible};

use toolwright_util::lock;

/// The last lines. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    /// How many lines are kept, and how many bytes of each.
    const LINES: usize = 10;
    const EACH: usize = 500;

    pub(super) fn add(&self, line: &str) {
        let line = visible(&clip(line, Self::EACH));
        let mut lines = lock(&self.0);
        if lines.back() == Some(&line) {
            return;
        }
        if lines.len() >= Self::LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        lock(&self.0).iter().cloned().collect()
    }
}
