//! Google's Gemini API.

use super::{Auth, Key, Quirks, Vendor};
use crate::wire::Wire;
use crate::wire::content::Kind;

pub(super) const GOOGLE: Vendor = Vendor {
    name: "google",
    wire: Wire::Gemini,
    base_url: Some("https://generativelanguage.googleapis.com"),
    base_url_variables: &["GOOGLE_GEMINI_BASE_URL"],
    key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    key: Key::Required,
    auth: Auth::Header("x-goog-api-key"),
    headers: &[],
    quirks: Quirks { media: &[Kind::Image, Kind::Audio, Kind::Video, Kind::Document], ..Quirks::USUAL },
};
