//! A model at work: choosing tools, hearing answers while they come, errors, manual mode, a conversation that
//! goes on.

use toolwright::content::{Message, ToolResult};
use toolwright::model::{ModelDelta, ToolChoice};
use toolwright::run::{Conversation, LoopOptions, ToolCalls};
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::tool::ErrorKind;
use toolwright::{Run, ToolError, Toolset, json, tool};

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

/// Reads a text file.
#[tool(read_only)]
async fn read_file(
    /// The file.
    file: String,
) -> Result<String, ToolError> {
    Err(ToolError::of(ErrorKind::FileNotFound, format!("there is no file `{file}`"))
        .hint("there is `notes.txt`"))
}

fn asks() -> Reply {
    Reply::call("addition", json!({"x": 1, "y": 1}))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Toolset::of((addition(), read_file()))?;

    println!("# tool choice: what the model is offered, turn by turn");
    for (name, how) in [
        ("auto", LoopOptions::default()),
        (
            "one tool",
            LoopOptions { tool_choice: ToolChoice::Tool("addition".into()), ..LoopOptions::default() },
        ),
        ("none", LoopOptions { tool_choice: ToolChoice::None, ..LoopOptions::default() }),
        (
            "one tool, then none",
            LoopOptions {
                tool_choice: ToolChoice::Tool("addition".into()),
                choice_after: Some(ToolChoice::None),
                ..LoopOptions::default()
            },
        ),
    ] {
        let model = ScriptedModel::new([asks(), Reply::text("2")]);
        let run = Run::builder(tools.clone()).build()?;
        run.generate_loop(&model, vec![Message::user("What is 1 + 1?")], &how).await?;
        let offered: Vec<String> =
            model.offered().iter().map(|(tools, choice)| format!("{tools:?} {choice:?}")).collect();
        println!("{name}: {}", offered.join(", then "));
    }

    println!("# a tool for the first answer, none for the follow-up");
    let model =
        ScriptedModel::new([asks(), Reply::text("2"), Reply::text("Because one and one more are two.")]);
    let run = Run::builder(tools.clone()).build()?;
    let mut talk = Conversation::new(&run).with_loop(LoopOptions {
        tool_choice: ToolChoice::Tool("addition".into()),
        ..LoopOptions::default()
    });
    talk.say(&model, "What is 1 + 1?").await?;
    talk.options_mut().tool_choice = ToolChoice::None;
    talk.say(&model, "Why is that so?").await?;
    for (tools, choice) in model.offered() {
        println!("{tools:?} {choice:?}");
    }

    println!("# an error is news for the model");
    let run = Run::builder(tools.clone())
        .on_delta(|delta| match delta {
            ModelDelta::Text(text) => println!("says: {text}"),
            ModelDelta::Call { name } => println!("calls: {name}"),
            _ => {}
        })
        .build()?;
    let model = ScriptedModel::new([
        Reply::call("read_file", json!({"file": "note.txt"})),
        Reply::call("addition", json!({"x": "one", "y": 2})).expecting("notes.txt"),
        Reply::text("I give up.").expecting("`x`"),
        Reply::text("You are welcome."),
    ]);
    // A chat holds one of these: every answer adds to it, whatever became of the last one.
    let mut chat = Conversation::new(&run);
    chat.say(&model, "Read my notes.").await?;
    chat.say(&model, "Thanks anyway.").await?;
    println!("{} messages", chat.messages().len());

    println!("# manual: the caller makes the calls");
    let model = ScriptedModel::new([asks(), Reply::text("It is 3, you say?").expecting("3")]);
    let run = Run::builder(tools).build()?;
    let mut manual = Conversation::new(&run)
        .with_loop(LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() });
    manual.say(&model, "What is 1 + 1?").await?;
    for call in manual.pending() {
        println!("pending: {}({})", call.name, call.arguments);
        manual.push(Message::Tool(ToolResult::text(&call, "3")));
    }
    manual.answer(&model).await?;
    println!("{}", manual.messages().last().map(Message::text).unwrap_or_default());
    Ok(())
}
