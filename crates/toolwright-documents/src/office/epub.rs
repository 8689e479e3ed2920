//! Books: the pages of the spine, one chapter each.

use std::collections::HashMap;

use super::package::{Package, resolve};
use crate::error::DocumentError;
use crate::model::{Content, Info, OutlineEntry, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};
use crate::text::html;

pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut package = Package::open(bytes)?;
    let damaged = || DocumentError::damaged("the package has no book in it");
    if package.names().any(|name| name.eq_ignore_ascii_case("META-INF/rights.xml")) {
        return Err(DocumentError::encrypted("the book is protected (DRM)"));
    }
    let container = package.xml("META-INF/container.xml", reading)?.ok_or_else(damaged)?;
    let root = container.find(container.root(), "rootfile").ok_or_else(damaged)?;
    let main = container.attribute(root, "full-path").ok_or_else(damaged)?.to_owned();
    let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let book = package.xml(&main, reading)?.ok_or_else(damaged)?;
    let mut info = super::about(&mut package, &main, reading);
    let items: HashMap<&str, (String, &str)> = book
        .all(book.root(), "item")
        .into_iter()
        .filter_map(|at| {
            let path = resolve(&folder, &unescape(book.attribute(at, "href")?));
            Some((book.attribute(at, "id")?, (path, book.attribute(at, "media-type").unwrap_or_default())))
        })
        .collect();
    let spine: Vec<String> = book
        .all(book.root(), "itemref")
        .into_iter()
        .filter_map(|at| items.get(book.attribute(at, "idref")?))
        .map(|(path, _)| path.clone())
        .collect();
    info.unit = Unit::Chapter;
    info.total = u32::try_from(spine.len()).unwrap_or(u32::MAX);
    reading.check_range("chapter", info.total)?;
    let toc =
        items.values().find(|(_, kind)| *kind == "application/x-dtbncx+xml").map(|(path, _)| path.clone());
    if let Some(path) = toc {
        info.contents = contents(&mut package, &path, &spine, reading);
    }
    for (number, path) in (1u32..).zip(&spine) {
        if !reading.wants(number) {
            continue;
        }
        let data = match package.part(path, reading) {
            Ok(Some(data)) => data,
            Ok(None) => {
                reading.warn(format!("chapter {number} (`{path}`) is missing"));
                continue;
            }
            Err(error) => {
                info.stopped = Some(Stop { page: number, reason: error.to_string() });
                break;
            }
        };
        let parsed = html::parse(&crate::text::decode(&data), reading);
        let mut page = match parsed {
            Ok(parsed) => parsed.page,
            Err(error) => {
                info.stopped = Some(Stop { page: number, reason: error.to_string() });
                break;
            }
        };
        page.number = number;
        pictures(&mut page, path, &mut package, reading);
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

/// Puts the pictures of the package in the places where the chapter names them.
fn pictures(page: &mut Page, path: &str, package: &mut Package, reading: &mut ReadingState<'_>) {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let named = std::mem::take(&mut page.figures);
    let mut kept: HashMap<usize, usize> = HashMap::new();
    for (at, figure) in named.into_iter().enumerate() {
        // The reader of pages leaves the address where the name will be.
        let target = resolve(folder, &unescape(&figure.id));
        if let Some(figure) = super::figure(package, &target, figure.caption, reading) {
            kept.insert(at, page.figures.len());
            page.figures.push(figure);
        }
    }
    page.blocks.retain_mut(|block| match &mut block.content {
        Content::Figure { figure } => match kept.get(figure) {
            Some(at) => {
                *figure = *at;
                true
            }
            None => false,
        },
        _ => true,
    });
}

fn contents(
    package: &mut Package,
    path: &str,
    spine: &[String],
    reading: &mut ReadingState<'_>,
) -> Vec<OutlineEntry> {
    let Ok(Some(tree)) = package.xml(path, reading) else { return Vec::new() };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut entries = Vec::new();
    let mut stack: Vec<(u32, u8)> = vec![(tree.root(), 0)];
    while let Some((at, level)) = stack.pop() {
        let point = tree.name(at) == "navPoint";
        if point {
            let title = tree.child(at, "navLabel").map(|at| tree.text(at)).unwrap_or_default();
            let target =
                tree.child(at, "content").and_then(|at| tree.attribute(at, "src")).unwrap_or_default();
            let target = resolve(folder, &unescape(target.split('#').next().unwrap_or_default()));
            let page = spine.iter().position(|path| *path == target).map_or(0, |at| at + 1);
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            if !title.is_empty() && entries.len() < 5_000 {
                entries.push(OutlineEntry {
                    level: level.max(1),
                    title,
                    page: u32::try_from(page).unwrap_or(0),
                });
            }
        }
        let level = if point { level.saturating_add(1) } else { level.max(1) };
        stack.extend(tree.children(at).iter().rev().map(|child| (*child, level)));
    }
    entries
}

/// Percent escapes of an address.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let rest = bytes.clone();
        let pair: Option<u8> = (byte == b'%')
            .then(|| {
                let digits: Vec<u8> = rest.take(2).collect();
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
            })
            .flatten();
        match pair {
            Some(value) => {
                out.push(value);
                bytes.nth(1);
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
