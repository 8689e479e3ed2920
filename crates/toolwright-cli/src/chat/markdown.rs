//! Markdown as it comes: every finished line of an answer becomes a styled line at once; a line that may begin a table waits
//! for the next, and a table for its end. What stands in a line is `inline`'s.

use super::inline::inline;
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
    fence: Option<Fence>,
    /// Rows of a table; the first alone may turn out to be none.
    table: Vec<String>,
    /// What the last line was, for lines that are moved in.
    last: Last,
}

/// The signs that began a block of code, and how far they were moved in: more of them, or as many, end it.
#[derive(Debug, Clone, Copy)]
struct Fence {
    sign: char,
    count: usize,
    indent: usize,
    quoted: bool,
}

/// What a line was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing, or code: what is moved in now is code.
    #[default]
    Blank,
    Text,
    /// Part of a list: what is moved in belongs to it.
    Item,
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
        (self.fence, self.last) = (None, Last::Blank);
        lines
    }

    /// The line that is not finished yet, as it looks so far.
    pub fn unfinished(&self) -> Option<Line> {
        let text = printable(&self.partial).replace('\t', "    ");
        (!text.is_empty())
            .then(|| if self.plain || self.fence.is_some() { Line::new(PLAIN, text) } else { styled(&text) })
    }

    fn line(&mut self, line: &str, lines: &mut Vec<Line>) {
        let text = printable(line).replace('\t', "    ");
        if self.plain {
            lines.push(Line::new(PLAIN, text));
            return;
        }
        if let Some(fence) = self.fence {
            match (fence.quoted, quote(&text)) {
                (false, _) => return self.code(fence, &text, lines),
                (true, Some(inside)) => return self.code(fence, inside, lines),
                // Code does not outlast the quote it stands in.
                (true, None) => self.fence = None,
            }
        }
        if !self.table.is_empty() {
            let no_table = matches!(self.table.as_slice(), [head] if !rules(head, &text));
            if !no_table && text.trim_start().starts_with('|') {
                self.table.push(text);
                return;
            }
            lines.extend(self.end_table());
        }
        let indent = text.len() - text.trim_start().len();
        if indent < 4 && text.trim_start().starts_with('|') {
            self.table.push(text);
            return;
        }
        if let Some(fence) = self.opens(&text, lines) {
            self.fence = Some(fence);
            return;
        }
        if indent >= 4 && self.last == Last::Blank && !text.trim().is_empty() {
            lines.push(Line::new(PLAIN, "  ").and(CYAN, text).hanging(2));
            return;
        }
        self.last = match text.trim() {
            // A blank line ends no list.
            "" if self.last == Last::Item => Last::Item,
            "" => Last::Blank,
            _ if marker(&text).is_some() || (indent > 0 && self.last == Last::Item) => Last::Item,
            _ => Last::Text,
        };
        lines.push(styled(&text));
    }

    /// The block of code that a line begins, if it does; shows what else stands there.
    fn opens(&mut self, text: &str, lines: &mut Vec<Line>) -> Option<Fence> {
        let inside = quote(text).unwrap_or(text);
        // It may be the first thing of an item.
        let item = marker(inside).map_or(0, |(start, _)| start);
        let body = inside.get(item..)?.trim_start();
        let sign = body.chars().next().filter(|sign| "`~".contains(*sign))?;
        let about = body.trim_start_matches(sign);
        let count = body.len() - about.len();
        // Backticks further on make it code within a line.
        if count < 3 || (sign == '`' && about.contains('`')) {
            return None;
        }
        if item > 0 {
            lines.push(styled(text.get(..text.len() - body.len())?));
            self.last = Last::Item;
        }
        let about = about.trim();
        if !about.is_empty() {
            lines.push(Line::new(DIM, format!("  {about}")));
        }
        Some(Fence { sign, count, indent: inside.len() - body.len(), quoted: inside.len() < text.len() })
    }

    fn code(&mut self, fence: Fence, text: &str, lines: &mut Vec<Line>) {
        let body = text.trim_start();
        let rest = body.trim_start_matches(fence.sign);
        let moved_in = text.len() - body.len() >= fence.indent + 4;
        if !moved_in && rest.trim().is_empty() && body.len() - rest.len() >= fence.count {
            self.fence = None;
            return;
        }
        lines.push(Line::new(PLAIN, "  ").and(CYAN, text).hanging(2));
    }

    /// The rows of a table, in columns of one width; where there is no room, cells take several rows. One row is none.
    fn end_table(&mut self) -> Vec<Line> {
        let rows = std::mem::take(&mut self.table);
        if let [line] = rows.as_slice() {
            self.last = Last::Text;
            return vec![styled(line)];
        }
        if !rows.is_empty() {
            self.last = Last::Blank;
        }
        let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
        let styled =
            |number: usize, cell: &str| inline(Line::default(), cell, if number == 0 { BOLD } else { PLAIN });
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |at: usize| {
            let cells =
                rows.iter().enumerate().filter(|(number, _)| *number != 1).filter_map(|(_, row)| row.get(at));
            cells.map(|cell| styled(0, cell).width()).max().unwrap_or(0)
        };
        let widths = fitting((0..count).map(widest).collect(), self.columns);
        let sides: Vec<Side> =
            (0..count).map(|at| Side::of(rows.get(1).and_then(|row| row.get(at)))).collect();
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number == 1 {
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
                for ((cell, wide), side) in cells.iter().zip(&widths).zip(&sides) {
                    let part = cell.get(place).cloned().unwrap_or_default();
                    let free = wide.saturating_sub(part.width());
                    let before = match side {
                        Side::Left => 0,
                        Side::Middle => free / 2,
                        Side::Right => free,
                    };
                    line = line.and(PLAIN, " ".repeat(room + before));
                    room = free - before + 2;
                    line = line.then(part);
                }
                lines.push(line);
            }
        }
        lines
    }
}

