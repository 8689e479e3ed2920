//! What tokens cost. Prices change, so the built-in table can be overridden:
//! [`ModelSettings::price`](crate::ModelSettings::price), `price` in a file's `models`, or
//! `TOOLWRIGHT_PRICE`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use toolwright_core::Usage;

use crate::vendor::Vendor;

/// The prices this version knows.
const TABLE: &str = include_str!("prices.txt");

/// What a million tokens cost, in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Read.
    #[serde(alias = "input_tokens_per_million")]
    pub input: f64,
    /// Written, reasoning included.
    #[serde(alias = "output_tokens_per_million")]
    pub output: f64,
    /// Read from a cache; defaults to `input`.
    #[serde(default, alias = "cache_read_tokens_per_million", skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Written to a cache; defaults to `input`.
    #[serde(default, alias = "cache_write_tokens_per_million", skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// What a request costs that reads very much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// What a million tokens cost in a request that reads more than `above` tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `Price`")]
pub struct LongPrice {
    pub above: u64,
    pub input: f64,
    pub output: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// For models on one's own machine.
    pub const FREE: Price =
        Price { input: 0.0, output: 0.0, cache_read: None, cache_write: None, long: None };

    /// The price of a vendor's model, when this version knows it. A dated name (`gpt-5-2025-08-07`) costs
    /// what the name without the date does; a name that is merely longer is another model.
    pub fn find(vendor: &Vendor, model: &str) -> Option<Price> {
        let (vendor, model) = match vendor.name {
            "ollama" | "vllm" | "llama.cpp" => return Some(Price::FREE),
            "openai-chat" => ("openai", model),
            "bedrock" | "bedrock-invoke" => ("bedrock", bedrock_name(model)),
            name => (name, model),
        };
        let rows = rows().filter(|row| row.vendor == vendor && same_model(row.model, model));
        rows.max_by_key(|row| row.model.len()).map(|row| row.price)
    }

    /// Reads `3,15` or `3,15,0.3,3.75`: input, output, cache read, cache write.
    pub fn parse(text: &str) -> Option<Price> {
        let numbers =
            text.split(',').map(|part| part.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0));
        match numbers.collect::<Option<Vec<f64>>>()?.as_slice() {
            [input, output, rest @ ..] if rest.len() <= 2 => Some(Price {
                input: *input,
                output: *output,
                cache_read: rest.first().copied(),
                cache_write: rest.get(1).copied(),
                long: None,
            }),
            _ => None,
        }
    }

    /// What one request cost, in dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let long = self.long.filter(|long| usage.input_tokens > long.above);
        let (input, output, cache_read, cache_write) = match long {
            Some(long) => (long.input, long.output, long.cache_read, long.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        let plain = usage
            .input_tokens
            .saturating_sub(usage.cache_read_tokens)
            .saturating_sub(usage.cache_write_tokens);
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine thousand billion tokens")]
        let dollars = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        dollars(plain, input)
            + dollars(usage.cache_read_tokens, cache_read.unwrap_or(input))
            + dollars(usage.cache_write_tokens, cache_write.unwrap_or(input))
            + dollars(usage.output_tokens, output)
    }
}

struct Row {
    vendor: &'static str,
    model: &'static str,
    price: Price,
}

fn rows() -> impl Iterator<Item = Row> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(row)
}

fn row(line: &'static str) -> Option<Row> {
    let mut words = line.split(' ');
    let (vendor, model) = (words.next()?, words.next()?);
    let numbers: Vec<Option<f64>> = words.map(|word| word.parse().ok()).collect();
    let rates = |from: usize| {
        let at = |index: usize| numbers.get(from + index).copied().flatten();
        Some((at(0)?, at(1)?, at(2), at(3)))
    };
    let (input, output, cache_read, cache_write) = rates(0)?;
    let long = numbers.get(4).copied().flatten().zip(rates(5));
    let long = long.map(|(above, (input, output, cache_read, cache_write))| LongPrice {
        above: above as u64,
        input,
        output,
        cache_read,
        cache_write,
    });
    Some(Row { vendor, model, price: Price { input, output, cache_read, cache_write, long } })
}

/// Whether `model` is `known`, or a dated or numbered edition of it.
fn same_model(known: &str, model: &str) -> bool {
    let Some(rest) = model.strip_prefix(known) else { return false };
    let Some(edition) = rest.strip_prefix(['-', '@', ':']) else { return rest.is_empty() };
    let digits = edition.bytes().take_while(u8::is_ascii_digit).count();
    let version =
        edition.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    edition == "latest" || digits >= 4 || version
}

