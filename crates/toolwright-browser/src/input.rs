//! Mouse and keyboard events, as a person makes them.

use serde_json::{Value, json};
use toolwright_core::ToolError;

use crate::instance::Instance;
use crate::report::quoted;

/// A mouse button.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MouseButton {
    Left,
    Right,
}

impl MouseButton {
    fn name(self) -> &'static str {
        match self {
            MouseButton::Left => "left",
            MouseButton::Right => "right",
        }
    }
}

/// A key with what its event says.
#[derive(Debug, Clone, PartialEq)]
struct KeyStroke {
    key: String,
    code: String,
    number: u32,
    text: Option<String>,
}

/// Keys with a name: the name, its event's code, the number, and what it types.
const NAMED: [(&str, &str, u32, Option<&str>); 24] = [
    ("Enter", "Enter", 13, Some("\r")),
    ("Tab", "Tab", 9, None),
    ("Escape", "Escape", 27, None),
    ("Backspace", "Backspace", 8, None),
    ("Delete", "Delete", 46, None),
    ("Insert", "Insert", 45, None),
    ("ArrowUp", "ArrowUp", 38, None),
    ("ArrowDown", "ArrowDown", 40, None),
    ("ArrowLeft", "ArrowLeft", 37, None),
    ("ArrowRight", "ArrowRight", 39, None),
    ("Home", "Home", 36, None),
    ("End", "End", 35, None),
    ("PageUp", "PageUp", 33, None),
    ("PageDown", "PageDown", 34, None),
    ("Space", "Space", 32, Some(" ")),
    ("ContextMenu", "ContextMenu", 93, None),
    ("Shift", "ShiftLeft", 16, None),
    ("Control", "ControlLeft", 17, None),
    ("Alt", "AltLeft", 18, None),
    ("Meta", "MetaLeft", 91, None),
    ("Pause", "Pause", 19, None),
    ("CapsLock", "CapsLock", 20, None),
    ("PrintScreen", "PrintScreen", 44, None),
    ("ScrollLock", "ScrollLock", 145, None),
];

/// Other names of keys.
const ALIASES: [(&str, &str); 14] = [
    ("return", "Enter"),
    ("esc", "Escape"),
    ("del", "Delete"),
    ("up", "ArrowUp"),
    ("down", "ArrowDown"),
    ("left", "ArrowLeft"),
    ("right", "ArrowRight"),
    ("ctrl", "Control"),
    ("cmd", "Meta"),
    ("command", "Meta"),
    ("super", "Meta"),
    ("option", "Alt"),
    ("page_up", "PageUp"),
    ("page_down", "PageDown"),
];

impl KeyStroke {
    fn named(name: &str) -> Option<KeyStroke> {
        let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
        let wanted = alias.map_or(name, |(_, own)| own);
        if let Some((key, code, number, text)) =
            NAMED.iter().find(|(key, ..)| key.eq_ignore_ascii_case(wanted))
        {
            let key = if *key == "Space" { " " } else { key };
            let text = text.map(str::to_owned);
            return Some(KeyStroke { key: key.to_owned(), code: (*code).to_owned(), number: *number, text });
        }
        let function = wanted.strip_prefix(['F', 'f']).and_then(|number| number.parse::<u32>().ok());
        if let Some(number @ 1..=12) = function {
            let key = format!("F{number}");
            return Some(KeyStroke { key: key.clone(), code: key, number: 111 + number, text: None });
        }
        let mut letters = wanted.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Some(KeyStroke::of(letter)),
            _ => None,
        }
    }

    fn of(letter: char) -> KeyStroke {
        if letter == '\n' {
            let text = Some("\r".to_owned());
            return KeyStroke { key: "Enter".to_owned(), code: "Enter".to_owned(), number: 13, text };
        }
        let upper = letter.to_ascii_uppercase();
        let (code, number) = match upper {
            'A'..='Z' => (format!("Key{upper}"), upper as u32),
            '0'..='9' => (format!("Digit{upper}"), upper as u32),
            ' ' => ("Space".to_owned(), 32),
            _ => (String::new(), 0),
        };
        KeyStroke { key: letter.to_string(), code, number, text: Some(letter.to_string()) }
    }
}

/// The bit of a modifier key.
fn modifier(key: &str) -> u32 {
    match key {
        "Alt" => 1,
        "Control" => 2,
        "Meta" => 4,
        "Shift" => 8,
        _ => 0,
    }
}

/// The keys of a combination such as `Control+Shift+A`; the modifiers first.
fn combination(text: &str) -> Result<Vec<KeyStroke>, ToolError> {
    let text = text.trim();
    let parts: Vec<&str> = if text == "+" { vec!["+"] } else { text.split('+').collect() };
    let keys = parts.iter().map(|part| KeyStroke::named(part.trim())).collect::<Option<Vec<_>>>();
    let keys = keys.filter(|keys| keys.iter().rev().skip(1).all(|key| modifier(&key.key) > 0));
    keys.ok_or_else(|| {
        ToolError::invalid(format!("there is no key {}", quoted(text)))
            .hint("keys are letters, `Enter`, `Tab`, `Escape`, `ArrowDown`, `F5`; combinations `Control+A`")
    })
}

