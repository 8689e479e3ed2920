//! The reading order of a page: columns are found by their gutters, and what crosses a gutter divides the
//! page into bands.

use super::lines::Segment;

/// How often columns may stand inside columns.
const MAX_DEPTH: usize = 8;

/// The grain, in points, in which gutters are looked for.
const GRAIN: f32 = 2.0;

/// Something with a place on the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageItem {
    pub(super) what: ItemContent,
    pub(super) frame: EdgeBox,
    /// The baseline, size and length of words; 0 for others.
    pub(super) y: f32,
    pub(super) size: f32,
    pub(super) chars: usize,
}

/// What an item is, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemContent {
    /// Words.
    Segment(usize),
    /// A figure.
    Figure(usize),
    /// A ruled table.
    Table(usize),
}

/// The edges of something, in turned coordinates.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EdgeBox {
    pub(super) x0: f32,
    pub(super) y0: f32,
    pub(super) x1: f32,
    pub(super) y1: f32,
}

impl PageItem {
    pub(super) fn segment(index: usize, segment: &Segment) -> Self {
        PageItem {
            what: ItemContent::Segment(index),
            frame: EdgeBox { x0: segment.x0, y0: segment.top(), x1: segment.x1, y1: segment.bottom() },
            y: segment.y,
            size: segment.size,
            chars: segment.chars(),
        }
    }

    pub(super) fn other(what: ItemContent, frame: EdgeBox) -> Self {
        PageItem { what, frame, y: 0.0, size: 0.0, chars: 0 }
    }

    fn is_text(&self) -> bool {
        matches!(self.what, ItemContent::Segment(_))
    }
}

/// Divides a page into regions that are read one after the other, each from top to bottom.
pub(super) fn order(items: Vec<PageItem>) -> Vec<Vec<PageItem>> {
    let mut out = Vec::new();
    divide(items, 0, &mut out);
    out
}

fn divide(items: Vec<PageItem>, depth: usize, out: &mut Vec<Vec<PageItem>>) {
    if items.is_empty() {
        return;
    }
    let gutter = if depth < MAX_DEPTH { find_gutter(&items) } else { None };
    let Some(gutter) = gutter else {
        out.push(items);
        return;
    };
    for band in bands(items, gutter) {
        match band {
            Band::Whole(items) => divide(items, depth + 1, out),
            Band::Split(left, right) => {
                divide(left, depth + 1, out);
                divide(right, depth + 1, out);
            }
        }
    }
}

/// A strip of the page from one edge to the other.
enum Band {
    /// What crosses the gutter.
    Whole(Vec<PageItem>),
    /// What stands at its sides.
    Split(Vec<PageItem>, Vec<PageItem>),
}

/// An empty strip between two columns.
#[derive(Debug, Clone, Copy)]
struct Gutter {
    x0: f32,
    x1: f32,
}

impl Gutter {
    fn crossed_by(self, frame: EdgeBox) -> bool {
        // A letter that leans over by a grain does not cross.
        frame.x0 < self.x1 - 0.5 && frame.x1 > self.x0 + 0.5
    }

    fn middle(self) -> f32 {
        (self.x0 + self.x1) / 2.0
    }
}

fn bands(mut items: Vec<PageItem>, gutter: Gutter) -> Vec<Band> {
    items.sort_by(|a, b| a.frame.y0.total_cmp(&b.frame.y0));
    // The heights at which something crosses; what stands beside it on the same line belongs to it.
    let mut crossed: Vec<(f32, f32)> = Vec::new();
    for item in items.iter().filter(|item| gutter.crossed_by(item.frame)) {
        let frame = item.frame;
        match crossed.last_mut() {
            Some((_, end)) if frame.y0 < *end => *end = end.max(frame.y1),
            _ => crossed.push((frame.y0, frame.y1)),
        }
    }
    let mut bands: Vec<Band> = Vec::new();
    let mut at = 0;
    for item in items {
        let frame = item.frame;
        let middle = (frame.y0 + frame.y1) / 2.0;
        while crossed.get(at).is_some_and(|(_, end)| middle > *end) {
            at += 1;
        }
        let whole = gutter.crossed_by(frame) || crossed.get(at).is_some_and(|(start, _)| middle >= *start);
        let left = frame.x1 <= gutter.middle();
        match bands.last_mut() {
            Some(Band::Whole(items)) if whole => items.push(item),
            Some(Band::Split(lefts, rights)) if !whole => if left { lefts } else { rights }.push(item),
            _ if whole => bands.push(Band::Whole(vec![item])),
            _ if left => bands.push(Band::Split(vec![item], Vec::new())),
            _ => bands.push(Band::Split(Vec::new(), vec![item])),
        }
    }
    bands
}

