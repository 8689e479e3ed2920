//! A tool with a model and a memory of its own: it surfs, answers, and takes follow-up questions. Each
//! instance remembers what it was asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolwright::content::Message;
use toolwright::run::Agent;
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::tool::ToolDef;
use toolwright::{Run, ToolContext, ToolError, Toolset, json, tool};

const INSTRUCTIONS: &str = "You are a helpful assistant that can use a browser to answer questions. Search, follow links and \
                            go back as you need. Questions about earlier searches can be answered from what you know.";

/// What the surfer remembers.
#[derive(Default, Serialize, Deserialize)]
struct Surfer {
    messages: Vec<Message>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Question {
    /// Message to the web surfer: a prompt to do research, or a question about previous research.
    input: String,
    /// Clear memory of previous searches.
    #[serde(default)]
    clear_history: bool,
}

/// Opens a page and gives its text.
#[tool(read_only)]
async fn browse(
    /// The page's address.
    url: String,
) -> Result<String, ToolError> {
    match url.as_str() {
        "https://tides.example" => Ok("The tides come from the moon, and less so from the sun.".to_owned()),
        other => Err(ToolError::new(format!("{other} cannot be reached"))),
    }
}

/// The tool; its memory is that of `instance`.
fn web_surfer(instance: &'static str) -> Result<ToolDef, ToolError> {
    let browser = Toolset::new().with(browse()).map_err(|error| ToolError::invalid(error.to_string()))?;
    let surfer = Arc::new(Agent::new("surfer", "Uses the web.").tools(browser));
    let about =
        "Uses the web to research a topic. Questions can prompt new searches or follow up on previous ones.";
    Ok(ToolDef::typed("web_surfer", about, move |context: ToolContext, question: Question| {
        let surfer = surfer.clone();
        async move {
            let memory = context.store_as::<Surfer>(instance);
            let mut messages = memory.update(|memory| {
                if question.clear_history {
                    memory.messages.clear();
                }
                memory.messages.clone()
            });
            if messages.is_empty() {
                messages.push(Message::system(INSTRUCTIONS));
            }
            messages.push(Message::user(question.input));
            let outcome = surfer.run_within(&context, messages).await?;
            memory.update(|memory| memory.messages.clone_from(&outcome.messages));
            Ok::<_, ToolError>(outcome.completion())
        }
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The model of the run is also the surfer's; here each says what the script says next.
    let model = Arc::new(ScriptedModel::new([
        Reply::call("web_surfer", json!({"input": "What makes the tides?"})),
        Reply::call("browse", json!({"url": "https://tides.example"})),
        Reply::text("The moon."),
        Reply::call("web_surfer", json!({"input": "And what else?"})).expecting("The moon."),
        Reply::text("The sun, less so.").expecting("And what else?"),
        Reply::call("web_surfer", json!({"input": "What did I ask?", "clear_history": true})),
        Reply::text("Nothing yet."),
        Reply::text("The moon and the sun."),
    ]));
    let run = Run::builder(web_surfer("research")?).model(model.clone()).build()?;
    let outcome = run.ask(&*model, "Why tides?").await?;
    for message in &outcome.messages {
        if let Message::Tool(result) = message {
            println!("the surfer says: {}", result.to_text());
        }
    }
    println!("{}", outcome.completion());
    Ok(())
}
