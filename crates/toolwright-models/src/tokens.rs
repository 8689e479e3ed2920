//! Input tokens of a request: a local estimate, and the vendor's own count where there is one.

use toolwright_core::{Content, Detail, Media, Message, ModelRequest, ToolSpec};

use crate::vendor::Vendor;
use crate::wire::{Wire, content};

/// A number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// The vendor counted.
    Counted(u64),
    /// We guessed.
    Estimated(u64),
}

impl Tokens {
    /// The number.
    pub fn number(self) -> u64 {
        match self {
            Tokens::Counted(number) | Tokens::Estimated(number) => number,
        }
    }
}

/// Estimates what a request reads: its messages, its tools, its media.
///
/// Text is weighed letter by letter. Beside OpenAI's tokenizer (`o200k_base`), English prose, Markdown, Rust,
/// Python and JSON come out between 0.9 and 1.1 times the truth, Chinese and Japanese at 1.2, Russian at 1.6.
pub fn estimate(vendor: &Vendor, request: &ModelRequest<'_>) -> u64 {
    let messages = request.messages.iter().map(|message| estimate_message(vendor, message));
    messages.chain(request.tools.iter().map(estimate_tool)).fold(0, u64::saturating_add)
}

/// Estimates one message, with the few tokens that set it apart from others.
pub fn estimate_message(vendor: &Vendor, message: &Message) -> u64 {
    const FRAME: u64 = 4;
    let content = message.content().iter().map(|block| estimate_content(vendor, block));
    let rest = match message {
        Message::Assistant(message) => message
            .tool_calls
            .iter()
            .map(|call| FRAME + estimate_text(&call.name) + estimate_text(&call.arguments.to_string()))
            .sum(),
        Message::Tool(result) => {
            content::notes(result).iter().map(|note| estimate_text(note)).sum::<u64>() + FRAME
        }
        _ => 0,
    };
    content.fold(FRAME.saturating_add(rest), u64::saturating_add)
}

/// Estimates a tool's definition.
pub fn estimate_tool(tool: &ToolSpec) -> u64 {
    8 + estimate_text(&tool.name)
        + estimate_text(&tool.description)
        + estimate_text(&tool.parameters.to_string())
}

/// Estimates text.
pub fn estimate_text(text: &str) -> u64 {
    // Sixteenths of a token.
    let weight = |c: char| match c {
        'a'..='z' | 'A'..='Z' => 3,
        ' ' => 2,
        '\n' | '\t' | '\r' => 5,
        '0'..='9' => 9,
        '\0'..='\x7f' => 10,
        '\u{80}'..='\u{24f}' => 9,
        '\u{250}'..='\u{7ff}' => 6,
        '\u{800}'..='\u{2fff}' => 10,
        _ => 13,
    };
    text.chars().map(weight).fold(0_u64, u64::saturating_add).div_ceil(16)
}

fn estimate_content(vendor: &Vendor, block: &Content) -> u64 {
    let fits = content::kind(block).is_some_and(|kind| vendor.quirks.media.contains(&kind));
    let in_words = || content::in_words(block).map_or(0, |words| estimate_text(&words));
    match block {
        Content::Image(media) if fits => image_tokens(vendor, media),
        Content::Document(media) if fits && media.as_text().is_none() => {
            // A page of a PDF is read as text and as a picture: some 2,000 tokens, for some 50 kB.
            (bytes(media) / 25).max(2000)
        }
        // 32 tokens and 16 kB a second.
        Content::Audio(media) if fits => (bytes(media) / 500).max(32),
        // 300 tokens and 150 kB a second.
        Content::Video(media) if fits => (bytes(media) / 500).max(300),
        Content::Reasoning { text, .. } => estimate_text(text),
        _ => in_words(),
    }
}

fn bytes(media: &Media) -> u64 {
    match &media.source {
        toolwright_core::MediaSource::Data(data) => data.len() as u64 / 4 * 3,
        toolwright_core::MediaSource::Url(_) => 0,
    }
}

/// Estimates a picture as the vendor counts them. One whose size cannot be seen counts as one of 1024 by
/// 1024.
pub fn image_tokens(vendor: &Vendor, media: &Media) -> u64 {
    let size = media.bytes().ok().and_then(|bytes| image_size(&bytes)).unwrap_or((1024, 1024));
    image_tokens_of(vendor, size, media.detail)
}

