//! What a page draws, collected: glyphs with their places, ruling lines, boxes that cover, and figures.

use std::collections::HashMap;
use std::time::Instant;

use hayro_interpret::font::{Glyph as FontGlyph, GlyphRun};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::hayro_syntax::object::{Dict, Name};
use hayro_interpret::kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape as _};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, Paint, SoftMask,
};

use super::codes::CodeMaps;
use super::figures::{self, FigureStore};
use crate::model::{Bounds, HiddenReason};

/// The most glyphs of a page.
const MAX_GLYPHS: usize = 400_000;

/// The most ruling lines and boxes of a page that are looked at.
const MAX_SHAPES: usize = 20_000;

/// The most boxes behind or above the text that are looked at.
const MAX_FILLS: usize = 400;

/// The direction of a text: the quarter turns of its baseline, clockwise.
pub(super) type QuarterTurns = u8;

/// The turn of text whose baseline runs along no edge of the page.
pub(super) const SLANTED: QuarterTurns = 4;

/// A character on the page, in points from the upper left corner, turned so that its baseline runs to the
/// right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    pub(super) ch: char,
    pub(super) x0: f32,
    pub(super) x1: f32,
    /// The baseline.
    pub(super) y: f32,
    pub(super) size: f32,
    pub(super) turn: QuarterTurns,
    pub(super) bold: bool,
    pub(super) mono: bool,
    /// Whether a space was drawn before it.
    pub(super) spaced: bool,
    /// Whether the file says what it is part of: a heading, a note, code.
    pub(super) tagged: bool,
    pub(super) hidden: Option<HiddenReason>,
    /// Whether it stands in what the file marks as a running head or foot.
    pub(super) artifact: bool,
    /// The marked content it stands in; -1 for none.
    pub(super) mcid: i32,
}

/// A ruling line along an edge of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuledLine {
    pub(super) vertical: bool,
    /// Its place across: x of a vertical line, y of a horizontal one.
    pub(super) at: f32,
    pub(super) from: f32,
    pub(super) to: f32,
}

/// A figure that the page draws.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) bounds: Bounds,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Its index in the figures of the document; `None` when only named.
    pub(super) art: Option<usize>,
    pub(super) mcid: i32,
}

/// A filled box, with its place in the order of drawing.
#[derive(Debug, Clone, Copy)]
struct Fill {
    bounds: Rect,
    /// `None` for what has no single color.
    color: Option<[u8; 3]>,
    glyphs_before: usize,
    /// How opaque it is: only an opaque one covers.
    opaque: bool,
    raster: bool,
}

/// Why the interpretation of a page was ended from here.
pub(super) struct Abort(pub(super) String);

/// What a page draws.
pub(super) struct Drawing {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) glyphs: Vec<Glyph>,
    pub(super) rules: Vec<RuledLine>,
    pub(super) figures: Vec<Drawn>,
    /// Glyphs without any known character.
    pub(super) unknown: usize,
    /// Whether the page is a scan.
    pub(super) scanned: bool,
}

/// Collects what a page draws.
pub(super) struct Collector<'s> {
    glyphs: Vec<Glyph>,
    rules: Vec<RuledLine>,
    figures: Vec<Drawn>,
    unknown: usize,
    scanned: bool,
    width: f32,
    height: f32,
    fills: Vec<Fill>,
    clips: Vec<Rect>,
    groups: Vec<(f32, bool)>,
    marked: Vec<(i32, bool)>,
    last_run: Option<(Point, usize)>,
    fonts: HashMap<u128, (bool, bool)>,
    store: &'s mut FigureStore,
    codes: &'s mut CodeMaps,
    deadline: Instant,
    ticks: u32,
}

impl<'s> Collector<'s> {
    pub(super) fn new(
        (width, height): (f32, f32),
        store: &'s mut FigureStore,
        codes: &'s mut CodeMaps,
        deadline: Instant,
    ) -> Self {
        Collector {
            glyphs: Vec::new(),
            rules: Vec::new(),
            figures: Vec::new(),
            unknown: 0,
            scanned: false,
            width,
            height,
            fills: Vec::new(),
            clips: Vec::new(),
            groups: Vec::new(),
            marked: Vec::new(),
            last_run: None,
            fonts: HashMap::new(),
            store,
            codes,
            deadline,
            ticks: 0,
        }
    }

