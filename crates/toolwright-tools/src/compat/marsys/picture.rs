//! Pictures: what they are in a few words, and the picture itself, made smaller when it is larger than a
//! model needs.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use serde::Serialize;
use toolwright_core::{Content, ErrorKind, ToolError, ToolOutput};

use super::tokens;

/// The most pixels that are shown unless the call says otherwise.
pub(super) const MOST_PIXELS: u64 = 2_097_152;
/// The most memory that unpacking a picture may take.
const MOST_MEMORY: u64 = 256 << 20;
/// The longest side of a picture that is unpacked.
const LONGEST_SIDE: u32 = 1 << 16;
const JPEG_QUALITY: u8 = 75;

/// What there is to know of a picture without unpacking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture {
    format: ImageFormat,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// How a picture is to be shown.
pub(super) struct PictureOptions {
    pub(super) most_pixels: u64,
    /// Whose tokens are counted.
    pub(super) vendor: String,
    pub(super) low: bool,
}

#[derive(Serialize)]
struct PictureReport<'a> {
    path: &'a str,
    format: &'static str,
    width: u32,
    height: u32,
    estimated_tokens: u64,
    downsampled: bool,
}

impl Picture {
    /// The picture that these bytes are, if they are one.
    pub(super) fn of(path: &str, bytes: &[u8]) -> Option<Result<Picture, ToolError>> {
        let format = image::guess_format(bytes).ok().filter(|format| mime(*format).is_some())?;
        let decoder = reader(bytes, format).into_decoder().map_err(|error| broken(path, error));
        Some(decoder.map(|decoder| {
            let (width, height) = decoder.dimensions();
            Picture { format, width, height }
        }))
    }

    /// The name of its format.
    pub(super) fn format(&self) -> &'static str {
        match self.format {
            ImageFormat::Png => "PNG",
            ImageFormat::Jpeg => "JPEG",
            ImageFormat::Gif => "GIF",
            ImageFormat::WebP => "WEBP",
            _ => "BMP",
        }
    }

    pub(super) fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The picture as a model sees it. Unpacking takes a while, and what unpacks it was not written for
    /// enemies.
    pub(super) async fn show(
        self,
        path: String,
        bytes: Vec<u8>,
        look: PictureOptions,
    ) -> Result<ToolOutput, ToolError> {
        let shown = tokio::task::spawn_blocking(move || self.unpack(&path, bytes, &look)).await;
        shown.unwrap_or_else(|error| Err(ToolError::new("the picture cannot be shown").with_source(error)))
    }

    /// The picture with no more pixels than are wanted, and its media type.
    pub(super) fn fitting(
        self,
        path: &str,
        bytes: Vec<u8>,
        look: &PictureOptions,
    ) -> Result<(Picture, Vec<u8>, &'static str), ToolError> {
        let (shown, bytes, format) = match self.pixels() > look.most_pixels || self.format == ImageFormat::Bmp
        {
            false => (self, bytes, self.format),
            true => self.smaller(path, &bytes, look.most_pixels)?,
        };
        Ok((shown, bytes, mime(format).unwrap_or("image/png")))
    }

    fn unpack(self, path: &str, bytes: Vec<u8>, look: &PictureOptions) -> Result<ToolOutput, ToolError> {
        let (shown, bytes, mime) = self.fitting(path, bytes, look)?;
        let Picture { width, height, .. } = shown;
        let estimated_tokens = tokens::of_picture(width, height, &look.vendor, look.low);
        let downsampled = (width, height) != (self.width, self.height);
        let told =
            PictureReport { path, format: self.format(), width, height, estimated_tokens, downsampled };
        let mut text = format!(
            "{path}: a picture, {}, {width}x{height} pixels, {:.2} megapixels, about {estimated_tokens} tokens ({})",
            self.format(),
            shown.pixels() as f64 / f64::from(1 << 20),
            look.vendor
        );
        if downsampled {
            text.push_str(&format!(", made smaller from {}x{}", self.width, self.height));
        }
        let told = ToolOutput::serialize(&told)?.value();
        Ok(ToolOutput::blocks([Content::text(text), Content::image(mime, &bytes)]).with_structured(told))
    }

    /// The picture with fewer pixels, in its own format where that can be written.
    fn smaller(
        self,
        path: &str,
        bytes: &[u8],
        most: u64,
    ) -> Result<(Picture, Vec<u8>, ImageFormat), ToolError> {
        let whole = reader(bytes, self.format).decode().map_err(|error| broken(path, error))?;
        let scale = (most as f64 / self.pixels().max(1) as f64).sqrt().min(1.0);
        let side = |side: u32| ((f64::from(side) * scale) as u32).max(1);
        let (width, height) = (side(self.width), side(self.height));
        let small = match scale < 1.0 {
            true => whole.resize_exact(width, height, image::imageops::FilterType::Lanczos3),
            false => whole,
        };
        let mut written = Cursor::new(Vec::new());
        let (format, result) = match self.format {
            ImageFormat::Jpeg => {
                let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut written, JPEG_QUALITY);
                (ImageFormat::Jpeg, DynamicImage::ImageRgb8(small.into_rgb8()).write_with_encoder(encoder))
            }
            _ => (ImageFormat::Png, small.write_to(&mut written, ImageFormat::Png)),
        };
        result.map_err(|error| broken(path, error))?;
        Ok((Picture { width, height, ..self }, written.into_inner(), format))
    }
}

