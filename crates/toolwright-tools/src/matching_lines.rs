//! The lines of a text that match, each with lines around it, within a bound for all of them.
//!
//! A model chooses how many matches and how many lines around each it wants. The same lines are around many
//! matches, so what is copied is counted before it is copied: what is beyond the bound is counted and left
//! out.

use std::ops::Range;

use regex::Regex;
use toolwright_core::text::clip;

/// The most bytes of one line that are given back.
const LONGEST_LINE: usize = 2000;
/// How much memory all matches of a call may take.
const ROOM: usize = 64 << 20;
/// What a line, and what a match, takes beside its texts.
const OF_A_LINE: usize = 64;
const OF_A_HIT: usize = 512;

/// A line that matches.
pub(crate) struct Hit {
    /// From 1.
    pub(crate) number: usize,
    pub(crate) line: String,
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

/// How many matches are wanted, and how much more may be given back.
pub(crate) struct Wanted {
    most: usize,
    before: usize,
    after: usize,
    room: usize,
    /// Matches that were wanted and left out because there was no room for them.
    pub(crate) left_out: usize,
}

impl Wanted {
    pub(crate) fn new(most: usize, before: usize, after: usize) -> Wanted {
        Wanted { most, before, after, room: ROOM, left_out: 0 }
    }

    /// Hands over the matches of a text that are still wanted; all of them are counted.
    pub(crate) fn find(
        &mut self,
        pattern: &Regex,
        path: &str,
        text: &str,
        mut tell: impl FnMut(Hit),
    ) -> usize {
        let mut total = 0;
        let mut start = 0;
        for (index, whole) in text.split_inclusive('\n').enumerate() {
            if pattern.is_match(bare(whole)) {
                total += 1;
                if let Some(hit) = self.hit(path, text, start..start + whole.len(), index + 1) {
                    tell(hit);
                }
            }
            start += whole.len();
        }
        total
    }

    fn hit(&mut self, path: &str, text: &str, at: Range<usize>, number: usize) -> Option<Hit> {
        if !self.admits(path.len()) {
            return None;
        }
        let hit = self.copy(text, at, number);
        if hit.is_none() {
            self.leave_out();
        }
        hit
    }

    /// Whether one more match is wanted, and there is room for it and so many bytes.
    pub(crate) fn admits(&mut self, bytes: usize) -> bool {
        if self.most == 0 {
            return false;
        }
        self.most -= 1;
        match self.room.checked_sub(bytes + OF_A_HIT) {
            Some(room) => self.room = room,
            None => self.leave_out(),
        }
        self.room > 0
    }

    /// Smaller ones that follow are left out as well: what is given back is the beginning of what was found.
    fn leave_out(&mut self) {
        (self.room, self.left_out) = (0, self.left_out + 1);
    }

    fn copy(&mut self, text: &str, at: Range<usize>, number: usize) -> Option<Hit> {
        let (before, after) = (text.get(..at.start)?, text.get(at.end..)?);
        let line = self.take(text.get(at)?)?;
        let mut earlier = Vec::new();
        for line in before.split_inclusive('\n').rev().take(self.before) {
            earlier.push(self.take(line)?);
        }
        earlier.reverse();
        let mut later = Vec::new();
        for line in after.split_inclusive('\n').take(self.after) {
            later.push(self.take(line)?);
        }
        Some(Hit { number, line, before: earlier, after: later })
    }

    /// A line that still fits, cut when it is long.
    fn take(&mut self, line: &str) -> Option<String> {
        let line = bare(line);
        self.room = self.room.checked_sub(line.len().min(LONGEST_LINE) + OF_A_LINE)?;
        Some(cut(line))
    }
}

/// The beginning of a line.
pub(crate) fn cut(line: &str) -> String {
    clip(line, LONGEST_LINE)
}

/// A line without its ending.
fn bare(line: &str) -> &str {
    line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, most: usize, before: usize, after: usize) -> (usize, usize, Vec<Hit>) {
        let mut wanted = Wanted::new(most, before, after);
        let mut hits = Vec::new();
        let total = wanted.find(&Regex::new("x").unwrap(), "f", text, |hit| hits.push(hit));
        (total, wanted.left_out, hits)
    }

    #[test]
    fn a_match_comes_with_the_lines_around_it() {
        let (total, left_out, hits) = found("a\r\nb\nx1\nc\n\nx2", 9, 2, 1);
        assert_eq!((total, left_out), (2, 0));
        let told: Vec<_> = hits.iter().map(|hit| (hit.number, hit.line.as_str())).collect();
        assert_eq!(told, [(3, "x1"), (6, "x2")]);
        assert_eq!(
            (&hits[0].before[..], &hits[0].after[..]),
            (&["a", "b"].map(String::from)[..], &["c".into()][..])
        );
        assert_eq!((&hits[1].before[..], hits[1].after.len()), (&["c", ""].map(String::from)[..], 0));
    }

    #[test]
    fn what_is_around_many_matches_is_not_copied_without_end() {
        let text = "x\n".repeat(20_000);
        let (total, left_out, hits) = found(&text, 15_000, 1000, 1000);
        assert_eq!((total, hits.len() + left_out), (20_000, 15_000));
        let lines: usize = hits.iter().map(|hit| 1 + hit.before.len() + hit.after.len()).sum();
        assert!(!hits.is_empty() && lines * OF_A_LINE <= ROOM, "{lines}");
    }
}
