//! Figures as pictures that a model can be sent: which of them, and no larger than vendors look at.

use std::collections::HashMap;
use std::io::Cursor;

use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use toolwright_documents::{Document, Figure};

/// The longest side of a picture: vendors make larger ones smaller.
pub(crate) const MAX_SIDE: u32 = 1_568;

/// The most bytes of a picture; some vendors refuse more.
const MAX_BYTES: usize = 3 << 20;

/// The most pictures of one call, and their bytes together: several calls must fit one request.
const MOST_SHOWN: usize = 8;
const MAX_TOGETHER: usize = 6 << 20;

/// A figure on so many pages is a logo.
const MIN_REPEATS: usize = 3;

/// The most memory that unpacking a picture may take.
const MAX_MEMORY: u64 = 256 << 20;

/// A picture that can be sent.
pub(crate) struct ScaledPicture {
    pub(crate) mime: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The figures among those at `shown` that are sent as pictures, by index.
pub(crate) fn chosen(document: &mut Document, shown: &[usize]) -> HashMap<usize, ScaledPicture> {
    let mut repeats: HashMap<&[u8], usize> = HashMap::new();
    for figure in &document.figures {
        *repeats.entry(&figure.data).or_default() += 1;
    }
    let is_worth_it = |figure: &Figure| {
        figure.is_picture()
            && !figure.data.is_empty()
            && repeats.get(figure.data.as_slice()).is_none_or(|count| *count < MIN_REPEATS)
    };
    let wanted: Vec<usize> = shown
        .iter()
        .copied()
        .filter(|at| document.figures.get(*at).is_some_and(is_worth_it))
        .take(MOST_SHOWN)
        .collect();
    let mut pictures = HashMap::new();
    let mut left = MAX_TOGETHER;
    for at in wanted {
        let Some(figure) = document.figures.get_mut(at) else { continue };
        let data = std::mem::take(&mut figure.data);
        if let Some(picture) = fit(data, MAX_SIDE)
            && let Some(rest) = left.checked_sub(picture.bytes.len())
        {
            left = rest;
            pictures.insert(at, picture);
        }
    }
    pictures
}

/// The pages that were drawn, by their numbers.
pub(crate) fn drawn(document: &mut Document) -> Vec<(u32, ScaledPicture)> {
    let pages = document.figures.iter_mut().filter(|figure| figure.id.ends_with(".picture"));
    pages.filter_map(|figure| Some((figure.page, fit(std::mem::take(&mut figure.data), MAX_SIDE)?))).collect()
}

/// A picture with no side longer than `side`, in a format that every vendor takes; `None` for what cannot be
/// decoded.
pub(crate) fn fit(data: Vec<u8>, side: u32) -> Option<ScaledPicture> {
    let format = image::guess_format(&data).ok()?;
    let mime = match format {
        ImageFormat::Png => Some("image/png"),
        ImageFormat::Jpeg => Some("image/jpeg"),
        ImageFormat::Gif => Some("image/gif"),
        ImageFormat::WebP => Some("image/webp"),
        _ => None,
    };
    let (width, height) = reader(&data, format).into_dimensions().ok()?;
    if let Some(mime) = mime.filter(|_| width.max(height) <= side && data.len() <= MAX_BYTES) {
        return Some(ScaledPicture { mime, bytes: data, width, height });
    }
    let whole = reader(&data, format).decode().ok()?;
    let small = match width.max(height) > side {
        true => whole.resize(side, side, image::imageops::FilterType::Triangle),
        false => whole,
    };
    let (width, height) = (small.width(), small.height());
    let drawing = (format != ImageFormat::Jpeg).then(|| encoded(&small, ImageFormat::Png)).flatten();
    let (mime, bytes) = match drawing.filter(|bytes| bytes.len() <= MAX_BYTES / 3) {
        Some(bytes) => ("image/png", bytes),
        None => ("image/jpeg", encoded(&DynamicImage::ImageRgb8(small.into_rgb8()), ImageFormat::Jpeg)?),
    };
    (bytes.len() <= MAX_BYTES).then_some(ScaledPicture { mime, bytes, width, height })
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Option<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).ok()?;
    Some(bytes.into_inner())
}

fn reader(data: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(data), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(1 << 16);
    limits.max_image_height = Some(1 << 16);
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    reader
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        encoded(&DynamicImage::new_rgb8(width, height), ImageFormat::Png).unwrap()
    }

    #[test]
    fn pictures_are_made_no_larger_than_vendors_look_at() {
        let small = png(640, 480);
        let kept = fit(small.clone(), MAX_SIDE).unwrap();
        assert_eq!((kept.mime, kept.bytes, kept.width), ("image/png", small, 640));
        let large = fit(png(4000, 1000), MAX_SIDE).unwrap();
        assert_eq!((large.width, large.height), (1568, 392));
        assert!(fit(b"GIF89a".to_vec(), MAX_SIDE).is_none());
        let mut huge = png(8, 8);
        huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        assert!(fit(huge, MAX_SIDE).is_none());
    }

    #[test]
    fn logos_and_ornaments_are_only_named() {
        let figure =
            |data: Vec<u8>, side: u32| Figure { width: side, height: side, data, ..Figure::default() };
        let mut document = Document::default();
        for _ in 0..3 {
            document.figures.push(figure(png(100, 100), 100));
        }
        document.figures.push(figure(png(20, 20), 20));
        document.figures.push(figure(png(200, 200), 200));
        document.figures.push(figure(Vec::new(), 200));
        let pictures = chosen(&mut document, &[0, 1, 2, 3, 4, 5, 9]);
        assert_eq!(pictures.keys().collect::<Vec<_>>(), [&4]);
    }
}
