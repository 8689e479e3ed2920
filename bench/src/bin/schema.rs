//! The schema of a tool made from its types, and arguments checked against it.

use std::hint::black_box;

use serde_json::json;
use toolwright_bench::{nanos, report};
use toolwright_core::schema::{Schema, Strictness, parameters_of, read_arguments};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only read from arguments")]
struct Search {
    /// What to look for.
    query: String,
    /// Where to look.
    #[serde(default)]
    database: Option<String>,
    /// How many hits at the most.
    limit: u32,
    /// What the hits must have.
    #[serde(default)]
    filters: std::collections::BTreeMap<String, String>,
    /// Tags, any of which will do.
    tags: Vec<String>,
    /// How sure to be.
    threshold: f64,
    /// Whether case matters.
    exact: bool,
    /// How to sort.
    order: Order,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Newest,
    Oldest,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = json!({
        "query": "red shoes", "limit": 10, "filters": {"colour": "red"}, "tags": ["a", "b"], "threshold": 0.5,
        "exact": false, "order": "newest"
    });
    let schema = Schema::compile(&parameters_of::<Search>())?;
    let make = nanos(|| {
        black_box(parameters_of::<Search>());
    });
    let check = nanos(|| {
        let valid = schema.validate(arguments.clone(), Strictness::Lenient);
        black_box(valid.and_then(read_arguments::<Search>).is_ok());
    });
    report(&[("make the schema", make), ("validate and read the arguments", check)]);
    Ok(())
}
