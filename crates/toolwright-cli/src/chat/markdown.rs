//! Markdown as it comes: every finished line of an answer becomes a styled line at once; a table waits for its end.

use crate::lines::{BOLD, CYAN, DIM, Line, PLAIN, Style};
use crate::prompt::printable;

/// What a model says, line by line.
#[derive(Debug, Default)]
pub struct Markdown {
    /// Whether to style at all.
    plain: bool,
    /// How wide a table may be.
    pub columns: Option<usize>,
    partial: String,
    in_code: bool,
    table: Vec<String>,
}

impl Markdown {
    pub fn new(plain: bool) -> Self {
        Markdown { plain, ..Markdown::default() }
    }

    /// Takes more of the answer; gives the lines that are finished.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.partial.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                self.line(line.trim_end_matches(['\n', '\r']), &mut lines);
            }
        }
        lines
    }

    /// The end of the answer: what is left.
    pub fn finish(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.line(&rest, &mut lines);
        }
        lines.extend(self.end_table());
        self.in_code = false;
        lines
    }

    /// The line that is not finished yet, as it looks so far.
    pub fn unfinished(&self) -> Option<Line> {
        let text = printable(&self.partial).replace('\t', "    ");
        (!text.is_empty())
            .then(|| if self.plain || self.in_code { Line::new(PLAIN, text) } else { styled(&text) })
    }

    fn line(&mut self, line: &str, lines: &mut Vec<Line>) {
        let text = printable(line).replace('\t', "    ");
        if self.plain {
            lines.push(Line::new(PLAIN, text));
            return;
        }
        if text.trim_start().starts_with("```") {
            lines.extend(self.end_table());
            self.in_code = !self.in_code;
            let language = text.trim_start().trim_start_matches('`').trim();
            if self.in_code && !language.is_empty() {
                lines.push(Line::new(DIM, format!("  {language}")));
            }
            return;
        }
        if self.in_code {
            lines.push(Line::new(PLAIN, "  ").and(CYAN, text).hanging(2));
            return;
        }
        if text.trim_start().starts_with('|') {
            self.table.push(text);
            return;
        }
        lines.extend(self.end_table());
        lines.push(styled(&text));
    }

    /// The rows of a table, in columns of one width; where there is no room, cells take several rows.
    fn end_table(&mut self) -> Vec<Line> {
        let rows: Vec<Vec<String>> = std::mem::take(&mut self.table).iter().map(|row| cells(row)).collect();
        let rule = |row: &[String]| {
            row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c)))
        };
        let styled =
            |number: usize, cell: &str| inline(Line::default(), cell, if number == 0 { BOLD } else { PLAIN });
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |at: usize| {
            let cells = rows.iter().filter(|row| !rule(row)).filter_map(|row| row.get(at));
            cells.map(|cell| styled(0, cell).width()).max().unwrap_or(0)
        };
        let widths = fitting((0..count).map(widest).collect(), self.columns);
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if rule(row) {
                let bars: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::new(DIM, bars.join("  ")));
                continue;
            }
            let cells: Vec<Vec<Line>> = row
                .iter()
                .zip(&widths)
                .map(|(cell, wide)| styled(number, cell).wrap((*wide).max(2)))
                .collect();
            for place in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let (mut line, mut room) = (Line::default(), 0);
                for (cell, wide) in cells.iter().zip(&widths) {
                    let part = cell.get(place).cloned().unwrap_or_default();
                    line = line.and(PLAIN, " ".repeat(std::mem::take(&mut room)));
                    room = wide.saturating_sub(part.width()) + 2;
                    line = line.then(part);
                }
                lines.push(line);
            }
        }
        lines
    }
}

/// The cells of a row of a table. `\\|` is a sign, not a border.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().replace("\\|", "\0");
    let inner = row.strip_prefix('|').unwrap_or(&row);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

/// Widths of columns made smaller, the widest first, until a row fits. Very many columns do not.
fn fitting(mut widths: Vec<usize>, columns: Option<usize>) -> Vec<usize> {
    const LEAST: usize = 6;
    let Some(room) = columns.map(|columns| columns.saturating_sub(2 * widths.len().saturating_sub(1))) else {
        return widths;
    };
    widths.iter_mut().for_each(|width| *width = (*width).min(room.max(LEAST)));
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max().filter(|width| **width > LEAST) {
            Some(width) => *width -= 1,
            None => break,
        }
    }
    widths
}

