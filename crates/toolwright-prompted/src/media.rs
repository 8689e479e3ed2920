//! Pictures, audio and documents of a tool's result. They are sent in the user's turn, where nothing of them
//! may be read as text.

use toolwright_core::{Content, Media, MediaSource};

/// A block that text cannot hold; its name and address are neutral, so that its description cannot pass for
/// other text.
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
