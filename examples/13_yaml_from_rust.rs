//! A file of YAML tools in a Rust program: flows call the program's own functions, and are called like them.

use serde_json::json;
use toolwright::file::ToolFile;
use toolwright::lang::{Host, Source};
use toolwright::{ToolCall, Toolset, tool};

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
policy:
  - { tools: [price, bill], decision: approve }
limits: { tool_calls: 5 }
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Toolset::new().with(price())?;
    // A mistake in the file would be told here, with its place; all of them at once.
    let file = ToolFile::load(Source::text("bill.yaml", FILE), Host::new().builtins(own))?;
    // The run keeps to what the file says about runs: its policy, its limits, its sandbox.
    let run = file.run().await?.build()?;
    let order = json!({"order": {"nails": 100, "hammer": 2}});
    println!("{}", run.call(ToolCall::new("1", "bill", order.clone())).await?.to_text());
    // It took three calls, with those the flow made; five is all the file allows.
    println!("{}", run.call(ToolCall::new("2", "bill", order)).await?.to_text());
    Ok(())
}
