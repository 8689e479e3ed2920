//! One page: from glyphs, lines and figures to blocks in reading order.

use super::blocks::{self, Placed};
use super::device::{Drawing, Drawn, Glyph, QuarterTurns, SLANTED, turned, unturn};
use super::figures::Art;
use super::lines::{self, Segment};
use super::regions::{self, EdgeBox, ItemContent, PageItem};
use super::rules;
use super::tags::{StructureRole, Tags};
use crate::model::{Block, Bounds, Content, Figure, HiddenReason, Page};

/// A figure that fills this share of a page with text on it is its background.
const BACKGROUND: f32 = 0.85;

pub(super) fn page(number: u32, drawing: Drawing, art: &[Art], tags: &Tags) -> Page {
    let Drawing { width, height, glyphs, rules, figures: drawn, scanned, .. } = drawing;
    let mut visible: [Vec<Glyph>; 5] = Default::default();
    let mut hidden = Vec::new();
    let mut running = Vec::new();
    for mut glyph in glyphs {
        glyph.tagged = tags.role(glyph.mcid).is_some();
        if glyph.hidden.is_some() {
            hidden.push(glyph);
        } else if glyph.artifact {
            running.push(glyph);
        } else if let Some(group) = visible.get_mut(usize::from(glyph.turn)) {
            group.push(glyph);
        }
    }
    let letters = |glyphs: &[Glyph]| glyphs.iter().filter(|glyph| !glyph.ch.is_whitespace()).count();
    // Text of the direction most of it has comes first, with the figures.
    let main = (0u8..4)
        .max_by_key(|turn| (visible.get(usize::from(*turn)).map_or(0, |group| letters(group)), 4 - turn));
    let main: QuarterTurns = main.unwrap_or(0);
    let text_on_page: usize = visible.iter().map(|group| letters(group)).sum();

    let mut page = Page { number, width, height, ..Page::default() };
    // What fills the page lies behind its text: a scan is worth having, a background is not.
    let fills = |figure: &Drawn| {
        let Bounds { x0, y0, x1, y1 } = figure.bounds;
        (x1 - x0) * (y1 - y0) >= width * height * BACKGROUND
    };
    let (behind, shown): (Vec<&Drawn>, Vec<&Drawn>) = drawn.iter().partition(|figure| fills(figure));
    if scanned || text_on_page < 20 {
        for figure in behind {
            let mut block = Block::new(Content::Figure { figure: page.figures.len() });
            block.bounds = Some(figure.bounds);
            page.figures.push(figure_of(figure, art));
            page.blocks.push(block);
        }
    }

    let mut turns: Vec<QuarterTurns> = vec![main];
    turns.extend((0..=SLANTED).filter(|turn| *turn != main));
    for turn in turns {
        let Some(mut glyphs) = visible.get_mut(usize::from(turn)).map(std::mem::take) else { continue };
        let figures: &[&Drawn] = if turn == main { &shown } else { &[] };
        if glyphs.is_empty() && figures.is_empty() {
            continue;
        }
        let grids = if turn == SLANTED { Vec::new() } else { rules::tables(&rules, &mut glyphs, turn) };
        let mut segments: Vec<Option<Segment>> = lines::segments(&glyphs).into_iter().map(Some).collect();
        let mut items: Vec<PageItem> = segments
            .iter()
            .flatten()
            .enumerate()
            .map(|(at, segment)| PageItem::segment(at, segment))
            .collect();
        items.extend(
            grids.iter().enumerate().map(|(at, grid)| PageItem::other(ItemContent::Table(at), grid.frame)),
        );
        // A figure that text is written over has no place between the columns: it comes before that text.
        let mut under: Vec<(usize, EdgeBox)> = Vec::new();
        for (at, figure) in figures.iter().enumerate() {
            let frame = frame_of(figure.bounds, turn);
            let over = segments.iter().flatten().filter(|segment| within(segment, frame)).map(Segment::chars);
            if over.sum::<usize>() > 20 {
                under.push((at, frame));
            } else {
                items.push(PageItem::other(ItemContent::Figure(at), frame));
            }
        }
        let mut placed: Vec<Placed> = Vec::new();
        for region in regions::order(items) {
            placed.extend(region_blocks(region, &mut segments, &grids, figures));
        }
        for (at, frame) in under {
            let inside = |placed: &Placed| {
                placed.frame.x0 < frame.x1 && placed.frame.x1 > frame.x0 && placed.frame.y1 > frame.y0
            };
            let place = placed.iter().position(inside).unwrap_or(placed.len());
            let mcid = figures.get(at).map_or(-1, |figure| figure.mcid);
            let block = Block::new(Content::Figure { figure: at });
            placed.insert(place, Placed { block, frame, mcid });
        }
        for mut item in placed {
            item.block.bounds = Some(bounds_of(item.frame, turn));
            tag(&mut item, tags);
            if let Content::Figure { figure } = &mut item.block.content {
                let Some(drawn) = figures.get(*figure) else { continue };
                *figure = page.figures.len();
                let mut taken = figure_of(drawn, art);
                taken.caption = tags.alternative(drawn.mcid);
                page.figures.push(taken);
            }
            page.blocks.push(item.block);
        }
    }
    furniture(&mut page, &running);
    hidden_passages(&mut page, &hidden);
    page
}

