//! Archives: what they hold, as a table.

use super::package::Package;
use crate::error::DocumentError;
use crate::model::{Block, Content, Info, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};

/// The most entries that are listed.
const MAX_ENTRIES: usize = 10_000;

pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let mut package = Package::open(bytes)?;
    let entries = package.entries();
    let mut rows = vec![vec!["name".to_owned(), "bytes".to_owned(), "packed".to_owned()]];
    for entry in entries.iter().take(MAX_ENTRIES) {
        let mut name: String =
            entry.name.chars().map(|ch| if ch.is_control() { '\u{fffd}' } else { ch }).collect();
        if entry.encrypted {
            name.push_str(" (encrypted)");
        }
        rows.push(vec![name, entry.size.to_string(), entry.compressed.to_string()]);
    }
    if entries.len() > MAX_ENTRIES {
        reading.warn(format!("{} of {} entries are listed", MAX_ENTRIES, entries.len()));
    }
    let escapes = entries.iter().filter(|entry| {
        entry.name.starts_with('/') || entry.name.split(['/', '\\']).any(|part| part == "..")
    });
    let escapes = escapes.count();
    if escapes > 0 {
        reading.warn(format!("{escapes} entries have paths that leave the archive"));
    }
    let mut info = Info { unit: Unit::Page, total: 1, ..Info::default() };
    reading.check_range("page", 1)?;
    let block = Block::new(Content::Table { rows, header: true });
    let page = Page { number: 1, blocks: vec![block], ..Page::default() };
    if let Err(ReadingEnd::Limit(reason)) = reading.give(page) {
        info.stopped = Some(Stop { page: 1, reason });
    }
    Ok(info)
}
