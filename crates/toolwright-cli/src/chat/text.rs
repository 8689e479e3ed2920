//! Styled text: lines of spans, wrapped to a width, written with or without colours.

use unicode_width::UnicodeWidthChar as _;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    /// One of the terminal's eight colours.
    pub colour: Option<u8>,
}

pub const PLAIN: Style = Style { bold: false, dim: false, italic: false, colour: None };
pub const BOLD: Style = Style { bold: true, ..PLAIN };
pub const DIM: Style = Style { dim: true, ..PLAIN };
pub const RED: Style = Style { colour: Some(1), ..PLAIN };
pub const GREEN: Style = Style { colour: Some(2), ..PLAIN };
pub const YELLOW: Style = Style { colour: Some(3), ..PLAIN };
pub const CYAN: Style = Style { colour: Some(6), ..PLAIN };

/// One line of text, piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<(Style, String)>,
    /// How far rows after the first are moved in.
    pub hang: usize,
}

impl Line {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Line::default().and(style, text)
    }

    #[must_use]
    pub fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.spans.push((style, text));
        }
        self
    }

    #[must_use]
    pub fn hanging(mut self, hang: usize) -> Self {
        self.hang = hang;
        self
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| width(text)).sum()
    }

    /// The rows it takes in a terminal of that width. Words stay whole where they can.
    pub fn wrap(&self, width: usize) -> Vec<Line> {
        let width = width.max(2);
        let hang = if self.hang < width / 2 { self.hang } else { 0 };
        let mut rows = Vec::new();
        let mut row: Vec<(char, Style)> = Vec::new();
        let (mut used, mut space) = (0, None);
        for (style, text) in &self.spans {
            for c in text.chars() {
                let wide = c.width().unwrap_or(0);
                if used + wide > width && !row.is_empty() {
                    // A space where the row ends is the end of the row; the word before it need not move.
                    let at = space.filter(|_| c != ' ');
                    let rest = at.map(|at| row.split_off(at)).unwrap_or_default();
                    rows.push(of_chars(&row));
                    row = vec![(' ', PLAIN); hang];
                    row.extend(rest);
                    used = row.iter().map(|(c, _)| c.width().unwrap_or(0)).sum();
                    space = None;
                    if c == ' ' {
                        continue;
                    }
                }
                row.push((c, *style));
                used += wide;
                if c == ' ' && row.len() > hang {
                    space = Some(row.len());
                }
            }
        }
        rows.push(of_chars(&row));
        rows
    }

    /// The line as a terminal takes it.
    pub fn ansi(&self, colours: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.spans {
            if !colours || *style == PLAIN {
                out.push_str(text);
                continue;
            }
            let mut codes = Vec::new();
            for (on, code) in [(style.bold, "1"), (style.dim, "2"), (style.italic, "3")] {
                codes.extend(on.then(|| code.to_owned()));
            }
            codes.extend(style.colour.map(|colour| format!("3{colour}")));
            out.push_str(&format!("\x1b[{}m{text}\x1b[0m", codes.join(";")));
        }
        out
    }
}

fn of_chars(chars: &[(char, Style)]) -> Line {
    let mut line = Line::default();
    for (c, style) in chars {
        match line.spans.last_mut().filter(|(last, _)| last == style) {
            Some((_, text)) => text.push(*c),
            None => line.spans.push((*style, c.to_string())),
        }
    }
    line
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of a text, cut to so many columns.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > most {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize, hang: usize) -> Vec<String> {
        Line::new(PLAIN, text).hanging(hang).wrap(width).iter().map(Line::text).collect()
    }

    #[test]
    fn words_stay_whole_and_long_ones_break() {
        assert_eq!(wrapped("one two three", 8, 0), ["one two ", "three"]);
        assert_eq!(wrapped("one two a new", 9, 0), ["one two a", "new"]);
        assert_eq!(wrapped("- one two three", 8, 2), ["- one ", "  two ", "  three"]);
        assert_eq!(wrapped("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("日本語日本語", 5, 0), ["日本", "語日", "本語"]);
        assert_eq!(wrapped("", 4, 0), [""]);
    }

    #[test]
    fn without_colours_only_the_text_is_left() {
        let line = Line::new(BOLD, "a").and(PLAIN, "b").and(RED, "c");
        assert_eq!(line.ansi(false), "abc");
        assert_eq!(line.ansi(true), "\x1b[1ma\x1b[0mb\x1b[31mc\x1b[0m");
    }
}
