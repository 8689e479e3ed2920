//! Presentations: each slide is a page; its title is a heading, its shapes are read from top to bottom.

use std::collections::HashMap;

use super::package::{Package, Relation};
use super::xml::XmlTree;
use crate::error::DocumentError;
use crate::model::{Block, Bounds, Content, Info, ListItem, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};

/// Units of a point.
const EMU: f32 = 12_700.0;

/// How deep shapes may be grouped.
const MAX_GROUPS: usize = 30;

pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut package = Package::open(bytes)?;
    let main = package
        .relations("", reading)
        .into_values()
        .find(|relation| relation.kind == "officeDocument")
        .map_or_else(|| "ppt/presentation.xml".to_owned(), |relation| relation.target);
    let tree = package
        .xml(&main, reading)?
        .ok_or_else(|| DocumentError::damaged("the package has no presentation in it"))?;
    let relations = package.relations(&main, reading);
    let slides: Vec<String> = tree
        .all(tree.root(), "sldId")
        .into_iter()
        .filter_map(|at| {
            // Two attributes are called `id`: the relation is the one with letters.
            let ids = tree.attributes(at).filter(|(name, _)| *name == "id");
            ids.filter_map(|(_, id)| relations.get(id)).next().map(|relation| relation.target.clone())
        })
        .collect();
    let total = u32::try_from(slides.len()).unwrap_or(u32::MAX);
    reading.check_range("slide", total)?;
    let size = tree.find(tree.root(), "sldSz");
    let measure = |name: &str| {
        size.and_then(|at| tree.attribute(at, name)?.parse::<f32>().ok()).map_or(0.0, |value| value / EMU)
    };
    let (width, height) = (measure("cx"), measure("cy"));
    let mut info = super::about(&mut package, "docProps/core.xml", reading);
    info.unit = Unit::Slide;
    info.total = total;
    for (number, path) in (1u32..).zip(&slides) {
        if !reading.wants(number) {
            continue;
        }
        let mut page = match slide(&mut package, path, reading) {
            Ok(page) => page,
            Err(error) => {
                info.stopped = Some(Stop { page: number, reason: error.to_string() });
                break;
            }
        };
        (page.number, page.width, page.height) = (number, width, height);
        match reading.give(page) {
            Ok(()) => {}
            Err(ReadingEnd::Enough) => break,
            Err(ReadingEnd::Limit(reason)) => {
                info.stopped = Some(Stop { page: number, reason });
                break;
            }
        }
    }
    Ok(info)
}

/// A piece of a slide with its place.
struct Shape {
    bounds: Option<Bounds>,
    title: bool,
    blocks: Vec<Block>,
}

