//! Our side of `cargo xtask bench mcp`: calls of one tool over stdio, ours and a peer's server through our client.
//!
//! `mcp serve` is the server; `mcp drive N COMMAND...` starts a server, calls `add`, and prints nanoseconds per call, one
//! call at a time and N at a time, as JSON.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_core::{Toolset, tool};
use toolwright_mcp::{Client, ClientOptions, Server, ServerCommand};
use toolwright_runtime::Run;

/// Adds two numbers.
#[tool(read_only)]
async fn add(
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
) -> i64 {
    x + y
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["drive", calls, program, arguments @ ..] => drive(calls.parse()?, program, arguments).await,
        _ => {
            let run = Run::builder(Toolset::new().with(add())?).build()?;
            Ok(Server::new(run.dispatch()).serve_stdio().await?)
        }
    }
}

async fn drive(calls: usize, program: &str, arguments: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    const AT_ONCE: usize = 64;
    let command = ServerCommand::new(program).args(arguments.to_vec());
    let client = Arc::new(Client::start(&command, ClientOptions::default()).await?);
    let call = |client: Arc<Client>, x: usize| async move {
        client.call_tool("add", json!({"x": x, "y": 1}), Duration::from_secs(60), None).await
    };
    for x in 0..calls / 10 {
        call(client.clone(), x).await?;
    }
    let (mut alone, mut together) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let start = Instant::now();
        for x in 0..calls {
            call(client.clone(), x).await?;
        }
        alone = alone.min(start.elapsed().as_nanos() as f64 / calls as f64);
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..AT_ONCE {
            let client = client.clone();
            tasks.spawn(async move {
                for x in 0..calls / AT_ONCE {
                    call(client.clone(), task * x).await?;
                }
                Ok::<(), toolwright_core::ToolError>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        together = together.min(start.elapsed().as_nanos() as f64 / (calls / AT_ONCE * AT_ONCE) as f64);
    }
    client.close().await;
    let report = json!({"alone": alone, "together": together});
    #[expect(clippy::print_stdout, reason = "the numbers are the output")]
    {
        println!("{report}");
    }
    Ok(())
}
