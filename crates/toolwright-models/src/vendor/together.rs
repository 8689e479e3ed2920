//! Together.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;

pub(super) const TOGETHER: Vendor = Vendor {
    name: "together",
    wire: Wire::OpenAiChat,
    base_url: Some("https://api.together.xyz/v1"),
    base_url_variables: &[],
    key_variables: &["TOGETHER_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks::USUAL,
};
