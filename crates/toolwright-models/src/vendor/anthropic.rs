//! Anthropic.

use super::{Auth, CLAUDE, KeyRequirement, Quirks, Vendor};
use crate::dialect::Dialect;
use crate::wire::Wire;
use crate::wire::content::ContentKind;

pub(super) const ANTHROPIC: Vendor = Vendor {
    name: "anthropic",
    wire: Wire::AnthropicMessages,
    base_url: Some("https://api.anthropic.com"),
    base_url_variables: &["ANTHROPIC_BASE_URL"],
    key_variables: &["ANTHROPIC_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Header("x-api-key"),
    // Served to every model; later versions refuse sampling parameters. `ModelSettings::header` sets another.
    headers: &[("anthropic-version", "2023-06-01")],
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Document],
        pictures: CLAUDE,
        strict: Some(Dialect::AnthropicStrict),
        caches: true,
        ..Quirks::USUAL
    },
};
