//! OpenAI, over its Responses API, or Chat Completions if configured.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::dialect::Dialect;
use crate::wire::Wire;
use crate::wire::content::ContentKind;

pub(super) const OPENAI: Vendor = Vendor {
    name: "openai",
    wire: Wire::OpenAiResponses,
    base_url: Some("https://api.openai.com/v1"),
    base_url_variables: &["OPENAI_BASE_URL"],
    key_variables: &["OPENAI_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    // Its own clients do not wait longer than two minutes either.
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Document],
        longest_after: Some(120.0),
        strict: Some(Dialect::OpenAiStrict),
        ..Quirks::USUAL
    },
};

pub(super) const OPENAI_CHAT: Vendor = Vendor {
    name: "openai-chat",
    wire: Wire::OpenAiChat,
    quirks: Quirks {
        max_tokens_field: "max_completion_tokens",
        media: &[ContentKind::Image, ContentKind::Audio, ContentKind::Document],
        longest_after: Some(120.0),
        strict: Some(Dialect::OpenAiStrict),
        ..Quirks::USUAL
    },
    ..OPENAI
};
