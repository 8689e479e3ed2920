//! OpenRouter, which passes requests on to many others.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;
use crate::wire::content::ContentKind;

pub(super) const OPENROUTER: Vendor = Vendor {
    name: "openrouter",
    wire: Wire::OpenAiChat,
    base_url: Some("https://openrouter.ai/api/v1"),
    base_url_variables: &[],
    key_variables: &["OPENROUTER_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Audio, ContentKind::Document],
        ..Quirks::USUAL
    },
};