fn within(segment: &Segment, frame: EdgeBox) -> bool {
    let (x, y) = ((segment.x0 + segment.x1) / 2.0, segment.y - segment.size * 0.3);
    frame.x0 < x && x < frame.x1 && frame.y0 < y && y < frame.y1
}

fn figure_of(drawn: &Drawn, art: &[Art]) -> Figure {
    let mut figure = Figure { width: drawn.width, height: drawn.height, ..Figure::default() };
    if let Some(art) = drawn.art.and_then(|at| art.get(at)) {
        figure.media_type = art.media_type.to_owned();
        figure.data.clone_from(&art.data);
    }
    figure
}

/// The blocks of a region: its words, with tables and figures after what ends above them.
fn region_blocks(
    region: Vec<PageItem>,
    segments: &mut [Option<Segment>],
    grids: &[rules::Grid],
    figures: &[&Drawn],
) -> Vec<Placed> {
    let (mut words, mut others): (Vec<PageItem>, Vec<PageItem>) = (Vec::new(), Vec::new());
    for item in region {
        if matches!(item.what, ItemContent::Segment(_)) { &mut words } else { &mut others }.push(item);
    }
    others.sort_by(|a, b| a.frame.y0.total_cmp(&b.frame.y0).then(a.frame.x0.total_cmp(&b.frame.x0)));
    words.sort_by(|a, b| a.frame.y0.total_cmp(&b.frame.y0));
    let mut out = Vec::new();
    let mut taken: Vec<Segment> = Vec::new();
    let mut words = words.into_iter().peekable();
    let mut take = |item: PageItem, taken: &mut Vec<Segment>| {
        if let ItemContent::Segment(at) = item.what {
            taken.extend(segments.get_mut(at).and_then(Option::take));
        }
    };
    for other in others {
        while let Some(word) = words.next_if(|word| (word.frame.y0 + word.frame.y1) / 2.0 < other.frame.y0) {
            take(word, &mut taken);
        }
        out.extend(blocks::blocks(std::mem::take(&mut taken)));
        let (content, mcid) = match other.what {
            ItemContent::Table(at) => {
                let Some(grid) = grids.get(at) else { continue };
                let header = blocks::looks_like_header(&grid.rows);
                (Content::Table { rows: grid.rows.clone(), header }, -1)
            }
            ItemContent::Figure(at) => {
                (Content::Figure { figure: at }, figures.get(at).map_or(-1, |figure| figure.mcid))
            }
            ItemContent::Segment(_) => continue,
        };
        out.push(Placed { block: Block::new(content), frame: other.frame, mcid });
    }
    for word in words {
        take(word, &mut taken);
    }
    out.extend(blocks::blocks(taken));
    out
}

