//! What calls and conversations are made of: messages, calls with their results, text, media, citations.

#[doc(inline)]
pub use toolwright_core::__private::serde_json::Value;
#[doc(inline)]
pub use toolwright_core::{
    AssistantMessage, Citation, Content, Detail, Media, MediaSource, Message, ToolCall, ToolResult,
    Truncation,
};
