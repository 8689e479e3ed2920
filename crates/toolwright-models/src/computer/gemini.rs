//! Gemini's computer use: functions with names of their own, whose places are on a grid of 1000 by 1000, and
//! whose arguments may hold a question about safety.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{KEPT, action, arguments_of, combination, notches};

/// The side of the grid.
const GRID: i64 = 1000;
/// How far a page is scrolled when nothing is said, by the newer and the older functions.
const USUAL_SCROLL: (i64, i64) = (300, 800);

pub(super) fn encode(name: &str, model: &str, body: &mut Map<String, Value>, failed: impl Fn(&str) -> bool) {
    let tools = body.get_mut("tools").and_then(Value::as_array_mut);
    if let Some(tools) = tools {
        for tool in tools.iter_mut() {
            if let Some(Value::Array(functions)) = tool.get_mut("functionDeclarations") {
                functions.retain(|function| function.get("name").is_none_or(|own| own != name));
            }
        }
        tools.retain(|tool| {
            tool.get("functionDeclarations").and_then(Value::as_array).is_none_or(|list| !list.is_empty())
        });
        tools.push(json!({"computerUse": {"environment": environment(model)}}));
    }
    let chosen = body.get_mut("toolConfig").and_then(|config| config.get_mut("functionCallingConfig"));
    if let Some(Value::Object(config)) = chosen {
        // Names of functions that are not declared are refused.
        let names = config.get("allowedFunctionNames").and_then(Value::as_array);
        if names.is_some_and(|names| names.iter().any(|own| own == name)) {
            config.shift_remove("allowedFunctionNames");
        }
    }
    let mut theirs: HashMap<String, (Value, bool)> = HashMap::new();
    let contents = body.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        let parts = content.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(Value::Object(call)) = part.get_mut("functionCall") {
                let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                let Some(Value::Object(kept)) = call.shift_remove(KEPT) else { continue };
                let asked = kept.get("args").is_some_and(|args| args.get("safety_decision").is_some());
                theirs.insert(id, (kept.get("name").cloned().unwrap_or_default(), asked));
                call.extend(kept);
            }
            if let Some(Value::Object(response)) = part.get_mut("functionResponse") {
                let id = response.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                let Some((name, asked)) = theirs.get(&id) else { continue };
                response.insert("name".to_owned(), name.clone());
                if let Some(Value::Object(fields)) = response.get_mut("response") {
                    fields.entry("url").or_insert_with(|| "".into());
                    if *asked && !failed(&id) {
                        fields.insert("safety_acknowledgement".to_owned(), "true".into());
                    }
                }
            }
        }
    }
}

/// What a model takes for its surroundings. Those before 3.5 know browsers only.
fn environment(model: &str) -> &'static str {
    let version = model.rsplit_once("gemini-").map_or("", |(_, version)| version);
    let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().ok());
    let number = (numbers.next().flatten(), numbers.next().flatten().unwrap_or_default());
    match number {
        (Some(major), minor) if (major, minor) < (3, 5) => "ENVIRONMENT_BROWSER",
        _ => "ENVIRONMENT_DESKTOP",
    }
}

pub(super) fn call(
    name: &str,
    arguments: &Value,
    kept: &Map<String, Value>,
    size: (i64, i64),
) -> Option<(Value, Map<String, Value>)> {
    let mut actions = Vec::new();
    let decision = arguments.get("safety_decision");
    let asks = decision.and_then(|decision| decision.get("decision")).and_then(Value::as_str);
    if asks.is_some_and(|asks| asks != "regular" && asks != "allowed") {
        let words =
            decision.and_then(|decision| decision.get("explanation")).filter(|words| words.is_string());
        let message = words.cloned().unwrap_or_else(|| "the model asks for a confirmation".into());
        actions.push(action("confirm", [("code", asks.map(Value::from)), ("message", Some(message))]));
    }
    actions.extend(own_actions(name, arguments, size)?);
    let mut kept = kept.clone();
    // It goes back as it came.
    let inside = kept.entry("functionCall").or_insert_with(|| Value::Object(Map::new()));
    if let Some(inside) = inside.as_object_mut() {
        inside.insert(KEPT.to_owned(), json!({"name": name, "args": arguments}));
    }
    Some((arguments_of(actions), kept))
}

