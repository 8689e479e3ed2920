//! What is shown.

use std::collections::BTreeMap;

/// The settings of `/display`, where llm-workers has them under its names.
#[derive(Debug, Clone)]
pub struct Display {
    pub show_token_usage: bool,
    pub show_reasoning: bool,
    pub markdown_output: bool,
    pub stream: bool,
    pub show_changed_files: bool,
}

pub const NAMES: &[&str] =
    &["show_token_usage", "show_reasoning", "markdown_output", "stream", "show_changed_files"];

impl Default for Display {
    fn default() -> Self {
        Display {
            show_token_usage: true,
            show_reasoning: false,
            markdown_output: true,
            stream: true,
            show_changed_files: true,
        }
    }
}

impl Display {
    /// With the person's own settings.
    pub fn of(settings: &BTreeMap<String, bool>) -> Self {
        let mut display = Self::default();
        for (name, on) in settings {
            if let Some(setting) = display.setting(name) {
                *setting = *on;
            }
        }
        display
    }

    /// Each setting by name.
    pub fn all(&mut self) -> Vec<(&'static str, bool)> {
        NAMES.iter().map(|name| (*name, self.setting(name).is_some_and(|setting| *setting))).collect()
    }

    fn setting(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "show_token_usage" => Some(&mut self.show_token_usage),
            "show_reasoning" => Some(&mut self.show_reasoning),
            "markdown_output" => Some(&mut self.markdown_output),
            "stream" => Some(&mut self.stream),
            "show_changed_files" => Some(&mut self.show_changed_files),
            _ => None,
        }
    }

    /// Carries out `/display`; says what there is now, or what was wrong.
    pub fn command(&mut self, text: &str) -> String {
        let mut words = text.split_whitespace();
        let Some(name) = words.next() else {
            let lines = NAMES.iter().map(|name| {
                let on = self.setting(name).is_some_and(|setting| *setting);
                format!("{name}: {}", if on { "on" } else { "off" })
            });
            return lines.collect::<Vec<_>>().join("\n");
        };
        let Some(setting) = self.setting(name) else {
            return format!("there is no setting `{name}`; there are {}", NAMES.join(", "));
        };
        match words.next() {
            None => *setting = !*setting,
            Some("true" | "1" | "on" | "yes") => *setting = true,
            Some("false" | "0" | "off" | "no") => *setting = false,
            Some(other) => return format!("`{other}` is neither on nor off"),
        }
        format!("{name}: {}", if *setting { "on" } else { "off" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_turned_on_and_off() {
        let mut display = Display::default();
        assert_eq!(display.command("show_reasoning yes"), "show_reasoning: on");
        assert_eq!(display.command("show_reasoning"), "show_reasoning: off");
        assert!(display.command("colour").contains("there is no setting `colour`"));
        assert_eq!(display.command("stream maybe"), "`maybe` is neither on nor off");
    }
}
