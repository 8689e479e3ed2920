//! Pictures in the terminal, where it can show them; otherwise they are saved.

use std::path::PathBuf;

use anyhow::Context as _;
use base64::Engine as _;
use toolwright::content::Media;

use super::sixel;
use crate::write_file::{self, FileAccess};

/// A way to send pictures to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// What this terminal understands, by what it says of itself in the environment.
pub fn protocol(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    let is = |name: &str, words: &[&str]| {
        variable(name).is_some_and(|value| words.iter().any(|word| value.to_lowercase().contains(word)))
    };
    if variable("TMUX").is_some() || variable("STY").is_some() {
        // A multiplexer keeps such sequences to itself, unless it says that it can show them.
        return None;
    }
    if variable("KITTY_WINDOW_ID").is_some()
        || is("TERM", &["kitty", "ghostty"])
        || is("TERM_PROGRAM", &["ghostty"])
    {
        return Some(Protocol::Kitty);
    }
    if is("TERM_PROGRAM", &["iterm", "wezterm", "mintty"]) || is("LC_TERMINAL", &["iterm"]) {
        return Some(Protocol::Iterm);
    }
    is("TERM", &["sixel", "mlterm", "foot"]).then_some(Protocol::Sixel)
}

/// The sequence that shows a picture in a window of so many pixels; `None` when this kind cannot be shown.
pub fn sequence(protocol: Protocol, media: &Media, window: (usize, usize)) -> Option<String> {
    let bytes = media.bytes().ok()?;
    let encoded = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    match protocol {
        Protocol::Kitty if media.mime_type == "image/png" => Some(kitty(&encoded(&bytes))),
        Protocol::Kitty => Some(kitty(&encoded(&Pixels::read(&media.mime_type, &bytes)?.png()?))),
        Protocol::Iterm if media.mime_type.starts_with("image/") && media.mime_type != "image/svg+xml" => {
            Some(format!("\x1b]1337;File=inline=1;size={}:{}\x07", bytes.len(), encoded(&bytes)))
        }
        Protocol::Iterm => None,
        Protocol::Sixel => Some(sixel::encode(&Pixels::read(&media.mime_type, &bytes)?.within(window))),
    }
}

/// A PNG, in pieces as the protocol wants them.
fn kitty(encoded: &str) -> String {
    let chunks: Vec<&[u8]> = encoded.as_bytes().chunks(4096).collect();
    let mut out = String::new();
    for (number, chunk) in chunks.iter().enumerate() {
        let first = if number == 0 { "f=100,a=T,q=2," } else { "" };
        let more = u8::from(number + 1 < chunks.len());
        out.push_str(&format!("\x1b_G{first}m={more};{}\x1b\\", String::from_utf8_lossy(chunk)));
    }
    out
}

/// A picture that was read: four bytes for each pixel, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Pixels {
    pub width: usize,
    pub height: usize,
    pub rgba: Vec<u8>,
}

impl Pixels {
    /// The most pixels that are read.
    const MOST: usize = 25_000_000;

    /// Reads a PNG or a JPEG.
    fn read(mime_type: &str, bytes: &[u8]) -> Option<Self> {
        let (width, height, samples, data) = match mime_type {
            "image/png" => Self::read_png(bytes)?,
            "image/jpeg" | "image/jpg" => Self::read_jpeg(bytes)?,
            _ => return None,
        };
        let rgba = data.chunks_exact(samples).flat_map(|pixel| match *pixel {
            [grey, alpha] => [grey, grey, grey, alpha],
            [red, green, blue] => [red, green, blue, 255],
            [red, green, blue, alpha] => [red, green, blue, alpha],
            _ => [0; 4],
        });
        let rgba: Vec<u8> = rgba.take(width * height * 4).collect();
        (width > 0 && height > 0 && rgba.len() == width * height * 4).then_some(Pixels {
            width,
            height,
            rgba,
        })
    }

