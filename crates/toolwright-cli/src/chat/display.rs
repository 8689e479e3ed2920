//! What is shown, and what was spent.

use std::collections::BTreeMap;

use toolwright::Usage;
use toolwright::text::{count, money};

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

/// What prices are known in.
const CURRENCY: &str = "USD";

/// Tokens and money, model by model.
#[derive(Debug, Default)]
pub struct Spending {
    models: BTreeMap<String, (Usage, Option<f64>)>,
}

impl Spending {
    pub fn add(&mut self, model: &str, usage: Usage, cost: Option<f64>) {
        let (sum, money) = self.models.entry(model.to_owned()).or_default();
        *sum += usage;
        if let Some(cost) = cost {
            *money = Some(money.unwrap_or_default() + cost);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.models.values().all(|(usage, _)| usage.total() == 0)
    }

    /// One line: `Tokens: 1,290 (1,234 in, 56 out, 7 reasoning) | Cache: 100 | $0.0549 USD`.
    pub fn line(&self) -> String {
        let mut sum = Usage::default();
        self.models.values().for_each(|(usage, _)| sum += *usage);
        let cost = self.cost().map(|cost| format!(" | {}", money(cost, CURRENCY))).unwrap_or_default();
        format!("Tokens: {sum}{cost}")
    }

    fn cost(&self) -> Option<f64> {
        let known: Vec<f64> =
            self.models.values().filter_map(|(_, cost)| cost.filter(|cost| *cost > 0.0)).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// The whole account.
    pub fn account(&self) -> String {
        let total: u64 = self.models.values().map(|(usage, _)| usage.total()).sum();
        let mut lines =
            vec![format!("Total Session Tokens: {} total", count(total)), "Per-Model:".to_owned()];
        for (model, (usage, cost)) in &self.models {
            let cost = cost
                .filter(|cost| *cost > 0.0)
                .map(|cost| format!(" → {}", money(cost, CURRENCY)))
                .unwrap_or_default();
            lines.push(format!("  {model}: {usage}{cost}"));
        }
        lines.extend(self.cost().map(|cost| format!("Total Session Cost: {}", money(cost, CURRENCY))));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_is_told_in_one_line_and_in_full() {
        let mut spending = Spending::default();
        let usage = Usage {
            input_tokens: 1234,
            output_tokens: 56,
            cache_read_tokens: 100,
            cache_write_tokens: 0,
            reasoning_tokens: 7,
        };
        spending.add("a/b", usage, Some(0.0549));
        assert_eq!(
            spending.line(),
            "Tokens: 1,290 (1,234 in, 56 out, 7 reasoning) | Cache: 100 | $0.0549 USD"
        );
        insta::assert_snapshot!(spending.account());
    }

    #[test]
    fn settings_are_turned_on_and_off() {
        let mut display = Display::default();
        assert_eq!(display.command("show_reasoning yes"), "show_reasoning: on");
        assert_eq!(display.command("show_reasoning"), "show_reasoning: off");
        assert!(display.command("colour").contains("there is no setting `colour`"));
        assert_eq!(display.command("stream maybe"), "`maybe` is neither on nor off");
    }
}
