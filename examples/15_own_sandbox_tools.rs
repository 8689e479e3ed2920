//! Tools of one's own over the sandbox: a command that fails is an error the model reads, and one that hangs
//! may end the run.

use std::sync::Arc;
use std::time::Duration;

use toolwright::content::ToolCall;
use toolwright::sandbox::{ExecRequest, ProcessSandbox, Sandbox as _, SandboxPolicy, launcher};
use toolwright::tool::ErrorKind;
use toolwright::{Run, ToolContext, ToolError, Toolset, json, tool};

/// Lists the files in a folder.
#[tool(read_only, sandboxed)]
async fn list_files(
    context: &ToolContext,
    /// The folder.
    dir: String,
) -> Result<String, ToolError> {
    // A time-out, a missing program and the other expected errors reach the model by themselves: `?` is
    // enough.
    let result = context.sandbox()?.exec(ExecRequest::new(["ls", "--", &dir])).await?;
    match result.success() {
        true => Ok(result.stdout),
        false => Err(ToolError::new(result.stderr.trim_end())),
    }
}

/// Decodes a file.
#[tool(read_only, sandboxed)]
async fn decode(
    context: &ToolContext,
    /// The file, in base64.
    file: String,
    /// How many seconds it may take.
    #[tool(default = 60.0)]
    timeout: f64,
) -> Result<String, ToolError> {
    let command = ExecRequest::new(["base64", "--decode", &file]).timeout(Duration::from_secs_f64(timeout));
    match context.sandbox()?.exec(command).await {
        // A model cannot mend a decoder that hangs. A fatal error is none of its business: it ends the run.
        Err(error) if error.kind() == ErrorKind::Timeout => {
            Err(ToolError::fatal("the decoder took too long").with_source(error))
        }
        result => Ok(result?.decoded()?.stdout),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The launcher is this program, started again: it takes its part here, before there are threads.
    launcher::main_if_launcher();
    tokio::runtime::Runtime::new()?.block_on(work())
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Arc::new(ProcessSandbox::open(SandboxPolicy::private()).await?);
    sandbox.write_file("notes/hello.b64", b"aGVsbG8K").await?;
    // Nobody ever writes into this one.
    sandbox.exec(ExecRequest::new(["mkfifo", "silent.b64"])).await?;
    let tools = Toolset::of((list_files(), decode()))?;
    let run = Run::builder(tools).sandbox("default", sandbox).build()?;
    for (name, arguments) in [
        ("list_files", json!({"dir": "notes"})),
        ("list_files", json!({"dir": "nowhere"})),
        ("decode", json!({"file": "notes/hello.b64"})),
        ("decode", json!({"file": "silent.b64", "timeout": 0.2})),
    ] {
        match run.call(ToolCall::new("call_1", name, arguments)).await {
            Ok(result) => println!("{name}: {}", result.to_text().trim_end()),
            Err(error) => println!("the run has ended: {error}"),
        }
    }
    Ok(())
}
