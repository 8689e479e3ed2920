//! Glyphs become segments (words with small gaps between them), and segments of one baseline become lines of
//! text.

use super::device::Glyph;

/// A gap wider than this share of the type size is a space.
const SPACE: f32 = 0.17;

/// A gap wider than this share of the type size ends a segment: it may be a gutter or the border of a cell.
const BREAK: f32 = 0.9;

/// Words that stand close to each other on one baseline, in the order they were drawn.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) glyphs: Vec<Glyph>,
    pub(super) x0: f32,
    pub(super) x1: f32,
    /// The baseline.
    pub(super) y: f32,
    pub(super) size: f32,
}

impl Segment {
    fn new(glyph: Glyph) -> Self {
        Segment { x0: glyph.x0, x1: glyph.x1, y: glyph.y, size: glyph.size, glyphs: vec![glyph] }
    }

    /// The upper edge of its letters.
    pub(super) fn top(&self) -> f32 {
        self.y - self.size * 0.8
    }

    /// The lower edge of its letters.
    pub(super) fn bottom(&self) -> f32 {
        self.y + self.size * 0.22
    }

    pub(super) fn chars(&self) -> usize {
        self.glyphs.len()
    }
}

/// A line of text.
#[derive(Debug, Clone)]
pub(super) struct TextLine {
    pub(super) segments: Vec<Segment>,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) y: f32,
    pub(super) size: f32,
}

impl TextLine {
    pub(super) fn top(&self) -> f32 {
        self.segments.iter().map(Segment::top).fold(f32::MAX, f32::min)
    }

    pub(super) fn bottom(&self) -> f32 {
        self.segments.iter().map(Segment::bottom).fold(f32::MIN, f32::max)
    }

    pub(super) fn glyphs(&self) -> impl Iterator<Item = &Glyph> {
        self.segments.iter().flat_map(|segment| &segment.glyphs)
    }

    pub(super) fn text(&self) -> String {
        text_of(&self.segments)
    }
}

/// Puts glyphs, in the order they were drawn, into segments.
pub(super) fn segments(glyphs: &[Glyph]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut current: Option<Segment> = None;
    let mut spaced = false;
    for glyph in glyphs {
        if glyph.ch.is_whitespace() || glyph.ch == '\u{a0}' || glyph.ch == '\0' {
            spaced = true;
            continue;
        }
        if glyph.ch.is_control() {
            continue;
        }
        let glyph = Glyph { spaced, ..*glyph };
        spaced = false;
        let joined = current.as_ref().is_some_and(|segment| {
            let size = segment.size.max(glyph.size).max(0.1);
            let gap = glyph.x0 - segment.x1;
            (glyph.y - segment.y).abs() < size * 0.12
                && gap < size * BREAK
                && gap > -size * 0.4
                && (glyph.size - segment.size).abs() < size * 0.25
        });
        match current.as_mut().filter(|_| joined) {
            Some(segment) => {
                segment.x0 = segment.x0.min(glyph.x0);
                segment.x1 = segment.x1.max(glyph.x1);
                segment.glyphs.push(glyph);
            }
            None => segments.extend(current.replace(Segment::new(glyph))),
        }
    }
    segments.extend(current);
    segments
}

/// Puts segments into lines, from top to bottom. Raised and lowered small type belongs to the line beside it.
pub(super) fn lines(mut segments: Vec<Segment>) -> Vec<TextLine> {
    segments.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.x0.total_cmp(&b.x0)));
    let mut rows: Vec<Vec<Segment>> = Vec::new();
    let mut anchors: Vec<(f32, f32)> = Vec::new();
    for segment in segments {
        let last = rows.len();
        // A small raised segment comes before the line it belongs to, so the line may be one of the last two.
        let place = (last.saturating_sub(2)..last).rev().find(|at| {
            let Some((y, size)) = anchors.get(*at) else { return false };
            let (large, small) = (size.max(segment.size), size.min(segment.size));
            let distance = (segment.y - y).abs();
            let beside = rows.get(*at).is_some_and(|row| {
                row.iter()
                    .all(|other| segment.x0 > other.x1 - large * 0.4 || segment.x1 < other.x0 + large * 0.4)
            });
            distance < large * 0.2 || (small < large * 0.82 && distance < large * 0.55 && beside)
        });
        match place.and_then(|at| Some((rows.get_mut(at)?, anchors.get_mut(at)?))) {
            Some((row, anchor)) => {
                if segment.size > anchor.1 {
                    *anchor = (segment.y, segment.size);
                }
                row.push(segment);
            }
            None => {
                anchors.push((segment.y, segment.size));
                rows.push(vec![segment]);
            }
        }
    }
    let line = |mut segments: Vec<Segment>| {
        segments.sort_by(|a, b| a.x0.total_cmp(&b.x0));
        drop_doubles(&mut segments);
        let x0 = segments.iter().map(|segment| segment.x0).fold(f32::MAX, f32::min);
        let x1 = segments.iter().map(|segment| segment.x1).fold(f32::MIN, f32::max);
        // The size of most letters, the baseline of those.
        let main = segments.iter().max_by_key(|segment| segment.chars());
        let (y, size) = main.map_or((0.0, 1.0), |main| (main.y, main.size));
        TextLine { segments, x0, x1, y, size }
    };
    let mut lines: Vec<TextLine> = rows.into_iter().map(line).collect();
    lines.sort_by(|a, b| a.y.total_cmp(&b.y));
    lines
}

