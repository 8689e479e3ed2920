//! A page as a picture.

use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings};
use hayro_interpret::InterpreterSettings;
use hayro_interpret::hayro_syntax::page::Page as PdfPage;

use crate::model::Figure;
use crate::png_file;

/// The longest side of a picture of a page, in pixels: vendors scale down what is larger.
const MAX_SIDE: f32 = 1_568.0;

/// Draws a page on white; `None` when it has no size.
pub(super) fn draw(page: &PdfPage<'_>, number: u32, dpi: u16) -> Option<Figure> {
    let (width, height) = page.render_dimensions();
    let scale = (f32::from(dpi) / 72.0).min(MAX_SIDE / width.max(height));
    if !scale.is_finite() || width * scale < 1.0 || height * scale < 1.0 {
        return None;
    }
    let cache = RenderCache::new();
    let pixmap = hayro::render(
        page,
        &cache,
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE },
    );
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    // The page is drawn on white, so nothing of it is transparent.
    let (pixels, _) = pixmap.data_as_u8_slice().as_chunks::<4>();
    let colors: Vec<u8> = pixels.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
    let data = png_file::encode(width, height, png_file::Pixels::Rgb, &colors)?;
    Some(Figure {
        id: format!("p{number}.picture"),
        page: number,
        width,
        height,
        media_type: "image/png".to_owned(),
        caption: None,
        data,
    })
}
