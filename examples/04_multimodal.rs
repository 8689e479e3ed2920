//! Results that are more than text: pictures, data, links, and facts beside them.

use toolwright::content::{Content, ToolCall};
use toolwright::{Run, ToolError, ToolOutput, json, tool};

/// Draws a square of one colour.
#[tool(read_only)]
async fn square(
    /// Red, green and blue, each from 0 to 255.
    colour: (u8, u8, u8),
) -> Content {
    let (red, green, blue) = colour;
    // The smallest picture format there is: one pixel, three bytes.
    let picture = [b"P6 1 1 255\n".as_slice(), &[red, green, blue]].concat();
    Content::image("image/x-portable-pixmap", &picture)
}

/// Measures a file and hands it over.
#[tool(read_only)]
async fn inspect_report(
    /// What the report is called.
    name: String,
) -> Result<ToolOutput, ToolError> {
    let body = "quarter,sales\n1,10\n2,12\n";
    Ok(ToolOutput::text(format!("{name} has {} lines", body.lines().count()))
        .with(Content::json(json!({"quarters": 2, "total": 22})))
        .with(Content::document("text/csv", format!("{name}.csv"), body.as_bytes()))
        .with(Content::link("https://example.org/report", "the report online"))
        .with_structured(json!({"total": 22}))
        .with_metadata("source", "ledger"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let run = Run::builder((square(), inspect_report())).build()?;
    let calls = vec![
        ToolCall::new("1", "square", json!({"colour": [255, 0, 0]})),
        ToolCall::new("2", "inspect_report", json!({"name": "spring"})),
        ToolCall::new("3", "square", json!({"colour": [1, 2, 300]})),
    ];
    for result in run.call_all(calls).await? {
        println!("{}:", result.name);
        for block in &result.content {
            println!("  {}", serde_json::to_string(block)?);
        }
        if let Some(error) = &result.error {
            println!("  {}", error.message);
        }
        if !result.metadata.is_empty() {
            println!("  beside it: {}", serde_json::to_string(&result.metadata)?);
        }
    }
    Ok(())
}
