//! Tells what went wrong by whose fault it is: the file's, the program's, or a tool's.

use toolwright::content::ToolCall;
use toolwright::file::{Caller, Session, ToolFile};
use toolwright::lang::Source;
use toolwright::{Error, Run, json, tool};

const TOOLS: &str = "
tools:
  - name: half
    description: Half of a number.
    input:
      - { name: number, type: int, description: The number. }
    do: { eval: '${number / 2}' }
";

/// Half of a number, again.
#[tool]
async fn half(
    /// The number.
    number: f64,
) -> f64 {
    number / 2.0
}

/// Opens a text of tools and calls `half`.
async fn call(text: &str, number: i64) -> Result<String, Error> {
    let file = ToolFile::parse(Source::text("half.yaml", text))?;
    let session = Session::builder(file).open().await?;
    let run = session.run(Caller::Person).build()?;
    let result = run.call(ToolCall::new("1", "half", json!({"number": number}))).await?;
    Ok(result.to_text())
}

fn whose(error: &Error) -> String {
    match error.location() {
        Some(location) => format!("the file is wrong at {location}"),
        None if error.is_configuration() => format!("the program is wrong: {error}"),
        None if error.is_missing_variable() => "a key is missing".to_owned(),
        None => format!("something else failed: {error}"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    println!("{}", call(TOOLS, 3).await?);
    let wrong = TOOLS.replace("eval:", "evaluate:");
    println!("{}", call(&wrong, 3).await.unwrap_or_else(|error| whose(&error)));
    // Two tools of one name: reported where the run is built.
    let clash = Run::builder([half(), half()]).build();
    println!("{}", clash.map_or_else(|error| whose(&error), |_| "a run".to_owned()));
    let model = toolwright::model::connect_with(
        "openai/gpt-5",
        toolwright::model::ModelSettings::new(),
        &toolwright::model::Environment::empty(),
    );
    println!("{}", model.map_or_else(|error| whose(&error), |_| "a model".to_owned()));
    Ok(())
}
