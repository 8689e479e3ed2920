//! Google's Gemini API.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;
use crate::wire::content::ContentKind;

pub(super) const GOOGLE: Vendor = Vendor {
    name: "google",
    wire: Wire::Gemini,
    base_url: Some("https://generativelanguage.googleapis.com"),
    base_url_variables: &["GOOGLE_GEMINI_BASE_URL"],
    key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Header("x-goog-api-key"),
    headers: &[],
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Audio, ContentKind::Video, ContentKind::Document],
        ..Quirks::USUAL
    },
};
