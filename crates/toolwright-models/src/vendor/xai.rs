//! xAI.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;

pub(super) const XAI: Vendor = Vendor {
    name: "xai",
    wire: Wire::OpenAiChat,
    base_url: Some("https://api.x.ai/v1"),
    base_url_variables: &[],
    key_variables: &["XAI_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks::USUAL,
};
