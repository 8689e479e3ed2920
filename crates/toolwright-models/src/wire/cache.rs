//! Prompt caching: marks after what stays the same from turn to turn, for vendors that want to be told.
//!
//! Tools come first, then instructions, then the conversation, each in the same order every time, so every
//! request starts with the one before it. The marks move to its end.

use serde_json::{Map, Value, json};
use toolwright_core::ModelRequest;

use super::{ModelTarget, Wire};

/// Models on Bedrock from before there were caches.
const UNCACHED: [&str; 6] = [
    "claude-v2",
    "claude-instant",
    "claude-3-haiku",
    "claude-3-sonnet",
    "claude-3-opus",
    "claude-3-5-sonnet-20240620",
];

/// Puts the marks into a request.
pub(super) fn mark(target: ModelTarget<'_>, request: &ModelRequest<'_>, body: &mut Map<String, Value>) {
    let asked = request.options.cache;
    let wanted = asked.unwrap_or(target.vendor.quirks.caches && !request.tools.is_empty());
    // Whoever sets marks by hand, or leaves them to the vendor, knows better.
    if !wanted || request.options.extra.contains_key("cache_control") {
        return;
    }
    let claude = target.model.contains("claude") && !UNCACHED.iter().any(|old| target.model.contains(old));
    match target.vendor.wire {
        Wire::AnthropicMessages => mark_blocks(body),
        Wire::BedrockInvoke if claude => mark_blocks(body),
        Wire::BedrockConverse if claude || target.model.contains("nova") => add_points(body, claude),
        // The others keep what they like without being told.
        _ => {}
    }
}

/// Marks the end of the instructions (tools come before them), and of the user's last two turns: the last is
/// what the next request will read, the one before is what this request reads.
fn mark_blocks(body: &mut Map<String, Value>) {
    let set = |list: Option<&mut Value>| {
        let last = list.and_then(Value::as_array_mut).and_then(|list| list.last_mut());
        if let Some(block) = last.and_then(Value::as_object_mut) {
            block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
        }
    };
    let start = if body.contains_key("system") { "system" } else { "tools" };
    set(body.get_mut(start));
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten().rev().filter(|message| is_user(message)).take(2) {
        set(message.get_mut("content"));
    }
}

/// Adds points after the tools, the instructions, and the user's last two turns.
fn add_points(body: &mut Map<String, Value>, after_tools: bool) {
    let point = json!({"cachePoint": {"type": "default"}});
    let add = |list: Option<&mut Value>| {
        if let Some(list) = list.and_then(Value::as_array_mut).filter(|list| !list.is_empty()) {
            list.push(point.clone());
        }
    };
    if body.contains_key("system") {
        add(body.get_mut("system"));
    } else if after_tools {
        add(body.get_mut("toolConfig").and_then(|config| config.get_mut("tools")));
    }
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten().rev().filter(|message| is_user(message)).take(2) {
        add(message.get_mut("content"));
    }
}

fn is_user(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("user")
}
