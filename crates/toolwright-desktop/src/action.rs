//! One thing to do on a desktop. Every way to say it, of ours, of Inspect and of the vendors, ends here.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::ToolError;
use toolwright_core::text::clip;

use crate::keys::combinations;
use crate::scale::Point;

/// The actions of Inspect, in its order.
pub(crate) const NAMES: [&str; 21] = [
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
    "back_click",
    "forward_click",
    "double_click",
    "triple_click",
    "scroll",
    "wait",
    "screenshot",
    "zoom",
    "open_web_browser",
    "navigate",
];

/// The most actions of one call.
pub(crate) const MAX_ACTIONS: usize = 100;
/// The longest `wait` or `hold_key`, in seconds.
const MAX_DURATION: f64 = 100.0;
/// The most notches of a wheel.
const MAX_SCROLL: u32 = 200;
/// The most places of a path.
const MAX_PATH: usize = 200;

/// An action, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Key {
        combinations: Vec<Vec<u32>>,
        repeat: u32,
    },
    HoldKey {
        keys: Vec<u32>,
        duration: Duration,
    },
    /// Presses keys and leaves them down, or releases them.
    HoldDown {
        keys: Vec<u32>,
        down: bool,
    },
    Type {
        text: String,
        at: Option<Point>,
        clear: bool,
        press_enter: bool,
    },
    CursorPosition,
    Move {
        to: Point,
        keys: Vec<u32>,
    },
    ButtonDown {
        button: u8,
        at: Option<Point>,
    },
    ButtonUp {
        button: u8,
        at: Option<Point>,
    },
    Click {
        button: u8,
        count: u32,
        at: Option<Point>,
        keys: Vec<u32>,
    },
    Drag {
        path: Vec<Point>,
        keys: Vec<u32>,
    },
    /// Turns the wheel that many notches; `button` stands for its direction.
    Scroll {
        button: u8,
        amount: u32,
        at: Option<Point>,
        keys: Vec<u32>,
    },
    Wait {
        duration: Duration,
    },
    Screenshot,
    Zoom {
        region: [i32; 4],
    },
    OpenWebBrowser,
    Navigate {
        url: String,
    },
    /// The screen as text.
    Read,
    /// Clicks on an element of the text.
    ClickRef {
        reference: String,
    },
    /// A question that a vendor wants a person to answer before anything else is done.
    Confirm {
        code: Option<String>,
        message: String,
    },
}

/// An action as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionArguments {
    pub(crate) action: Option<String>,
    coordinate: Option<Vec<i64>>,
    duration: Option<f64>,
    region: Option<Vec<i64>>,
    scroll_amount: Option<i64>,
    scroll_direction: Option<String>,
    start_coordinate: Option<Vec<i64>>,
    text: Option<String>,
    repeat: Option<i64>,
    press_enter: Option<bool>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The places of a drag, when there are more than two.
    path: Option<Vec<Vec<i64>>>,
    /// Whether what is in a field is replaced by what is typed.
    clear: Option<bool>,
    /// The class of a question.
    code: Option<String>,
    /// The question.
    message: Option<String>,
}

impl ActionArguments {
    /// One action of a list.
    pub(crate) fn read(value: &Value) -> Result<ActionArguments, ToolError> {
        serde_json::from_value(value.clone())
            .map_err(|error| ToolError::invalid(format!("this is not an action: {error}")))
    }

