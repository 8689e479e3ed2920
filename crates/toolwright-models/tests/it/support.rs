//! What the tests share.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{Message, ModelOptions, ModelRequest, ToolChoice, ToolSpec};
use toolwright_models::vendor::{Vendor, find};
use toolwright_models::wire::Target;

/// The vendor that stands for each wire format, and the folder of the format's data.
pub(crate) const FORMATS: [(&str, &str); 4] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai_chat"),
    ("openai", "openai_responses"),
    ("google", "gemini"),
];

/// A file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn json(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(path)).unwrap()).unwrap()
}

pub(crate) fn vendor(name: &str) -> &'static Vendor {
    find(name).unwrap()
}

pub(crate) fn target(name: &str) -> Target<'static> {
    Target { vendor: vendor(name), model: "m" }
}

/// A request that owns what it is made of.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    #[serde(default)]
    pub(crate) tools: Vec<ToolSpec>,
    #[serde(default)]
    pub(crate) tool_choice: ToolChoice,
    #[serde(default)]
    pub(crate) options: ModelOptions,
}

impl Conversation {
    pub(crate) fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        Conversation { messages: messages.into_iter().collect(), ..Conversation::default() }
    }

    pub(crate) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: &self.tool_choice,
            options: &self.options,
        }
    }
}

/// Compares `got` with a file, or writes the file when `TOOLWRIGHT_BLESS` is set.
pub(crate) fn matches_file(path: &str, got: &str) {
    let path = file(path);
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == got, "{} is out of date; run the tests with TOOLWRIGHT_BLESS=1", path.display());
}