fn slide(package: &mut Package, path: &str, reading: &mut ReadingState<'_>) -> Result<Page, DocumentError> {
    let mut page = Page::default();
    let Some(tree) = package.xml(path, reading)? else {
        page.warnings.push(format!("the slide `{path}` is missing"));
        return Ok(page);
    };
    let relations = package.relations(path, reading);
    let mut shapes = Vec::new();
    let start = tree.find(tree.root(), "spTree").unwrap_or_else(|| tree.root());
    let mut walk = SlideWalk { tree: &tree, relations: &relations, package, reading, page: &mut page };
    walk.shapes(start, (0.0, 0.0, 1.0, 1.0), 0, &mut shapes);
    // The title first, then rows of shapes from the top, each from the left; what has no place keeps its
    // order.
    let row = |shape: &Shape| shape.bounds.map_or(0, |bounds| (bounds.y0 / 12.0).round() as i32);
    shapes.sort_by(|a, b| {
        b.title.cmp(&a.title).then(row(a).cmp(&row(b))).then_with(|| match (a.bounds, b.bounds) {
            (Some(a), Some(b)) => a.x0.total_cmp(&b.x0),
            _ => std::cmp::Ordering::Equal,
        })
    });
    for shape in shapes {
        for mut block in shape.blocks {
            block.bounds = shape.bounds;
            page.blocks.push(block);
        }
    }
    for relation in sorted(&relations) {
        match relation.kind.as_str() {
            "notesSlide" => {
                if let Some(notes) = package.xml(&relation.target, reading)? {
                    let text = notes_text(&notes);
                    if !text.is_empty() {
                        let author = Some("speaker notes".to_owned());
                        page.blocks.push(Block::new(Content::Comment { author, text }));
                    }
                }
            }
            "comments" => {
                if let Some(comments) = package.xml(&relation.target, reading)? {
                    for comment in comments.all(comments.root(), "cm") {
                        let text = comments.text(comment).trim().to_owned();
                        if !text.is_empty() {
                            page.blocks.push(Block::new(Content::Comment { author: None, text }));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok(page)
}

fn sorted(relations: &HashMap<String, Relation>) -> Vec<&Relation> {
    let mut all: Vec<&Relation> = relations.values().collect();
    all.sort_by(|a, b| a.target.cmp(&b.target));
    all
}

/// The speaker's words: those of the shape that holds notes, not the slide's number.
fn notes_text(tree: &XmlTree) -> String {
    let mut text = String::new();
    for shape in tree.all(tree.root(), "sp") {
        let kind = tree.find(shape, "ph").and_then(|at| tree.attribute(at, "type"));
        if matches!(kind, Some("sldNum" | "sldImg" | "hdr" | "ftr" | "dt")) {
            continue;
        }
        for paragraph in tree.all(shape, "p") {
            let words = paragraph_text(tree, paragraph);
            if !words.trim().is_empty() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(words.trim());
            }
        }
    }
    text
}

fn paragraph_text(tree: &XmlTree, at: u32) -> String {
    let mut text = String::new();
    for node in tree.walk(at) {
        match tree.name(node) {
            "t" => text.push_str(&tree.text(node)),
            "br" => text.push('\n'),
            "tab" => text.push('\t'),
            _ => {}
        }
    }
    text
}

struct SlideWalk<'w, 'r, 'o> {
    tree: &'w XmlTree,
    relations: &'w HashMap<String, Relation>,
    package: &'w mut Package,
    reading: &'r mut ReadingState<'o>,
    page: &'w mut Page,
}

/// Offset and scale from a group to its slide.
type GroupTransform = (f32, f32, f32, f32);

impl SlideWalk<'_, '_, '_> {
    fn shapes(&mut self, at: u32, frame: GroupTransform, depth: usize, out: &mut Vec<Shape>) {
        if depth > MAX_GROUPS {
            return;
        }
        let tree = self.tree;
        for child in tree.children(at).iter().copied() {
            match tree.name(child) {
                "grpSp" => {
                    let inner = self.group(child, frame);
                    self.shapes(child, inner, depth + 1, out);
                }
                "sp" | "cxnSp" => {
                    let kind = tree
                        .find(child, "nvPr")
                        .and_then(|at| tree.child(at, "ph"))
                        .map(|at| tree.attribute(at, "type").unwrap_or("body"));
                    if matches!(kind, Some("sldNum" | "dt" | "ftr")) {
                        continue;
                    }
                    let title = matches!(kind, Some("title" | "ctrTitle"));
                    let blocks = self.words(child, title, kind.is_some());
                    if !blocks.is_empty() {
                        out.push(Shape { bounds: self.bounds(child, frame), title, blocks });
                    }
                }
                "pic" => {
                    let bounds = self.bounds(child, frame);
                    if let Some(block) = self.picture(child) {
                        out.push(Shape { bounds, title: false, blocks: vec![block] });
                    }
                }
                "graphicFrame" => {
                    let blocks = self.graphic(child);
                    if !blocks.is_empty() {
                        out.push(Shape { bounds: self.bounds(child, frame), title: false, blocks });
                    }
                }
                "AlternateContent" => {
                    // The first choice and the fallback show the same.
                    if let Some(choice) =
                        tree.child(child, "Choice").or_else(|| tree.child(child, "Fallback"))
                    {
                        self.shapes(choice, frame, depth + 1, out);
                    }
                }
                _ => {}
            }
        }
    }

    fn point(&self, at: Option<u32>, x: &str, y: &str) -> Option<(f32, f32)> {
        let at = at?;
        let number = |name: &str| self.tree.attribute(at, name)?.parse::<f32>().ok();
        Some((number(x)? / EMU, number(y)? / EMU))
    }

    fn transform(&self, at: u32) -> Option<u32> {
        let properties = ["spPr", "grpSpPr"].iter().find_map(|name| self.tree.child(at, name));
        properties.and_then(|at| self.tree.child(at, "xfrm")).or_else(|| self.tree.child(at, "xfrm"))
    }

    fn bounds(&self, at: u32, (dx, dy, sx, sy): GroupTransform) -> Option<Bounds> {
        let transform = self.transform(at)?;
        let (x, y) = self.point(self.tree.child(transform, "off"), "x", "y")?;
        let (width, height) = self.point(self.tree.child(transform, "ext"), "cx", "cy")?;
        let (x0, y0) = (dx + x * sx, dy + y * sy);
        Some(Bounds { x0, y0, x1: x0 + width * sx, y1: y0 + height * sy })
    }

    fn group(&self, at: u32, outer: GroupTransform) -> GroupTransform {
        let inner = || {
            let transform = self.transform(at)?;
            let child = |name: &str| self.tree.child(transform, name);
            let (x, y) = self.point(child("off"), "x", "y")?;
            let (width, height) = self.point(child("ext"), "cx", "cy")?;
            let (cx, cy) = self.point(child("chOff"), "x", "y")?;
            let (cw, ch) = self.point(child("chExt"), "cx", "cy")?;
            let (sx, sy) = (width / cw.max(0.01), height / ch.max(0.01));
            let (dx, dy, ox, oy) = outer;
            Some((dx + (x - cx * sx) * ox, dy + (y - cy * sy) * oy, sx * ox, sy * oy))
        };
        inner().unwrap_or(outer)
    }

    fn words(&self, at: u32, title: bool, placeholder: bool) -> Vec<Block> {
        let tree = self.tree;
        let Some(body) = tree.child(at, "txBody") else { return Vec::new() };
        let paragraphs: Vec<(u8, bool, String)> = tree
            .children(body)
            .iter()
            .copied()
            .filter(|child| tree.name(*child) == "p")
            .map(|paragraph| {
                let properties = tree.child(paragraph, "pPr");
                let level = properties
                    .and_then(|at| tree.attribute(at, "lvl")?.parse::<u8>().ok())
                    .unwrap_or(0)
                    .min(8);
                let bullet = properties
                    .is_some_and(|at| tree.child(at, "buChar").or(tree.child(at, "buAutoNum")).is_some());
                (level, bullet, paragraph_text(tree, paragraph).trim().to_owned())
            })
            .filter(|(_, _, text)| !text.is_empty())
            .collect();
        if title {
            let text: Vec<String> = paragraphs.into_iter().map(|(_, _, text)| text).collect();
            return if text.is_empty() { Vec::new() } else { vec![Block::heading(1, text.join(" "))] };
        }
        // The body of a slide is a list; a box of text has bullets only where it says so.
        let listed = paragraphs.iter().any(|(level, bullet, _)| *bullet || *level > 0)
            || (placeholder && paragraphs.len() > 1);
        if listed {
            let items =
                paragraphs.into_iter().map(|(depth, _, text)| ListItem { depth, mark: None, text }).collect();
            return vec![Block::new(Content::List { items })];
        }
        paragraphs.into_iter().map(|(_, _, text)| Block::paragraph(text)).collect()
    }

    fn picture(&mut self, at: u32) -> Option<Block> {
        let tree = self.tree;
        let id = tree.find(at, "blip").and_then(|at| tree.attribute(at, "embed"))?;
        let relation = self.relations.get(id).filter(|relation| !relation.external)?;
        let caption = tree.find(at, "cNvPr").and_then(|at| tree.attribute(at, "descr")).map(str::to_owned);
        let figure = super::figure(self.package, &relation.target, caption, self.reading)?;
        self.page.figures.push(figure);
        Some(Block::new(Content::Figure { figure: self.page.figures.len() - 1 }))
    }

    /// Tables, charts and diagrams.
    fn graphic(&mut self, at: u32) -> Vec<Block> {
        let tree = self.tree;
        if let Some(table) = tree.find(at, "tbl") {
            let rows: Vec<Vec<String>> = tree
                .children(table)
                .iter()
                .copied()
                .filter(|row| tree.name(*row) == "tr")
                .map(|row| {
                    let cells = tree.children(row).iter().copied().filter(|cell| tree.name(*cell) == "tc");
                    cells.map(|cell| self.cell(cell)).collect()
                })
                .collect();
            let header =
                tree.child(table, "tblPr").and_then(|at| tree.attribute(at, "firstRow")) == Some("1");
            return vec![Block::new(Content::Table { rows, header })];
        }
        if let Some(chart) = tree.find(at, "chart").and_then(|at| tree.attribute(at, "id")) {
            let target = self.relations.get(chart).map(|relation| relation.target.clone());
            return target.and_then(|target| self.chart(&target)).into_iter().collect();
        }
        if let Some(data) = tree.find(at, "relIds").and_then(|at| tree.attribute(at, "dm")) {
            let target = self.relations.get(data).map(|relation| relation.target.clone());
            let part = target.and_then(|target| self.package.xml(&target, self.reading).ok().flatten());
            let items: Vec<ListItem> = part
                .iter()
                .flat_map(|part| part.all(part.root(), "p").into_iter().map(|at| paragraph_text(part, at)))
                .filter(|text| !text.trim().is_empty())
                .map(|text| ListItem { depth: 0, mark: None, text: text.trim().to_owned() })
                .collect();
            return if items.is_empty() { Vec::new() } else { vec![Block::new(Content::List { items })] };
        }
        Vec::new()
    }

    fn cell(&self, at: u32) -> String {
        let tree = self.tree;
        if tree.attribute(at, "hMerge") == Some("1") || tree.attribute(at, "vMerge") == Some("1") {
            return String::new();
        }
        let lines = tree.all(at, "p").into_iter().map(|at| paragraph_text(tree, at));
        lines.filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// A chart as the table of its numbers, which the file keeps beside the drawing.
    fn chart(&mut self, path: &str) -> Option<Block> {
        let tree = self.package.xml(path, self.reading).ok().flatten()?;
        let points = |at: Option<u32>| -> Vec<(usize, String)> {
            let Some(at) = at else { return Vec::new() };
            tree.all(at, "pt")
                .into_iter()
                .take(2_000)
                .filter_map(|point| {
                    let index =
                        tree.attribute(point, "idx")?.parse::<usize>().ok().filter(|at| *at < 2_000)?;
                    Some((index, tree.child(point, "v").map(|at| tree.text(at)).unwrap_or_default()))
                })
                .collect()
        };
        let series: Vec<u32> = tree.all(tree.root(), "ser").into_iter().take(100).collect();
        let mut rows: Vec<Vec<String>> = vec![vec![String::new(); series.len() + 1]];
        for (column, at) in series.iter().enumerate() {
            let name = points(tree.child(*at, "tx")).into_iter().map(|(_, name)| name).collect::<String>();
            if let Some(slot) = rows.first_mut().and_then(|row| row.get_mut(column + 1)) {
                *slot = name;
            }
            let keys = tree.child(*at, "cat").or_else(|| tree.child(*at, "xVal"));
            let values = tree.child(*at, "val").or_else(|| tree.child(*at, "yVal"));
            for (place, found) in [(0, points(keys)), (column + 1, points(values))] {
                for (index, text) in found {
                    while rows.len() <= index + 1 {
                        rows.push(vec![String::new(); series.len() + 1]);
                    }
                    if let Some(slot) = rows.get_mut(index + 1).and_then(|row| row.get_mut(place)) {
                        *slot = text;
                    }
                }
            }
        }
        (rows.len() > 1).then(|| Block::new(Content::Table { rows, header: true }))
    }
}