    /// Ends the interpretation when the time is up or the page draws too much. The interpreter offers no
    /// other way out.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(256) && Instant::now() >= self.deadline {
            std::panic::resume_unwind(Box::new(Abort("the time limit is reached".to_owned())));
        }
        if self.glyphs.len() > MAX_GLYPHS {
            let reason = format!("the page has more than {MAX_GLYPHS} characters");
            std::panic::resume_unwind(Box::new(Abort(reason)));
        }
    }

    fn clip(&self) -> Option<Rect> {
        self.clips.last().copied()
    }

    fn mcid(&self) -> i32 {
        self.marked.iter().rev().map(|(mcid, _)| *mcid).find(|mcid| *mcid >= 0).unwrap_or(-1)
    }

    fn opacity(&self) -> (f32, bool) {
        self.groups.last().copied().unwrap_or((1.0, true))
    }

    /// Remembers a box that lies behind or above text.
    fn fill(&mut self, bounds: Rect, props: &DrawProps<'_>) {
        let bounds = self.clip().map_or(bounds, |clip| bounds.intersect(clip));
        if self.fills.len() >= MAX_FILLS || bounds.width() < 4.0 || bounds.height() < 3.0 {
            return;
        }
        let (opacity, normal) = self.opacity();
        let (color, alpha) = match &props.paint {
            Paint::Color(color) => {
                let [r, g, b, a] = color.to_rgba().to_rgba8();
                (Some([r, g, b]), f32::from(a) / 255.0)
            }
            Paint::Pattern(_) => (None, 0.5),
        };
        let solid = props.soft_mask.is_none() && normal && props.blend_mode == BlendMode::Normal;
        if alpha * opacity < 0.05 {
            return;
        }
        let opaque = solid && alpha * opacity > 0.95;
        self.fills.push(Fill { bounds, color, glyphs_before: self.glyphs.len(), opaque, raster: false });
    }

    /// The color behind a place; `None` where it is unknown.
    fn background(&self, at: Point) -> Option<[u8; 3]> {
        match self.fills.iter().rev().find(|fill| fill.bounds.contains(at)) {
            Some(fill) => fill.color.filter(|_| fill.opaque),
            None => Some([255, 255, 255]),
        }
    }

    fn rule(&mut self, a: Point, b: Point) {
        if self.rules.len() >= MAX_SHAPES {
            return;
        }
        let (dx, dy) = ((a.x - b.x).abs(), (a.y - b.y).abs());
        if dx < 0.8 && dy > 4.0 {
            let (from, to) = (a.y.min(b.y) as f32, a.y.max(b.y) as f32);
            self.rules.push(RuledLine { vertical: true, at: ((a.x + b.x) / 2.0) as f32, from, to });
        } else if dy < 0.8 && dx > 4.0 {
            let (from, to) = (a.x.min(b.x) as f32, a.x.max(b.x) as f32);
            self.rules.push(RuledLine { vertical: false, at: ((a.y + b.y) / 2.0) as f32, from, to });
        }
    }

    /// The four edges of a box, or its middle when it is thin.
    fn edges(&mut self, rect: Rect, stroked: bool) {
        let Rect { x0, y0, x1, y1 } = rect;
        if rect.width() <= 3.0 {
            let x = (x0 + x1) / 2.0;
            self.rule(Point::new(x, y0), Point::new(x, y1));
        } else if rect.height() <= 3.0 {
            let y = (y0 + y1) / 2.0;
            self.rule(Point::new(x0, y), Point::new(x1, y));
        } else if stroked {
            self.rule(Point::new(x0, y0), Point::new(x1, y0));
            self.rule(Point::new(x0, y1), Point::new(x1, y1));
            self.rule(Point::new(x0, y0), Point::new(x0, y1));
            self.rule(Point::new(x1, y0), Point::new(x1, y1));
        }
    }

    /// Whether a font is bold, and whether all its characters are as wide.
    fn font(&mut self, glyph: &FontGlyph<'_>) -> (bool, bool) {
        let FontGlyph::Outline(outline) = glyph else { return (false, false) };
        let Some(data) = outline.font_data() else { return (false, false) };
        *self.fonts.entry(data.cache_key).or_insert_with(|| {
            let name = data.postscript_name.as_deref().unwrap_or_default().to_ascii_lowercase();
            let bold = data.weight.is_some_and(|weight| weight >= 600)
                || ["bold", "black", "heavy"].iter().any(|word| name.contains(word));
            let mono = data.is_monospace
                || ["mono", "courier", "consolas", "typewriter"].iter().any(|word| name.contains(word));
            (bold, mono)
        })
    }

    /// Marks what something opaque was drawn over later, and tells whether a scan lies under invisible text.
    pub(super) fn finish(mut self) -> Drawing {
        let page = f64::from(self.width) * f64::from(self.height);
        let scan = self.fills.iter().any(|fill| fill.raster && fill.bounds.area() > page * 0.5);
        let covers: Vec<Fill> =
            self.fills.iter().filter(|fill| fill.opaque && fill.glyphs_before > 0).copied().collect();
        for (at, glyph) in self.glyphs.iter_mut().enumerate() {
            if scan && glyph.hidden == Some(HiddenReason::Invisible) {
                glyph.hidden = None;
                self.scanned = true;
            }
            // The OCR layer of a scan lies under it: what is covered there is the text of the picture.
            let middle = middle_of(glyph);
            let cover = covers.iter().any(|fill| {
                fill.glyphs_before > at && !(fill.raster && scan) && fill.bounds.contains(middle)
            });
            if cover && glyph.hidden.is_none() {
                glyph.hidden = Some(HiddenReason::Covered);
            }
        }
        Drawing {
            width: self.width,
            height: self.height,
            glyphs: self.glyphs,
            rules: self.rules,
            figures: self.figures,
            unknown: self.unknown,
            scanned: self.scanned,
        }
    }
}

