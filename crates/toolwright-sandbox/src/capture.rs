//! Output of a command in bounded memory: everything up to the limit, head and tail beyond it.
//!
//! The first half mebibyte and the last are kept in memory, and bytes are read to where they are kept,
//! without a copy on the way. What lies between goes to a file without a name as long as the whole may still
//! fit the limit, and is forgotten the moment it does not, so that many floods at once cost little.

use std::fs::File;
use std::io::{Read, Seek, Write};

/// How much of each end is kept of output beyond the limit.
pub(crate) const KEPT_END: usize = 512 * 1024;
/// The most that is read at once.
pub(crate) const CHUNK: usize = 128 * 1024;
/// What is read at once at first. Most commands say little, and fresh memory costs more than the rest of
/// their output.
const FIRST: usize = 4 * 1024;
/// The latest bytes go round in here; one read never reaches into the last `KEPT_END` of them.
const RING: usize = KEPT_END + CHUNK;

/// Collects one stream. The default keeps nothing but the ends; it is the placeholder of a capture that was
/// lent out.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    limit: usize,
    /// Grows with what comes.
    head: Vec<u8>,
    head_length: usize,
    middle: Middle,
    /// There is none before the head is full.
    ring: Vec<u8>,
    /// Where the next byte goes.
    at: usize,
    /// How many bytes before that count.
    have: usize,
    total: u64,
}

#[derive(Debug, Default)]
enum Middle {
    /// Head and ring are all there is.
    #[default]
    None,
    /// What was pushed out of the ring, in order.
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
    /// Whether bytes that are not UTF-8 were replaced.
    pub(crate) replaced: bool,
}

impl Capture {
    pub(crate) fn new(limit: usize) -> Self {
        Capture { limit, ..Capture::default() }
    }

    /// Where the next bytes are to be put; never empty.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.head_length < KEPT_END {
            let end = KEPT_END.min(self.head_length + self.head_length.clamp(FIRST, CHUNK));
            if self.head.len() < end {
                self.head.resize(end, 0);
            }
            return self.head.get_mut(self.head_length..end).unwrap_or_default();
        }
        if self.ring.is_empty() {
            self.ring = vec![0; RING];
        }
        let length = CHUNK.min(RING - self.at);
        let pushed_out = (self.have + length).saturating_sub(RING);
        if pushed_out > 0 {
            self.spool(pushed_out);
            self.have -= pushed_out;
        }
        self.ring.get_mut(self.at..self.at + length).unwrap_or_default()
    }

    /// Counts bytes that were put into the space, and shows them.
    pub(crate) fn filled(&mut self, count: usize) -> &[u8] {
        self.total = self.total.saturating_add(count as u64);
        if self.is_over() {
            self.middle = Middle::Dropped;
        }
        if self.head_length < KEPT_END {
            let from = self.head_length;
            self.head_length = KEPT_END.min(from + count);
            return self.head.get(from..self.head_length).unwrap_or_default();
        }
        let from = self.at;
        self.at = (from + count) % RING;
        self.have = RING.min(self.have + count);
        self.ring.get(from..from + count).unwrap_or_default()
    }

    /// Counts bytes that were thrown away unread. What came before them is no longer the end, so at least
    /// `KEPT_END` bytes must follow.
    pub(crate) fn skip(&mut self, count: usize) {
        self.total = self.total.saturating_add(count as u64);
        self.middle = Middle::Dropped;
        self.have = 0;
    }

    /// More came than is kept.
    pub(crate) fn is_over(&self) -> bool {
        self.total > self.limit as u64
    }

    /// Adds output that lies somewhere else.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            if let Some(space) = space.get_mut(..count) {
                space.copy_from_slice(now);
            }
            self.filled(count);
            bytes = later;
        }
    }

    /// The bytes of the ring from `skip` of the oldest on, as the two pieces they lie in.
    fn latest(&self, skip: usize) -> [&[u8]; 2] {
        let length = self.have.saturating_sub(skip);
        let start = (self.at + RING - length) % RING;
        let first = length.min(RING - start);
        let piece = |from: usize, to: usize| self.ring.get(from..to).unwrap_or_default();
        [piece(start, start + first), piece(0, length - first)]
    }

    /// Writes the oldest bytes of the ring to the file, if they may still be wanted.
    fn spool(&mut self, count: usize) {
        if matches!(self.middle, Middle::None) {
            self.middle = spool_file().map_or(Middle::Dropped, Middle::Spooled);
        }
        let Middle::Spooled(mut file) = std::mem::replace(&mut self.middle, Middle::Dropped) else { return };
        let mut left = count;
        let written = self.latest(0).iter().all(|piece| {
            let piece = piece.get(..left.min(piece.len())).unwrap_or_default();
            left -= piece.len();
            file.write_all(piece).is_ok()
        });
        if written {
            self.middle = Middle::Spooled(file);
        }
    }

    /// Ends the collection.
    pub(crate) fn finish(mut self) -> Captured {
        let mut between = Vec::new();
        let whole = match &mut self.middle {
            Middle::None => true,
            Middle::Spooled(file) => file.rewind().and_then(|()| file.read_to_end(&mut between)).is_ok(),
            Middle::Dropped => false,
        };
        let mut head = std::mem::take(&mut self.head);
        head.truncate(self.head_length);
        if whole {
            head.append(&mut between);
            self.latest(0).iter().for_each(|piece| head.extend_from_slice(piece));
            head.shrink_to_fit();
            let (text, replaced) = into_text(head);
            return Captured { text, omitted: 0, replaced };
        }
        let tail = self.latest(self.have.saturating_sub(KEPT_END)).concat();
        let omitted = self.total - (head.len() + tail.len()) as u64;
        if omitted == 0 {
            head.extend(tail);
            let (text, replaced) = into_text(head);
            return Captured { text, omitted, replaced };
        }
        let ((head, one), (tail, other)) = (into_text(head), into_text(tail));
        let text = format!("{head}\n[... {omitted} bytes left out ...]\n{tail}");
        Captured { text, omitted, replaced: one || other }
    }
}

/// Bytes as text, and whether something had to be replaced for that.
fn into_text(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
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
        for size in [1_000, 65_536, CHUNK - 1, CHUNK, 700_000, 5_000_000] {
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
    fn bytes_read_into_place_are_the_same_as_bytes_pushed() {
        let all: Vec<u8> = (0..6_000_000u32).map(|at| b'a' + (at % 23) as u8).collect();
        for (limit, most) in [(10_000_000, 777), (10_000_000, CHUNK), (5_000_000, 99_991), (5_000_000, CHUNK)]
        {
            let mut read = Capture::new(limit);
            let mut from = all.as_slice();
            while !from.is_empty() {
                let space = read.space();
                let count = space.len().min(from.len()).min(most);
                space[..count].copy_from_slice(&from[..count]);
                assert_eq!(read.filled(count), &from[..count]);
                from = &from[count..];
            }
            assert!(read.finish() == capture(limit, &[&all]), "limit {limit}, {most} at once");
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
