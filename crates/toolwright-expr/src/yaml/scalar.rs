//! One text in YAML: bare where it can be, in single quotes where they are enough, in double quotes
//! otherwise, and as a block where it was asked for.

use crate::error::Error;

use super::plain::reads_otherwise;
use super::{NodePosition, WIDTH, YamlWriter};

/// What ends a line in YAML.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_break(c: char) -> bool {
    is_break(c) || matches!(c, '\0' | ' ' | '\t' | '\r')
}

/// Characters that need no escape.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10fffe}')
        && c != '\u{feff}'
}

/// The ways a text can be written.
struct Ways {
    plain: bool,
    single: bool,
    block: bool,
    breaks: bool,
}

/// Scans a text once for each reason that excludes a style.
fn ways(text: &str) -> Ways {
    let mut ways = Ways { plain: true, single: true, block: true, breaks: false };
    if text.is_empty() {
        return Ways { block: false, ..ways };
    }
    if text.starts_with("---") || text.starts_with("...") {
        ways.plain = false;
    }
    let mut chars = text.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        let ends_word = chars.peek().is_none_or(|next| is_blank_or_break(*next));
        let mark = match (c, before) {
            (
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`',
                None,
            ) => true,
            ('?' | '-', None) | (':', _) => ends_word,
            ('#', Some(before)) => is_blank_or_break(before),
            _ => false,
        };
        ways.plain &= !mark;
        let outer = before.is_none() || chars.peek().is_none();
        let after_break = before.is_some_and(is_break);
        if c == ' ' {
            ways.plain &= !outer && !after_break;
            ways.single &= !after_break;
            ways.block &= chars.peek().is_some();
        } else if is_break(c) {
            (ways.plain, ways.breaks) = (false, true);
            if before == Some(' ') {
                (ways.single, ways.block) = (false, false);
            }
        }
        if !is_printable(c) {
            (ways.plain, ways.single, ways.block) = (false, false, false);
        }
        before = Some(c);
    }
    ways
}

impl YamlWriter<'_, '_> {
    /// Writes a text in the plainest way that keeps it. `outer` is how far the node around it stands in.
    pub(super) fn scalar(&mut self, text: &str, outer: usize, place: NodePosition) -> Result<(), Error> {
        let ways = ways(text);
        let indent = outer + super::STEP;
        let key = place == NodePosition::Key;
        if ways.plain && !reads_otherwise(text) && !(key && (text.is_empty() || ways.breaks)) {
            return self.plain(text, indent, place);
        }
        if ways.single && !(key && ways.breaks) {
            return self.single_quoted(text, indent, !key);
        }
        self.double_quoted(text, indent, !key)
    }

    /// A text without quotes.
    pub(super) fn plain(&mut self, text: &str, indent: usize, place: NodePosition) -> Result<(), Error> {
        self.open_ended |= place == NodePosition::Root;
        if text.is_empty() {
            return Ok(());
        }
        if !self.after_blank {
            self.push(" ")?;
        }
        (self.after_blank, self.at_indent) = (false, false);
        for (at, word, blanks) in words(text) {
            self.push(word)?;
            self.blanks(blanks, at, text, place != NodePosition::Key, indent)?;
        }
        (self.after_blank, self.at_indent) = (false, false);
        Ok(())
    }

    /// The blanks after a word: a single one beyond the width becomes a new line, unless it begins or ends
    /// the text.
    fn blanks(
        &mut self,
        blanks: &str,
        at: usize,
        text: &str,
        folds: bool,
        indent: usize,
    ) -> Result<(), Error> {
        let inner = at > 0 && at + blanks.len() < text.len();
        if blanks.len() == 1 && inner && folds && self.column > WIDTH {
            return self.indent(indent);
        }
        self.push(blanks)
    }

    fn single_quoted(&mut self, text: &str, indent: usize, folds: bool) -> Result<(), Error> {
        self.indicator("'", true, false, false)?;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_break).unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            let start = text.len() - rest.len();
            for (at, word, blanks) in words(line) {
                self.push(&word.replace('\'', "''"))?;
                self.blanks(blanks, start + at, text, folds, indent)?;
            }
            rest = after.trim_start_matches(is_break);
            let breaks = after.get(..after.len() - rest.len()).unwrap_or_default();
            // A break alone would be read as a blank.
            if breaks.starts_with('\n') {
                self.line_break('\n')?;
            }
            for mark in breaks.chars() {
                self.line_break(mark)?;
            }
            if !breaks.is_empty() {
                self.indent(indent)?;
            }
        }
        self.indicator("'", false, false, false)
    }

    fn double_quoted(&mut self, text: &str, indent: usize, folds: bool) -> Result<(), Error> {
        self.indicator("\"", true, false, false)?;
        // Characters that need no escape are written together, so that a line breaks before a blank among
        // them.
        let (mut waiting, mut width) = (String::new(), 0);
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let escaped = escape(c);
            if let Some(escaped) = &escaped {
                self.push(&std::mem::take(&mut waiting))?;
                self.push(escaped)?;
                width = 0;
            }
            let inner = !std::mem::take(&mut first) && chars.peek().is_some();
            let here = c == ' ' || waiting.is_empty();
            let column = self.column + width - usize::from(escaped.is_some());
            if folds && inner && here && column > WIDTH {
                self.push(&std::mem::take(&mut waiting))?;
                width = 0;
                self.push("\\")?;
                self.indent(indent)?;
                (self.after_blank, self.at_indent) = (false, false);
                let next = if escaped.is_some() { chars.peek() } else { Some(&c) };
                if next == Some(&' ') {
                    self.push("\\")?;
                }
            }
            if escaped.is_none() {
                waiting.push(c);
                width += 1;
            }
        }
        self.push(&waiting)?;
        self.indicator("\"", false, false, false)
    }

    /// A block of lines, with marks for how it begins and ends.
    pub(super) fn block(&mut self, text: &str, indent: usize) -> Result<(), Error> {
        if !ways(text).block {
            return self.double_quoted(text, indent, true);
        }
        let begins = if text.starts_with([' ', '\n', '\u{85}', '\u{2028}', '\u{2029}']) { "2" } else { "" };
        let ends = match text.strip_suffix(is_break) {
            None => "-",
            Some(rest) if rest.is_empty() || rest.ends_with(is_break) => "+",
            Some(_) => "",
        };
        self.indicator(&format!("|{begins}{ends}"), true, false, false)?;
        self.open_ended = ends == "+";
        self.line_break('\n')?;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_break).unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            if !line.is_empty() {
                self.indent(indent)?;
                self.push(line)?;
            }
            let mut marks = after.chars();
            self.line_break(marks.next().unwrap_or('\n'))?;
            rest = marks.as_str();
        }
        Ok(())
    }
}

/// The words of a text, each with the blanks behind it and where they stand.
fn words(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = text.len() - rest.len();
        let (word, tail) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        rest = tail.trim_start_matches(' ');
        Some((at + word.len(), word, tail.get(..tail.len() - rest.len()).unwrap_or_default()))
    })
}

/// What stands for a character in double quotes, when it cannot stand there itself.
fn escape(c: char) -> Option<String> {
    let short = match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        '\u{feff}' => return Some("\\uFEFF".to_owned()),
        ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' => return None,
        c if (c as u32) < 0x100 => return Some(format!("\\x{:02X}", c as u32)),
        c if (c as u32) < 0x1_0000 => return Some(format!("\\u{:04X}", c as u32)),
        c => return Some(format!("\\U{:08X}", c as u32)),
    };
    Some(format!("\\{short}"))
}