/// A model of Bedrock without its region: `us.anthropic.claude-...`, or the ARN of an inference profile.
fn bedrock_name(model: &str) -> &str {
    let model = model.rsplit_once('/').map_or(model, |(_, last)| last);
    let vendors = ["anthropic.", "amazon."];
    vendors.iter().find_map(|vendor| model.get(model.find(vendor)?..)).unwrap_or(model)
}

/// The reference page about prices, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Prices\n\n\
         A run whose cost is limited (`limits: {cost: 0.50}`) needs the price of its model. This version knows the prices\n\
         below: dollars for a million tokens, as public lists had them in October 2026. They are a help, not an invoice.\n\n\
         A model that is not listed has no price, and a run whose cost is limited refuses to ask it. Prices are set in a\n\
         file's [`models`](../guide/models.md#in-a-file), with `ModelSettings::price`, or for whatever model is used:\n\n\
         ```sh\n\
         export TOOLWRIGHT_PRICE=3,15,0.3,3.75   # input, output, cache read, cache write\n\
         ```\n\n\
         Models on your own machine (`ollama`, `vllm`, `llama.cpp`) are free. Reasoning counts as output. Requests that read\n\
         more than the tokens in the last column cost what stands there.\n\n\
         | vendor | model | input | output | cache read | cache write | long requests |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let or_input =
        |price: Option<f64>| price.map_or_else(|| "as input".to_owned(), |price| price.to_string());
    for Row { vendor, model, price } in rows() {
        let long = price.long.map_or_else(String::new, |long| {
            format!("over {}: {} and {}", long.above, long.input, long.output)
        });
        let (read, write) = (or_input(price.cache_read), or_input(price.cache_write));
        let _ = writeln!(
            page,
            "| {vendor} | `{model}` | {} | {} | {read} | {write} | {long} |",
            price.input, price.output
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::find;

    fn price(vendor: &str, model: &str) -> Option<f64> {
        Price::find(find(vendor).unwrap(), model).map(|price| price.input)
    }

    #[test]
    fn editions_cost_what_their_model_costs_and_other_models_do_not() {
        assert_eq!(price("anthropic", "claude-sonnet-4-5"), Some(3.0));
        assert_eq!(price("anthropic", "claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(price("anthropic", "claude-sonnet-4-20250514"), Some(3.0));
        assert_eq!(price("anthropic", "claude-opus-4-1"), Some(15.0));
        assert_eq!(price("anthropic", "claude-opus-4-5"), Some(5.0));
        assert_eq!(price("openai-chat", "gpt-5-mini-2025-08-07"), Some(0.25));
        assert_eq!(price("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some(3.0));
        assert_eq!(price("bedrock-invoke", "anthropic.claude-opus-4-6-v1"), Some(5.0));
        assert_eq!(
            price("bedrock", "arn:aws:bedrock:us-east-1:1:inference-profile/eu.amazon.nova-pro-v1:0"),
            Some(0.8)
        );
        assert_eq!(price("llama.cpp", "anything"), Some(0.0));
        for unknown in ["gpt-5.99", "gpt-5-giga", "gpt-50", ""] {
            assert_eq!(price("openai", unknown), None, "{unknown}");
        }
        assert_eq!(price("openrouter", "anthropic/claude-sonnet-4.5"), None);
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(rows().count(), lines.count());
        assert!(
            rows()
                .all(|row| crate::vendor::find(row.vendor).is_some() && row.price.output >= row.price.input)
        );
    }

    #[test]
    fn cached_tokens_cost_less_and_long_requests_more() {
        let price =
            Price { cache_read: Some(0.3), cache_write: Some(3.75), ..Price::parse("3, 15").unwrap() };
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cache_read_tokens: 800_000,
            cache_write_tokens: 100_000,
            reasoning_tokens: 50_000,
        };
        assert!((price.cost(&usage) - (0.3 + 0.24 + 0.375 + 1.5)).abs() < 1e-9);
        let long = LongPrice {
            above: 200_000,
            input: 6.0,
            output: 22.5,
            cache_read: Some(0.6),
            cache_write: Some(7.5),
        };
        let price = Price { long: Some(long), ..price };
        assert!((price.cost(&usage) - (0.6 + 0.48 + 0.75 + 2.25)).abs() < 1e-9);
        assert_eq!(price.cost(&Usage { cache_read_tokens: 5, ..Usage::default() }), 5.0 * 0.3 / 1e6);
        for bad in ["", "3", "3,x", "-1,2", "NaN,1", "1,2,3,4,5"] {
            assert_eq!(Price::parse(bad), None, "{bad}");
        }
    }
}