    pub(crate) fn check(self) -> Result<Action, ToolError> {
        let name = self.action.clone().ok_or_else(|| missing("action"))?;
        Ok(match name.as_str() {
            "key" => {
                let repeat = self.repeat.unwrap_or(1);
                let fits = u32::try_from(repeat).ok().filter(|repeat| (1..=100).contains(repeat));
                let wrong = || ToolError::invalid(format!("repeat must be between 1 and 100 (got {repeat})"));
                Action::Key { repeat: fits.ok_or_else(wrong)?, combinations: combinations(&self.text()?)? }
            }
            "hold_key" => Action::HoldKey { keys: keys(&self.text()?)?, duration: self.duration()? },
            "key_down" | "key_up" => {
                Action::HoldDown { keys: keys(&self.text()?)?, down: name == "key_down" }
            }
            "type" => Action::Type {
                text: self.text()?,
                at: self.at()?,
                clear: self.clear.unwrap_or_default(),
                press_enter: self.press_enter.unwrap_or_default(),
            },
            "cursor_position" => Action::CursorPosition,
            "mouse_move" => {
                let to = self.at()?.ok_or_else(|| missing("coordinate"))?;
                Action::Move { to, keys: self.held()? }
            }
            "left_mouse_down" => Action::ButtonDown { button: 1, at: self.at()? },
            "left_mouse_up" => Action::ButtonUp { button: 1, at: self.at()? },
            "left_click" => self.click(1, 1)?,
            "middle_click" => self.click(2, 1)?,
            "right_click" => self.click(3, 1)?,
            "back_click" => self.click(8, 1)?,
            "forward_click" => self.click(9, 1)?,
            "double_click" => self.click(1, 2)?,
            "triple_click" => self.click(1, 3)?,
            "left_click_drag" => Action::Drag { keys: self.held()?, path: self.path()? },
            "scroll" => {
                let amount = self.scroll_amount.ok_or_else(|| missing("scroll_amount"))?;
                let fits = u32::try_from(amount).ok().filter(|amount| *amount <= MAX_SCROLL);
                let wrong = || {
                    ToolError::invalid(format!(
                        "scroll_amount must be between 0 and {MAX_SCROLL} (got {amount})"
                    ))
                };
                let button =
                    match self.scroll_direction.as_deref().ok_or_else(|| missing("scroll_direction"))? {
                        "up" => 4,
                        "down" => 5,
                        "left" => 6,
                        "right" => 7,
                        other => {
                            return Err(ToolError::invalid(format!(
                                "scroll_direction must be up, down, left or right (got {})",
                                shown(other)
                            )));
                        }
                    };
                Action::Scroll { button, amount: fits.ok_or_else(wrong)?, at: self.at()?, keys: self.held()? }
            }
            "wait" => Action::Wait { duration: self.duration()? },
            "screenshot" => Action::Screenshot,
            "zoom" => {
                let region = self.region.as_deref().ok_or_else(|| missing("region"))?;
                let numbers: Option<Vec<i32>> =
                    region.iter().map(|number| i32::try_from(*number).ok()).collect();
                let wrong = || ToolError::invalid("region must be [x0, y0, x1, y1]");
                let region = numbers.and_then(|numbers| <[i32; 4]>::try_from(numbers).ok());
                Action::Zoom { region: region.ok_or_else(wrong)? }
            }
            "open_web_browser" => Action::OpenWebBrowser,
            "navigate" => Action::Navigate { url: self.text()? },
            "read" => Action::Read,
            "click_ref" => Action::ClickRef { reference: self.reference.ok_or_else(|| missing("ref"))? },
            "confirm" => {
                Action::Confirm { code: self.code, message: self.message.ok_or_else(|| missing("message"))? }
            }
            other => return Err(ToolError::invalid(format!("Invalid action: {}", shown(other)))),
        })
    }

    fn text(&self) -> Result<String, ToolError> {
        self.text.clone().ok_or_else(|| missing("text"))
    }

    fn duration(&self) -> Result<Duration, ToolError> {
        let seconds = self.duration.ok_or_else(|| missing("duration"))?;
        let fits = (0.0..=MAX_DURATION).contains(&seconds);
        let duration = Duration::try_from_secs_f64(seconds).ok().filter(|_| fits);
        duration.ok_or_else(|| {
            ToolError::invalid(format!("duration must be between 0 and {MAX_DURATION} (got {seconds})"))
        })
    }

    fn at(&self) -> Result<Option<Point>, ToolError> {
        self.coordinate.as_deref().map(|numbers| place(numbers, "coordinate")).transpose()
    }

    /// The keys that are held during a mouse action.
    fn held(&self) -> Result<Vec<u32>, ToolError> {
        self.text.as_deref().filter(|text| !text.is_empty()).map_or_else(|| Ok(Vec::new()), keys)
    }

    fn click(self, button: u8, count: u32) -> Result<Action, ToolError> {
        Ok(Action::Click { button, count, at: self.at()?, keys: self.held()? })
    }

