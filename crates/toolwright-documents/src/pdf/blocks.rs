//! The lines of a region become paragraphs, lists, code, and tables that stand without ruling lines.

use super::lines::{self, Segment, TextLine};
use super::regions::{EdgeBox, median};
use crate::model::{Block, Content, ListItem, Style};

/// A block with its edges in turned coordinates and the marked content of its first letter.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) block: Block,
    pub(super) frame: EdgeBox,
    pub(super) mcid: i32,
}

/// Makes blocks of the words of one region.
pub(super) fn blocks(segments: Vec<Segment>) -> Vec<Placed> {
    let lines = lines::lines(segments);
    let mut out = Vec::new();
    let mut rest = lines.as_slice();
    let mut plain: Vec<&TextLine> = Vec::new();
    let spacing = line_spacing(&lines);
    while let Some((line, after)) = rest.split_first() {
        match table(rest, spacing) {
            Some((used, placed)) => {
                paragraphs(&mut out, &plain, spacing);
                plain.clear();
                out.push(placed);
                rest = rest.get(used..).unwrap_or_default();
            }
            None => {
                plain.push(line);
                rest = after;
            }
        }
    }
    paragraphs(&mut out, &plain, spacing);
    lists(out)
}

/// The usual distance between baselines, in units of the type size.
fn line_spacing(lines: &[TextLine]) -> f32 {
    let steps: Vec<f32> = lines
        .windows(2)
        .filter_map(|pair| {
            let [above, below] = pair else { return None };
            let step = (below.y - above.y) / below.size.max(0.1);
            ((below.size - above.size).abs() < 0.1 * above.size && step > 0.7 && step < 2.2).then_some(step)
        })
        .collect();
    if steps.is_empty() { 1.25 } else { median(steps) }
}

/// The cells of a line: what stands apart by more than a wide space.
fn cells(line: &TextLine) -> Vec<Vec<&Segment>> {
    let mut cells: Vec<Vec<&Segment>> = Vec::new();
    let mut end = f32::MIN;
    for segment in &line.segments {
        let apart = segment.x0 - end > line.size * 1.15;
        match cells.last_mut() {
            Some(cell) if !apart => cell.push(segment),
            _ => cells.push(vec![segment]),
        }
        end = end.max(segment.x1);
    }
    cells
}

fn span(cell: &[&Segment]) -> (f32, f32) {
    (
        cell.iter().map(|segment| segment.x0).fold(f32::MAX, f32::min),
        cell.iter().map(|segment| segment.x1).fold(f32::MIN, f32::max),
    )
}

