//! Agents: instructions and tools of their own, one as the tool of another, a handoff, answers that are
//! submitted; and results with pictures on their way to a model.

use std::sync::Arc;

use toolwright::content::Content;
use toolwright::model::wire::{Delivery, ModelTarget, Wire};
use toolwright::model::{ModelOptions, ModelRequest, ToolChoice, vendor};
use toolwright::run::{Agent, React};
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::{Run, ToolOutput, Toolset, json, tool};

/// Finds pages about something.
#[tool(read_only)]
async fn search_web(
    /// What to look for.
    query: String,
) -> Vec<String> {
    vec![format!("a page about {query}"), format!("another page about {query}")]
}

/// Gives the weather in a city.
#[tool(read_only)]
async fn get_weather(
    /// The city.
    city: String,
) -> ToolOutput {
    ToolOutput::json(json!({"temp": 72, "condition": "sunny", "humidity": 45}))
        .with_note(format!("Weather data for {city}"))
}

/// Takes a picture of the screen.
#[tool(read_only)]
async fn capture_screenshot() -> ToolOutput {
    ToolOutput::text("Screenshot captured successfully").with(Content::image("image/png", b"\x89PNG"))
}

fn script(replies: impl IntoIterator<Item = Reply>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(replies))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("# an agent, as the tool of a model");
    let researcher = Agent::new("researcher", "Finds things out.")
        .instructions("You are a research assistant.")
        .tools(Toolset::of(search_web())?)
        .model(script([
            Reply::call("search_web", json!({"query": "tides"})),
            Reply::call("submit", json!({"answer": "The moon does it."})),
        ]))
        .react(React::default());
    let run = Run::builder(researcher.as_tool()).build()?;
    let boss = ScriptedModel::new([
        Reply::call("researcher", json!({"input": "What makes the tides?"})),
        Reply::text("My researcher says: the moon does it.").expecting("The moon does it."),
    ]);
    let outcome = run.ask(&boss, "What makes the tides?").await?;
    println!("{}", outcome.completion());
    println!("{} turns, {} calls in all", run.spent().turns, run.spent().tool_calls);

    println!("# a conversation that is handed over");
    let poet = Agent::new("poet", "Writes verses.").model(script([Reply::text("Sun, and nothing but sun.")]));
    let run = Run::builder(poet.handoff()).build()?;
    let host =
        ScriptedModel::new([Reply::call("transfer_to_poet", json!({})), Reply::text("That was our poet.")]);
    let outcome = run.ask(&host, "A verse, please.").await?;
    for message in &outcome.messages {
        println!("{}", message.text());
    }

    println!("# a batch of results on its way to a vendor that takes only text from tools");
    let tools = Toolset::of((get_weather(), capture_screenshot()))?;
    let run = Run::builder(tools).build()?;
    let model = ScriptedModel::new([
        Reply::call("capture_screenshot", json!({})).and_call("get_weather", json!({"city": "Boston"})),
        Reply::text("Sunny, on the screen and in Boston."),
    ]);
    let outcome = run.ask(&model, "Look!").await?;
    let request = ModelRequest {
        messages: &outcome.messages,
        tools: &[],
        tool_choice: &ToolChoice::None,
        options: &ModelOptions::default(),
    };
    let vendor = vendor::find("openai-chat").ok_or("no such vendor")?;
    let body = Wire::OpenAiChat.encode(ModelTarget { vendor, model: "gpt-5" }, &request, Delivery::Whole)?;
    for message in body["messages"].as_array().into_iter().flatten() {
        println!("{}: {}", message["role"].as_str().unwrap_or_default(), message["content"]);
    }
    Ok(())
}
