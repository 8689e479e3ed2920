//! OpenAI's `computer` tool of the Responses API: a call has a list of actions and the questions of its
//! safety checks, and is answered by a screenshot.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{KEPT, action, arguments_of, combination, notches, replace_definition};

/// A picture of one transparent pixel. Each call must be answered by a screenshot, also where there is none
/// any more, or none was made.
const NO_SCREENSHOT: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

pub(super) fn encode(name: &str, body: &mut Map<String, Value>, failed: impl Fn(&str) -> bool) {
    if let Some(tools) = body.get_mut("tools").and_then(Value::as_array_mut) {
        let ours = |tool: &Value| tool.get("name").is_some_and(|own| own == name);
        replace_definition(tools, ours, json!({"type": "computer"}));
    }
    let chosen = body.get("tool_choice").and_then(|choice| choice.get("name")).is_some_and(|own| own == name);
    if chosen {
        body.insert("tool_choice".to_owned(), "required".into());
    }
    let Some(Value::Array(input)) = body.get_mut("input") else { return };
    let mut checks: HashMap<String, Value> = HashMap::new();
    let mut out = Vec::with_capacity(input.len());
    let mut told = Vec::new();
    for mut item in std::mem::take(input) {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = item.get("call_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind != "function_call_output" {
            out.append(&mut told);
        }
        match (kind.as_str(), item.get_mut(KEPT).map(Value::take), checks.get(&id)) {
            ("function_call", Some(Value::Object(mut call)), _) => {
                let pending = call.get("pending_safety_checks").cloned().unwrap_or_else(|| json!([]));
                checks.insert(id.clone(), pending);
                call.retain(|_, value| !value.is_null());
                call.insert("type".to_owned(), "computer_call".into());
                call.insert("call_id".to_owned(), id.into());
                out.push(Value::Object(call));
            }
            ("function_call_output", _, Some(pending)) => {
                let (screenshot, words) = parts(&item);
                let mut answer = json!({
                    "type": "computer_call_output",
                    "call_id": id,
                    "output": {"type": "computer_screenshot", "image_url": screenshot},
                });
                let asked = pending.as_array().is_some_and(|pending| !pending.is_empty());
                // What a person refused was not acknowledged.
                if let (true, false, Some(answer)) = (asked, failed(&id), answer.as_object_mut()) {
                    answer.insert("acknowledged_safety_checks".to_owned(), pending.clone());
                }
                out.push(answer);
                if !words.is_empty() {
                    let words = format!("Result of the computer call {id}: {}", words.join("\n"));
                    let text = json!([{"type": "input_text", "text": words}]);
                    told.push(json!({"type": "message", "role": "user", "content": text}));
                }
            }
            _ => out.push(item),
        }
    }
    // Outputs of one turn stand together; what is said about them comes after.
    out.append(&mut told);
    *input = out;
}

/// The last picture of an output, and its words.
fn parts(item: &Value) -> (String, Vec<String>) {
    let mut screenshot = NO_SCREENSHOT.to_owned();
    let mut words = Vec::new();
    match item.get("output") {
        Some(Value::String(text)) if !text.is_empty() => words.push(text.clone()),
        Some(Value::Array(parts)) => {
            for part in parts {
                if let Some(url) = part.get("image_url").and_then(Value::as_str) {
                    screenshot = url.to_owned();
                }
                words.extend(part.get("text").and_then(Value::as_str).map(str::to_owned));
            }
        }
        _ => {}
    }
    (screenshot, words)
}

/// A call whose item the decoder kept whole.
pub(super) fn call(kept: &Map<String, Value>) -> Option<(Value, Map<String, Value>)> {
    let item = kept.get(KEPT)?;
    let one = item.get("action").filter(|action| action.is_object());
    let several = item.get("actions").and_then(Value::as_array).into_iter().flatten();
    let questions = item.get("pending_safety_checks").and_then(Value::as_array).into_iter().flatten();
    let mut actions: Vec<Value> = questions.map(question).collect();
    actions.extend(one.into_iter().chain(several).flat_map(own_actions));
    if actions.is_empty() {
        actions.push(action("screenshot", []));
    }
    Some((arguments_of(actions), kept.clone()))
}

fn question(check: &Value) -> Value {
    let word = |key: &str| check.get(key).filter(|word| word.is_string()).cloned();
    let message = word("message").or_else(|| word("code")).unwrap_or_else(|| "a safety check".into());
    action("confirm", [("code", word("code")), ("message", Some(message))])
}

/// The actions that one of OpenAI's stands for. One that is not known keeps its name, and is refused with the
/// names there are.
fn own_actions(theirs: &Value) -> Vec<Value> {
    let field = |key: &str| theirs.get(key).filter(|value| !value.is_null()).cloned();
    let number = |key: &str| theirs.get(key).and_then(Value::as_i64);
    let at = || number("x").zip(number("y")).map(|(x, y)| json!([x, y]));
    let keys = || combination(theirs.get("keys"));
    let kind = theirs.get("type").and_then(Value::as_str).unwrap_or_default();
    let click = |name: &str| vec![action(name, [("coordinate", at()), ("text", keys())])];
    match kind {
        "click" => click(match theirs.get("button").and_then(Value::as_str) {
            Some("right") => "right_click",
            Some("wheel" | "middle") => "middle_click",
            Some("back") => "back_click",
            Some("forward") => "forward_click",
            _ => "left_click",
        }),
        "double_click" => click("double_click"),
        "triple_click" => click("triple_click"),
        "move" => click("mouse_move"),
        "drag" => {
            let path = theirs.get("path").and_then(Value::as_array).into_iter().flatten();
            let path: Vec<Value> = path.map(|place| json!([place.get("x"), place.get("y")])).collect();
            vec![action("left_click_drag", [("path", Some(path.into())), ("text", keys())])]
        }
        "keypress" => vec![action("key", [("text", keys())])],
        "type" => vec![action("type", [("text", field("text"))])],
        "wait" => vec![action("wait", [("duration", Some(2.into()))])],
        "screenshot" => vec![action("screenshot", [])],
        "scroll" => {
            let turn = |pixels: i64, back: &str, on: &str| {
                (pixels != 0).then(|| {
                    action(
                        "scroll",
                        [
                            ("coordinate", at()),
                            ("scroll_direction", Some(if pixels < 0 { back } else { on }.into())),
                            ("scroll_amount", Some(notches(pixels).into())),
                            ("text", keys()),
                        ],
                    )
                })
            };
            let down = turn(number("scroll_y").unwrap_or_default(), "up", "down");
            let right = turn(number("scroll_x").unwrap_or_default(), "left", "right");
            down.into_iter().chain(right).collect()
        }
        other => vec![action(other, [])],
    }
}
