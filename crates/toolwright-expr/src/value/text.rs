//! Texts and byte strings.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use compact_str::CompactString;

/// A shared, unchanging text that knows its length in characters. Up to 24 bytes sit beside the reference
/// count, so that a short text is one allocation.
#[derive(Clone)]
pub struct Text(pub(super) Arc<TextData>);

pub(super) struct TextData {
    text: CompactString,
    chars: usize,
}

impl Text {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Length in characters (Unicode code points), which is Python's `len`.
    pub fn chars_len(&self) -> usize {
        self.0.chars
    }

    pub(crate) fn is_ascii(&self) -> bool {
        self.0.chars == self.0.text.len()
    }

    /// The text of one character, without allocating for ASCII.
    pub(crate) fn one(character: char) -> Text {
        static ASCII: LazyLock<Vec<Text>> =
            LazyLock::new(|| (0..128u8).map(|byte| Text::from(char::from(byte).to_string())).collect());
        if character.is_ascii()
            && let Some(text) = ASCII.get(character as usize)
        {
            return text.clone();
        }
        Text::from(character.to_string())
    }

    pub(crate) fn empty() -> Text {
        static EMPTY: LazyLock<Text> = LazyLock::new(|| Text::from(String::new()));
        EMPTY.clone()
    }
}

impl From<CompactString> for Text {
    fn from(text: CompactString) -> Self {
        let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
        Text(Arc::new(TextData { text, chars }))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::from(CompactString::from(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::from(CompactString::new(text))
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

/// A shared, unchanging byte string.
#[derive(Clone)]
pub struct Bytes(pub(super) Arc<Vec<u8>>);

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
