//! Servers on the user's own machine: Ollama, vLLM and llama.cpp.

use super::{Any, Auth, KeyRequirement, Quirks, Vendor};
use crate::wire::Wire;
use crate::wire::content::ContentKind;

pub(super) const OLLAMA: Vendor = Vendor {
    name: "ollama",
    wire: Wire::OpenAiChat,
    base_url: Some("http://127.0.0.1:11434/v1"),
    base_url_variables: &["TOOLWRIGHT_BASE_URL"],
    key_variables: &["OLLAMA_API_KEY"],
    key: KeyRequirement::Optional,
    auth: Auth::Bearer,
    headers: &[],
    quirks: Quirks::USUAL,
};

pub(super) const VLLM: Vendor = Vendor {
    name: "vllm",
    base_url: Some("http://127.0.0.1:8000/v1"),
    key_variables: &["VLLM_API_KEY"],
    quirks: Quirks { media: &[ContentKind::Image, ContentKind::Audio], ..Quirks::USUAL },
    ..OLLAMA
};

pub(super) const LLAMA_CPP: Vendor = Vendor {
    name: "llama.cpp",
    base_url: Some("http://127.0.0.1:8080/v1"),
    key_variables: &["LLAMA_API_KEY"],
    // It was seen to call another tool than the one named; `required` with that tool alone does what is
    // meant.
    quirks: Quirks {
        any: Any::RequiredOnly,
        media: &[ContentKind::Image, ContentKind::Audio],
        ..Quirks::USUAL
    },
    ..OLLAMA
};
