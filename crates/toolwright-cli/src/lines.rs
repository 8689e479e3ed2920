//! Text for a terminal: styled lines, wrapped to a width, written with or without colours.

use std::io::IsTerminal;

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
pub struct StyledLine {
    spans: Vec<(Style, String)>,
    /// How far rows after the first are moved in.
    pub hang: usize,
}

impl StyledLine {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        StyledLine::default().and(style, text)
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

    /// The line with another one behind it.
    #[must_use]
    pub fn then(mut self, other: StyledLine) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Its pieces.
    #[cfg(test)]
    pub fn spans(&self) -> impl Iterator<Item = (Style, &str)> {
        self.spans.iter().map(|(style, text)| (*style, text.as_str()))
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| width(text)).sum()
    }

    /// The rows it takes in a terminal of that width. Words stay whole where they can.
    pub fn wrap(&self, width: usize) -> Vec<StyledLine> {
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

    /// What stands in its first columns.
    pub fn start(&self, columns: usize) -> StyledLine {
        let mut used = 0;
        let signs = self.spans.iter().flat_map(|(style, text)| text.chars().map(|c| (c, *style)));
        let first = signs.take_while(|(c, _)| {
            used += c.width().unwrap_or(0);
            used <= columns
        });
        of_chars(&first.collect::<Vec<_>>())
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

fn of_chars(chars: &[(char, Style)]) -> StyledLine {
    let mut line = StyledLine::default();
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

/// How many columns the terminal has that a stream goes to; `None` when it goes elsewhere.
pub fn columns(stream: &impl IsTerminal) -> Option<usize> {
    let (columns, _) = stream.is_terminal().then(|| crossterm::terminal::size().ok()).flatten()?;
    // One is left free, as terminals disagree about what follows a full row.
    Some(usize::from(columns).saturating_sub(1).max(20))
}

/// True for a terminal that only shows text: no colours, no moving about.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether what goes to a stream may be coloured, bold or dim.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Text whose lines fit into so many columns. A word that does not fit stays whole, so that it can be copied;
/// further rows of a line are moved in like its first, and by `hang` more.
pub fn wrapped(text: &str, columns: usize, hang: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let further = if indent + hang < columns / 2 { indent + hang } else { 0 };
        let mut flow = WordWrapper { columns, used: 0, word: String::new(), further };
        out.push_str(line.get(..indent).unwrap_or_default());
        flow.used = indent;
        flow.push(line.get(indent..).unwrap_or_default(), &mut out);
        flow.end(&mut out);
    }
    out
}

/// Text that comes piece by piece and is wrapped between words.
#[derive(Debug, Default)]
pub struct WordWrapper {
    pub columns: usize,
    /// How far rows after the first are moved in.
    further: usize,
    used: usize,
    /// The word that is not complete yet.
    word: String,
}

impl WordWrapper {
    pub fn new(columns: usize) -> Self {
        WordWrapper { columns, ..WordWrapper::default() }
    }

    /// Takes a piece, and writes what is sure.
    pub fn push(&mut self, piece: &str, out: &mut String) {
        for c in piece.chars() {
            match c {
                ' ' | '\n' => {
                    self.end_word(out);
                    // Spaces at the end of a full row are its end.
                    if c == '\n' || self.used < self.columns {
                        out.push(c);
                        self.used = if c == '\n' { 0 } else { self.used + 1 };
                    }
                }
                c => self.word.push(c),
            }
        }
    }

    /// Writes the last word. True in the middle of a row.
    pub fn end(&mut self, out: &mut String) -> bool {
        self.end_word(out);
        std::mem::take(&mut self.used) > 0
    }

    fn end_word(&mut self, out: &mut String) {
        let word = std::mem::take(&mut self.word);
        let wide = width(&word);
        if self.used > self.further && self.used + wide > self.columns {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(self.further));
            self.used = self.further;
        }
        out.push_str(&word);
        self.used += wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize, hang: usize) -> Vec<String> {
        StyledLine::new(PLAIN, text).hanging(hang).wrap(width).iter().map(StyledLine::text).collect()
    }

    #[test]
    fn words_stay_whole_and_long_ones_break() {
        assert_eq!(rows("one two three", 8, 0), ["one two ", "three"]);
        assert_eq!(rows("one two a new", 9, 0), ["one two a", "new"]);
        assert_eq!(rows("- one two three", 8, 2), ["- one ", "  two ", "  three"]);
        assert_eq!(rows("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(rows("日本語日本語", 5, 0), ["日本", "語日", "本語"]);
        assert_eq!(rows("", 4, 0), [""]);
    }

    #[test]
    fn text_is_wrapped_between_words_and_words_stay_whole() {
        assert_eq!(wrapped("one two three four", 9, 0), "one two\nthree\nfour");
        assert_eq!(wrapped("  one two three\n\nx", 9, 0), "  one two\n  three\n\nx");
        assert_eq!(wrapped("- one two three", 9, 2), "- one two\n  three");
        assert_eq!(wrapped("see /a/very/long/path now", 9, 0), "see\n/a/very/long/path\nnow");
        assert_eq!(wrapped("a    b", 40, 0), "a    b");
    }

    #[test]
    fn a_stream_is_wrapped_as_it_comes() {
        let (mut flow, mut out) = (WordWrapper::new(10), String::new());
        for piece in ["one t", "wo thr", "ee\nfo", "ur"] {
            flow.push(piece, &mut out);
        }
        assert!(flow.end(&mut out));
        assert_eq!(out, "one two \nthree\nfour".replace(" \n", "\n"));
    }

    #[test]
    fn without_colours_only_the_text_is_left() {
        let line = StyledLine::new(BOLD, "a").and(PLAIN, "b").and(RED, "c");
        assert_eq!(line.ansi(false), "abc");
        assert_eq!(line.ansi(true), "\x1b[1ma\x1b[0mb\x1b[31mc\x1b[0m");
    }
}
