//! Groq.

use super::{Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;

pub(super) const GROQ: Vendor = Vendor {
    name: "groq",
    wire: Wire::OpenAiChat,
    base_url: Some("https://api.groq.com/openai/v1"),
    base_url_variables: &[],
    key_variables: &["GROQ_API_KEY"],
    key: KeyRequirement::Required,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks { max_tokens_field: "max_completion_tokens", ..Quirks::USUAL },
};