    fn read_png(bytes: &[u8]) -> Option<(usize, usize, usize, Vec<u8>)> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        let ways = png::Transformations::normalize_to_color8() | png::Transformations::ALPHA;
        decoder.set_transformations(ways);
        let mut reader = decoder.read_info().ok()?;
        let (width, height) = (reader.info().width as usize, reader.info().height as usize);
        if width.saturating_mul(height) > Self::MOST {
            return None;
        }
        let mut data = vec![0; reader.output_buffer_size()?];
        let frame = reader.next_frame(&mut data).ok()?;
        Some((width, height, frame.color_type.samples(), data))
    }

    fn read_jpeg(bytes: &[u8]) -> Option<(usize, usize, usize, Vec<u8>)> {
        use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};
        let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().ok()?;
        let (width, height) = decoder.dimensions()?;
        if width.saturating_mul(height) > Self::MOST {
            return None;
        }
        Some((width, height, 3, decoder.decode().ok()?))
    }

    /// The picture as a PNG.
    fn png(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let (width, height) = (u32::try_from(self.width).ok()?, u32::try_from(self.height).ok()?);
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.write_header().ok()?.write_image_data(&self.rgba).ok()?;
        Some(bytes)
    }

    /// The picture made smaller by a whole number, so that it fits.
    fn within(self, (width, height): (usize, usize)) -> Self {
        let by = self.width.div_ceil(width.max(1)).max(self.height.div_ceil(height.max(1)));
        if by <= 1 {
            return self;
        }
        let (width, height) = ((self.width / by).max(1), (self.height / by).max(1));
        let mut rgba = Vec::with_capacity(width * height * 4);
        for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
            // The mean of the pixels that become one.
            let (mut sums, mut count) = ([0_u32; 4], 0);
            for (column, row) in (0..by).flat_map(|row| (0..by).map(move |column| (column, row))) {
                let at = ((y * by + row) * self.width + x * by + column) * 4;
                let Some(pixel) = self.rgba.get(at..at + 4).filter(|_| x * by + column < self.width) else {
                    continue;
                };
                sums.iter_mut().zip(pixel).for_each(|(sum, part)| *sum += u32::from(*part));
                count += 1;
            }
            rgba.extend(sums.map(|sum| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX)));
        }
        Pixels { width, height, rgba }
    }

    /// The colour of each pixel; `None` where more is seen of what is behind.
    pub fn opaque(&self) -> impl Iterator<Item = Option<[u8; 3]>> + '_ {
        self.rgba.chunks_exact(4).map(|pixel| match *pixel {
            [red, green, blue, alpha] if alpha >= 128 => Some([red, green, blue]),
            _ => None,
        })
    }
}