/// A table at the beginning of some lines, and how many of them it takes.
fn table(lines: &[TextLine], spacing: f32) -> Option<(usize, Placed)> {
    let first = cells(lines.first()?);
    if first.len() < 2 {
        return None;
    }
    // The rows that follow without a break, as long as there are cells or the rest of one.
    let mut rows: Vec<(&TextLine, Vec<Vec<&Segment>>)> = Vec::new();
    let mut singles = 0;
    for line in lines {
        let row = cells(line);
        if let Some((above, _)) = rows.last() {
            let step = (line.y - above.y) / line.size.max(0.1);
            if step > spacing.max(1.2) * 2.4 || (line.size - above.size).abs() > above.size * 0.3 {
                break;
            }
        }
        if row.first().is_some_and(|cell| is_bullet(&text(cell))) {
            break;
        }
        singles = if row.len() < 2 { singles + 1 } else { 0 };
        if singles > 2 {
            break;
        }
        rows.push((line, row));
    }
    while rows.last().is_some_and(|(_, row)| row.len() < 2) {
        rows.pop();
    }
    let full = rows.iter().map(|(_, row)| row.len()).max().filter(|count| *count >= 2)?;
    // The columns are those of the rows with the usual number of cells.
    let usual = (2..=full)
        .max_by_key(|count| rows.iter().filter(|(_, row)| row.len() == *count).count() * count)
        .unwrap_or(full);
    let model: Vec<&Vec<Vec<&Segment>>> =
        rows.iter().map(|(_, row)| row).filter(|row| row.len() == usual).collect();
    if model.len() < if usual >= 3 { 2 } else { 3 } || model.len() * 2 < rows.len() {
        return None;
    }
    // A line above the table that only looks like a row does not belong to it.
    let begins = first.len() == usual || (first.len() + 1 == usual && usual > 2);
    if !begins || mark_of(&text(first.first()?)).is_some() || is_bullet(&text(first.first()?)) {
        return None;
    }
    let size = lines.first()?.size;
    let mut columns: Vec<(f32, f32)> = Vec::new();
    let mut steady = 0;
    for at in 0..usual {
        let spans: Vec<(f32, f32)> =
            model.iter().filter_map(|row| row.get(at)).map(|cell| span(cell)).collect();
        let spread = |edge: &dyn Fn(&(f32, f32)) -> f32| {
            let low = spans.iter().map(edge).fold(f32::MAX, f32::min);
            let high = spans.iter().map(edge).fold(f32::MIN, f32::max);
            high - low
        };
        let aligned = spread(&|span| span.0) < size
            || spread(&|span| span.1) < size
            || spread(&|span| (span.0 + span.1) / 2.0) < size;
        steady += usize::from(aligned);
        let x0 = spans.iter().map(|span| span.0).fold(f32::MAX, f32::min);
        let x1 = spans.iter().map(|span| span.1).fold(f32::MIN, f32::max);
        columns.push((x0, x1));
    }
    let apart = columns.windows(2).all(|pair| matches!(pair, [(_, end), (start, _)] if end < start));
    if !apart || steady + 1 < usual || (usual == 2 && steady < 2) {
        return None;
    }
    // A numbered or bulleted list has a first column of marks.
    if usual == 2 && model.iter().all(|row| row.first().is_some_and(|cell| mark_of(&text(cell)).is_some())) {
        return None;
    }
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut last_y: Option<f32> = None;
    for (line, row) in &rows {
        let mut texts = vec![String::new(); usual];
        for cell in row {
            let (x0, x1) = span(cell);
            let at = columns
                .iter()
                .enumerate()
                .max_by(|(_, a), (_, b)| overlap(**a, x0, x1).total_cmp(&overlap(**b, x0, x1)))
                .map_or(0, |(at, _)| at);
            if let Some(slot) = texts.get_mut(at) {
                append_line(slot, &text(cell));
            }
        }
        // A row without a first cell, close below another, goes on with its cells.
        let step = last_y.map_or(f32::MAX, |y| (line.y - y) / line.size.max(0.1));
        let goes_on =
            texts.first().is_some_and(String::is_empty) && row.len() < usual && step < spacing * 1.15;
        last_y = Some(line.y);
        match table.last_mut().filter(|_| goes_on) {
            Some(above) => {
                for (slot, more) in above.iter_mut().zip(&texts) {
                    append_line(slot, more);
                }
            }
            None => table.push(texts),
        }
    }
    if table.len() < 2 {
        return None;
    }
    let used = rows.len();
    let frame = frame_of(rows.iter().map(|(line, _)| *line));
    let mcid = rows.first().and_then(|(line, _)| line.glyphs().next()).map_or(-1, |glyph| glyph.mcid);
    let header = looks_like_header(&table);
    Some((used, Placed { block: Block::new(Content::Table { rows: table, header }), frame, mcid }))
}

fn overlap((start, end): (f32, f32), x0: f32, x1: f32) -> f32 {
    let shared = end.min(x1) - start.max(x0);
    // Nothing shared: the nearer column is better.
    shared
}

fn text(cell: &[&Segment]) -> String {
    let segments: Vec<Segment> = cell.iter().map(|segment| (*segment).clone()).collect();
    lines::text_of(&segments)
}

/// A first row without numbers above rows that have some names the columns.
pub(super) fn looks_like_header(rows: &[Vec<String>]) -> bool {
    let Some((first, rest)) = rows.split_first() else { return false };
    let number =
        |cell: &String| cell.chars().any(|ch| ch.is_ascii_digit()) && !cell.chars().any(char::is_alphabetic);
    let named = first.iter().filter(|cell| !cell.is_empty()).count() * 2 > first.len();
    named && !first.iter().any(number) && (rest.iter().flatten().any(number) || rest.len() >= 2)
}

fn frame_of<'a>(lines: impl Iterator<Item = &'a TextLine>) -> EdgeBox {
    lines.fold(EdgeBox { x0: f32::MAX, y0: f32::MAX, x1: f32::MIN, y1: f32::MIN }, |frame, line| EdgeBox {
        x0: frame.x0.min(line.x0),
        y0: frame.y0.min(line.top()),
        x1: frame.x1.max(line.x1),
        y1: frame.y1.max(line.bottom()),
    })
}