fn reader(bytes: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(LONGEST_SIDE);
    limits.max_image_height = Some(LONGEST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    reader
}

fn mime(format: ImageFormat) -> Option<&'static str> {
    Some(match format {
        ImageFormat::Png => "image/png",
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::Gif => "image/gif",
        ImageFormat::WebP => "image/webp",
        ImageFormat::Bmp => "image/bmp",
        _ => return None,
    })
}

fn broken(path: &str, error: image::ImageError) -> ToolError {
    match error {
        image::ImageError::Limits(_) => {
            ToolError::of(ErrorKind::OutputLimit, format!("{path} is too large a picture to unpack"))
        }
        error => ToolError::of(ErrorKind::UnicodeDecode, format!("{path} is a picture that cannot be read"))
            .with_source(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut written = Cursor::new(Vec::new());
        DynamicImage::new_rgb8(width, height).write_to(&mut written, ImageFormat::Png).unwrap();
        written.into_inner()
    }

    #[test]
    fn a_picture_is_shown_as_it_is_unless_it_is_large() {
        let bytes = png(640, 480);
        let look = |most_pixels| PictureOptions { most_pixels, vendor: "generic".to_owned(), low: false };
        let picture = Picture::of("im.png", &bytes).unwrap().unwrap();
        let whole = picture.unpack("im.png", bytes.clone(), &look(MOST_PIXELS)).unwrap();
        assert_eq!(whole.content[1], Content::image("image/png", &bytes));
        let small = picture.unpack("im.png", bytes, &look(10_000)).unwrap();
        assert_eq!(small.structured.unwrap()["width"], 115);
        let Content::Image(media) = &small.content[1] else { panic!() };
        let again = Picture::of("x", &media.bytes().unwrap()).unwrap().unwrap();
        assert_eq!((again.width, again.height, again.format()), (115, 86, "PNG"));
        assert!(small.content[0].as_text().unwrap().contains("made smaller from 640x480"));
    }

    #[test]
    fn what_is_no_picture_or_a_broken_one_is_said() {
        assert!(Picture::of("f", b"hello").is_none());
        let bytes = png(8, 8);
        let cut = Picture::of("f", &bytes[..20]).unwrap();
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::UnicodeDecode);
        // The header says more pixels than any picture has.
        let mut huge = bytes;
        huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        assert!(Picture::of("f", &huge).unwrap().is_err());
    }
}
