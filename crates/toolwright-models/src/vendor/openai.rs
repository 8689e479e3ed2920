//! OpenAI, over its Responses API, or Chat Completions if configured.

use super::{Auth, Key, Quirks, Vendor};
use crate::dialect::Dialect;
use crate::wire::Wire;
use crate::wire::content::Kind;

pub(super) const OPENAI: Vendor = Vendor {
    name: "openai",
    wire: Wire::OpenAiResponses,
    base_url: Some("https://api.openai.com/v1"),
    base_url_variables: &["OPENAI_BASE_URL"],
    key_variables: &["OPENAI_API_KEY"],
    key: Key::Required,
    auth: Auth::Bearer,
    headers: &[],
    // Its own clients do not wait longer than two minutes either.
    quirks: Quirks {
        media: &[Kind::Image, Kind::Document],
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
        media: &[Kind::Image, Kind::Audio, Kind::Document],
        longest_after: Some(120.0),
        strict: Some(Dialect::OpenAiStrict),
        ..Quirks::USUAL
    },
    ..OPENAI
};