/// What the file itself says about a block goes before what its looks say.
fn tag(placed: &mut Placed, tags: &Tags) {
    let Some(role) = tags.role(placed.mcid) else { return };
    let text = match &placed.block.content {
        Content::Paragraph { text } => text.clone(),
        _ => return,
    };
    placed.block.content = match role {
        StructureRole::Heading(level) if text.chars().count() < 300 => Content::Heading { level, text },
        StructureRole::Footnote => {
            let (mark, rest) = match text.split_once(' ') {
                Some((mark, rest)) if mark.len() <= 4 => (mark.to_owned(), rest.to_owned()),
                _ => (String::new(), text),
            };
            Content::Footnote { mark, text: rest }
        }
        StructureRole::Code => Content::Code { language: None, text },
        StructureRole::Heading(_) => return,
    };
}

/// What the file marks as a running head or foot.
fn furniture(page: &mut Page, glyphs: &[Glyph]) {
    if glyphs.is_empty() {
        return;
    }
    let (upper, lower): (Vec<Glyph>, Vec<Glyph>) = glyphs.iter().partition(|glyph| {
        let middle = unturn(f64::from(glyph.x0), f64::from(glyph.y), glyph.turn);
        middle.y < f64::from(page.height) / 2.0
    });
    for (glyphs, upper) in [(upper, true), (lower, false)] {
        let text = passage(&glyphs);
        if text.is_empty() {
            continue;
        }
        let content = if upper { Content::Header { text } } else { Content::Footer { text } };
        let mut block = Block::new(content);
        block.bounds = glyph_bounds(&glyphs);
        if upper { page.blocks.insert(0, block) } else { page.blocks.push(block) }
    }
}

/// What no reader of the page sees, by reason; passages are told apart by their place in the order of
/// drawing.
fn hidden_passages(page: &mut Page, glyphs: &[Glyph]) {
    let mut start = 0;
    for at in 1..=glyphs.len() {
        let (before, here) = (glyphs.get(at - 1), glyphs.get(at));
        let goes_on = matches!((before, here), (Some(a), Some(b)) if a.hidden == b.hidden && a.turn == b.turn
            && (a.y - b.y).abs() < a.size.max(b.size).max(1.0) * 2.5);
        if goes_on {
            continue;
        }
        let group = glyphs.get(start..at).unwrap_or_default();
        start = at;
        let text = passage(group);
        if text.chars().any(char::is_alphanumeric) {
            let reason = group.first().and_then(|glyph| glyph.hidden).unwrap_or(HiddenReason::Invisible);
            let mut block = Block::new(Content::Hidden { reason, text });
            block.bounds = glyph_bounds(group);
            page.blocks.push(block);
        }
    }
}

fn passage(glyphs: &[Glyph]) -> String {
    let mut text = String::new();
    for line in lines::lines(lines::segments(glyphs)) {
        blocks::append_line(&mut text, &line.text());
    }
    text
}

fn glyph_bounds(glyphs: &[Glyph]) -> Option<Bounds> {
    let first = glyphs.first()?;
    let edge = |glyph: &Glyph| EdgeBox {
        x0: glyph.x0,
        y0: glyph.y - glyph.size * 0.8,
        x1: glyph.x1,
        y1: glyph.y + glyph.size * 0.22,
    };
    let frame = glyphs.iter().map(edge).fold(edge(first), |a, b| EdgeBox {
        x0: a.x0.min(b.x0),
        y0: a.y0.min(b.y0),
        x1: a.x1.max(b.x1),
        y1: a.y1.max(b.y1),
    });
    Some(bounds_of(frame, first.turn))
}

fn bounds_of(frame: EdgeBox, turn: QuarterTurns) -> Bounds {
    let a = unturn(f64::from(frame.x0), f64::from(frame.y0), turn);
    let b = unturn(f64::from(frame.x1), f64::from(frame.y1), turn);
    Bounds {
        x0: a.x.min(b.x) as f32,
        y0: a.y.min(b.y) as f32,
        x1: a.x.max(b.x) as f32,
        y1: a.y.max(b.y) as f32,
    }
}

fn frame_of(bounds: Bounds, turn: QuarterTurns) -> EdgeBox {
    let (ax, ay) = turned(f64::from(bounds.x0), f64::from(bounds.y0), turn);
    let (bx, by) = turned(f64::from(bounds.x1), f64::from(bounds.y1), turn);
    EdgeBox { x0: ax.min(bx) as f32, y0: ay.min(by) as f32, x1: ax.max(bx) as f32, y1: ay.max(by) as f32 }
}
