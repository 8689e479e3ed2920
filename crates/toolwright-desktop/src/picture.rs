//! Pictures: pixels of a screen, with the pointer drawn in, scaled and made PNG.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::imageops::{self, FilterType as Resampling};
use image::{ExtendedColorType, ImageEncoder as _, RgbImage};
use toolwright_core::ToolError;

use crate::scale::{Point, Size};

/// The pointer, as X shows it: pixels with their opacity, already multiplied by it.
pub(crate) struct Pointer {
    /// Where its upper left corner is in the picture.
    pub(crate) corner: Point,
    pub(crate) size: Size,
    pub(crate) pixels: Vec<u32>,
}

/// Pixels of X (blue, green, red, unused) as a picture.
pub(crate) fn from_x(data: &[u8], size: Size) -> Option<RgbImage> {
    let mut rgb = Vec::with_capacity(data.len() / 4 * 3);
    for pixel in data.chunks_exact(4) {
        if let [blue, green, red, _] = pixel {
            rgb.extend([red, green, blue]);
        }
    }
    RgbImage::from_raw(size.width, size.height, rgb)
}

/// Draws the pointer, as far as it is inside.
pub(crate) fn draw_pointer(picture: &mut RgbImage, pointer: &Pointer) {
    let width = usize::try_from(pointer.size.width).unwrap_or(usize::MAX).max(1);
    for (row, line) in (0_i32..).zip(pointer.pixels.chunks(width)) {
        for (column, argb) in (0_i32..).zip(line) {
            let at = |start: i32, step: i32| u32::try_from(start.saturating_add(step)).ok();
            let Some((x, y)) = at(pointer.corner.x, column).zip(at(pointer.corner.y, row)) else { continue };
            let Some(pixel) = picture.get_pixel_mut_checked(x, y) else { continue };
            let [blue, green, red, opacity] = argb.to_le_bytes();
            for (under, over) in pixel.0.iter_mut().zip([red, green, blue]) {
                let kept = u16::from(*under) * (255 - u16::from(opacity)) / 255;
                *under = u8::try_from(kept + u16::from(over)).unwrap_or(u8::MAX);
            }
        }
    }
}

/// The picture in another size.
pub(crate) fn resized(picture: RgbImage, size: Size) -> RgbImage {
    if picture.dimensions() == (size.width, size.height) {
        return picture;
    }
    imageops::resize(&picture, size.width, size.height, Resampling::Triangle)
}

/// The bytes of a PNG file.
pub(crate) fn png(picture: &RgbImage) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive);
    let (width, height) = picture.dimensions();
    encoder
        .write_image(picture, width, height, ExtendedColorType::Rgb8)
        .map_err(|error| ToolError::fatal(format!("the picture could not be written: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_x_become_the_same_picture_after_reading_the_file() {
        let data = [1, 2, 3, 0, 4, 5, 6, 0];
        let picture = from_x(&data, Size { width: 2, height: 1 }).unwrap();
        assert_eq!(picture.as_raw(), &[3, 2, 1, 6, 5, 4]);
        let read = image::load_from_memory(&png(&picture).unwrap()).unwrap();
        assert_eq!(read.to_rgb8(), picture);
        assert!(from_x(&data, Size { width: 3, height: 1 }).is_none());
    }

    #[test]
    fn a_pointer_at_the_edge_is_drawn_as_far_as_it_is_inside() {
        let mut picture = RgbImage::new(2, 2);
        let pointer = Pointer {
            corner: Point { x: -1, y: 1 },
            size: Size { width: 2, height: 2 },
            pixels: vec![0xffff_ffff, 0xff00_00ff, 0xffff_ffff, 0xffff_ffff],
        };
        draw_pointer(&mut picture, &pointer);
        assert_eq!(picture.as_raw(), &[0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0]);
    }
}
