//! Markdown as it comes: every finished line of an answer becomes a styled line at once; a line that may
//! begin a table, or may be underlined, waits for the next, and a table for its end. What stands in a line is
//! `inline`'s.

use super::inline::inline;
use crate::lines::{BOLD, CYAN, DIM, PLAIN, Style, StyledLine};
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
    /// A line of text: the next may make it a title, or the head of a table.
    held: Option<String>,
    /// Rows of a table; the first alone may turn out to be none.
    table: Vec<String>,
    /// True when they stand in a quote.
    quoted: bool,
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
    pub fn push(&mut self, text: &str) -> Vec<StyledLine> {
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
    pub fn finish(&mut self) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.line(&rest, &mut lines);
        }
        lines.extend(self.held.take().map(|held| styled(&held)));
        lines.extend(self.end_table());
        (self.fence, self.last) = (None, Last::Blank);
        lines
    }

    /// What is not finished yet, as it looks so far.
    pub fn unfinished(&self) -> Vec<StyledLine> {
        let text = printable(&self.partial).replace('\t', "    ");
        let line = (!text.is_empty()).then(|| {
            if self.plain || self.fence.is_some() { StyledLine::new(PLAIN, text) } else { styled(&text) }
        });
        self.held.iter().map(|held| styled(held)).chain(line).collect()
    }

    fn line(&mut self, line: &str, lines: &mut Vec<StyledLine>) {
        let text = printable(line).replace('\t', "    ");
        if self.plain {
            lines.push(StyledLine::new(PLAIN, text));
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
        if let Some(held) = self.held.take() {
            if held.contains('|') && rules(&held, &text) {
                (self.table, self.quoted) = (vec![held, text], false);
                return;
            }
            if underlines(&text) {
                self.last = Last::Text;
                lines.push(inline(StyledLine::default(), held.trim(), TITLE));
                return;
            }
            lines.push(styled(&held));
        }
        let inside = quote(&text);
        if let Some(head) = self.table.first() {
            // A head without a border at its left has rows without one. Whatever begins something else ends
            // the table.
            let other = |row: &str| {
                opening(row).is_some()
                    || quote(row).is_some()
                    || marker(row).is_some()
                    || title(row).is_some()
            };
            let begins = |row: &&str| match head.trim_start().starts_with('|') {
                true => row.trim_start().starts_with('|'),
                false => row.contains('|') && !other(row),
            };
            let row = if self.quoted { inside } else { Some(&*text) }.filter(begins);
            match row.filter(|row| self.table.len() > 1 || rules(head, row)).map(str::to_owned) {
                Some(row) => return self.table.push(row),
                None => lines.extend(self.end_table()),
            }
        }
        let row = inside.unwrap_or(&text);
        if row.len() - row.trim_start().len() < 4 && row.trim_start().starts_with('|') {
            (self.table, self.quoted) = (vec![row.to_owned()], inside.is_some());
            return;
        }
        let indent = text.len() - text.trim_start().len();
        if let Some(fence) = self.opens(&text, lines) {
            self.fence = Some(fence);
            return;
        }
        if indent >= 4 && self.last == Last::Blank && !text.trim().is_empty() {
            lines.push(StyledLine::new(PLAIN, "  ").and(CYAN, text).hanging(2));
            return;
        }
        self.last = match text.trim() {
            // A blank line ends no list.
            "" if self.last == Last::Item => Last::Item,
            "" => Last::Blank,
            _ if marker(&text).is_some() || (indent > 0 && self.last == Last::Item) => Last::Item,
            _ => Last::Text,
        };
        if self.last == Last::Text && inside.is_none() && title(&text).is_none() && !is_rule(&text) {
            self.held = Some(text);
            return;
        }
        lines.push(styled(&text));
    }

    /// The block of code that a line begins, if it does; shows what else stands there.
    fn opens(&mut self, text: &str, lines: &mut Vec<StyledLine>) -> Option<Fence> {
        let inside = quote(text).unwrap_or(text);
        // It may be the first thing of an item.
        let item = marker(inside).map_or(0, |(start, _)| start);
        let body = inside.get(item..)?.trim_start();
        let (sign, count) = opening(body)?;
        let about = body.trim_start_matches(sign);
        if item > 0 {
            lines.push(styled(text.get(..text.len() - body.len())?));
            self.last = Last::Item;
        }
        let about = about.trim();
        if !about.is_empty() {
            lines.push(StyledLine::new(DIM, format!("  {about}")));
        }
        Some(Fence { sign, count, indent: inside.len() - body.len(), quoted: inside.len() < text.len() })
    }

    fn code(&mut self, fence: Fence, text: &str, lines: &mut Vec<StyledLine>) {
        let body = text.trim_start();
        let rest = body.trim_start_matches(fence.sign);
        let moved_in = text.len() - body.len() >= fence.indent + 4;
        if !moved_in && rest.trim().is_empty() && body.len() - rest.len() >= fence.count {
            self.fence = None;
            return;
        }
        lines.push(StyledLine::new(PLAIN, "  ").and(CYAN, text).hanging(2));
    }

    /// The rows of a table, in columns of one width; where there is no room, cells take several rows. A
    /// single row is not a table.
    fn end_table(&mut self) -> Vec<StyledLine> {
        let rows = std::mem::take(&mut self.table);
        let bar = || if self.quoted { StyledLine::new(DIM, "│ ") } else { StyledLine::default() };
        if let [line] = rows.as_slice() {
            self.last = Last::Text;
            return vec![if self.quoted { styled(&format!("> {line}")) } else { styled(line) }];
        }
        if !rows.is_empty() {
            self.last = Last::Blank;
        }
        let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
        let styled = |number: usize, cell: &str| {
            inline(StyledLine::default(), cell, if number == 0 { BOLD } else { PLAIN })
        };
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |at: usize| {
            let cells =
                rows.iter().enumerate().filter(|(number, _)| *number != 1).filter_map(|(_, row)| row.get(at));
            cells.map(|cell| styled(0, cell).width()).max().unwrap_or(0)
        };
        let columns = self.columns.map(|columns| columns.saturating_sub(bar().width()));
        let widths = fitting((0..count).map(widest).collect(), columns);
        let sides: Vec<Alignment> =
            (0..count).map(|at| Alignment::of(rows.get(1).and_then(|row| row.get(at)))).collect();
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number == 1 {
                let bars: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(bar().and(DIM, bars.join("  ")));
                continue;
            }
            let cells: Vec<Vec<StyledLine>> = row
                .iter()
                .zip(&widths)
                .map(|(cell, wide)| styled(number, cell).wrap((*wide).max(2)))
                .collect();
            for place in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let (mut line, mut room) = (bar(), 0);
                for ((cell, wide), side) in cells.iter().zip(&widths).zip(&sides) {
                    let part = cell.get(place).cloned().unwrap_or_default();
                    let free = wide.saturating_sub(part.width());
                    let before = match side {
                        Alignment::Left => 0,
                        Alignment::Middle => free / 2,
                        Alignment::Right => free,
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
enum Alignment {
    Left,
    Middle,
    Right,
}

impl Alignment {
    /// What the colons of a rule say.
    fn of(rule: Option<&String>) -> Self {
        match rule.map(|rule| (rule.starts_with(':'), rule.ends_with(':'))) {
            Some((true, true)) => Alignment::Middle,
            Some((false, true)) => Alignment::Right,
            _ => Alignment::Left,
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

/// The signs that begin a block of code, and how many they are.
fn opening(body: &str) -> Option<(char, usize)> {
    let body = body.trim_start();
    let sign = body.chars().next().filter(|sign| "`~".contains(*sign))?;
    let about = body.trim_start_matches(sign);
    let count = body.len() - about.len();
    // Backticks further on make it code within a line.
    (count >= 3 && !(sign == '`' && about.contains('`'))).then_some((sign, count))
}

/// True for a line that makes a title of the one before it.
fn underlines(text: &str) -> bool {
    let body = text.trim();
    let indent = text.len() - text.trim_start().len();
    indent < 4
        && !body.is_empty()
        && ["=", "-"].iter().any(|sign| body.trim_matches(|c| sign.contains(c)).is_empty())
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

const TITLE: Style = Style { bold: true, colour: Some(4), ..PLAIN };

/// How many quotes inside one another have bars of their own.
const QUOTES: usize = 8;

/// The words of a title with `#` before it.
fn title(text: &str) -> Option<&str> {
    let body = text.trim_start();
    let hashes = body.chars().take_while(|c| *c == '#').count();
    let title = body.get(hashes..).filter(|_| (1..=6).contains(&hashes))?.strip_prefix(' ')?.trim();
    // Trailing `#` signs belong to the title unless a space stands before them.
    let bare = title.trim_end_matches('#');
    Some(if bare.is_empty() || bare.ends_with(' ') { bare.trim_end() } else { title })
}

fn is_rule(text: &str) -> bool {
    let signs: String = text.split_whitespace().collect();
    signs.len() >= 3 && ["-", "*", "_"].iter().any(|sign| signs.replace(sign, "").is_empty())
}

/// One line outside of code and tables.
fn styled(text: &str) -> StyledLine {
    let (mut text, mut line, mut base) = (text, StyledLine::default(), PLAIN);
    for _ in 0..QUOTES {
        let Some(inside) = quote(text) else { break };
        (text, line) = (inside, line.and(DIM, "│ "));
        base.italic = true;
    }
    let (body, bars) = (text.trim_start(), line.width());
    let indent = text.len() - body.len();
    if let Some(title) = title(body) {
        return inline(line, title, Style { italic: base.italic, ..TITLE }).hanging(bars);
    }
    if is_rule(body) {
        return line.and(DIM, "─".repeat(20));
    }
    let line = line.and(PLAIN, " ".repeat(indent));
    if let Some((start, mark)) = marker(text) {
        let hang = bars + indent + mark.chars().count();
        return inline(line.and(CYAN, mark), text.get(start..).unwrap_or_default(), base).hanging(hang);
    }
    inline(line, body, base).hanging(bars + indent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut markdown = Markdown::default();
        // Character by character, as a slow model would.
        let mut lines: Vec<StyledLine> = text.chars().flat_map(|c| markdown.push(&c.to_string())).collect();
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
        let mut lines: Vec<StyledLine> = text.chars().flat_map(|c| markdown.push(&c.to_string())).collect();
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
            ("so\n```\n===\n```\na | b\n```\n-|-\n```", &["so", "  ===", "a | b", "  -|-"]),
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
    fn a_table_may_stand_in_a_quote_and_go_without_borders() {
        for (text, want) in [
            ("> |a|b|\n> |-|-|\n> |1|2|\n> *x*", &["│ a  b", "│ ─  ─", "│ 1  2", "│ x"][..]),
            ("> |a|b|\n|-|-|\n|1|2|", &["│ |a|b|", "|-|-|", "|1|2|"]),
            ("> |a|b|\n> said", &["│ |a|b|", "│ said"]),
            ("a | b\n--|--\n1 | *2*\n\nend", &["a  b", "─  ─", "1  2", "", "end"]),
            ("a | b\nc | d", &["a | b", "c | d"]),
        ] {
            assert_eq!(texts(text), want, "{text}");
        }
        let mut markdown = Markdown { columns: Some(20), ..Markdown::default() };
        let lines = markdown.push("> |what|remark|\n> |-|-|\n> |a|long enough for two rows|\n\n");
        assert!(lines.iter().all(|line| line.width() <= 20), "{lines:?}");
    }

    #[test]
    fn a_line_below_makes_a_title() {
        let rule = "─".repeat(20);
        for (text, want) in [
            ("A *title*\n===\ntext", "^[1;34mA ^[0m^[1;3;34mtitle^[0m\ntext\n"),
            ("Title\n---", "^[1;34mTitle^[0m\n"),
            ("text\n\n---", &*format!("text\n\n^[2m{rule}^[0m\n")),
            ("# Title\n---", &*format!("^[1;34mTitle^[0m\n^[2m{rule}^[0m\n")),
            ("- item\n---", &*format!("^[36m• ^[0mitem\n^[2m{rule}^[0m\n")),
            ("a\n= b", "a\n= b\n"),
            ("===", "===\n"),
        ] {
            assert_eq!(shown(text), want, "{text}");
        }
        let mut markdown = Markdown::default();
        assert!(markdown.push("Title\n--").is_empty());
        let waits: Vec<String> = markdown.unfinished().iter().map(StyledLine::text).collect();
        assert_eq!(waits, ["Title", "--"]);
    }

    #[test]
    fn what_is_quoted_is_read_too() {
        assert_eq!(
            texts("> # Title\n> - one `x`\n>> deeper\n> ---"),
            ["│ Title", "│ • one x", "│ │ deeper", &*format!("│ {}", "─".repeat(20))]
        );
        assert!(texts(&">".repeat(100_000)).len() == 1);
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
    fn what_begins_something_else_ends_a_table_without_borders() {
        for (row, shown) in [("> note | x", "│ note | x"), ("- a | b", "• a | b"), ("# a | b", "a | b")] {
            let lines = texts(&format!("a | b\n--|--\n1 | 2\n{row}"));
            assert_eq!(lines.last().map(String::as_str), Some(shown), "{lines:?}");
        }
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