/// Saves a picture beside the recorded runs, under a name of its own.
pub fn save(media: &Media, name: &str) -> anyhow::Result<PathBuf> {
    let folder = crate::runs::folder().and_then(|runs| Some(runs.parent()?.join("pictures")));
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let ending: String =
        media.mime_type.rsplit('/').next().unwrap_or("bin").split('+').next().unwrap_or("bin").to_owned();
    let ending: String = ending.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let bytes = media.bytes()?;
    for number in 1..10_000 {
        let path = folder.join(format!("{name}-{number}.{ending}"));
        match write_file::create(&path, &bytes, FileAccess::Owner) {
            Ok(()) => return Ok(path),
            Err(error) if write_file::already_exists(&error) => {}
            Err(error) => return Err(error),
        }
    }
    anyhow::bail!("`{}` is full", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png() -> Media {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 2, 7);
        encoder.set_color(png::ColorType::Rgb);
        let written = encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&[255, 0, 0, 0, 0, 255].repeat(7)));
        assert!(written.is_ok());
        Media::from_bytes("image/png", &bytes)
    }

    /// The bytes in a sequence of base64 pieces.
    fn carried(pieces: &[&str]) -> Option<Vec<u8>> {
        base64::engine::general_purpose::STANDARD.decode(pieces.concat()).ok()
    }

    #[test]
    fn kitty_gets_the_png_in_pieces() {
        let mut noise = Pixels { width: 80, height: 80, rgba: Vec::new() };
        let hash = |at: u32| (at ^ at >> 7).wrapping_mul(2_654_435_761).rotate_left(at % 31);
        noise.rgba = (0..80 * 80 * 4_u32).map(|at| (hash(at) >> 24) as u8).collect();
        let bytes = noise.png().unwrap_or_default();
        let shown = sequence(Protocol::Kitty, &Media::from_bytes("image/png", &bytes), (800, 600))
            .unwrap_or_default();
        let pieces: Vec<&str> = shown.split_terminator("\x1b\\").collect();
        assert!(pieces.len() > 2);
        let mut data = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let last = number + 1 == pieces.len();
            let head = match (number, last) {
                (0, _) => "\x1b_Gf=100,a=T,q=2,m=1;",
                (_, false) => "\x1b_Gm=1;",
                (_, true) => "\x1b_Gm=0;",
            };
            let body = piece.strip_prefix(head).unwrap_or_default();
            assert!(body.len() <= 4096 && (last || body.len() % 4 == 0), "{number}");
            data.push(body);
        }
        assert_eq!(carried(&data), Some(bytes));
        assert_eq!(
            sequence(Protocol::Kitty, &Media::from_bytes("image/svg+xml", b"<svg/>"), (800, 600)),
            None
        );
    }

    #[test]
    fn iterm_gets_the_file_as_it_is() {
        let bytes = png().bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
        let shown = sequence(Protocol::Iterm, &png(), (800, 600)).unwrap_or_default();
        let head = format!("\x1b]1337;File=inline=1;size={}:", bytes.len());
        let body = shown.strip_prefix(&head).and_then(|rest| rest.strip_suffix("\x07")).unwrap_or_default();
        assert_eq!(carried(&[body]), Some(bytes));
    }

    #[test]
    fn sixels_are_drawn_colour_by_colour() {
        // Red in the first column, blue in the second; six rows, then one.
        let shown = sequence(Protocol::Sixel, &png(), (800, 600)).unwrap_or_default();
        let wanted = "\x1bP0;1;0q\"1;1;2;7#0;2;100;0;0#1;2;0;0;100#0~?$#1?~-#0@?$#1?@\x1b\\";
        assert_eq!(shown, wanted);
    }

    /// 16 by 16 pixels, the left half red, the right half blue.
    const JPEG: &[u8] = include_bytes!("two.jpg");

    #[test]
    fn a_jpeg_is_read_for_terminals_that_cannot() {
        let pixels = Pixels::read("image/jpeg", JPEG).map(|pixels| (pixels.width, pixels.height, pixels));
        let Some((16, 16, pixels)) = pixels else { panic!("the JPEG was not read") };
        let colours: Vec<_> = pixels.within((2, 2)).opaque().flatten().collect();
        let red = |colour: &[u8; 3]| colour[0] > 230 && colour[1] < 25 && colour[2] < 25;
        let blue = |colour: &[u8; 3]| colour[0] < 25 && colour[1] < 25 && colour[2] > 230;
        let [a, b, c, d] = colours[..] else { panic!("{colours:?}") };
        assert!(red(&a) && blue(&b) && red(&c) && blue(&d), "{colours:?}");
        let media = Media::from_bytes("image/jpeg", JPEG);
        let shown = sequence(Protocol::Kitty, &media, (800, 600)).unwrap_or_default();
        assert!(shown.starts_with("\x1b_Gf=100,a=T,q=2,m=0;iVBOR"), "{shown:?}");
        assert_eq!(Pixels::read("image/jpeg", &JPEG[..JPEG.len() / 3]), None);
    }

    /// What another program reads out of our sixels is what was in the picture.
    #[test]
    fn another_program_reads_the_same_pixels() {
        let folder = tempfile::tempdir().unwrap_or_else(|_| std::process::abort());
        let (from, to) = (folder.path().join("a.six"), folder.path().join("a.png"));
        assert!(
            std::fs::write(&from, sequence(Protocol::Sixel, &png(), (800, 600)).unwrap_or_default()).is_ok()
        );
        let read = std::process::Command::new("sixel2png").arg("-i").arg(&from).arg("-o").arg(&to).output();
        let Ok(read) = read else {
            eprintln!("SKIPPED: there is no sixel2png here (libsixel-bin)");
            return;
        };
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let back = Pixels::read("image/png", &std::fs::read(&to).unwrap_or_default());
        let was = png().bytes().ok().and_then(|bytes| Pixels::read("image/png", &bytes));
        let colours = |pixels: Option<Pixels>| pixels.map(|pixels| pixels.opaque().collect::<Vec<_>>());
        assert_eq!(colours(back), colours(was));
    }

    #[test]
    fn terminals_are_known_by_what_they_say() {
        let of = |name: &'static str, value: &'static str| {
            protocol(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(of("TERM", "xterm-kitty"), Some(Protocol::Kitty));
        assert_eq!(of("TERM_PROGRAM", "iTerm.app"), Some(Protocol::Iterm));
        assert_eq!(of("TERM", "foot"), Some(Protocol::Sixel));
        assert_eq!(of("TERM", "xterm-256color"), None);
    }
}