/// Estimates a picture of that many pixels.
pub fn image_tokens_of(vendor: &Vendor, (width, height): (u32, u32), detail: Option<Detail>) -> u64 {
    let low = detail == Some(Detail::Low);
    let (width, height) = (u64::from(width.clamp(1, 100_000)), u64::from(height.clamp(1, 100_000)));
    let tiles = |width: u64, height: u64, side: u64| width.div_ceil(side) * height.div_ceil(side);
    match (vendor.name, vendor.wire) {
        ("xai", _) if low => 512,
        ("xai", _) => (tiles(width, height, 448).min(6) + 1) * 256,
        (_, Wire::AnthropicMessages | Wire::BedrockInvoke | Wire::BedrockConverse) => {
            let (width, height) = shrink(width, height, 1568, width.max(height));
            (width * height / 750).max(1)
        }
        ("openai" | "openai-chat", _) if low => 85,
        ("openai" | "openai-chat", _) => {
            let (width, height) = shrink(width, height, 2048, width.max(height));
            let (width, height) = shrink(width, height, 768, width.min(height));
            85 + 170 * tiles(width, height, 512)
        }
        (_, Wire::Gemini) if width <= 384 && height <= 384 => 258,
        (_, Wire::Gemini) => 258 * tiles(width, height, 768),
        _ => (width * height / 750).max(256),
    }
}

/// Makes a picture smaller so that the side of length `side` has at most `most` pixels.
fn shrink(width: u64, height: u64, most: u64, side: u64) -> (u64, u64) {
    if side <= most { (width, height) } else { ((width * most / side).max(1), (height * most / side).max(1)) }
}

/// Width and height of a PNG, GIF, JPEG or WebP picture, from its first bytes.
pub fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let little = |at: usize| Some(u32::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(16)?, big(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        // Three bytes, least significant first.
        let three = |at: usize| Some(little(at)? | (u32::from(*bytes.get(at + 2)?) << 16));
        return match bytes.get(12..16)? {
            b"VP8X" => Some((three(24)? + 1, three(27)? + 1)),
            b"VP8L" => {
                let bits = u32::from_le_bytes(*bytes.get(21..)?.first_chunk()?);
                Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
            }
            _ => Some((little(26)? & 0x3fff, little(28)? & 0x3fff)),
        };
    }
    jpeg_size(bytes)
}

/// Width and height of a JPEG picture: in the first frame header, after any number of other segments.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let [0xff, kind, high, low, ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            let side = |at: usize| Some(u32::from(u16::from_be_bytes(*rest.get(at..)?.first_chunk()?)));
            return Some((side(7)?, side(5)?));
        }
        rest = rest.get(2 + length.max(2)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::find;

    fn image(vendor: &str, size: (u32, u32), detail: Option<Detail>) -> u64 {
        image_tokens_of(find(vendor).unwrap(), size, detail)
    }

    #[test]
    fn pictures_count_as_each_vendor_counts_them() {
        assert_eq!(image("openai", (800, 600), Some(Detail::Low)), 85);
        assert_eq!(image("openai", (512, 512), None), 255);
        assert_eq!(image("openai", (1024, 1024), None), 765);
        assert_eq!(image("openai-chat", (2048, 4096), None), 1105);
        assert_eq!(image("anthropic", (1000, 750), None), 1000);
        assert_eq!(image("anthropic", (3136, 3136), None), 3278);
        assert_eq!(image("google", (384, 384), None), 258);
        assert_eq!(image("google", (960, 540), None), 516);
        assert_eq!(image("xai", (448, 448), None), 512);
        assert_eq!(image("xai", (4480, 4480), None), 1792);
        assert_eq!(image("ollama", (10, 10), None), 256);
        assert_eq!(image("mistral", (1500, 1000), None), 2000);
        for vendor in crate::vendor::VENDORS {
            assert!(
                (1..u64::MAX / 2).contains(&image_tokens_of(vendor, (u32::MAX, 0), None)),
                "{}",
                vendor.name
            );
        }
    }

    #[test]
    fn sizes_are_read_from_the_first_bytes_and_nonsense_has_none() {
        let png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x03\x20\x00\x00\x02\x58";
        assert_eq!(image_size(png), Some((800, 600)));
        assert_eq!(image_size(b"GIF89a\x20\x03\x58\x02"), Some((800, 600)));
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x02\x58\x03\x20\x03";
        assert_eq!(image_size(jpeg), Some((800, 600)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x1f\x03\x00\x57\x02\x00";
        assert_eq!(image_size(webp), Some((800, 600)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x03\x58\x02";
        assert_eq!(image_size(lossy), Some((800, 600)));
        for picture in [png.as_slice(), jpeg, webp, lossy] {
            for length in 0..picture.len() {
                let _ = image_size(&picture[..length]);
            }
        }
        assert_eq!(image_size(b"\xff\xd8\xff\xe0\x00\x00\xff\xe0\x00\x00"), None);
        assert_eq!(image_size(b"what is this?"), None);
    }

    #[test]
    fn text_is_weighed_by_its_letters() {
        assert_eq!(estimate_text(""), 0);
        // Nine tokens for `o200k_base` and `cl100k_base`.
        assert_eq!(estimate_text("The quick brown fox jumps over the lazy dog"), 8);
        assert!((15..=25).contains(&estimate_text("工具的速度并不是最重要的,重要的是它的回答值得信赖。")));
        let media = Media::from_bytes("image/png", b"?");
        assert_eq!(image_tokens(find("openai").unwrap(), &media), 765);
    }
}