/// Bold type is made by some programs by drawing a text twice.
fn drop_doubles(segments: &mut Vec<Segment>) {
    segments.dedup_by(|later, earlier| {
        let slip = earlier.size * 0.15;
        later.chars() == earlier.chars()
            && (later.x0 - earlier.x0).abs() < slip
            && (later.x1 - earlier.x1).abs() < slip
            && later.glyphs.iter().map(|glyph| glyph.ch).eq(earlier.glyphs.iter().map(|glyph| glyph.ch))
    });
}

/// The text of segments that stand side by side, in reading order.
pub(super) fn text_of(segments: &[Segment]) -> String {
    let mut text = String::new();
    let mut last: Option<(f32, f32, char)> = None;
    for segment in segments {
        for (at, glyph) in segment.glyphs.iter().enumerate() {
            if let Some((x1, size, before)) = last {
                let gap = glyph.x0 - x1;
                let size = size.max(glyph.size);
                let wide = gap > size * SPACE && !(is_wide(before) && is_wide(glyph.ch) && gap < size * 0.6);
                let new_segment = at == 0 && gap > size * BREAK;
                if (wide || new_segment || (glyph.spaced && gap > -size * 0.3)) && !text.ends_with(' ') {
                    text.push(' ');
                }
            }
            if glyph.ch != '\u{ad}' || at + 1 == segment.glyphs.len() {
                text.push(glyph.ch);
            }
            last = Some((glyph.x1, glyph.size, glyph.ch));
        }
    }
    if text.chars().any(is_right_to_left) { logical(&text) } else { text }
}

/// Whether a character fills a square and is written without spaces.
pub(super) fn is_wide(ch: char) -> bool {
    matches!(u32::from(ch), 0x2e80..=0x9fff | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xff00..=0xffef | 0x20000..=0x3ffff)
}

/// Whether a letter is written from right to left.
pub(super) fn is_right_to_left(ch: char) -> bool {
    matches!(u32::from(ch), 0x0590..=0x08ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff | 0x10800..=0x10fff | 0x1e800..=0x1efff)
        && !is_digit(ch)
}

fn is_digit(ch: char) -> bool {
    ch.is_ascii_digit() || matches!(ch, '\u{0660}'..='\u{0669}' | '\u{06f0}'..='\u{06f9}')
}

/// Whether a letter is written from left to right.
fn is_left_to_right(ch: char) -> bool {
    ch.is_alphabetic() && !is_right_to_left(ch)
}

/// From the order on the page, left to right, to the order of reading.
fn logical(visual: &str) -> String {
    let chars: Vec<char> = visual.chars().collect();
    let right = chars.iter().filter(|ch| is_right_to_left(**ch)).count();
    let left = chars.iter().filter(|ch| is_left_to_right(**ch)).count();
    let mut out: Vec<char> = Vec::with_capacity(chars.len());
    if right >= left {
        // Right to left with islands of Latin words and numbers: each island keeps its own order.
        let mut island: Vec<char> = Vec::new();
        let mut neutral: Vec<char> = Vec::new();
        for ch in chars.iter().rev() {
            if is_left_to_right(*ch) || is_digit(*ch) {
                island.append(&mut neutral);
                island.push(*ch);
            } else if is_right_to_left(*ch) || island.is_empty() {
                flush(&mut out, &mut island);
                out.append(&mut neutral);
                out.push(*ch);
            } else {
                neutral.push(*ch);
            }
        }
        flush(&mut out, &mut island);
        out.append(&mut neutral);
    } else {
        let mut island: Vec<char> = Vec::new();
        let mut neutral: Vec<char> = Vec::new();
        for ch in chars {
            if is_right_to_left(ch) {
                island.append(&mut neutral);
                island.push(ch);
            } else if is_left_to_right(ch) || is_digit(ch) || island.is_empty() {
                flush(&mut out, &mut island);
                out.append(&mut neutral);
                out.push(ch);
            } else {
                neutral.push(ch);
            }
        }
        flush(&mut out, &mut island);
        out.append(&mut neutral);
    }
    base_before_mark(&mut out);
    out.into_iter().collect()
}

fn flush(out: &mut Vec<char>, island: &mut Vec<char>) {
    out.extend(island.drain(..).rev());
}

/// After a reversal a vowel sign stands before its letter.
fn base_before_mark(chars: &mut [char]) {
    let is_mark = |ch: char| matches!(u32::from(ch), 0x0591..=0x05bd | 0x05bf | 0x05c1..=0x05c7 | 0x0610..=0x061a | 0x064b..=0x065f | 0x0670);
    let mut at = 0;
    while at + 1 < chars.len() {
        let swap = matches!(chars.get(at..at + 2), Some([mark, base]) if is_mark(*mark) && !is_mark(*base) && is_right_to_left(*base))
            && !at
                .checked_sub(1)
                .and_then(|before| chars.get(before))
                .is_some_and(|ch| is_right_to_left(*ch) && !is_mark(*ch));
        if swap {
            chars.swap(at, at + 1);
            at += 2;
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::logical;

    #[test]
    fn right_to_left_lines_are_put_in_reading_order() {
        assert_eq!(logical("םולש"), "שלום");
        assert_eq!(logical("123 םולש"), "שלום 123");
        assert_eq!(logical("Rust 1.95 םע םלוע םולש"), "שלום עולם עם Rust 1.95");
        assert_eq!(logical("the word םולש means peace"), "the word שלום means peace");
    }
}