/// The actions that a function stands for. `None` for a function that is not one of these.
fn own_actions(name: &str, theirs: &Value, (width, height): (i64, i64)) -> Option<Vec<Value>> {
    let field = |key: &str| theirs.get(key).filter(|value| !value.is_null()).cloned();
    let number =
        |key: &str| theirs.get(key).and_then(|value| value.as_i64().or_else(|| Some(value.as_f64()? as i64)));
    // The middle of a step of the grid, inside of the picture.
    let along = |at: i64, side: i64| ((2 * at.clamp(-1, GRID) + 1) * side / (2 * GRID)).clamp(0, side - 1);
    let place =
        |x: &str, y: &str| number(x).zip(number(y)).map(|(x, y)| json!([along(x, width), along(y, height)]));
    let at = || place("x", "y");
    let one = |name: &str| vec![action(name, [("coordinate", at())])];
    let scroll = |usual: i64, place: Option<Value>| {
        let pixels = number("magnitude_in_pixels").or_else(|| number("magnitude")).unwrap_or(usual);
        let amount = number("magnitude_in_wheel_clicks").unwrap_or_else(|| notches(pixels));
        let amount = ("scroll_amount", Some(amount.into()));
        vec![action("scroll", [("coordinate", place), ("scroll_direction", field("direction")), amount])]
    };
    let key = |text: Option<Value>| vec![action("key", [("text", text)])];
    let wait = |seconds: Value| vec![action("wait", [("duration", Some(seconds))])];
    Some(match name {
        "click" | "click_at" => one("left_click"),
        "double_click" => one("double_click"),
        "triple_click" => one("triple_click"),
        "middle_click" => one("middle_click"),
        "right_click" => one("right_click"),
        "mouse_down" => one("left_mouse_down"),
        "mouse_up" => one("left_mouse_up"),
        "move" | "hover_at" => one("mouse_move"),
        "type" => vec![action(
            "type",
            [("text", field("text")), ("coordinate", at()), ("press_enter", field("press_enter"))],
        )],
        "type_text_at" => {
            let usual = |key: &str| Some(field(key).unwrap_or(Value::Bool(true)));
            let fields = [
                ("text", field("text")),
                ("coordinate", at()),
                ("clear", usual("clear_before_typing")),
                ("press_enter", usual("press_enter")),
            ];
            vec![action("type", fields)]
        }
        "drag_and_drop" => {
            let (start, end) = match number("start_x") {
                Some(_) => (place("start_x", "start_y"), place("end_x", "end_y")),
                None => (at(), place("destination_x", "destination_y")),
            };
            vec![action("left_click_drag", [("start_coordinate", start), ("coordinate", end)])]
        }
        "scroll" => scroll(USUAL_SCROLL.0, at()),
        "scroll_at" => scroll(USUAL_SCROLL.1, at()),
        "scroll_document" => scroll(USUAL_SCROLL.1, Some(json!([width / 2, height / 2]))),
        "press_key" => key(combination(theirs.get("key"))),
        "hotkey" | "key_combination" => key(combination(theirs.get("keys"))),
        "key_down" => vec![action("key_down", [("text", field("key"))])],
        "key_up" => vec![action("key_up", [("text", field("key"))])],
        "wait" => wait(field("seconds").unwrap_or_else(|| 1.into())),
        "wait_5_seconds" => wait(5.into()),
        "take_screenshot" => vec![action("screenshot", [])],
        "open_web_browser" => vec![action("open_web_browser", [])],
        "navigate" => vec![action("navigate", [("text", field("url"))])],
        "search" => vec![action("navigate", [("text", Some("https://www.google.com".into()))])],
        "go_back" => key(Some("alt+Left".into())),
        "go_forward" => key(Some("alt+Right".into())),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_covers_the_picture_and_nothing_more() {
        let click = |x: i64, y: i64| {
            let actions = own_actions("click", &json!({"x": x, "y": y}), (1280, 800)).unwrap();
            actions[0]["coordinate"].clone()
        };
        assert_eq!(click(0, 0), json!([0, 0]));
        assert_eq!(click(999, 999), json!([1279, 799]));
        assert_eq!(click(1000, 1000), json!([1279, 799]));
        assert_eq!(click(-5, i64::MAX), json!([0, 799]));
        assert_eq!(click(500, 500), json!([640, 400]));
        for at in 0..1000 {
            let x = click(at, at)[0].as_i64().unwrap();
            assert!((x * 1000 / 1280 - at).abs() <= 1, "{at} {x}");
        }
    }

    #[test]
    fn models_before_3_5_are_told_of_a_browser() {
        for (model, expected) in [
            ("gemini-2.5-computer-use-preview-10-2025", "ENVIRONMENT_BROWSER"),
            ("gemini-3-flash-preview", "ENVIRONMENT_BROWSER"),
            ("gemini-3.1-pro", "ENVIRONMENT_BROWSER"),
            ("gemini-3.5-flash", "ENVIRONMENT_DESKTOP"),
            ("gemini-3.8-flash", "ENVIRONMENT_DESKTOP"),
            ("gemini-4-flash", "ENVIRONMENT_DESKTOP"),
            ("gemini-flash-latest", "ENVIRONMENT_DESKTOP"),
        ] {
            assert_eq!(environment(model), expected, "{model}");
        }
    }
}
