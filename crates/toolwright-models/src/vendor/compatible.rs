//! Any server that speaks OpenAI's or Anthropic's format, at an address the user gives.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::dialect::Dialect;
use crate::wire::Wire;
use crate::wire::content::ContentKind;

pub(super) const OPENAI_COMPATIBLE: Vendor = Vendor {
    name: "openai-compatible",
    wire: Wire::OpenAiChat,
    base_url: None,
    base_url_variables: &["TOOLWRIGHT_BASE_URL"],
    key_variables: &["TOOLWRIGHT_API_KEY"],
    key: KeyRequirement::Optional,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Audio, ContentKind::Document],
        ..Quirks::USUAL
    },
};

pub(super) const ANTHROPIC_COMPATIBLE: Vendor = Vendor {
    name: "anthropic-compatible",
    wire: Wire::AnthropicMessages,
    auth: Auth::Header("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Document],
        strict: Some(Dialect::AnthropicStrict),
        ..Quirks::USUAL
    },
    ..OPENAI_COMPATIBLE
};
