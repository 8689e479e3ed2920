//! Markdown: its blocks; the marks inside lines stay as they are.

use crate::error::DocumentError;
use crate::model::{Block, Content, Info, ListItem, Page};
use crate::options::ReadingState;

pub(crate) fn read(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let text = super::decode(bytes);
    let (front, body) = front_matter(&text);
    let value = |name: &str| {
        let line = front.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
    };
    let info =
        Info { title: value("title"), author: value("author"), language: value("lang"), ..Info::default() };
    let page = Page { blocks: blocks(body), ..Page::default() };
    super::single(page, info, reading)
}

/// The lines between `---` at the very beginning.
fn front_matter(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return ("", text);
    };
    match rest.split_once("\n---\n").or_else(|| rest.split_once("\n---\r\n")) {
        Some((front, body))
            if front.lines().all(|line| line.is_empty() || line.contains([':', '-', '#', ' '])) =>
        {
            (front, body)
        }
        _ => ("", text),
    }
}

/// The blocks of a text.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut lines = text.lines().peekable();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut items: Vec<ListItem> = Vec::new();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if let Some((fence, language)) = fence(trimmed) {
            close(&mut out, &mut paragraph, &mut items);
            let mut code = Vec::new();
            for line in lines.by_ref() {
                if line.trim_start().starts_with(fence) && line.trim().chars().all(|ch| fence.starts_with(ch))
                {
                    break;
                }
                code.push(line);
            }
            let language = (!language.is_empty()).then(|| language.to_owned());
            out.push(Block::new(Content::Code { language, text: code.join("\n") }));
        } else if let Some((level, title)) = heading(trimmed) {
            close(&mut out, &mut paragraph, &mut items);
            out.push(Block::heading(level, title));
        } else if paragraph.is_empty()
            && trimmed.starts_with('|')
            && lines.peek().is_some_and(|next| is_rule(next))
        {
            close(&mut out, &mut paragraph, &mut items);
            lines.next();
            let mut rows = vec![cells(trimmed)];
            while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
                rows.push(cells(row.trim()));
            }
            out.push(Block::new(Content::Table { rows, header: true }));
        } else if let Some((mark, text)) = item(trimmed) {
            flush(&mut out, &mut paragraph);
            let indent = line.len() - trimmed.len();
            let depth = u8::try_from(indent / 2).unwrap_or(8).min(8);
            // Numbers after bullets begin another list.
            let last = items.iter().rev().find(|item| item.depth == 0);
            if depth == 0 && last.is_some_and(|last| last.mark.is_some() != mark.is_some()) {
                close(&mut out, &mut paragraph, &mut items);
            }
            items.push(ListItem { depth, mark, text: text.to_owned() });
        } else if trimmed.is_empty() {
            flush(&mut out, &mut paragraph);
            // A list goes on after an empty line when the next line is an item or is indented.
            let goes_on =
                lines.peek().is_some_and(|next| item(next.trim_start()).is_some() || next.starts_with("  "));
            if !goes_on {
                close(&mut out, &mut paragraph, &mut items);
            }
        } else if let (Some(last), true) = (items.last_mut(), paragraph.is_empty() && line.starts_with(' ')) {
            last.text.push(' ');
            last.text.push_str(trimmed);
        } else if paragraph.len() == 1 && is_underline(trimmed) {
            let level = if trimmed.starts_with('=') { 1 } else { 2 };
            let title = paragraph.pop().unwrap_or_default().trim();
            out.push(Block::heading(level, title));
        } else {
            if !items.is_empty() {
                close(&mut out, &mut paragraph, &mut items);
            }
            paragraph.push(line.trim_end());
        }
    }
    close(&mut out, &mut paragraph, &mut items);
    out
}

fn flush(out: &mut Vec<Block>, paragraph: &mut Vec<&str>) {
    if !paragraph.is_empty() {
        out.push(Block::paragraph(paragraph.join("\n")));
        paragraph.clear();
    }
}

fn close(out: &mut Vec<Block>, paragraph: &mut Vec<&str>, items: &mut Vec<ListItem>) {
    if !items.is_empty() {
        out.push(Block::new(Content::List { items: std::mem::take(items) }));
    }
    flush(out, paragraph);
}

fn fence(line: &str) -> Option<(&str, &str)> {
    let mark = line.chars().next().filter(|ch| matches!(ch, '`' | '~'))?;
    let length = line.chars().take_while(|ch| *ch == mark).count();
    let (fence, rest) = line.split_at_checked(length).filter(|_| length >= 3)?;
    (!rest.contains(mark)).then(|| (fence, rest.split_whitespace().next().unwrap_or_default()))
}

fn heading(line: &str) -> Option<(u8, &str)> {
    let level = line.chars().take_while(|ch| *ch == '#').count();
    let rest = line.get(level..)?;
    let fits = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    let title = rest.trim().trim_end_matches('#').trim_end();
    fits.then(|| (u8::try_from(level).unwrap_or(6), title))
}

fn is_underline(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 2 && (line.chars().all(|ch| ch == '=') || line.chars().all(|ch| ch == '-'))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|ch| matches!(ch, '|' | '-' | ':' | ' ' | '\t'))
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut chars = inner.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' if chars.peek() == Some(&'|') => {
                chars.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('|');
                }
            }
            '|' => cells.push(String::new()),
            ch => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(ch);
                }
            }
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn item(line: &str) -> Option<(Option<String>, &str)> {
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        // `* * *` is a line, not an item.
        let rule = line.chars().all(|ch| matches!(ch, '*' | '-' | ' '));
        return (!rule).then(|| (None, rest.trim()));
    }
    let (mark, rest) = line.split_once(' ')?;
    let number = mark.strip_suffix(['.', ')'])?;
    let fits = (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| (Some(mark.to_owned()), rest.trim()))
}
