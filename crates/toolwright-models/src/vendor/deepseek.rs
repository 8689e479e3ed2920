//! DeepSeek. Its models read text only, and want their reasoning back with every turn that calls tools.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;

pub(super) const DEEPSEEK: Vendor = Vendor {
    name: "deepseek",
    wire: Wire::OpenAiChat,
    base_url: Some("https://api.deepseek.com/v1"),
    base_url_variables: &[],
    key_variables: &["DEEPSEEK_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks { media: &[], response_schemas: false, ..Quirks::USUAL },
};
