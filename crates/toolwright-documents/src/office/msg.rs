//! Outlook messages: a compound file whose streams are the fields of a mail.

use std::io::{Cursor, Read as _};

use cfb::CompoundFile;

use crate::error::DocumentError;
use crate::model::{Block, Content, Info, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};

/// The longest field that is read.
const MAX_FIELD: u64 = 64 << 20;

/// The most attachments that are named.
const MAX_ATTACHMENTS: usize = 500;

pub(crate) fn read(bytes: Vec<u8>, reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let damaged = || DocumentError::damaged("the message is damaged");
    let opened = std::panic::catch_unwind(|| CompoundFile::open(Cursor::new(bytes)));
    let mut file = opened.map_err(|_| damaged())?.map_err(|_| damaged())?;
    let mut field = |path: &str| text(&mut file, path);
    let subject = field("/__substg1.0_0037").unwrap_or_default();
    let sender = field("/__substg1.0_0C1A").unwrap_or_default();
    let address = field("/__substg1.0_5D01").or_else(|| field("/__substg1.0_0C1F")).unwrap_or_default();
    let to = field("/__substg1.0_0E04").unwrap_or_default();
    let copies = field("/__substg1.0_0E03").unwrap_or_default();
    let headers = field("/__substg1.0_007D").unwrap_or_default();
    let body = field("/__substg1.0_1000").unwrap_or_default();
    let html = binary(&mut file, "/__substg1.0_10130102");
    let date = headers
        .lines()
        .find_map(|line| line.strip_prefix("Date:"))
        .map(|date| date.trim().to_owned())
        .unwrap_or_default();

    let mut page = Page { number: 1, ..Page::default() };
    if !subject.is_empty() {
        page.blocks.push(Block::heading(1, subject.clone()));
    }
    let from = match (sender.is_empty(), address.is_empty()) {
        (false, false) if sender != address => format!("{sender} <{address}>"),
        (true, _) => address,
        _ => sender,
    };
    let fields = [("From", &from), ("To", &to), ("Cc", &copies), ("Date", &date)];
    let lines: Vec<String> = fields
        .iter()
        .filter(|(_, value)| !value.trim().is_empty())
        .map(|(name, value)| format!("{name}: {}", value.trim().trim_end_matches('\0')))
        .collect();
    if !lines.is_empty() {
        page.blocks.push(Block::paragraph(lines.join("\n")));
    }
    if body.trim().is_empty() {
        if let Some(html) = html {
            let parsed = crate::text::html::parse(&crate::text::decode(&html), reading)?;
            page.blocks.extend(parsed.without_figures());
        }
    } else {
        page.blocks.extend(crate::text::plain::paragraphs(&body));
    }
    let attachments = attachments(&mut file);
    if attachments.len() > 1 {
        page.blocks.push(Block::new(Content::Table { rows: attachments, header: true }));
    }
    let mut info =
        Info { unit: Unit::Page, total: 1, title: Some(subject), author: Some(from), ..Info::default() };
    info.title = info.title.filter(|title| !title.is_empty());
    info.author = info.author.filter(|author| !author.is_empty());
    reading.check_range("page", 1)?;
    if let Err(ReadingEnd::Limit(reason)) = reading.give(page) {
        info.stopped = Some(Stop { page: 1, reason });
    }
    Ok(info)
}

type File = CompoundFile<Cursor<Vec<u8>>>;

fn binary(file: &mut File, path: &str) -> Option<Vec<u8>> {
    let stream = file.open_stream(path).ok()?;
    let mut data = Vec::new();
    stream.take(MAX_FIELD).read_to_end(&mut data).ok()?;
    Some(data)
}

/// A field of text: in Unicode, else in the one-byte encoding of old programs.
fn text(file: &mut File, path: &str) -> Option<String> {
    if let Some(data) = binary(file, &format!("{path}001F")) {
        let (pairs, _) = data.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        return Some(String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned());
    }
    let data = binary(file, &format!("{path}001E"))?;
    Some(crate::text::decode(&data).trim_end_matches('\0').to_owned())
}

fn attachments(file: &mut File) -> Vec<Vec<String>> {
    let folders: Vec<String> = file
        .read_root_storage()
        .filter(|entry| entry.is_storage() && entry.name().starts_with("__attach_version1.0_"))
        .map(|entry| entry.name().to_owned())
        .take(MAX_ATTACHMENTS)
        .collect();
    let mut rows = vec![vec!["attachment".to_owned(), "type".to_owned(), "bytes".to_owned()]];
    for folder in folders {
        let name = text(file, &format!("/{folder}/__substg1.0_3707"))
            .or_else(|| text(file, &format!("/{folder}/__substg1.0_3704")))
            .or_else(|| text(file, &format!("/{folder}/__substg1.0_3001")))
            .unwrap_or_else(|| "unnamed".to_owned());
        let kind = text(file, &format!("/{folder}/__substg1.0_370E")).unwrap_or_default();
        let size = file.entry(format!("/{folder}/__substg1.0_37010102")).map_or(0, |entry| entry.len());
        rows.push(vec![name, kind, size.to_string()]);
    }
    rows
}