/// One line outside of code and tables.
fn styled(text: &str) -> Line {
    let body = text.trim_start();
    let indent = text.len() - body.len();
    let hashes = body.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&hashes)
        && let Some(title) = body.get(hashes..).and_then(|rest| rest.strip_prefix(' '))
    {
        return Line::new(Style { bold: true, colour: Some(4), ..PLAIN }, title.trim_end_matches(['#', ' ']));
    }
    if body.len() >= 3 && body.chars().all(|c| c == '-' || c == '*' || c == '_') {
        return Line::new(DIM, "─".repeat(20));
    }
    if let Some(quote) = body.strip_prefix("> ") {
        return inline(Line::new(DIM, "│ "), quote, Style { italic: true, ..PLAIN }).hanging(2);
    }
    for mark in ["- ", "* ", "+ "] {
        if let Some(item) = body.strip_prefix(mark) {
            let start = Line::new(PLAIN, " ".repeat(indent)).and(CYAN, "• ");
            return inline(start, item, PLAIN).hanging(indent + 2);
        }
    }
    let digits = body.chars().take_while(char::is_ascii_digit).count();
    if (1..=9).contains(&digits)
        && let Some(item) = body.get(digits..).and_then(|rest| rest.strip_prefix(". "))
    {
        let number = body.get(..digits).unwrap_or_default();
        let start = Line::new(PLAIN, " ".repeat(indent)).and(CYAN, format!("{number}. "));
        return inline(start, item, PLAIN).hanging(indent + digits + 2);
    }
    inline(Line::new(PLAIN, " ".repeat(indent)), body, PLAIN).hanging(indent)
}

/// Bold, italic, code and links within a line.
fn inline(mut line: Line, text: &str, base: Style) -> Line {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(c) = rest.chars().next() {
        let pairs = [
            ("**", Style { bold: true, ..base }),
            ("__", Style { bold: true, ..base }),
            ("`", Style { colour: Some(6), ..base }),
            ("*", Style { italic: true, ..base }),
        ];
        let found = pairs.iter().find_map(|(mark, style)| {
            let (inner, after) = rest.strip_prefix(mark)?.split_once(mark)?;
            let tight =
                !inner.is_empty() && (*mark == "`" || (!inner.starts_with(' ') && !inner.ends_with(' ')));
            tight.then_some((*style, inner, after))
        });
        if let Some((style, inner, after)) = found {
            line = line.and(base, std::mem::take(&mut plain)).and(style, inner);
            rest = after;
            continue;
        }
        let link = rest.strip_prefix('[').and_then(|rest| {
            let (name, rest) = rest.split_once("](")?;
            let (address, after) = rest.split_once(')')?;
            (!name.contains('[')).then_some((name, address, after))
        });
        if let Some((name, address, after)) = link {
            line = line.and(base, std::mem::take(&mut plain)).and(Style { bold: true, ..base }, name);
            line = if name == address { line } else { line.and(DIM, format!(" ({address})")) };
            rest = after;
            continue;
        }
        plain.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    line.and(base, plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut markdown = Markdown::default();
        // Character by character, as a slow model would.
        let mut lines: Vec<Line> = text.chars().flat_map(|c| markdown.push(&c.to_string())).collect();
        lines.extend(markdown.finish());
        lines.iter().map(|line| line.ansi(true).replace('\x1b', "^") + "\n").collect()
    }

    #[test]
    fn what_models_write_is_styled_line_by_line() {
        let text = "# Title #\nSome **bold**, *soft* and `code`, 2 * 3 * 4.\n- one\n  - two\n1. three\n> said\n---\n\
                    ```rust\nlet **x** = 1;\n```\n[a](http://b) [x] y\n| a | long |\n|---|:--|\n| 1 | 2 |\nend";
        insta::assert_snapshot!(shown(text));
    }

    #[test]
    fn a_wide_table_fits_into_a_narrow_terminal() {
        let mut markdown = Markdown { columns: Some(29), ..Markdown::default() };
        let mut lines = markdown.push(
            "| what | a remark |\n|---|---|\n| notes \\| all | **long** enough for three rows of it |\n",
        );
        lines.extend(markdown.finish());
        let shown: Vec<String> = lines.iter().map(|line| line.text().trim_end().to_owned()).collect();
        assert_eq!(
            shown,
            [
                "what         a remark",
                "───────────  ────────────────",
                "notes | all  long enough for",
                "             three rows of it"
            ]
        );
        assert!(lines.iter().all(|line| line.text().trim_end().chars().count() <= 29));
    }

    #[test]
    fn nothing_a_model_writes_moves_the_cursor() {
        assert_eq!(shown("a\x1b[2Jb"), "a\\u{1b}[2Jb\n");
    }
}