/// The gutter that most lines stand beside.
fn find_gutter(items: &[PageItem]) -> Option<Gutter> {
    let segments: Vec<&PageItem> = items.iter().filter(|item| item.is_text()).collect();
    if segments.len() < 6 {
        return None;
    }
    let x0 = segments.iter().map(|segment| segment.frame.x0).fold(f32::MAX, f32::min);
    let x1 = segments.iter().map(|segment| segment.frame.x1).fold(f32::MIN, f32::max);
    let grains = (((x1 - x0) / GRAIN).ceil().max(0.0) as usize).min(5_000);
    if grains < 10 {
        return None;
    }
    let mut cover = vec![0i32; grains + 2];
    for segment in &segments {
        let from = (((segment.frame.x0 - x0) / GRAIN).floor().max(0.0) as usize).min(grains);
        let to = (((segment.frame.x1 - x0) / GRAIN).ceil().max(0.0) as usize).min(grains);
        if let Some(cell) = cover.get_mut(from) {
            *cell += 1;
        }
        if let Some(cell) = cover.get_mut(to.max(from + 1)) {
            *cell -= 1;
        }
    }
    let mut sum = 0;
    for cell in &mut cover {
        sum += *cell;
        *cell = sum;
    }
    let cover = cover.get(..grains)?;
    let most = cover.iter().copied().max().unwrap_or(0);
    let size = median(segments.iter().map(|segment| segment.size).collect());
    let mut best: Option<(f32, Gutter)> = None;
    for (from, to) in valleys(cover, most / 3) {
        let gutter = Gutter { x0: x0 + from as f32 * GRAIN, x1: x0 + to as f32 * GRAIN };
        // Grains are rounded outwards, so a gutter is wider than its empty grains.
        if gutter.x1 - gutter.x0 < size * 0.5 {
            continue;
        }
        let score = weigh(items, gutter);
        if score > 0.0 && best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, gutter));
        }
    }
    best.map(|(_, gutter)| gutter)
}

/// Runs of grains that few segments cover, each narrowed to where the fewest do.
fn valleys(cover: &[i32], most: i32) -> Vec<(usize, usize)> {
    let mut valleys = Vec::new();
    let mut at = 0;
    while at < cover.len() {
        let low = cover.iter().skip(at).take_while(|count| **count <= most).count();
        if low == 0 {
            at += 1;
            continue;
        }
        let run = cover.get(at..at + low).unwrap_or_default();
        // The edges of the region are not gutters.
        if at > 0 && at + low < cover.len() {
            let least = run.iter().copied().min().unwrap_or(0);
            let slack = least + most / 12;
            let mut inner = 0;
            while inner < run.len() {
                let deep = run.iter().skip(inner).take_while(|count| **count <= slack).count();
                if deep > 0 {
                    valleys.push((at + inner, at + inner + deep));
                }
                inner += deep.max(1);
            }
        }
        at += low;
    }
    valleys
}

/// How many lines stand at the sides of a gutter; 0 when it divides no columns.
fn weigh(items: &[PageItem], gutter: Gutter) -> f32 {
    let mut score = 0.0;
    for band in bands(items.to_vec(), gutter) {
        let Band::Split(left, right) = band else { continue };
        let (left, right) = (side(&left), side(&right));
        let rows = left.len().min(right.len());
        if rows < 3 {
            continue;
        }
        let chars = |rows: &[Row]| rows.iter().map(|row| row.chars).sum::<usize>() as f32 / rows.len() as f32;
        let fewest = chars(&left).min(chars(&right));
        // Lines of columns stand at any height; rows of a table stand on common baselines, and leave much
        // room.
        let aligned = left
            .iter()
            .filter(|row| right.iter().any(|other| (other.y - row.y).abs() < row.size * 0.15))
            .count() as f32
            / left.len() as f32;
        let fill = fill(&left).min(fill(&right));
        let table = aligned > 0.7 && (fill < 0.62 || fewest < 12.0);
        let columns = fewest >= 12.0 || (fewest >= 6.0 && aligned < 0.5);
        if columns && !table {
            score += rows as f32;
        }
    }
    score
}

/// A row of one side.
struct Row {
    y: f32,
    size: f32,
    x0: f32,
    x1: f32,
    chars: usize,
}

fn side(items: &[PageItem]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut segments: Vec<&PageItem> = items.iter().filter(|item| item.is_text()).collect();
    segments.sort_by(|a, b| a.y.total_cmp(&b.y));
    for segment in segments {
        match rows.last_mut() {
            Some(row) if (segment.y - row.y).abs() < row.size * 0.5 => {
                row.x0 = row.x0.min(segment.frame.x0);
                row.x1 = row.x1.max(segment.frame.x1);
                row.chars += segment.chars;
            }
            _ => rows.push(Row {
                y: segment.y,
                size: segment.size,
                x0: segment.frame.x0,
                x1: segment.frame.x1,
                chars: segment.chars,
            }),
        }
    }
    rows
}

/// The share of a side's width that its rows fill.
fn fill(rows: &[Row]) -> f32 {
    let x0 = rows.iter().map(|row| row.x0).fold(f32::MAX, f32::min);
    let x1 = rows.iter().map(|row| row.x1).fold(f32::MIN, f32::max);
    let width = (x1 - x0).max(1.0);
    median(rows.iter().map(|row| (row.x1 - row.x0) / width).collect())
}

pub(super) fn median(mut values: Vec<f32>) -> f32 {
    let middle = values.len() / 2;
    if middle >= values.len() {
        return 0.0;
    }
    *values.select_nth_unstable_by(middle, f32::total_cmp).1
}