/// Where the cells of a column stand.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Middle,
    Right,
}

impl Side {
    /// What the colons of a rule say.
    fn of(rule: Option<&String>) -> Self {
        match rule.map(|rule| (rule.starts_with(':'), rule.ends_with(':'))) {
            Some((true, true)) => Side::Middle,
            Some((false, true)) => Side::Right,
            _ => Side::Left,
        }
    }
}

/// True for the row below the head of a table: a rule for each of its columns.
fn rules(head: &str, row: &str) -> bool {
    let row = cells(row);
    let rule = |cell: &String| {
        let inner = cell.strip_prefix(':').unwrap_or(cell);
        let inner = inner.strip_suffix(':').unwrap_or(inner);
        !inner.is_empty() && inner.chars().all(|c| c == '-')
    };
    row.len() == cells(head).len() && row.iter().all(rule)
}

/// What a quoted line says.
fn quote(text: &str) -> Option<&str> {
    let inside = text.trim_start().strip_prefix('>')?;
    Some(inside.strip_prefix(' ').unwrap_or(inside))
}

/// Where the words of an item of a list begin, and how its mark is shown.
fn marker(text: &str) -> Option<(usize, String)> {
    let body = text.trim_start();
    let digits = body.chars().take_while(char::is_ascii_digit).count();
    let (mark, shown) = match digits {
        0 => (body.get(..1).filter(|mark| "-*+".contains(*mark))?, "•"),
        1..=9 => {
            let mark = body.get(..=digits).filter(|mark| mark.ends_with(['.', ')']))?;
            (mark, mark)
        }
        _ => return None,
    };
    let rest = body.get(mark.len()..)?;
    let start = text.len() - rest.len();
    rest.starts_with(' ').then(|| (start + 1, format!("{shown} ")))
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
        // Signs at the end are no part of it when a blank is before them.
        let title = title.trim();
        let bare = title.trim_end_matches('#');
        let title = if bare.is_empty() || bare.ends_with(' ') { bare.trim_end() } else { title };
        return inline(Line::default(), title, Style { bold: true, colour: Some(4), ..PLAIN });
    }
    let signs: String = body.split_whitespace().collect();
    if signs.len() >= 3 && ["-", "*", "_"].iter().any(|sign| signs.replace(sign, "").is_empty()) {
        return Line::new(DIM, "─".repeat(20));
    }
    if let Some(quote) = quote(body) {
        return inline(Line::new(DIM, "│ "), quote, Style { italic: true, ..PLAIN }).hanging(2);
    }
    if let Some((start, mark)) = marker(text) {
        let hang = indent + mark.chars().count();
        let line = Line::new(PLAIN, " ".repeat(indent)).and(CYAN, mark);
        return inline(line, text.get(start..).unwrap_or_default(), PLAIN).hanging(hang);
    }
    inline(Line::new(PLAIN, " ".repeat(indent)), body, PLAIN).hanging(indent)
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

    fn texts(text: &str) -> Vec<String> {
        let mut markdown = Markdown::default();
        let mut lines: Vec<Line> = text.chars().flat_map(|c| markdown.push(&c.to_string())).collect();
        lines.extend(markdown.finish());
        lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn code_is_shown_as_it_was_written() {
        for (text, want) in [
            (
                "````markdown\n# Doc\n```python\nx = __a__\n```\nafter\n````\n**Done**",
                &["  markdown", "  # Doc", "  ```python", "  x = __a__", "  ```", "  after", "Done"][..],
            ),
            ("~~~sh\necho **hi**\n```\n~~~~\n*end*", &["  sh", "  echo **hi**", "  ```", "end"]),
            ("```let y = 2;```\nThis is *prose*.", &["let y = 2;", "This is prose."]),
            ("- ```sh\n  a*b*c\n  ```\n- *x*", &["•", "  sh", "    a*b*c", "• x"]),
            ("> ```\n> a*b*c\n> ```\n> *x*", &["  a*b*c", "│ x"]),
            ("> ```\n> a*b*c\n*x*", &["  a*b*c", "x"]),
            ("```\n    ```\na*b*c\n```\n*x*", &["      ```", "  a*b*c", "x"]),
            ("so:\n\n    a*b*c\n\n- *x*\n\n    *y*", &["so:", "", "      a*b*c", "", "• x", "", "    y"]),
        ] {
            assert_eq!(texts(text), want, "{text}");
        }
    }

    #[test]
    fn a_table_has_a_row_of_rules() {
        for (text, want) in [
            ("|x| is *absolute*\n\n| head -5\n\nend", &["|x| is absolute", "", "| head -5", "", "end"][..]),
            ("||\n|\nthe pipe `|`\n|", &["||", "|", "the pipe |", "|"]),
            ("|a|b|\n|-|\n", &["|a|b|", "|-|"]),
            ("|a|b|\n|-|:-:|\n|-|-|\nend", &["a  b", "─  ─", "-  -", "end"]),
        ] {
            assert_eq!(texts(text), want, "{text}");
        }
    }

    #[test]
    fn the_colons_of_a_rule_say_where_cells_stand() {
        let table = "|name|amount|x|\n|:--|--:|:-:|\n|tea|7|a|\n|cocoa|1200|abc|\n";
        assert_eq!(
            texts(table),
            ["name   amount   x", "─────  ──────  ───", "tea         7   a", "cocoa    1200  abc"]
        );
    }

    #[test]
    fn titles_and_rules_keep_their_signs() {
        assert_eq!(texts("# C#\n## The `x` #\n-*-\n- - -"), ["C#", "The x", "-*-", &"─".repeat(20)]);
    }

    #[test]
    fn nothing_a_model_writes_moves_the_cursor() {
        assert_eq!(shown("a\x1b[2Jb"), "a\\u{1b}[2Jb\n");
    }
}
