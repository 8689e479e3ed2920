//! Prompted tool use in the structured messages of anthropic-tools: tools, automatic mode, manual mode,
//! mistakes.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::prompted::{
    CallMode, CompletionRequest, ModelCompleter, Next, PromptError, PromptMessage, ToolUser, Transport,
    render,
};
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::{Run, ToolError, Toolset, tool};

/// Retrieves the current time of day in Hour-Minute-Second format for a specified time zone.
#[tool(read_only)]
async fn get_time_of_day(
    /// The time zone to get the current time for, such as UTC, US/Pacific, Europe/London.
    time_zone: String,
) -> Result<String, ToolError> {
    // A real tool would look at the clock; this one always says noon in London.
    let hours = match time_zone.as_str() {
        "UTC" | "Europe/London" => 12,
        "US/Pacific" => 4,
        other => return Err(ToolError::invalid(format!("there is no time zone `{other}`"))),
    };
    Ok(format!("{hours:02}:00:00"))
}

/// Adds two numbers, a and b. For example, add_numbers(a=10, b=12) -> 22. Numbers can be any rational number.
#[tool(read_only)]
async fn perform_addition(
    /// The first number to add, such as 5.
    a: f64,
    /// The second number to add, such as 4.6.
    b: f64,
) -> f64 {
    a + b
}

/// Subtracts one number (b) from another (a), yielding a-b. For example, subtract_numbers(a=8, b=5) -> 3.
#[tool(read_only)]
async fn perform_subtraction(
    /// The minuend, such as 5.
    a: f64,
    /// The subtrahend, such as 9.
    b: f64,
) -> f64 {
    a - b
}

/// What a model writes to call a tool; the end of the block is where it stops.
fn call(words: &str, tool: &str, parameters: &[(&str, &str)]) -> Reply {
    let parameters: String =
        parameters.iter().map(|(name, value)| format!("<{name}>{value}</{name}>\n")).collect();
    Reply::text(format!(
        "{words}\n<function_calls>\n<invoke>\n<tool_name>{tool}</tool_name>\n<parameters>\n{parameters}</parameters>\n</invoke>\n"
    ))
}

/// A tool user over a run's tools. With a real model: `connect("anthropic/...", ...)` in place of the script.
async fn tool_user(tools: Toolset, script: Vec<Reply>) -> Result<ToolUser, PromptError> {
    let run = Run::builder(tools).build().map_err(ToolError::from)?;
    let model = Arc::new(ScriptedModel::new(script));
    ToolUser::new(run.dispatch(), Arc::new(ModelCompleter::new(model))).await
}

