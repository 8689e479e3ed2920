//! An agent that uses a program with windows: it opens an editor on a display inside the sandbox, types,
//! saves, and reads the screen as text.

use std::sync::Arc;

use serde_json::json;
use toolwright::Run;
use toolwright::content::{Content, Message};
use toolwright::desktop::{DesktopOptions, desktop_tools};
use toolwright::run::LoopOptions;
use toolwright::sandbox::Sandbox as _;
use toolwright::sandbox::{ProcessSandbox, SandboxPolicy, launcher};
use toolwright::testing::{Reply, ScriptedModel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The launcher of the sandbox is this program, started again.
    launcher::main_if_launcher();
    tokio::runtime::Runtime::new()?.block_on(work())
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Arc::new(ProcessSandbox::open(SandboxPolicy::private()).await?);
    let note = json!([
        {"action": "type", "text": "Grüße vom Schreibtisch ✓", "press_enter": true},
        {"action": "key", "text": "ctrl+s"},
    ]);
    let model = ScriptedModel::new([
        Reply::call("desktop_start", json!({"command": "touch note.txt; mousepad note.txt"})),
        Reply::call("computer", json!({"actions": note})),
        Reply::call("computer", json!({"action": "read"})),
        Reply::text("It is saved.").expecting("Schreibtisch"),
    ]);
    let run =
        Run::builder(desktop_tools(&DesktopOptions::new())?).sandbox("default", sandbox.clone()).build()?;
    let question = vec![Message::user("Write a note.")];
    let outcome = run.generate_loop(&model, question, &LoopOptions::default()).await?;
    for message in &outcome.messages {
        if let Message::Tool(result) = message {
            let pictures = result.content.iter().filter(|block| matches!(block, Content::Image(_))).count();
            match &result.error {
                None => println!("{}: {pictures} picture(s)", result.name),
                Some(error) => println!("{}: {}", result.name, error.message),
            }
        }
    }
    println!("{}", outcome.completion());
    println!("the file says: {}", sandbox.read_text("note.txt").await?.trim_end());
    Ok(())
}
