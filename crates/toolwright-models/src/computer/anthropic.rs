//! Anthropic's computer toolset: one entry that stands for tools of the same names and parameters as the
//! actions here. A call names its member, and its result repeats which set it belongs to.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::replace_definition;

/// The members of the set.
const MEMBERS: [&str; 17] = [
    "key",
    "hold_key",
    "type",
    "cursor_position",
    "mouse_move",
    "left_mouse_down",
    "left_mouse_up",
    "left_click",
    "left_click_drag",
    "right_click",
    "middle_click",
    "double_click",
    "triple_click",
    "scroll",
    "wait",
    "screenshot",
    "zoom",
];

/// The set that calls and results name.
const TOOLSET: &str = "computer";

pub(super) fn encode(name: &str, body: &mut Map<String, Value>) {
    if let Some(tools) = body.get_mut("tools").and_then(Value::as_array_mut) {
        let native = json!({"type": "computer_toolset_20260801"});
        replace_definition(tools, |tool| tool.get("name").is_some_and(|own| own == name), native);
    }
    // A choice of one tool by name cannot name a set.
    let chosen = body.get("tool_choice").and_then(|choice| choice.get("name")).is_some_and(|own| own == name);
    if chosen {
        body.insert("tool_choice".to_owned(), json!({"type": "any"}));
    }
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    let mut members = HashSet::new();
    for message in messages.into_iter().flatten() {
        let blocks = message.get_mut("content").and_then(Value::as_array_mut);
        for block in blocks.into_iter().flatten().filter_map(Value::as_object_mut) {
            match block.get("type").and_then(Value::as_str) {
                Some("tool_use") => {
                    if let (Some(id), true) = (block.get("id").cloned(), to_member(name, block)) {
                        members.extend(id.as_str().map(str::to_owned));
                    }
                }
                Some("tool_result") => {
                    let id = block.get("tool_use_id").and_then(Value::as_str);
                    if id.is_some_and(|id| members.contains(id)) {
                        block.insert("toolset_name".to_owned(), TOOLSET.into());
                    }
                }
                _ => {}
            }
        }
    }
}

/// Names the member that a call of the run's tool is a call of. Other calls stay as they are.
fn to_member(name: &str, block: &mut Map<String, Value>) -> bool {
    if block.get("name").is_none_or(|own| own != name) {
        return false;
    }
    let Some(Value::Object(input)) = block.get_mut("input") else { return false };
    let member = input.get("action").and_then(Value::as_str);
    let Some(member) = member.and_then(|action| MEMBERS.into_iter().find(|member| *member == action)) else {
        return false;
    };
    input.shift_remove("action");
    block.insert("name".to_owned(), member.into());
    block.insert("toolset_name".to_owned(), TOOLSET.into());
    true
}

pub(super) fn call(
    name: &str,
    arguments: &Value,
    kept: &Map<String, Value>,
) -> Option<(Value, Map<String, Value>)> {
    if kept.get("toolset_name").is_none_or(|set| set != TOOLSET) {
        return None;
    }
    // A name that is not in the set is refused by the tool, with the names there are.
    let input = arguments.as_object()?.clone();
    let mut own = Map::from_iter([("action".to_owned(), name.into())]);
    own.extend(input.into_iter().filter(|(key, _)| key != "action"));
    Some((Value::Object(own), kept.clone()))
}
