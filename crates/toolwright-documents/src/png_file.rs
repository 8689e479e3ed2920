//! PNG files: written from pixels, or wrapped around rows that are compressed already.

/// What a pixel is made of, eight bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "pdf"), allow(dead_code, reason = "only pages and their figures are drawn"))]
pub(crate) enum Pixels {
    Gray,
    Rgb,
    Rgba,
}

/// Encodes pixels; `None` when there are too few of them.
#[cfg(feature = "pdf")]
pub(crate) fn encode(width: u32, height: u32, pixels: Pixels, data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(match pixels {
        Pixels::Gray => png::ColorType::Grayscale,
        Pixels::Rgb => png::ColorType::Rgb,
        Pixels::Rgba => png::ColorType::Rgba,
    });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(data).ok()?;
    writer.finish().ok()?;
    Some(out)
}

/// Puts compressed rows with PNG's filters into a PNG file.
#[cfg(feature = "pdf")]
pub(crate) fn wrap(width: u32, height: u32, pixels: Pixels, compressed: &[u8]) -> Option<Vec<u8>> {
    if width == 0 || height == 0 {
        return None;
    }
    let mut header = Vec::with_capacity(13);
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    let color = match pixels {
        Pixels::Gray => 0,
        Pixels::Rgb => 2,
        Pixels::Rgba => 6,
    };
    header.extend([8, color, 0, 0, 0]);
    let mut out = Vec::with_capacity(compressed.len() + 64);
    out.extend(b"\x89PNG\r\n\x1a\n");
    chunk(&mut out, *b"IHDR", &header)?;
    chunk(&mut out, *b"IDAT", compressed)?;
    chunk(&mut out, *b"IEND", &[])?;
    Some(out)
}

#[cfg(feature = "pdf")]
fn chunk(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> Option<()> {
    out.extend(u32::try_from(data.len()).ok()?.to_be_bytes());
    out.extend(name);
    out.extend(data);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&name);
    sum.update(data);
    out.extend(sum.finalize().to_be_bytes());
    Some(())
}
