//! Files of text: markup, mail, tables of values, and pictures, which are measured here.

pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod image;
pub(crate) mod json_lines;
pub(crate) mod mail;
pub(crate) mod markdown;
pub(crate) mod notebook;
pub(crate) mod plain;

use crate::model::{Info, Page, Stop, Unit};
use crate::options::{ReadingEnd, ReadingState};

/// Bytes as text: by their mark, else UTF-8, else the encoding of old Windows programs.
pub fn decode(bytes: &[u8]) -> String {
    let (encoding, mark) = encoding_rs::Encoding::for_bom(bytes).unwrap_or((encoding_rs::UTF_8, 0));
    let bytes = bytes.get(mark..).unwrap_or_default();
    if mark == 0 && std::str::from_utf8(bytes).is_err() {
        // XML and HTML name their encoding near the beginning.
        let head = String::from_utf8_lossy(bytes.get(..bytes.len().min(1_024)).unwrap_or_default());
        let named = head
            .split_once("encoding=")
            .or_else(|| head.split_once("charset="))
            .map(|(_, rest)| rest.trim_start_matches(['"', '\'']))
            .and_then(|rest| rest.split(['"', '\'', ' ', ';', '>', '?', '/']).next())
            .and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
        let encoding =
            named.filter(|named| *named != encoding_rs::UTF_8).unwrap_or(encoding_rs::WINDOWS_1252);
        return encoding.decode_without_bom_handling(bytes).0.into_owned();
    }
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// Hands over the only page of a file.
fn single(
    mut page: Page,
    mut info: Info,
    reading: &mut ReadingState<'_>,
) -> Result<Info, crate::DocumentError> {
    page.number = 1;
    info.unit = Unit::Page;
    info.total = 1;
    reading.check_range("page", 1)?;
    if let Err(ReadingEnd::Limit(reason)) = reading.give(page) {
        info.stopped = Some(Stop { page: 1, reason });
    }
    Ok(info)
}
