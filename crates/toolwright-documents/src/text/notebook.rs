//! Notebooks: each cell is a page with its source and its outputs.

use base64::Engine as _;
use serde_json::Value as Json;

use crate::error::DocumentError;
use crate::model::{Block, Content, Figure, Info, Page, Stop, Unit};
use crate::options::{FigureDetail, ReadingEnd, ReadingState};

/// The lines of an output that are shown.
const MAX_OUTPUT_LINES: usize = 40;

/// The longest output that is shown.
const MAX_OUTPUT: usize = 8_000;

pub(crate) fn read(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let text = super::decode(bytes);
    let book: Json = serde_json::from_str(&text)
        .map_err(|error| DocumentError::damaged(format!("the notebook is not valid JSON: {error}")))?;
    // Version 3 keeps its cells in worksheets.
    let cells = book
        .get("cells")
        .or_else(|| book.pointer("/worksheets/0/cells"))
        .and_then(Json::as_array)
        .ok_or_else(|| DocumentError::damaged("the notebook has no cells"))?;
    let language = ["/metadata/kernelspec/language", "/metadata/language_info/name"]
        .iter()
        .find_map(|path| book.pointer(path)?.as_str())
        .map(str::to_owned);
    let title = book.pointer("/metadata/title").and_then(Json::as_str).map(str::to_owned);
    let total = u32::try_from(cells.len()).unwrap_or(u32::MAX);
    let mut info = Info { unit: Unit::Cell, total, title, ..Info::default() };
    reading.check_range("cell", total)?;
    for (number, cell) in (1u32..).zip(cells) {
        if !reading.wants(number) {
            continue;
        }
        let mut page = Page { number, ..Page::default() };
        let source = lines(cell.get("source").or_else(|| cell.get("input")));
        match cell.get("cell_type").and_then(Json::as_str) {
            Some("markdown") => page.blocks.extend(super::markdown::blocks(&source)),
            Some("code") => {
                page.blocks.push(Block::new(Content::Code { language: language.clone(), text: source }));
                for output in cell.get("outputs").and_then(Json::as_array).into_iter().flatten() {
                    self::output(output, &mut page, reading);
                }
            }
            Some("heading") => {
                let level = cell.get("level").and_then(Json::as_u64).unwrap_or(1).clamp(1, 6);
                page.blocks.push(Block::heading(u8::try_from(level).unwrap_or(1), source));
            }
            _ => page.blocks.push(Block::paragraph(source)),
        }
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

/// A text that is one string or a list of them.
fn lines(value: Option<&Json>) -> String {
    match value {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(lines)) => lines.iter().filter_map(Json::as_str).collect(),
        _ => String::new(),
    }
}

fn output(output: &Json, page: &mut Page, reading: &ReadingState<'_>) {
    match output.get("output_type").and_then(Json::as_str) {
        Some("stream") => text(&lines(output.get("text")), page),
        Some("error" | "pyerr") => {
            let field = |name: &str| output.get(name).and_then(Json::as_str).unwrap_or_default();
            text(&format!("{}: {}", field("ename"), field("evalue")), page);
        }
        _ => {
            // Version 3 has no `data` around the kinds.
            let data = output.get("data").unwrap_or(output);
            let picture = ["image/png", "image/jpeg", "png", "jpeg"].iter().find_map(|kind| data.get(kind));
            if let Some(picture) = picture {
                let encoded: String = lines(Some(picture)).chars().filter(|ch| !ch.is_whitespace()).collect();
                let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
                if let Some((media_type, width, height)) = super::image::measure(&bytes) {
                    let keep = reading.options.figures == FigureDetail::Encoded;
                    page.blocks.push(Block::new(Content::Figure { figure: page.figures.len() }));
                    page.figures.push(Figure {
                        width,
                        height,
                        media_type: if keep { media_type.to_owned() } else { String::new() },
                        data: if keep { bytes } else { Vec::new() },
                        ..Figure::default()
                    });
                    return;
                }
            }
            if let Some(markdown) = data.get("text/markdown") {
                page.blocks.extend(super::markdown::blocks(&lines(Some(markdown))));
            } else {
                text(&lines(data.get("text/plain").or_else(|| data.get("text"))), page);
            }
        }
    }
}

fn text(text: &str, page: &mut Page) {
    let plain = without_colors(text);
    let trimmed = plain.trim_end();
    if trimmed.is_empty() {
        return;
    }
    let total = trimmed.lines().count();
    let mut shown = String::new();
    let mut count = 0;
    for line in trimmed.lines().take(MAX_OUTPUT_LINES) {
        if shown.len() + line.len() > MAX_OUTPUT {
            shown.extend(line.chars().take(MAX_OUTPUT.saturating_sub(shown.len())));
            shown.push('…');
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        count += 1;
    }
    if count < total {
        shown.push_str(&format!("[{} more lines]\n", total - count));
    }
    page.blocks.push(Block::new(Content::Code { language: Some("output".to_owned()), text: shown }));
}

/// Takes the color codes of terminals out.
fn without_colors(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(ch) = chars.next() {
        if ch == '\u{1b}' {
            for ch in chars.by_ref() {
                if ch.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            out.push(ch);
        }
    }
    out
}
