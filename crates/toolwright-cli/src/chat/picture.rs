//! Pictures in the terminal, where it can show them; otherwise they are saved.

use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use toolwright::Media;

/// A way to send pictures to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// What this terminal understands, by what it says of itself.
pub fn protocol(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    let is = |name: &str, words: &[&str]| {
        variable(name).is_some_and(|value| words.iter().any(|word| value.to_lowercase().contains(word)))
    };
    if variable("TMUX").is_some() {
        // A multiplexer keeps such sequences to itself.
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

/// The sequence that shows a picture; `None` when the terminal cannot show this kind.
pub fn sequence(protocol: Protocol, media: &Media) -> Option<String> {
    let bytes = media.bytes().ok()?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
    match protocol {
        Protocol::Kitty if media.mime_type == "image/png" => {
            let chunks: Vec<&[u8]> = encoded.as_bytes().chunks(4096).collect();
            let mut out = String::new();
            for (number, chunk) in chunks.iter().enumerate() {
                let first = if number == 0 { "f=100,a=T,q=2," } else { "" };
                let more = u8::from(number + 1 < chunks.len());
                out.push_str(&format!("\x1b_G{first}m={more};{}\x1b\\", String::from_utf8_lossy(chunk)));
            }
            Some(out)
        }
        Protocol::Iterm if media.mime_type.starts_with("image/") && media.mime_type != "image/svg+xml" => {
            Some(format!("\x1b]1337;File=inline=1;size={}:{encoded}\x07", bytes.len()))
        }
        Protocol::Sixel if media.mime_type == "image/png" => sixel(&bytes),
        _ => None,
    }
}

/// A PNG as sixels, in the 216 colours of a 6 by 6 by 6 cube.
fn sixel(bytes: &[u8]) -> Option<String> {
    const MOST: u32 = 2000;
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = (reader.info().width, reader.info().height);
    if width == 0 || width > MOST || height > MOST {
        return None;
    }
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut pixels).ok()?;
    let samples = frame.color_type.samples();
    let colour = |x: u32, y: u32| -> Option<u8> {
        let at = (y as usize * width as usize + x as usize) * samples;
        let pixel = pixels.get(at..at + samples)?;
        let (red, green, blue, alpha) = match pixel {
            [grey, alpha] => (*grey, *grey, *grey, *alpha),
            [red, green, blue, alpha] => (*red, *green, *blue, *alpha),
            _ => return None,
        };
        let step = |value: u8| (u16::from(value) * 5 + 127) / 255;
        (alpha > 127).then(|| u8::try_from(step(red) * 36 + step(green) * 6 + step(blue)).unwrap_or(0))
    };
    let mut out = format!("\x1bPq\"1;1;{width};{height}");
    for number in 0..216_u32 {
        let part = |value: u32| value * 20;
        out.push_str(&format!(
            "#{number};2;{};{};{}",
            part(number / 36),
            part(number / 6 % 6),
            part(number % 6)
        ));
    }
    for band in (0..height).step_by(6) {
        let mut used: Vec<u8> = (band..(band + 6).min(height))
            .flat_map(|y| (0..width).filter_map(move |x| colour(x, y)))
            .collect();
        used.sort_unstable();
        used.dedup();
        for number in used {
            out.push_str(&format!("#{number}"));
            for x in 0..width {
                let bits = (0..6).filter(|row| band + row < height && colour(x, band + row) == Some(number));
                let sum: u8 = bits.map(|row| 1 << row).sum();
                out.push(char::from(63 + sum));
            }
            out.push('$');
        }
        out.push('-');
    }
    Some(out + "\x1b\\")
}

/// Saves a picture beside the recorded runs, under a name of its own.
pub fn save(media: &Media, name: &str) -> anyhow::Result<PathBuf> {
    let folder = crate::runs::folder().and_then(|runs| Some(runs.parent()?.join("pictures")));
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&folder)?;
    let ending: String =
        media.mime_type.rsplit('/').next().unwrap_or("bin").split('+').next().unwrap_or("bin").to_owned();
    let ending: String = ending.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    for number in 1..10_000 {
        let path = folder.join(format!("{name}-{number}.{ending}"));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            Ok(mut file) => {
                file.write_all(&media.bytes()?)?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
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

    #[test]
    fn each_terminal_gets_the_picture_its_way() {
        let of = |protocol| sequence(protocol, &png()).unwrap_or_default();
        assert!(of(Protocol::Kitty).starts_with("\x1b_Gf=100,a=T,q=2,m=0;iVBOR"));
        assert!(of(Protocol::Iterm).starts_with("\x1b]1337;File=inline=1;size="));
        let sixel = of(Protocol::Sixel);
        // Red in the first column, blue in the second; six rows, then one.
        assert!(sixel.ends_with("#5?~$#180~?$-#5?@$#180@?$-\x1b\\"), "{sixel:?}");
        assert_eq!(sequence(Protocol::Kitty, &Media::from_bytes("image/svg+xml", b"<svg/>")), None);
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