/// Takes the model's message, does what it asks for, and says what comes next.
async fn handle_manual_message(
    messages: &mut Vec<PromptMessage>,
    next: Next,
    user: &ToolUser,
) -> Result<&'static str, PromptError> {
    if let Some(correction) = next.correction() {
        messages.push(correction);
        return Ok("auto_respond");
    }
    let Next::Message(message) = next else { return Ok("user_input") };
    messages.push(message.clone());
    match &message {
        // Here a program can look at the calls, change them, or refuse them.
        PromptMessage::ToolInputs { tool_inputs, .. } => {
            messages.push(user.run_tools(tool_inputs).await?);
            Ok("auto_respond")
        }
        _ => Ok("user_input"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("# automatic");
    let time = tool_user(
        Toolset::of(get_time_of_day())?,
        vec![
            call("I look at the clock.", "get_time_of_day", &[("time_zone", "US/Pacific")]),
            Reply::text("It is 4 in the morning.").expecting("04:00:00"),
        ],
    )
    .await?;
    let messages = messages(json!([{"role": "user", "content": "What time is it in Los Angeles?"}]))?;
    if let Next::Message(message) = time.use_tools(&messages, CallMode::Automatic).await? {
        println!("{}", message.to_json());
    }

    println!("# automatic, with several tools");
    let question = "Sally has 17 apples. She gives 9 to Jim. Later that day, Peter gives 6 bananas to Sally. How many \
                    pieces of fruit does Sally have at the end of the day?";
    let math = tool_user(
        Toolset::of((perform_addition(), perform_subtraction()))?,
        vec![
            call("Sally gives 9 apples to Jim.", "perform_subtraction", &[("a", "17"), ("b", "9")]),
            call("Peter gives her 6 bananas.", "perform_addition", &[("a", "8"), ("b", "6")])
                .expecting("8.0"),
            Reply::text("At the end of the day Sally has 14 pieces of fruit.").expecting("14.0"),
        ],
    )
    .await?;
    let asked = self::messages(json!([{"role": "user", "content": question}]))?;
    if let Next::Message(message) = math.use_tools(&asked, CallMode::Automatic).await? {
        println!("{}", message.to_json());
    }

    println!("# manual, step by step: the program writes the results itself");
    let math = tool_user(
        Toolset::of((perform_addition(), perform_subtraction()))?,
        vec![
            call("Ok. Let's think through this in steps.", "perform_subtraction", &[("a", "17"), ("b", "9")]),
            Reply::text("Sally has 8 apples left.").expecting("8"),
        ],
    )
    .await?;
    let mut steps = asked.clone();
    if let Next::Message(message) = math.use_tools(&steps, CallMode::Manual).await? {
        println!("{}", message.to_json());
        steps.push(message);
    }
    steps.extend(self::messages(json!([{
        "role": "tool_outputs",
        "tool_outputs": [{"tool_name": "perform_subtraction", "tool_result": 8}],
        "tool_error": null
    }]))?);
    if let Next::Message(message) = math.use_tools(&steps, CallMode::Manual).await? {
        println!("{}", message.to_json());
    }

    println!("# manual, with a helper that does what is asked for");
    let math = tool_user(
        Toolset::of((perform_addition(), perform_subtraction()))?,
        vec![
            call("Sally gives 9 apples to Jim.", "perform_subtraction", &[("a", "17"), ("b", "9")]),
            call("Peter gives her 6 bananas.", "perform_addition", &[("a", "8")]).expecting("8.0"),
            call("I forgot one.", "perform_addition", &[("a", "8"), ("b", "6")])
                .expecting("Missing required parameters"),
            Reply::text("At the end of the day Sally has 14 pieces of fruit.").expecting("14.0"),
        ],
    )
    .await?;
    let mut messages = self::messages(json!([{"role": "user", "content": question}]))?;
    loop {
        let next = math.use_tools(&messages, CallMode::Manual).await?;
        let before = messages.len();
        let action = handle_manual_message(&mut messages, next, &math).await?;
        for message in messages.iter().skip(before) {
            println!("{}", message.to_json());
        }
        if action == "user_input" {
            break;
        }
    }

    println!(
        "# a conversation without tools, one with a result, and one with a mistake, as the model reads them"
    );
    let states = self::messages(json!([
        {"role": "user", "content": "Hi Claude, what US states start with C?"},
        {"role": "assistant", "content": "California, Colorado, and Connecticut are the US states that start with the letter C."}
    ]))?;
    println!("{}", render(&states)?.trim_start());
    let asked = "If Maggie has 3 apples and eats 1, how many apples does maggie have left?";
    for (arguments, outputs) in [
        (
            json!({"a": 3, "b": 1}),
            json!({
                "role": "tool_outputs",
                "tool_outputs": [{"tool_name": "perform_subtraction", "tool_result": 2}],
                "tool_error": null
            }),
        ),
        (
            json!({"a": 3}),
            json!({
                "role": "tool_outputs",
                "tool_outputs": null,
                "tool_error": "Missing required parameter \"b\" in tool perform_subtraction."
            }),
        ),
    ] {
        let messages = self::messages(json!([
            {"role": "user", "content": asked},
            {
                "role": "tool_inputs",
                "content": "Let's think this through. Maggie had 3 apples, she ate one so:",
                "tool_inputs": [{"tool_name": "perform_subtraction", "tool_arguments": arguments}]
            },
            outputs
        ]))?;
        println!("{}", render(&messages)?.trim_start());
    }

    println!("# on Bedrock");
    let prompt = render(&self::messages(
        json!([{"role": "user", "content": "Hi Claude, what US states start with C?"}]),
    )?)?;
    let prompt = format!("{prompt}\n\nAssistant:");
    let request = CompletionRequest { prompt, max_tokens: 2000, temperature: None, results: Vec::new() };
    let model = Transport::Bedrock.model("default")?;
    println!("{} {}", Transport::Bedrock.path(model), Transport::Bedrock.body(model, &request)?);
    println!("{}", Transport::Bedrock.model("anthropic.claude-3").unwrap_err());

    println!("# the format is checked");
    for wrong in [
        json!([{"role": "humuseran", "content": "Hi Claude, what US states start with C?"}]),
        json!([{"role": "tool_outputs", "tool_outputs": [], "tool_error": null, "content": ""}]),
        json!([{"role": "tool_outputs", "tool_outputs": null, "tool_error": null}]),
    ] {
        println!("{}", self::messages(wrong).unwrap_err());
    }
    Ok(())
}

fn messages(json: Value) -> Result<Vec<PromptMessage>, PromptError> {
    PromptMessage::list_from_json(&json)
}