fn paragraphs(out: &mut Vec<Placed>, lines: &[&TextLine], spacing: f32) {
    let left = median(lines.iter().map(|line| line.x0).collect());
    let right = lines.iter().map(|line| line.x1).fold(f32::MIN, f32::max);
    let mut start = 0;
    for at in 1..=lines.len() {
        let breaks = match (lines.get(at - 1), lines.get(at)) {
            (Some(above), Some(line)) => parts(above, line, lines.get(start), left, right, spacing),
            _ => true,
        };
        if breaks {
            if let Some(group) = lines.get(start..at).filter(|group| !group.is_empty()) {
                out.push(paragraph(group));
            }
            start = at;
        }
    }
}

/// Whether a line begins a new paragraph.
fn parts(
    above: &TextLine,
    line: &TextLine,
    first: Option<&&TextLine>,
    left: f32,
    right: f32,
    spacing: f32,
) -> bool {
    let size = above.size.max(line.size).max(0.1);
    let step = (line.y - above.y) / size;
    if step > spacing * 1.28 + 0.05 || step < 0.0 {
        return true;
    }
    if (line.size - above.size).abs() > size * 0.08 || is_mono(line) != is_mono(above) {
        return true;
    }
    if is_bold(line) != is_bold(above) && (is_bold(above) && above.x1 < right - size * 2.0) {
        return true;
    }
    if let (Some(above), Some(line)) = (above.glyphs().next(), line.glyphs().next())
        && (above.tagged || line.tagged)
        && above.mcid != line.mcid
    {
        return true;
    }
    let text = line.text();
    if mark_of(&text).is_some() {
        return true;
    }
    if is_mono(line) {
        return false;
    }
    // The lines of an item hang under its words, not under its mark.
    let hanging = first.is_some_and(|first| mark_of(&first.text()).is_some());
    if hanging {
        return line.x0 < first.map_or(line.x0, |first| first.x0) + size * 0.2
            && above.x1 < right - size * 3.0;
    }
    let indented = line.x0 > left + size * 0.8 && line.x0 < left + size * 6.0 && above.x0 < left + size * 0.5;
    indented && !text.starts_with(char::is_lowercase)
}

fn is_mono(line: &TextLine) -> bool {
    line.glyphs().all(|glyph| glyph.mono)
}

fn is_bold(line: &TextLine) -> bool {
    line.glyphs().all(|glyph| glyph.bold)
}

fn paragraph(lines: &[&TextLine]) -> Placed {
    let frame = frame_of(lines.iter().copied());
    let mcid = lines.first().and_then(|line| line.glyphs().next()).map_or(-1, |glyph| glyph.mcid);
    let size = median(lines.iter().map(|line| line.size).collect());
    let bold = lines.iter().all(|line| is_bold(line));
    let mono = lines.iter().all(|line| is_mono(line));
    let content = if mono
        && (lines.len() > 1 || looks_like_code(&lines.iter().map(|line| line.text()).collect::<String>()))
    {
        Content::Code { language: None, text: code(lines, frame.x0) }
    } else {
        let mut text = String::new();
        for line in lines {
            append_line(&mut text, &line.text());
        }
        Content::Paragraph { text }
    };
    let mut block = Block::new(content);
    block.style = Some(Style { size: (size * 10.0).round() / 10.0, bold });
    Placed { block, frame, mcid }
}

fn looks_like_code(text: &str) -> bool {
    text.contains(['{', '}', ';', '=', '(', '$', '#', '|'])
}

/// Lines of equally wide characters, with their indentation.
fn code(lines: &[&TextLine], left: f32) -> String {
    let mut text = String::new();
    for line in lines {
        let width = median(line.glyphs().map(|glyph| glyph.x1 - glyph.x0).collect()).max(0.5);
        if !text.is_empty() {
            text.push('\n');
        }
        let indent = ((line.x0 - left) / width).round().clamp(0.0, 80.0) as usize;
        text.extend(std::iter::repeat_n(' ', indent));
        text.push_str(&line.text());
    }
    text
}

/// Adds a line to a text: a hyphen at its end is taken out where the word goes on.
pub(super) fn append_line(text: &mut String, line: &str) {
    let line = line.trim();
    if line.is_empty() {
        return;
    }
    let before_hyphen = || text.chars().rev().nth(1);
    let goes_on = text.ends_with('-')
        && line.starts_with(char::is_lowercase)
        && before_hyphen().is_some_and(char::is_lowercase);
    if text.ends_with('\u{ad}') || goes_on {
        text.pop();
    } else if text.ends_with('-') && before_hyphen().is_some_and(char::is_alphanumeric) {
        // A compound such as UTF-8: the hyphen stays, without a space.
    } else if !text.is_empty() {
        let joined = text.chars().next_back().is_some_and(lines::is_wide)
            && line.chars().next().is_some_and(lines::is_wide);
        if !joined {
            text.push(' ');
        }
    }
    text.push_str(line);
}

