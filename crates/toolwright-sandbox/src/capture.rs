//! Output of a command in bounded memory: everything up to the limit, head and tail beyond it.
//!
//! The first half mebibyte and the last are kept in memory. What lies between goes to a file without a name as long as
//! the whole may still fit the limit, and is forgotten the moment it does not, so that many floods at once cost little.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};

/// How much of each end is kept of output beyond the limit.
pub(crate) const KEPT_END: usize = 512 * 1024;

/// Collects one stream.
#[derive(Debug)]
pub(crate) struct Capture {
    limit: usize,
    head: Vec<u8>,
    middle: Middle,
    tail: VecDeque<u8>,
    total: u64,
}

#[derive(Debug)]
enum Middle {
    /// Head and tail are all there is.
    None,
    /// What was pushed out of the tail, in order.
    Spooled(File),
    /// The limit was passed, or there was nowhere to keep it.
    Dropped,
}

/// What was collected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// The text, with a line in the middle that says what is missing, if anything is.
    pub(crate) text: String,
    /// How many bytes are missing.
    pub(crate) omitted: u64,
}

impl Capture {
    pub(crate) fn new(limit: usize) -> Self {
        Capture { limit, head: Vec::new(), middle: Middle::None, tail: VecDeque::new(), total: 0 }
    }

    /// Adds output.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        if self.total > self.limit as u64 {
            self.middle = Middle::Dropped;
        }
        let room = KEPT_END.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        bytes = rest;
        if bytes.len() > KEPT_END {
            let (passing, last) = bytes.split_at(bytes.len() - KEPT_END);
            let (old, also_old) = self.tail.as_slices();
            let (old, also_old) = (old.to_vec(), also_old.to_vec());
            self.tail.clear();
            self.spool(&[&old, &also_old, passing]);
            bytes = last;
        }
        let overflow = (self.tail.len() + bytes.len()).saturating_sub(KEPT_END);
        if overflow > 0 {
            if matches!(self.middle, Middle::Dropped) {
                self.tail.drain(..overflow);
            } else {
                let pushed_out: Vec<u8> = self.tail.drain(..overflow).collect();
                self.spool(&[&pushed_out]);
            }
        }
        self.tail.extend(bytes);
    }

    fn spool(&mut self, parts: &[&[u8]]) {
        if matches!(self.middle, Middle::None) {
            self.middle = spool_file().map_or(Middle::Dropped, Middle::Spooled);
        }
        if let Middle::Spooled(file) = &mut self.middle
            && parts.iter().any(|part| file.write_all(part).is_err())
        {
            self.middle = Middle::Dropped;
        }
    }

    /// Ends the collection.
    pub(crate) fn finish(self) -> Captured {
        let Capture { mut head, middle, tail, total, .. } = self;
        let mut between = Vec::new();
        if let Middle::Spooled(mut file) = middle {
            let read = file.rewind().and_then(|()| file.read_to_end(&mut between));
            if read.is_err() {
                between.clear();
            }
        }
        let kept = (head.len() + between.len() + tail.len()) as u64;
        let omitted = total - kept.min(total);
        if omitted == 0 {
            head.append(&mut between);
            head.extend(tail);
            return Captured { text: into_text(head), omitted };
        }
        let (tail, _) = (Vec::from(tail), ());
        let text = format!("{}\n[... {omitted} bytes left out ...]\n{}", into_text(head), into_text(tail));
        Captured { text, omitted }
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// A file that never has a name: in the temporary folder where that is possible, else in memory.
fn spool_file() -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let options = || std::fs::OpenOptions::new().read(true).write(true).mode(0o600).to_owned();
    let in_folder = options().custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC).open(std::env::temp_dir());
    in_folder.or_else(|_| {
        // SAFETY: the name is a NUL-terminated constant.
        let fd = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
        crate::sys::check(fd.into()).map(|fd| File::from(crate::sys::own(fd)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limit: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limit);
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn everything_up_to_the_limit_is_kept_in_order() {
        let all: Vec<u8> = (0..5_000_000u32).map(|at| b'a' + (at % 23) as u8).collect();
        for size in [1_000, 65_536, 700_000, 5_000_000] {
            let pieces: Vec<&[u8]> = all.chunks(size).collect();
            let got = capture(5_000_000, &pieces);
            assert_eq!(got.omitted, 0);
            assert!(got.text.as_bytes() == all, "pieces of {size}");
        }
    }

    #[test]
    fn beyond_the_limit_head_and_tail_stay_and_the_count_is_exact() {
        let all: Vec<u8> = (0..9_000_000u32).map(|at| b'a' + (at % 23) as u8).collect();
        for size in [999, 65_536, 3_000_000, 9_000_000] {
            let pieces: Vec<&[u8]> = all.chunks(size).collect();
            let got = capture(5_000_000, &pieces);
            assert_eq!(got.omitted, 9_000_000 - 2 * KEPT_END as u64);
            assert!(got.text.as_bytes().starts_with(&all[..KEPT_END]));
            assert!(got.text.as_bytes().ends_with(&all[all.len() - KEPT_END..]));
            assert!(got.text.contains("\n[... 7951424 bytes left out ...]\n"));
        }
    }

    #[test]
    fn broken_text_is_replaced_not_refused() {
        assert_eq!(capture(100, &[b"a\xff\xfeb"]).text, "a\u{fffd}\u{fffd}b");
        assert_eq!(
            capture(100, &["\u{e9}".as_bytes().split_at(1).0, "\u{e9}".as_bytes().split_at(1).1]).text,
            "\u{e9}"
        );
    }
}