/// Checks the name of a key before anything is done.
pub(crate) fn check_key(text: &str) -> Result<(), ToolError> {
    combination(text).map(|_| ())
}

impl Instance {
    /// Moves the mouse to a place of the visible page.
    pub(crate) async fn move_mouse(&self, session: &str, x: f64, y: f64) -> Result<(), ToolError> {
        let params = json!({"type": "mouseMoved", "x": x, "y": y});
        self.send(session, "Input.dispatchMouseEvent", params).await.map(|_| ())
    }

    /// Clicks at a place of the visible page.
    pub(crate) async fn click(
        &self,
        session: &str,
        (x, y): (f64, f64),
        button: MouseButton,
        count: u32,
    ) -> Result<(), ToolError> {
        self.move_mouse(session, x, y).await?;
        for clicks in 1..=count {
            for (kind, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
                let params = json!({
                    "type": kind, "x": x, "y": y, "button": button.name(), "buttons": buttons, "clickCount": clicks,
                });
                self.send(session, "Input.dispatchMouseEvent", params).await?;
            }
        }
        Ok(())
    }

    /// Drags from one place of the visible page to another.
    pub(crate) async fn drag(
        &self,
        session: &str,
        from: (f64, f64),
        to: (f64, f64),
    ) -> Result<(), ToolError> {
        let event = |kind: &str, (x, y): (f64, f64), buttons: u32| json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
        self.move_mouse(session, from.0, from.1).await?;
        self.send(session, "Input.dispatchMouseEvent", event("mousePressed", from, 1)).await?;
        // Pages begin to drag after a few moves.
        for step in 1..=8 {
            let part = f64::from(step) / 8.0;
            let at = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
            self.send(session, "Input.dispatchMouseEvent", event("mouseMoved", at, 1)).await?;
        }
        self.send(session, "Input.dispatchMouseEvent", event("mouseReleased", to, 0)).await.map(|_| ())
    }

    /// Presses and releases a key or a combination of keys.
    pub(crate) async fn press(&self, session: &str, text: &str) -> Result<(), ToolError> {
        let keys = combination(text)?;
        let mut held = 0;
        for key in &keys {
            held |= modifier(&key.key);
            self.key_event(session, key, true, held).await?;
        }
        for key in keys.iter().rev() {
            held &= !modifier(&key.key);
            self.key_event(session, key, false, held).await?;
        }
        Ok(())
    }

    /// Types a text key by key.
    pub(crate) async fn type_keys(&self, session: &str, text: &str) -> Result<(), ToolError> {
        for letter in text.chars() {
            if letter.is_ascii_graphic() || letter == ' ' || letter == '\n' {
                let key = KeyStroke::of(letter);
                self.key_event(session, &key, true, 0).await?;
                self.key_event(session, &key, false, 0).await?;
            } else {
                self.insert_text(session, &letter.to_string()).await?;
            }
        }
        Ok(())
    }

    /// Puts text where the focus is, as an input method does.
    pub(crate) async fn insert_text(&self, session: &str, text: &str) -> Result<(), ToolError> {
        self.send(session, "Input.insertText", json!({"text": text})).await.map(|_| ())
    }

    async fn key_event(
        &self,
        session: &str,
        key: &KeyStroke,
        down: bool,
        modifiers: u32,
    ) -> Result<(), ToolError> {
        // With a modifier other than Shift a letter is a command, and types nothing.
        let text = key.text.as_ref().filter(|_| modifiers & !8 == 0);
        let kind = match (down, text) {
            (false, _) => "keyUp",
            (true, Some(_)) => "keyDown",
            (true, None) => "rawKeyDown",
        };
        let mut params = json!({
            "type": kind, "key": key.key, "code": key.code, "windowsVirtualKeyCode": key.number, "modifiers": modifiers,
        });
        if let (Some(text), true, Some(params)) = (text, down, params.as_object_mut()) {
            params.insert("text".to_owned(), Value::from(text.as_str()));
        }
        // Editing commands of a keyboard are given by name; headless browsers know no shortcuts.
        if down
            && modifiers & !8 == 2
            && key.key.eq_ignore_ascii_case("a")
            && let Some(params) = params.as_object_mut()
        {
            params.insert("commands".to_owned(), json!(["selectAll"]));
        }
        self.send(session, "Input.dispatchKeyEvent", params).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names_aliases_and_combinations() {
        for good in
            ["Enter", "return", "Control+A", "ctrl+shift+K", "a", "+", "F5", "ArrowDown", "é", "Alt+Left"]
        {
            assert!(combination(good).is_ok(), "{good}");
        }
        for wrong in ["Entr", "A+B", "", "Control+", "F13", "Control+Nope"] {
            assert!(combination(wrong).is_err(), "{wrong}");
        }
        let keys = combination("Control+A").unwrap();
        assert_eq!((keys[0].key.as_str(), keys[1].code.as_str()), ("Control", "KeyA"));
    }
}
