//! Tools as values: copies in other words, tools made of any function, and tools chosen by category.

use serde::Deserialize;
use toolwright::content::ToolCall;
use toolwright::tool::ToolDef;
use toolwright::{Run, ToolContext, Toolset, json, tool};

/// Adds two numbers.
#[tool(read_only)]
async fn addition(
    /// First number to add.
    x: i64,
    /// Second number to add.
    y: i64,
) -> i64 {
    x + y
}

/// A function that knows nothing of tools.
fn power(base: i64, exponent: u32) -> Option<i64> {
    base.checked_pow(exponent)
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Power {
    base: i64,
    exponent: u32,
}

fn tell(tools: &Toolset) {
    for spec in tools.specs() {
        println!("  {}: {}", spec.name, spec.description);
        for (name, schema) in spec.parameters["properties"].as_object().into_iter().flatten() {
            println!("    {name}: {}", schema["description"].as_str().unwrap_or("-"));
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("# a tool, and a copy of it in other words");
    let my_add = addition()
        .with_name("my_add")
        .with_description("a tool to add numbers")
        .describe_parameter("x", "the x argument")?
        .describe_parameter("y", "the y argument")?;
    tell(&Toolset::of((addition(), my_add.clone()))?);

    println!("# a tool made of a function: its types are the schema");
    let power =
        ToolDef::typed("power", "A tool to raise numbers", |_: ToolContext, given: Power| async move {
            power(given.base, given.exponent)
        })
        .describe_parameter("exponent", "how often the base is multiplied")?;
    tell(&Toolset::of(power.clone())?);

    println!("# tools by category");
    let tools = Toolset::of((
        my_add.with_category("sums"),
        addition().with_category("sums"),
        power.with_category("powers"),
    ))?;
    for category in tools.categories() {
        let names: Vec<_> =
            tools.clone().in_category(&category).specs().iter().map(|spec| spec.name.clone()).collect();
        println!("  {category}: {}", names.join(", "));
    }

    // A model can only call what its run offers.
    let run = Run::builder(tools.in_category("powers")).build()?;
    for (name, arguments) in
        [("power", json!({"base": 2, "exponent": 10})), ("my_add", json!({"x": 1, "y": 1}))]
    {
        println!("{}", run.call(ToolCall::new("call_1", name, arguments)).await?.to_text());
    }
    Ok(())
}
