//! OpenRouter, which passes requests on to many others.

use super::{Auth, Key, Quirks, Vendor};
use crate::wire::Wire;
use crate::wire::content::Kind;

pub(super) const OPENROUTER: Vendor = Vendor {
    name: "openrouter",
    wire: Wire::OpenAiChat,
    base_url: Some("https://openrouter.ai/api/v1"),
    base_url_variables: &[],
    key_variables: &["OPENROUTER_API_KEY"],
    key: Key::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks { media: &[Kind::Image, Kind::Audio, Kind::Document], ..Quirks::USUAL },
};