/// Whether a text is the mark of an item and nothing else.
fn is_bullet(text: &str) -> bool {
    mark_of(&format!("{text} x")).is_some_and(|(mark, _)| mark.is_none())
}

/// The mark of a list's item, and the text after it.
fn mark_of(text: &str) -> Option<(Option<String>, String)> {
    let text = text.trim_start();
    let mut chars = text.chars();
    let first = chars.next()?;
    if matches!(
        first,
        '•' | '◦'
            | '▪'
            | '‣'
            | '●'
            | '○'
            | '■'
            | '□'
            | '➢'
            | '❖'
            | '✓'
            | '\u{f0b7}'
            | '\u{f0a7}'
            | '∙'
            | '·'
    ) || (matches!(first, '-' | '–' | '—' | '*') && chars.clone().next() == Some(' '))
    {
        return Some((None, chars.as_str().trim_start().to_owned()));
    }
    let (mark, rest) = text.split_once(' ')?;
    let inner = mark.strip_suffix(['.', ')'])?.trim_start_matches('(');
    let numbered = (1..=3).contains(&inner.len()) && inner.bytes().all(|byte| byte.is_ascii_digit());
    let lettered = inner.len() == 1
        && inner.bytes().all(|byte| byte.is_ascii_lowercase())
        && (mark.ends_with(')') || mark.starts_with('('));
    (numbered || lettered).then(|| (Some(mark.to_owned()), rest.trim_start().to_owned()))
}

/// Paragraphs that begin with marks, one after the other, are a list.
fn lists(blocks: Vec<Placed>) -> Vec<Placed> {
    let mut out: Vec<Placed> = Vec::new();
    let mut run: Vec<(Placed, (Option<String>, String))> = Vec::new();
    let close = |run: &mut Vec<(Placed, (Option<String>, String))>, out: &mut Vec<Placed>| {
        // One numbered paragraph alone is a heading or a sentence that begins with a number.
        if run.len() == 1 && run.first().is_some_and(|(_, (mark, _))| mark.is_some()) {
            out.extend(run.drain(..).map(|(placed, _)| placed));
            return;
        }
        let Some((first, _)) = run.first() else { return };
        let (left, mcid, style) = (first.frame.x0, first.mcid, first.block.style);
        let mut frame = first.frame;
        let mut items = Vec::new();
        for (placed, (mark, text)) in run.drain(..) {
            let size = placed.block.style.map_or(10.0, |style| style.size).max(1.0);
            let depth = ((placed.frame.x0 - left) / (size * 1.5)).round().clamp(0.0, 6.0) as u8;
            frame = EdgeBox {
                x0: frame.x0.min(placed.frame.x0),
                y0: frame.y0.min(placed.frame.y0),
                x1: frame.x1.max(placed.frame.x1),
                y1: frame.y1.max(placed.frame.y1),
            };
            items.push(ListItem { depth, mark, text });
        }
        let mut block = Block::new(Content::List { items });
        block.style = style;
        out.push(Placed { block, frame, mcid });
    };
    for placed in blocks {
        let mark = match &placed.block.content {
            Content::Paragraph { text } => mark_of(text).filter(|(_, text)| !text.is_empty()),
            _ => None,
        };
        match mark {
            Some(mark) => {
                let size = placed.block.style.map(|style| style.size);
                let other =
                    run.last().is_some_and(|(last, _)| last.block.style.map(|style| style.size) != size);
                if other {
                    close(&mut run, &mut out);
                }
                run.push((placed, mark));
            }
            None => {
                close(&mut run, &mut out);
                out.push(placed);
            }
        }
    }
    close(&mut run, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::{append_line, mark_of};

    #[test]
    fn a_hyphen_goes_where_the_word_goes_on() {
        let mut text = String::from("The develop-");
        append_line(&mut text, "ment of UTF-");
        append_line(&mut text, "8 and self-");
        append_line(&mut text, "made 中文");
        append_line(&mut text, "日本");
        assert_eq!(text, "The development of UTF-8 and selfmade 中文日本");
    }

    #[test]
    fn marks_of_items() {
        assert_eq!(mark_of("• one"), Some((None, "one".to_owned())));
        assert_eq!(mark_of("12. twelve"), Some((Some("12.".to_owned()), "twelve".to_owned())));
        assert_eq!(mark_of("(a) first"), Some((Some("(a)".to_owned()), "first".to_owned())));
        assert_eq!(mark_of("1998 was a year"), None);
        assert_eq!(mark_of("-5 degrees"), None);
    }
}
