//! Analysts: an agent whose tools have names of its own, and one that sees the figures of a paper where they
//! stand.

use std::sync::Arc;

use toolwright::content::{Content, Message};
use toolwright::model::wire::{Delivery, ModelTarget};
use toolwright::model::{ModelOptions, ModelRequest, ToolChoice, vendor};
use toolwright::run::{Agent, LoopOptions};
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::{Run, ToolError, ToolOutput, Toolset, json, tool};

/// Searches a database for matching records.
#[tool(read_only)]
async fn search_database(
    /// What to look for.
    query: String,
    /// How many records at most.
    #[serde(default = "ten")]
    limit: usize,
) -> Vec<String> {
    (1..=limit.min(2)).map(|number| format!("record {number} about {query}")).collect()
}

fn ten() -> usize {
    10
}

/// Works out the mean of numbers.
#[tool(read_only)]
async fn mean(
    /// The numbers.
    numbers: Vec<f64>,
) -> Result<f64, ToolError> {
    let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    if count == 0 {
        Err(ToolError::invalid("there are no numbers"))
    } else {
        Ok(numbers.iter().sum::<f64>() / f64::from(count))
    }
}

/// Reads pages of a paper, with the figures in reading order when they are wanted.
#[tool(read_only)]
async fn read_pages(
    /// The paper.
    path: String,
    /// The first page.
    start_page: u32,
    /// The last page.
    end_page: u32,
    /// Whether figures are taken along.
    #[serde(default)]
    extract_images: bool,
) -> ToolOutput {
    // A real tool would open the file; this one knows one paper by heart.
    let mut output = ToolOutput::text("The gates are arranged as follows:");
    if extract_images {
        output = output.with(Content::image("image/png", b"\x89PNG figure 3"));
    }
    output
        .with(Content::text("Figure 3: the layout of the gates."))
        .with_metadata("path", path)
        .with_metadata("pages_shown", format!("{start_page}-{end_page}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("# an agent with tools under names of its own");
    // With a real model: `connect("openrouter/anthropic/claude-haiku-4.5", ...)` in place of the script.
    let model = Arc::new(ScriptedModel::new([
        Reply::call("search_db", json!({"query": "sales", "limit": 2}))
            .and_call("average", json!({"numbers": [10, 12]})),
        Reply::text("Two records; 11 on average.").expecting("11"),
    ]));
    let tools = Toolset::of((search_database().with_name("search_db"), mean().with_name("average")))?;
    let analyst = Agent::new("DataAnalyst", "Expert data analyst with database access.")
        .instructions("You are a data analyst. Use your tools to search databases and to analyze data.")
        .tools(tools)
        .model(model.clone());
    let run = Run::builder(Toolset::new()).build()?;
    let outcome = analyst.run(&run, vec![Message::user("How are sales?")]).await?;
    println!("{}", outcome.completion());
    println!("{:?}", model.offered().first().map(|(tools, _)| tools.clone()).unwrap_or_default());

    println!("# an agent that sees figures where they stand, as vendors are told");
    let pages =
        json!({"path": "quantum_computing.pdf", "start_page": 5, "end_page": 10, "extract_images": true});
    let model = ScriptedModel::new([
        Reply::call("read_pages", pages),
        Reply::text("Figure 3 shows the layout of the gates.").expecting("Figure 3"),
    ]);
    let analyst = Agent::new("PaperAnalyst", "Reads research papers.")
        .instructions("Analyze research papers including figures and tables.")
        .tools(Toolset::of(read_pages())?)
        .model(Arc::new(model))
        .with_loop(LoopOptions::default());
    let task = "Read pages 5-10 of 'quantum_computing.pdf' with images. Describe Figure 3.";
    let outcome = analyst.run(&run, vec![Message::user(task)]).await?;
    println!("{}", outcome.completion());
    for name in ["anthropic", "openai", "openai-chat", "google"] {
        let vendor = vendor::find(name).ok_or("no such vendor")?;
        let request = ModelRequest {
            messages: outcome.messages.get(2..4).unwrap_or_default(),
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &ModelOptions::default(),
        };
        let body = vendor.wire.encode(ModelTarget { vendor, model: "m" }, &request, Delivery::Whole)?;
        let said = ["messages", "input", "contents"]
            .iter()
            .find_map(|key| body.get(key))
            .and_then(|all| all.as_array());
        println!("{name}:");
        for message in said.into_iter().flatten().skip(1) {
            println!("  {message}");
        }
    }
    Ok(())
}
