//! Tables with ruling lines: lines that meet make a grid, and the glyphs inside it belong to its cells.

use super::device::{Glyph, QuarterTurns, RuledLine, turned};
use super::lines;
use super::regions::EdgeBox;

/// How far a line may miss another and still meet it.
const SLIP: f32 = 2.5;

/// The most lines of each direction that are put together.
const MAX_RULES: usize = 800;

/// The most cells of a table.
const MAX_CELLS: usize = 20_000;

/// A table with ruling lines.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) frame: EdgeBox,
    pub(super) rows: Vec<Vec<String>>,
}

/// Finds the tables of a page, and takes their glyphs out.
pub(super) fn tables(rules: &[RuledLine], glyphs: &mut Vec<Glyph>, turn: QuarterTurns) -> Vec<Grid> {
    let (across, down) = straightened(rules, turn);
    if across.len() < 2 || down.is_empty() || across.len() > MAX_RULES || down.len() > MAX_RULES {
        return Vec::new();
    }
    let mut grids = Vec::new();
    for (across, down) in meshes(&across, &down) {
        if let Some(grid) = grid(&across, &down, glyphs) {
            grids.push(grid);
        }
    }
    grids
}

/// Horizontal and vertical lines of the turned page; pieces of one line are joined.
fn straightened(rules: &[RuledLine], turn: QuarterTurns) -> (Vec<RuledLine>, Vec<RuledLine>) {
    let (mut across, mut down) = (Vec::new(), Vec::new());
    for rule in rules {
        let place = |along: f32| {
            let (x, y) = if rule.vertical { (rule.at, along) } else { (along, rule.at) };
            turned(f64::from(x), f64::from(y), turn)
        };
        let ((ax, ay), (bx, by)) = (place(rule.from), place(rule.to));
        let vertical = rule.vertical != matches!(turn, 1 | 3);
        let (at, from, to) =
            if vertical { (ax, ay.min(by), ay.max(by)) } else { (ay, ax.min(bx), ax.max(bx)) };
        let rule = RuledLine { vertical, at: at as f32, from: from as f32, to: to as f32 };
        if vertical { &mut down } else { &mut across }.push(rule);
    }
    (joined(across), joined(down))
}

fn joined(mut rules: Vec<RuledLine>) -> Vec<RuledLine> {
    rules.sort_by(|a, b| a.at.total_cmp(&b.at));
    // Lines at nearly one place are one line.
    let mut out: Vec<RuledLine> = Vec::new();
    let mut group: Vec<RuledLine> = Vec::new();
    let close = |group: &mut Vec<RuledLine>, out: &mut Vec<RuledLine>| {
        group.sort_by(|a, b| a.from.total_cmp(&b.from));
        let mut last: Option<RuledLine> = None;
        for rule in group.drain(..) {
            match &mut last {
                Some(before) if rule.from <= before.to + SLIP => before.to = before.to.max(rule.to),
                _ => out.extend(last.replace(rule)),
            }
        }
        out.extend(last);
    };
    for rule in rules {
        if group.first().is_some_and(|first: &RuledLine| rule.at - first.at > 1.5) {
            close(&mut group, &mut out);
        }
        group.push(rule);
    }
    close(&mut group, &mut out);
    out.retain(|rule| rule.to - rule.from > 5.0);
    out
}

/// Groups of lines that meet each other.
fn meshes(across: &[RuledLine], down: &[RuledLine]) -> Vec<(Vec<RuledLine>, Vec<RuledLine>)> {
    let mut parent: Vec<usize> = (0..across.len() + down.len()).collect();
    fn root(parent: &mut [usize], mut at: usize) -> usize {
        while let Some(up) = parent.get(at).copied().filter(|up| *up != at) {
            let above = parent.get(up).copied().unwrap_or(up);
            if let Some(slot) = parent.get_mut(at) {
                *slot = above;
            }
            at = above;
        }
        at
    }
    for (h, row) in across.iter().enumerate() {
        for (v, column) in down.iter().enumerate() {
            let meets = column.at > row.from - SLIP
                && column.at < row.to + SLIP
                && row.at > column.from - SLIP
                && row.at < column.to + SLIP;
            if meets {
                let (a, b) = (root(&mut parent, h), root(&mut parent, across.len() + v));
                if let Some(slot) = parent.get_mut(a) {
                    *slot = b;
                }
            }
        }
    }
    let mut groups: std::collections::BTreeMap<usize, (Vec<RuledLine>, Vec<RuledLine>)> =
        std::collections::BTreeMap::new();
    for (at, rule) in across.iter().chain(down).enumerate() {
        let group = groups.entry(root(&mut parent, at)).or_default();
        if at < across.len() { &mut group.0 } else { &mut group.1 }.push(*rule);
    }
    groups.into_values().filter(|(across, down)| across.len() >= 2 && !down.is_empty()).collect()
}

