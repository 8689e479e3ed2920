//! A file of YAML tools in a Rust program: flows call the program's own functions, and are called like them.

use serde_json::json;
use toolwright::lang::{Host, Source, load};
use toolwright::{Run, ToolCall, Toolset, tool};

/// Looks up what a thing costs.
#[tool(read_only)]
async fn price(
    /// The thing.
    of: String,
) -> f64 {
    if of == "nails" { 0.05 } else { 12.5 }
}

const FILE: &str = r#"
tools:
  - import_tool: price
  - name: bill
    description: Adds up an order.
    input:
      - { name: order, type: dict, description: How many of which thing. }
    do:
      - for_each: ${order}
        do:
          - call: price
            params: { of: "${key}" }
          - eval: "${_ * order[key]}"
        store_as: parts
      - eval: "${sum(parts.values())} for ${len(order)} things"
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Toolset::new().with(price())?;
    let loaded = match load(Source::text("bill.yaml", FILE), &Host::new().builtins(own)) {
        Ok(loaded) => loaded,
        Err(error) => {
            // Every mistake of the file at once, each with its place.
            println!("{error}");
            return Err("the file has mistakes".into());
        }
    };
    let run = Run::builder(loaded.tools().clone()).build()?;
    let order = json!({"order": {"nails": 100, "hammer": 2}});
    println!("{}", run.call(ToolCall::new("1", "bill", order)).await?.to_text());
    Ok(())
}