/// The middle of a glyph on the page as it lies.
fn middle_of(glyph: &Glyph) -> Point {
    let (u, v) = (f64::from((glyph.x0 + glyph.x1) / 2.0), f64::from(glyph.y - glyph.size * 0.3));
    unturn(u, v, glyph.turn)
}

/// Turns a place of the page so that baselines of a direction run to the right.
pub(super) fn turned(x: f64, y: f64, turn: QuarterTurns) -> (f64, f64) {
    match turn {
        1 => (y, -x),
        2 => (-x, -y),
        3 => (-y, x),
        _ => (x, y),
    }
}

/// The opposite of [`turned`].
pub(super) fn unturn(u: f64, v: f64, turn: QuarterTurns) -> Point {
    match turn {
        1 => Point::new(-v, u),
        2 => Point::new(-u, -v),
        3 => Point::new(v, -u),
        _ => Point::new(u, v),
    }
}

/// The quarter turn of a direction, in a system whose y grows downwards.
fn turn_of(direction: Point) -> QuarterTurns {
    let (x, y) = (direction.x, direction.y);
    let length = x.hypot(y).max(1e-9);
    let (x, y) = (x / length, y / length);
    if x > 0.97 {
        0
    } else if y > 0.97 {
        1
    } else if x < -0.97 {
        2
    } else if y < -0.97 {
        3
    } else {
        SLANTED
    }
}

