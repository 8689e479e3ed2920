//! What was spent: tokens and money, as a person reads it.

use std::collections::BTreeMap;

use toolwright::model::Usage;
use toolwright_core::text::{count, money};

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
}
