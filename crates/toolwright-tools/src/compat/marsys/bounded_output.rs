//! Output in bounded memory: all of it up to the limit, its two ends beyond.

use std::collections::VecDeque;

use toolwright_core::MAX_EXEC_OUTPUT;

const HALF: usize = MAX_EXEC_OUTPUT / 2;
/// How many bytes of each end of longer output are returned.
const END: usize = 512 * 1024;

/// What a program printed.
#[derive(Default)]
pub(super) struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    lost: u64,
}

impl BoundedOutput {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
        self.lost += over as u64;
    }

    /// How many bytes are missing in the text.
    pub(super) fn omitted(&self) -> u64 {
        match self.lost {
            0 => 0,
            lost => lost + (self.head.len() + self.tail.len() - 2 * END) as u64,
        }
    }

    /// The text, with a line in the middle that says what is missing, if anything is.
    pub(super) fn text(mut self) -> String {
        let omitted = self.omitted();
        if omitted == 0 {
            self.head.extend(self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let tail: Vec<u8> = self.tail.split_off(self.tail.len().saturating_sub(END)).into();
        let head = String::from_utf8_lossy(self.head.get(..END).unwrap_or_default());
        format!("{head}\n[... {omitted} bytes left out ...]\n{}", String::from_utf8_lossy(&tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_flood_are_kept() {
        let mut kept = BoundedOutput::default();
        kept.push(b"first");
        kept.push(&vec![b'x'; MAX_EXEC_OUTPUT - 5]);
        assert_eq!(kept.omitted(), 0);
        for _ in 0..20 {
            kept.push(&vec![b'y'; 1 << 20]);
        }
        kept.push(b"last");
        let omitted = kept.omitted();
        assert_eq!(omitted as usize, MAX_EXEC_OUTPUT + (20 << 20) + 4 - 2 * END);
        let text = kept.text();
        assert!(text.starts_with("first") && text.ends_with("last") && text.len() < 2 * END + 100);
    }
}
