//! Pictures: their size, from their first bytes.

use crate::error::DocumentError;
use crate::model::{Block, Content, Figure, Info, Page};
use crate::options::{FigureDetail, ReadingState};

pub(crate) fn read(
    bytes: Vec<u8>,
    media_type: &str,
    reading: &mut ReadingState<'_>,
) -> Result<Info, DocumentError> {
    let Some((media_type, width, height)) = measure(&bytes) else {
        return Err(DocumentError::damaged(format!("the picture ({media_type}) is damaged: it has no size")));
    };
    let encoded = reading.options.figures == FigureDetail::Encoded;
    let figure = Figure {
        width,
        height,
        media_type: if encoded { media_type.to_owned() } else { String::new() },
        data: if encoded { bytes } else { Vec::new() },
        ..Figure::default()
    };
    let blocks = vec![Block::new(Content::Figure { figure: 0 })];
    super::single(Page { blocks, figures: vec![figure], ..Page::default() }, Info::default(), reading)
}

/// The media type, width and height of a picture; `None` for anything else, or a picture without a size.
pub(crate) fn measure(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
    let (media_type, width, height) = match bytes {
        [0x89, b'P', b'N', b'G', ..] => ("image/png", big(bytes, 16)?, big(bytes, 20)?),
        [b'G', b'I', b'F', ..] => ("image/gif", little16(bytes, 6)?, little16(bytes, 8)?),
        [b'B', b'M', ..] => {
            let height = i32::from_le_bytes(*bytes.get(22..26)?.as_array()?);
            ("image/bmp", little32(bytes, 18)?, height.unsigned_abs())
        }
        [0xff, 0xd8, ..] => {
            let (width, height) = jpeg(bytes)?;
            ("image/jpeg", width, height)
        }
        [b'R', b'I', b'F', b'F', ..] => {
            let (width, height) = webp(bytes)?;
            ("image/webp", width, height)
        }
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => {
            let (width, height) = tiff(bytes)?;
            ("image/tiff", width, height)
        }
        _ => return None,
    };
    (width > 0 && height > 0).then_some((media_type, width, height))
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..at + 4)?.as_array()?))
}

fn little32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..at + 4)?.as_array()?))
}

fn little16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(*bytes.get(at..at + 2)?.as_array()?)))
}

fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let big16 = |at: usize| Some(u32::from(u16::from_be_bytes(*bytes.get(at..at + 2)?.as_array()?)));
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        match marker {
            0xff => at += 1,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big16(at + 7)?, big16(at + 5)?));
            }
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + (big16(at + 2)? as usize).max(2),
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => {
            let part = |at: usize| Some((little32(bytes, at)? & 0xff_ffff) + 1);
            Some((part(24)?, part(27)?))
        }
        b"VP8L" => {
            let bits = little32(bytes, 21)?;
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8 " => Some((little16(bytes, 26)? & 0x3fff, little16(bytes, 28)? & 0x3fff)),
        _ => None,
    }
}

/// The first directory of a TIFF holds its size in two entries.
fn tiff(bytes: &[u8]) -> Option<(u32, u32)> {
    let is_little = bytes.first() == Some(&b'I');
    let number16 = |at: usize| {
        let pair = *bytes.get(at..at + 2)?.as_array()?;
        Some(u32::from(if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }))
    };
    let number32 = |at: usize| if is_little { little32(bytes, at) } else { big(bytes, at) };
    let directory = number32(4)? as usize;
    let (mut width, mut height) = (None, None);
    for entry in 0..number16(directory)? as usize {
        let at = directory.checked_add(2 + entry * 12)?;
        let value = if number16(at + 2)? == 3 { number16(at + 8)? } else { number32(at + 8)? };
        match number16(at)? {
            256 => width = Some(value),
            257 => height = Some(value),
            _ => {}
        }
    }
    Some((width?, height?))
}
