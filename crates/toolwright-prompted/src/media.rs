//! What of a tool's result has to be seen or heard. It stands in the user's turn, where nothing of it may be read as words.

use toolwright_core::{Content, Media, MediaSource};

/// A block that words cannot hold, under a name and an address that are nobody's words where it is described.
pub(crate) fn media(block: &Content) -> Option<Content> {
    if block.in_words().is_some() {
        return None;
    }
    match block {
        Content::Image(media) => Some(Content::Image(plain(media))),
        Content::Audio(media) => Some(Content::Audio(plain(media))),
        Content::Video(media) => Some(Content::Video(plain(media))),
        Content::Document(media) => Some(Content::Document(plain(media))),
        _ => None,
    }
}

fn plain(media: &Media) -> Media {
    let word = |text: &str| {
        let fits = |c: char| c.is_alphanumeric() || " ._-/+;=".contains(c);
        text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
    };
    let source = match &media.source {
        MediaSource::Url(url) => MediaSource::Url(url.chars().filter(|c| !is_no_address(*c)).collect()),
        data => data.clone(),
    };
    Media {
        source,
        mime_type: word(&media.mime_type),
        name: media.name.as_deref().map(word),
        detail: media.detail,
    }
}

/// No address has these, and words need them.
fn is_no_address(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "<>".contains(c)
}
