//! Mistral.

use super::{Any, Auth, Ids, KeyRequirement, Quirks, Results, Vendor};
use crate::wire::Wire;

pub(super) const MISTRAL: Vendor = Vendor {
    name: "mistral",
    wire: Wire::OpenAiChat,
    base_url: Some("https://api.mistral.ai/v1"),
    base_url_variables: &[],
    key_variables: &["MISTRAL_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks {
        // Ids that are not exactly nine letters or digits are refused, so those of other vendors are
        // rewritten.
        ids: Ids::Nine,
        any: Any::Any,
        stream_usage: false,
        named_results: true,
        results: Results::Parts,
        ..Quirks::USUAL
    },
};
