//! The standard tools in a sandbox: a model edits a file and runs a command, and sees nothing of this
//! machine.

use std::sync::Arc;

use toolwright::content::Message;
use toolwright::sandbox::{ProcessSandbox, SandboxPolicy, launcher};
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::{Run, json, tools};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The launcher is this program, started again: it takes its part here, before there are threads.
    launcher::main_if_launcher();
    tokio::runtime::Runtime::new()?.block_on(work())
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    // A private folder, gone with the sandbox; `SandboxPolicy::for_workspace` works in one of yours.
    let sandbox = Arc::new(ProcessSandbox::open(SandboxPolicy::private()).await?);
    let run = Run::builder(tools::standard()?).sandbox("default", sandbox).build()?;
    let model = ScriptedModel::new([
        Reply::call("write_file", json!({"path": "sum.py", "content": "print(6 * 7)\n"})),
        Reply::call("edit_file", json!({"path": "sum.py", "old_string": "6 * 7", "new_string": "6 + 7"})),
        Reply::call("bash", json!({"command": "cat sum.py; ls /root"})),
        Reply::text("The file adds now, and I could not look around."),
    ]);
    let outcome = run.ask(&model, "Make it add.").await?;
    for message in &outcome.messages {
        if let Message::Tool(result) = message {
            println!("{}: {}", result.name, result.to_text().trim_end());
        }
    }
    println!("{}", outcome.completion());
    Ok(())
}