    fn path(&self) -> Result<Vec<Point>, ToolError> {
        if let Some(path) = &self.path {
            if path.len() < 2 || path.len() > MAX_PATH {
                return Err(ToolError::invalid(format!("path must have 2 to {MAX_PATH} places")));
            }
            return path.iter().map(|numbers| place(numbers, "path")).collect();
        }
        let start = self.start_coordinate.as_deref().ok_or_else(|| missing("start_coordinate"))?;
        let end = self.at()?.ok_or_else(|| missing("coordinate"))?;
        Ok(vec![place(start, "start_coordinate")?, end])
    }
}

/// The one combination of a text.
fn keys(text: &str) -> Result<Vec<u32>, ToolError> {
    let mut all = combinations(text)?;
    match (all.pop(), all.is_empty()) {
        (Some(keys), true) => Ok(keys),
        _ => Err(ToolError::invalid("`text` must name one key or combination")),
    }
}

fn place(numbers: &[i64], name: &str) -> Result<Point, ToolError> {
    let wrong = || ToolError::invalid(format!("{name} must be [x, y]"));
    let [x, y] = numbers else { return Err(wrong()) };
    let number = |number: &i64| i32::try_from(*number).map_err(|_| wrong());
    Ok(Point { x: number(x)?, y: number(y)? })
}

fn missing(name: &str) -> ToolError {
    ToolError::invalid(format!("{name} must be provided"))
}

fn shown(word: &str) -> String {
    clip(word, 40).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(value: Value) -> String {
        let checked = ActionArguments::read(&value).and_then(ActionArguments::check);
        checked.unwrap_err().message().to_owned()
    }

    #[test]
    fn what_is_missing_is_named_as_inspect_does() {
        for (given, expected) in [
            (json!({"action": "key"}), "text must be provided"),
            (json!({"action": "type"}), "text must be provided"),
            (json!({"action": "hold_key", "text": "a"}), "duration must be provided"),
            (json!({"action": "navigate"}), "text must be provided"),
            (json!({"action": "mouse_move"}), "coordinate must be provided"),
            (json!({"action": "mouse_move", "coordinate": [1]}), "coordinate must be [x, y]"),
            (json!({"action": "key", "text": "a", "repeat": 0}), "repeat must be between 1 and 100 (got 0)"),
            (
                json!({"action": "key", "text": "a", "repeat": 101}),
                "repeat must be between 1 and 100 (got 101)",
            ),
            (json!({"action": "left_click_drag", "coordinate": [1, 2]}), "start_coordinate must be provided"),
            (json!({"action": "scroll", "scroll_amount": 1}), "scroll_direction must be provided"),
            (json!({"action": "scroll", "scroll_direction": "up"}), "scroll_amount must be provided"),
            (json!({"action": "zoom"}), "region must be provided"),
            (json!({"action": "zoom", "region": [1, 2, 3]}), "region must be [x0, y0, x1, y1]"),
            (json!({"action": "fly"}), "Invalid action: fly"),
            (json!({}), "action must be provided"),
        ] {
            assert_eq!(message(given.clone()), expected, "{given}");
        }
        for wrong in [
            json!({"action": "wait", "duration": -1}),
            json!({"action": "wait", "duration": 1e30}),
            json!({"action": "wait", "duration": 101}),
            json!({"action": "scroll", "scroll_amount": -1, "scroll_direction": "up"}),
            json!({"action": "scroll", "scroll_amount": 1, "scroll_direction": "out"}),
            json!({"action": "mouse_move", "coordinate": [1e18 as i64, 0]}),
            json!({"action": "left_click", "text": "ctrl+k ctrl+c"}),
            json!({"action": "left_click", "cordinate": [1, 2]}),
        ] {
            assert!(!message(wrong).is_empty());
        }
    }

    #[test]
    fn every_name_is_an_action() {
        for name in NAMES {
            let given = json!({
                "action": name, "text": "a", "coordinate": [1, 2], "start_coordinate": [3, 4], "duration": 1,
                "scroll_amount": 1, "scroll_direction": "up", "region": [0, 0, 1, 1],
            });
            assert!(ActionArguments::read(&given).unwrap().check().is_ok(), "{name}");
        }
    }
}