impl<'a> Device<'a> for Collector<'_> {
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, draw_mode: &DrawMode) {
        self.tick();
        if self.rules.len() >= MAX_SHAPES || path.elements().len() > 4_096 {
            return;
        }
        let stroked = matches!(draw_mode, DrawMode::Stroke(_) | DrawMode::FillAndStroke(..));
        if !stroked {
            let bounds = props.transform.transform_rect_bbox(path.bounding_box());
            if bounds.width() <= 3.0 || bounds.height() <= 3.0 {
                self.edges(bounds, false);
            } else if path.elements().len() <= 8 {
                self.fill(bounds, &props);
            }
            return;
        }
        let (mut first, mut last) = (Point::ZERO, Point::ZERO);
        for element in path.elements() {
            match *element {
                PathEl::MoveTo(to) => {
                    first = props.transform * to;
                    last = first;
                }
                PathEl::LineTo(to) => {
                    let to = props.transform * to;
                    self.rule(last, to);
                    last = to;
                }
                PathEl::ClosePath => {
                    self.rule(last, first);
                    last = first;
                }
                PathEl::QuadTo(_, to) | PathEl::CurveTo(_, _, to) => last = props.transform * to,
            }
        }
    }

    fn draw_rect(&mut self, rect: &Rect, props: DrawProps<'a>, draw_mode: &DrawMode) {
        self.tick();
        let bounds = props.transform.transform_rect_bbox(*rect);
        let stroked = matches!(draw_mode, DrawMode::Stroke(_) | DrawMode::FillAndStroke(..));
        self.edges(bounds, stroked);
        if !matches!(draw_mode, DrawMode::Stroke(_) | DrawMode::Invisible) {
            self.fill(bounds, &props);
        }
    }

    fn push_clip_path(&mut self, clip_path: &ClipPath) {
        let bounds =
            if clip_path.path.elements().is_empty() { Rect::ZERO } else { clip_path.path.bounding_box() };
        self.push_clip_rect(&bounds);
    }

    fn push_clip_rect(&mut self, rect: &Rect) {
        self.tick();
        let clip = self.clip().map_or(*rect, |clip| clip.intersect(*rect));
        self.clips.push(clip);
    }

    fn push_transparency_group(&mut self, opacity: f32, mask: Option<SoftMask<'a>>, blend_mode: BlendMode) {
        let (outer, normal) = self.opacity();
        self.groups.push((outer * opacity, normal && mask.is_none() && blend_mode == BlendMode::Normal));
    }

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, draw_mode: &DrawMode) {
        self.tick();
        let Some(first) = run.glyphs().first() else { return };
        // Text that is filled and stroked is drawn twice.
        let start = props.transform * (first.transform() * Point::ZERO);
        let again = matches!(draw_mode, DrawMode::Stroke(_))
            && self.last_run.is_some_and(|(at, n)| n == run.glyphs().len() && at.distance(start) < 0.05);
        self.last_run = Some((start, run.glyphs().len()));
        if again {
            return;
        }
        let (bold, mono) = self.font(first);
        let vertical = matches!(run.writing_mode(), WritingMode::Vertical);
        let artifact = self.marked.iter().any(|(_, artifact)| *artifact);
        let mcid = self.mcid();
        let (opacity, _) = self.opacity();
        let color = match &props.paint {
            Paint::Color(color) => Some(color.to_rgba().to_rgba8()),
            Paint::Pattern(_) => None,
        };
        let mut seen: Option<(Point, bool)> = None;
        for glyph in run.glyphs() {
            let full: Affine = props.transform * glyph.transform();
            let coefficients = full.as_coeffs();
            let [a, b, c, d, x, y] = coefficients;
            if !coefficients.iter().all(|value| value.is_finite()) {
                continue;
            }
            let origin = Point::new(x, y);
            let size = (c.hypot(d) * 1000.0) as f32;
            let turn = if vertical { 1 } else { turn_of(Point::new(a, b)) };
            let advance = match &**glyph {
                FontGlyph::Outline(outline) => outline.advance_width(),
                FontGlyph::Type3(type3) => type3.advance_width(),
            };
            let reach = if vertical {
                f64::from(size)
            } else {
                f64::from(advance.unwrap_or(500.0).clamp(-4000.0, 4000.0)) * a.hypot(b)
            };
            let middle = origin + (Affine::rotate(b.atan2(a)) * Point::new(reach / 2.0, 0.0)).to_vec2();
            // The color behind a run changes rarely: it is looked up anew only after a move.
            let same_color = match (seen, color) {
                (Some((at, same)), _) if at.distance(middle) < 6.0 => same,
                (_, Some([r, g, b, _])) => {
                    self.background(middle).is_some_and(|behind| near(behind, [r, g, b]))
                }
                _ => false,
            };
            seen = Some((middle, same_color));
            let outside = middle.x < -1.0
                || middle.y < -1.0
                || middle.x > f64::from(self.width) + 1.0
                || middle.y > f64::from(self.height) + 1.0
                || self.clip().is_some_and(|clip| !clip.inflate(1.0, 1.0).contains(middle));
            let transparent = color.is_some_and(|[.., alpha]| f32::from(alpha) / 255.0 * opacity < 0.03);
            let hidden = if matches!(draw_mode, DrawMode::Invisible) {
                Some(HiddenReason::Invisible)
            } else if outside {
                Some(HiddenReason::OffPage)
            } else if same_color || transparent {
                Some(HiddenReason::Color)
            } else if size < 1.0 {
                Some(HiddenReason::Tiny)
            } else {
                None
            };
            let (mut u, v) = turned(x, y, turn);
            let mut reach = reach;
            if vertical {
                // The origin of an upright glyph lies at its lower left; its cell begins above.
                u -= f64::from(size);
            } else if reach < 0.0 {
                u += reach;
                reach = -reach;
            }
            let mut put = |ch: char, part: usize, parts: usize| {
                let step = reach / parts as f64;
                let x0 = (u + step * part as f64) as f32;
                let x1 = (u + step * (part + 1) as f64) as f32;
                self.glyphs.push(Glyph {
                    ch,
                    x0,
                    x1,
                    y: v as f32,
                    size,
                    turn,
                    bold,
                    mono,
                    spaced: false,
                    tagged: false,
                    hidden,
                    artifact,
                    mcid,
                });
            };
            match glyph.as_unicode() {
                Some(BfString::Char(ch)) => match ligature(ch) {
                    Some(letters) => {
                        for (part, ch) in letters.chars().enumerate() {
                            put(ch, part, letters.len());
                        }
                    }
                    None => put(ch, 0, 1),
                },
                Some(BfString::String(text)) => {
                    let parts = text.chars().count().max(1);
                    for (part, ch) in text.chars().enumerate() {
                        put(ch, part, parts);
                    }
                }
                None => match self.codes.lookup(glyph) {
                    Some(ch) => put(ch, 0, 1),
                    None => {
                        self.unknown += 1;
                        put('\u{fffd}', 0, 1);
                    }
                },
            }
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.tick();
        let (width, height) = (image.width(), image.height());
        let full = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let mut bounds = props.transform.transform_rect_bbox(full);
        if let Some(clip) = self.clip() {
            bounds = bounds.intersect(clip);
        }
        let page = Rect::new(0.0, 0.0, f64::from(self.width), f64::from(self.height));
        let bounds = bounds.intersect(page);
        let area = bounds.area();
        if !area.is_finite() || bounds.width() < 1.0 || bounds.height() < 1.0 {
            return;
        }
        let stencil = matches!(image, Image::Stencil(_));
        let (opacity, normal) = self.opacity();
        if self.fills.len() < MAX_FILLS {
            // A stencil lets its background through; so does a picture with a mask.
            let masked = match &image {
                Image::Stencil(_) => true,
                Image::Raster(raster) => figures::is_masked(raster.stream().dict()),
            };
            let opaque = !masked && normal && opacity > 0.95;
            let fill = Fill { bounds, color: None, glyphs_before: self.glyphs.len(), opaque, raster: true };
            self.fills.push(fill);
        }
        // Bullets, rules and shades are drawn as pictures too; a stencil counts when it is a scanned page.
        let small = width < 16 || height < 16 || bounds.width() < 10.0 || bounds.height() < 10.0;
        if small || (stencil && area < page.area() * 0.3) || self.figures.len() >= 1_000 {
            return;
        }
        let art = self.store.take(&image);
        let bounds =
            Bounds { x0: bounds.x0 as f32, y0: bounds.y0 as f32, x1: bounds.x1 as f32, y1: bounds.y1 as f32 };
        let mcid = self.mcid();
        self.figures.push(Drawn { bounds, width, height, art, mcid });
    }

    fn pop_clip(&mut self) {
        self.clips.pop();
    }

    fn pop_transparency_group(&mut self) {
        self.groups.pop();
    }

    fn begin_marked_content(&mut self, tag: &[u8], properties: Option<&Dict<'_>>) {
        let mcid = properties
            .and_then(|properties| properties.get::<i32>(b"MCID".as_slice()))
            .filter(|mcid| *mcid >= 0)
            .unwrap_or(-1);
        let pagination = tag == b"Artifact"
            && properties
                .and_then(|properties| properties.get::<Name<'_>>(b"Type".as_slice()))
                .is_some_and(|kind| kind.as_ref() == b"Pagination");
        if self.marked.len() < 1_000 {
            self.marked.push((mcid, pagination));
        }
    }

    fn end_marked_content(&mut self) {
        self.marked.pop();
    }
}

/// Whether two colors cannot be told apart by eye.
fn near(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 10)
}

/// The letters of a ligature.
fn ligature(ch: char) -> Option<&'static str> {
    Some(match ch {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}
