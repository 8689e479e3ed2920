//! Characters of glyphs whose font says none: the character map inside the embedded font, turned round.

use std::collections::HashMap;

use hayro_interpret::font::Glyph;
use skrifa::{FontRef, MetadataProvider as _};

/// The most entries of a font's character map.
const MAX_ENTRIES: usize = 70_000;

/// The characters of the fonts of a document, by glyph.
#[derive(Default)]
pub(super) struct CodeMaps {
    fonts: HashMap<u128, HashMap<u32, char>>,
}

impl CodeMaps {
    /// The character of a glyph without one: by the font's own map, else its code where that is a printable
    /// letter.
    pub(super) fn lookup(&mut self, glyph: &Glyph<'_>) -> Option<char> {
        if let Glyph::Outline(outline) = glyph
            && let Some(data) = outline.font_data()
        {
            let map = self.fonts.entry(data.cache_key).or_insert_with(|| {
                let bytes: &[u8] = data.data.as_ref().as_ref();
                FontRef::new(bytes).map(|font| turned_round(&font)).unwrap_or_default()
            });
            if !map.is_empty() {
                return map.get(&outline.glyph_id().to_u32()).copied();
            }
        }
        char::from_u32(glyph.char_code()).filter(|ch| ch.is_ascii_graphic() || *ch == ' ')
    }
}

/// From glyph to character; the lowest character wins, private ones come last.
fn turned_round(font: &FontRef<'_>) -> HashMap<u32, char> {
    let mut map: HashMap<u32, char> = HashMap::new();
    for (code, glyph) in font.charmap().mappings().take(MAX_ENTRIES) {
        let Some(ch) = char::from_u32(code) else { continue };
        // Symbol fonts hold their letters in the private area.
        let ch = match code {
            0xf020..=0xf0ff => char::from_u32(code - 0xf000).unwrap_or(ch),
            _ => ch,
        };
        let entry = map.entry(glyph.to_u32()).or_insert(ch);
        if ch < *entry {
            *entry = ch;
        }
    }
    map
}
