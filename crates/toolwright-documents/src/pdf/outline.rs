//! The bookmarks of a PDF, and the text of its strings.

use std::collections::{HashMap, HashSet};

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{
    Array, Dict, MaybeRef, Object, ObjectIdentifier, String as PdfString,
};

use crate::model::OutlineEntry;

/// The most bookmarks.
const MAX_ENTRIES: usize = 5_000;

/// How deep bookmarks may stand inside each other.
const MAX_DEPTH: u8 = 12;

/// Reads the bookmarks, in order.
pub(super) fn read(pdf: &Pdf) -> Vec<OutlineEntry> {
    let mut entries = Vec::new();
    let Some(catalog) = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()) else { return entries };
    let Some(root) = catalog.get::<Dict<'_>>(b"Outlines".as_slice()) else { return entries };
    let pages: HashMap<ObjectIdentifier, u32> = (1u32..)
        .zip(pdf.pages().iter())
        .filter_map(|(number, page)| Some((page.raw().obj_id()?, number)))
        .collect();
    let named = Destinations { catalog: &catalog };
    let mut seen = HashSet::new();
    // A stack of siblings still to come, so that depth costs no stack of the process.
    let mut stack: Vec<(Dict<'_>, u8)> = Vec::new();
    stack.extend(root.get::<Dict<'_>>(b"First".as_slice()).map(|first| (first, 1)));
    while let Some((entry, level)) = stack.pop() {
        let known = entry.obj_id().is_some_and(|id| !seen.insert(id));
        if known || entries.len() >= MAX_ENTRIES {
            continue;
        }
        if let Some(title) = entry.get::<PdfString<'_>>(b"Title".as_slice()) {
            let title = text(title.as_bytes()).split_whitespace().collect::<Vec<_>>().join(" ");
            if !title.is_empty() {
                let page = named.page(&entry, &pages).unwrap_or(0);
                entries.push(OutlineEntry { level, title, page });
            }
        }
        stack.extend(entry.get::<Dict<'_>>(b"Next".as_slice()).map(|next| (next, level)));
        if level < MAX_DEPTH {
            stack.extend(entry.get::<Dict<'_>>(b"First".as_slice()).map(|first| (first, level + 1)));
        }
    }
    entries
}

struct Destinations<'d, 'a> {
    catalog: &'d Dict<'a>,
}

impl<'a> Destinations<'_, 'a> {
    fn page(&self, entry: &Dict<'a>, pages: &HashMap<ObjectIdentifier, u32>) -> Option<u32> {
        let target = entry
            .get::<Object<'a>>(b"Dest".as_slice())
            .or_else(|| entry.get::<Dict<'a>>(b"A".as_slice())?.get::<Object<'a>>(b"D".as_slice()))?;
        let target = match target {
            Object::Array(target) => target,
            Object::Name(name) => self.old(name.as_ref())?,
            Object::String(name) => self.named(name.as_bytes())?,
            _ => return None,
        };
        match target.raw_iter().next()? {
            MaybeRef::Ref(page) => pages.get(&page.into()).copied(),
            // Some programs count pages from 0 instead of naming them.
            MaybeRef::NotRef(number) => u32::try_from(number.into_i32()?).ok()?.checked_add(1),
        }
    }

    fn old(&self, name: &[u8]) -> Option<Array<'a>> {
        let all = self.catalog.get::<Dict<'a>>(b"Dests".as_slice())?;
        destination(all.get::<Object<'a>>(name)?)
    }

    fn named(&self, name: &[u8]) -> Option<Array<'a>> {
        let names = self.catalog.get::<Dict<'a>>(b"Names".as_slice())?;
        let tree = names.get::<Dict<'a>>(b"Dests".as_slice())?;
        let mut budget = 2_000usize;
        find(&tree, name, 0, &mut budget)
    }
}

fn find<'a>(node: &Dict<'a>, name: &[u8], depth: usize, budget: &mut usize) -> Option<Array<'a>> {
    *budget = budget.checked_sub(1)?;
    if depth > 30 {
        return None;
    }
    if let Some(names) = node.get::<Array<'a>>(b"Names".as_slice()) {
        let mut entries = names.iter::<Object<'a>>();
        while let (Some(key), Some(value)) = (entries.next(), entries.next()) {
            if key.into_string().is_some_and(|key| key.as_bytes() == name) {
                return destination(value);
            }
        }
        return None;
    }
    for kid in node.get::<Array<'a>>(b"Kids".as_slice())?.iter::<Dict<'a>>() {
        let limits = kid.get::<Array<'a>>(b"Limits".as_slice());
        let mut ends = limits.iter().flat_map(|limits| limits.iter::<PdfString<'a>>());
        if let (Some(low), Some(high)) = (ends.next(), ends.next())
            && (name < low.as_bytes() || name > high.as_bytes())
        {
            continue;
        }
        if let Some(found) = find(&kid, name, depth + 1, budget) {
            return Some(found);
        }
    }
    None
}

fn destination(value: Object<'_>) -> Option<Array<'_>> {
    match value {
        Object::Array(target) => Some(target),
        Object::Dict(dict) => dict.get::<Array<'_>>(b"D".as_slice()),
        _ => None,
    }
}

/// The text of a string: UTF-16 or UTF-8 with a mark, else the document encoding.
pub(super) fn text(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| document_char(*byte)).filter(|ch| !ch.is_control()).collect(),
    }
}

fn utf16(bytes: &[u8], read: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| read(*pair)).collect();
    String::from_utf16_lossy(&units).chars().filter(|ch| !ch.is_control()).collect()
}

/// The characters in which the document encoding differs from Latin-1.
fn document_char(byte: u8) -> char {
    match byte {
        0x80 => '•',
        0x81 => '†',
        0x82 => '‡',
        0x83 => '…',
        0x84 => '—',
        0x85 => '–',
        0x86 => 'ƒ',
        0x87 => '⁄',
        0x88 => '‹',
        0x89 => '›',
        0x8a => '−',
        0x8b => '‰',
        0x8c => '„',
        0x8d => '“',
        0x8e => '”',
        0x8f => '‘',
        0x90 => '’',
        0x91 => '‚',
        0x92 => '™',
        0x93 => 'ﬁ',
        0x94 => 'ﬂ',
        0x95 => 'Ł',
        0x96 => 'Œ',
        0x97 => 'Š',
        0x98 => 'Ÿ',
        0x99 => 'Ž',
        0x9a => 'ı',
        0x9b => 'ł',
        0x9c => 'œ',
        0x9d => 'š',
        0x9e => 'ž',
        0xa0 => '€',
        other => char::from(other),
    }
}
