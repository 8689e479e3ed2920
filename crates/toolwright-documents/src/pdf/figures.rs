//! Pictures of a document as files: JPEG as it is, plain compressed pixels wrapped as PNG, everything else
//! decoded.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::Filter;
use hayro_interpret::hayro_syntax::object::{Dict, Name, ObjectIdentifier};
use hayro_interpret::{Image, ImageData, LumaData};

use crate::options::FigureDetail;
use crate::png_file;

/// The most pixels of a picture that is decoded.
const MAX_PIXELS: u64 = 60_000_000;

/// The longest side of a picture that is decoded; larger ones are scaled down where their format allows.
const MAX_SIDE: u32 = 4_096;

/// An encoded picture.
#[derive(Debug, Clone, Default)]
pub(super) struct Art {
    pub(super) media_type: &'static str,
    pub(super) data: Vec<u8>,
}

/// The pictures of a document: each is encoded once, however often it is drawn.
pub(super) struct FigureStore {
    detail: FigureDetail,
    known: HashMap<ObjectIdentifier, Option<usize>>,
    pub(super) art: Vec<Art>,
    left: usize,
    pub(super) skipped: usize,
}

impl FigureStore {
    pub(super) fn new(detail: FigureDetail, most_bytes: usize) -> Self {
        FigureStore { detail, known: HashMap::new(), art: Vec::new(), left: most_bytes, skipped: 0 }
    }

    /// Encodes a picture; `None` when it is only named, too large or broken.
    pub(super) fn take(&mut self, image: &Image<'_, '_>) -> Option<usize> {
        if self.detail != FigureDetail::Encoded {
            return None;
        }
        let stream = match image {
            Image::Raster(raster) => raster.stream(),
            Image::Stencil(stencil) => stencil.stream(),
        };
        let key = stream.obj_id();
        // Inline pictures share the number of what they stand in.
        let inline = stream.dict().contains_key(b"W".as_slice());
        if !inline && let Some(art) = self.known.get(&key) {
            return *art;
        }
        let art = encode(image).filter(|art| art.data.len() <= self.left);
        if art.is_none() {
            self.skipped += 1;
        }
        let index = art.map(|art| {
            self.left -= art.data.len();
            self.art.push(art);
            self.art.len() - 1
        });
        if !inline {
            self.known.insert(key, index);
        }
        index
    }
}

/// Whether part of a picture is let through.
pub(super) fn is_masked(dict: &Dict<'_>) -> bool {
    [b"SMask".as_slice(), b"Mask", b"SMaskInData"].iter().any(|key| dict.contains_key(key))
}

fn encode(image: &Image<'_, '_>) -> Option<Art> {
    let raster = match image {
        Image::Stencil(stencil) => {
            let mut art = None;
            bounded(stencil.width(), stencil.height())?;
            // A stencil paints where its mask is set; black on white is how a scan looks.
            let paint = |mask: LumaData, _: &_| {
                let data: Vec<u8> = mask.data.iter().map(|value| 255 - value).collect();
                art = png_file::encode(mask.width, mask.height, png_file::Pixels::Gray, &data);
            };
            stencil.with_stencil(paint, None);
            return art.map(|data| Art { media_type: "image/png", data });
        }
        Image::Raster(raster) => raster,
    };
    let stream = raster.stream();
    let dict = stream.dict();
    let filters = stream.filters();
    if !is_masked(dict) && !dict.contains_key(b"Decode".as_slice()) {
        match filters.as_slice() {
            [Filter::DctDecode] => {
                let data = stream.raw_data();
                // Four-color JPEGs are inverted more often than not; they are decoded instead.
                if jpeg_components(&data).is_some_and(|parts| parts == 1 || parts == 3) {
                    return Some(Art { media_type: "image/jpeg", data: data.into_owned() });
                }
            }
            [Filter::FlateDecode] => {
                if let Some(data) = wrapped(dict, &stream.raw_data()) {
                    return Some(Art { media_type: "image/png", data });
                }
            }
            _ => {}
        }
    }
    bounded(raster.width(), raster.height())?;
    let wanted = (raster.width().min(MAX_SIDE), raster.height().min(MAX_SIDE));
    let mut art = None;
    let paint = |image: ImageData, alpha: Option<LumaData>| {
        let (width, height) = (image.width(), image.height());
        let alpha = alpha.filter(|alpha| (alpha.width, alpha.height) == (width, height));
        art = match (image, alpha) {
            (ImageData::Luma(luma), None) => {
                png_file::encode(width, height, png_file::Pixels::Gray, &luma.data)
            }
            (ImageData::Rgb(rgb), None) => png_file::encode(width, height, png_file::Pixels::Rgb, &rgb.data),
            (ImageData::Luma(luma), Some(alpha)) => {
                let data: Vec<u8> =
                    luma.data.iter().zip(&alpha.data).flat_map(|(l, a)| [*l, *l, *l, *a]).collect();
                png_file::encode(width, height, png_file::Pixels::Rgba, &data)
            }
            (ImageData::Rgb(rgb), Some(alpha)) => {
                let (colors, _) = rgb.data.as_chunks::<3>();
                let data: Vec<u8> =
                    colors.iter().zip(&alpha.data).flat_map(|([r, g, b], a)| [*r, *g, *b, *a]).collect();
                png_file::encode(width, height, png_file::Pixels::Rgba, &data)
            }
        };
    };
    raster.with_rgba(paint, Some(wanted));
    art.map(|data| Art { media_type: "image/png", data })
}

fn bounded(width: u32, height: u32) -> Option<()> {
    (u64::from(width) * u64::from(height) <= MAX_PIXELS).then_some(())
}

/// Compressed pixels that already have the row filters of PNG: only the container is new.
fn wrapped(dict: &Dict<'_>, data: &[u8]) -> Option<Vec<u8>> {
    let number = |dict: &Dict<'_>, key: &[u8]| dict.get::<u32>(key);
    let parameters = dict.get::<Dict<'_>>(b"DecodeParms".as_slice())?;
    let colors = number(&parameters, b"Colors").unwrap_or(1);
    let pixels = match &*dict.get::<Name<'_>>(b"ColorSpace".as_slice())? {
        b"DeviceRGB" if colors == 3 => png_file::Pixels::Rgb,
        b"DeviceGray" if colors == 1 => png_file::Pixels::Gray,
        _ => return None,
    };
    let bits = number(dict, b"BitsPerComponent").unwrap_or(8);
    let width = number(dict, b"Width")?;
    let fits = number(&parameters, b"Predictor").is_some_and(|predictor| predictor >= 10)
        && number(&parameters, b"Columns") == Some(width)
        && number(&parameters, b"BitsPerComponent").unwrap_or(8) == 8
        && bits == 8;
    fits.then(|| png_file::wrap(width, number(dict, b"Height")?, pixels, data)).flatten()
}

/// The number of color components of a JPEG.
fn jpeg_components(data: &[u8]) -> Option<u8> {
    let mut at = 2;
    if data.get(..2)? != [0xff, 0xd8] {
        return None;
    }
    loop {
        let [0xff, marker] = *data.get(at..at + 2)? else { return None };
        if marker == 0xff {
            at += 1;
            continue;
        }
        let length = usize::from(u16::from_be_bytes([*data.get(at + 2)?, *data.get(at + 3)?]));
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return data.get(at + 9).copied();
        }
        at += 2 + length.max(2);
    }
}
