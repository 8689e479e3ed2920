//! A file of YAML tools in a Rust program: parse, check, open, run. Flows call the program's own functions.

use toolwright::content::ToolCall;
use toolwright::file::{Caller, KnownTools, Session, ToolFile};
use toolwright::lang::Source;
use toolwright::{Toolset, json, tool};

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
    let own = Toolset::of(price())?;
    let known = KnownTools::new().builtins(own);
    // A mistake in a section of the file would be an error here, with its location; all of them at once.
    let file = ToolFile::parse(Source::text("bill.yaml", FILE))?;
    // Everything that can be known without starting anything: here, nothing is wrong.
    assert!(file.check(&known).is_empty());
    // Opening starts what is needed: MCP servers, sandboxes. This file needs none.
    let session = Session::builder(file).known(known).open().await?;
    // The run keeps to what the file says about runs: its policy, its limits, its sandbox.
    let run = session.run(Caller::Model).build()?;
    let order = json!({"order": {"nails": 100, "hammer": 2}});
    println!("{}", run.call(ToolCall::new("1", "bill", order.clone())).await?.to_text());
    // It took three calls, with those the flow made; five is all the file allows.
    println!("{}", run.call(ToolCall::new("2", "bill", order)).await?.to_text());
    Ok(())
}