/// The distinct places of lines, with the open ends of those across them.
fn stops(rules: &[RuledLine], others: &[RuledLine]) -> Vec<f32> {
    let mut stops: Vec<f32> = rules.iter().map(|rule| rule.at).collect();
    let ends = [
        others.iter().map(|rule| rule.from).fold(f32::MAX, f32::min),
        others.iter().map(|rule| rule.to).fold(f32::MIN, f32::max),
    ];
    for end in ends {
        // A table may be open at its sides.
        if stops.iter().all(|stop| (stop - end).abs() > 2.0 * SLIP) {
            stops.push(end);
        }
    }
    stops.sort_by(f32::total_cmp);
    stops.dedup_by(|a, b| *a - *b < SLIP);
    stops
}

fn grid(across: &[RuledLine], down: &[RuledLine], glyphs: &mut Vec<Glyph>) -> Option<Grid> {
    let (xs, ys) = (stops(down, across), stops(across, down));
    let (columns, rows) = (xs.len().checked_sub(1)?, ys.len().checked_sub(1)?);
    if columns < 2 || rows < 2 || columns * rows > MAX_CELLS {
        return None;
    }
    let frame = EdgeBox { x0: *xs.first()?, y0: *ys.first()?, x1: *xs.last()?, y1: *ys.last()? };
    let cell_of = |glyph: &Glyph| {
        let (x, y) = ((glyph.x0 + glyph.x1) / 2.0, glyph.y - glyph.size * 0.3);
        let column = xs.partition_point(|stop| *stop <= x).checked_sub(1).filter(|at| *at < columns)?;
        let row = ys.partition_point(|stop| *stop <= y).checked_sub(1).filter(|at| *at < rows)?;
        Some(row * columns + column)
    };
    // Cells without a line between them are one cell; its text stands in the first.
    let mut first: Vec<usize> = (0..rows * columns).collect();
    for row in 0..rows {
        for column in 0..columns {
            let at = row * columns + column;
            let (Some(x0), Some(x1)) = (xs.get(column), xs.get(column + 1)) else { continue };
            let (Some(y0), Some(y1)) = (ys.get(row), ys.get(row + 1)) else { continue };
            let (x, y) = ((x0 + x1) / 2.0, (y0 + y1) / 2.0);
            let left_open = column > 0 && !down.iter().any(|rule| near(rule.at, *x0) && covers(rule, y));
            let upper_open = row > 0 && !across.iter().any(|rule| near(rule.at, *y0) && covers(rule, x));
            let to = if left_open {
                first.get(at - 1).copied()
            } else if upper_open {
                first.get(at - columns).copied()
            } else {
                None
            };
            if let (Some(to), Some(slot)) = (to, first.get_mut(at)) {
                *slot = to;
            }
        }
    }
    let mut cells: Vec<Vec<Glyph>> = vec![Vec::new(); rows * columns];
    for glyph in glyphs.iter() {
        if let Some(cell) = cell_of(glyph).and_then(|at| first.get(at)).and_then(|at| cells.get_mut(*at)) {
            cell.push(*glyph);
        }
    }
    // A frame around text, or the lines of a chart, is not a table.
    let letters = |cell: &Vec<Glyph>| cell.iter().filter(|glyph| !glyph.ch.is_whitespace()).count();
    let own = first.iter().enumerate().filter(|(at, first)| at == *first).count();
    let filled = cells.iter().filter(|cell| letters(cell) > 0).count();
    let rows_used = cells.chunks(columns).filter(|row| row.iter().any(|cell| letters(cell) > 0)).count();
    let columns_used = (0..columns)
        .filter(|column| cells.iter().skip(*column).step_by(columns).any(|cell| letters(cell) > 0))
        .count();
    let longest = cells.iter().map(letters).max().unwrap_or(0);
    if filled < 3 || rows_used < 2 || columns_used < 2 || filled * 4 < own || longest > 2_500 {
        return None;
    }
    let texts: Vec<String> = cells.iter().map(|cell| cell_text(cell)).collect();
    glyphs.retain(|glyph| cell_of(glyph).is_none());
    let mut rows: Vec<Vec<String>> = texts.chunks(columns).map(<[String]>::to_vec).collect();
    // Double lines leave rows and columns without room for text.
    rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
    let used: Vec<bool> = (0..columns)
        .map(|column| rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty())))
        .collect();
    for row in &mut rows {
        let mut at = 0;
        row.retain(|_| {
            at += 1;
            used.get(at - 1).copied().unwrap_or(true)
        });
    }
    Some(Grid { frame, rows })
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() <= SLIP
}

fn covers(rule: &RuledLine, along: f32) -> bool {
    rule.from - SLIP <= along && along <= rule.to + SLIP
}

/// The text of a cell, its lines joined.
fn cell_text(glyphs: &[Glyph]) -> String {
    let lines = lines::lines(lines::segments(glyphs));
    let mut text = String::new();
    for line in &lines {
        // Lines of a cell are often separate values.
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line.text().trim());
    }
    text
}
