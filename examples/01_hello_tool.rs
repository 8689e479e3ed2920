//! A tool is a function with doc comments: they are what a model reads.

use toolwright::content::ToolCall;
use toolwright::{Run, ToolError, Toolset, json, tool};

/// Adds two numbers.
#[tool]
async fn add(
    /// First number.
    x: i64,
    /// Second number.
    #[tool(default = 1)]
    y: i64,
) -> Result<i64, ToolError> {
    x.checked_add(y).ok_or_else(|| ToolError::new("the sum is too large").hint("use smaller numbers"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Toolset::of(add())?;
    println!("the model is told: {}", serde_json::to_string(&tools.specs()[0].parameters["properties"])?);

    let run = Run::builder(tools).build()?;
    // The kinds of thing models send: right, nearly right, incomplete, wrong, and beyond what the tool can
    // do.
    for arguments in
        [json!({"x": 1, "y": 2}), json!({"x": "41"}), json!({}), json!({"x": [1]}), json!({"x": i64::MAX})]
    {
        let result = run.call(ToolCall::new("call_1", "add", arguments.clone())).await?;
        println!("{arguments} -> {}", result.to_text());
    }
    Ok(())
}
