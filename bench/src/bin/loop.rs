//! Turns of a model with one tool call each, over HTTP on the loopback.
//!
//! `loop serve TURNS` is the server, which says what a vendor would say: a call for each of so many requests,
//! then a text. It is the same for our side (`loop run URL`) and for the peers, and its time is in the times
//! of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use toolwright_bench::report;
use toolwright_core::{Message, ToolContext, ToolDef, Toolset};
use toolwright_models::{ModelSettings, connect};
use toolwright_runtime::{LoopOptions, Run, RunEnd};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", turns] => serve(turns.parse()?).await,
        ["run", url] => run(url).await,
        _ => Err("usage: loop serve TURNS | loop run URL".into()),
    }
}

async fn run(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let add =
        ToolDef::typed(
            "add",
            "Adds two numbers.",
            |_: ToolContext, pair: Pair| async move { pair.x + pair.y },
        );
    let tools = Toolset::new().with(add)?;
    let model = connect("openai-compatible/bench", ModelSettings::new().base_url(url), |_| None)?;
    let (mut took, mut turns) = (0.0, 0);
    for _ in 0..10 {
        let run = Run::builder(tools.clone()).build()?;
        let start = Instant::now();
        let outcome =
            run.generate_loop(&model, vec![Message::user("Add numbers.")], &LoopOptions::default()).await?;
        took += start.elapsed().as_secs_f64() * 1e9;
        assert_eq!(outcome.end, Some(RunEnd::Done));
        turns += run.spent().tool_calls;
    }
    report(&[("turn", took / turns as f64)]);
    Ok(())
}

/// Answers on a port of the system's choice, which it prints.
#[expect(clippy::print_stdout, reason = "the caller waits for the address")]
async fn serve(turns: usize) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/v1", listener.local_addr()?);
    let asked = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A client that leaves ends its own connection only.
        tokio::spawn(answer(stream, asked.clone(), turns));
    }
}

async fn answer(stream: TcpStream, asked: Arc<AtomicUsize>, turns: usize) -> std::io::Result<()> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut body = Vec::new();
    let mut line = String::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        body.resize(length, 0);
        stream.read_exact(&mut body).await?;
        let turn = asked.fetch_add(1, Ordering::Relaxed) % (turns + 1);
        let message = if turn < turns {
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{turn}","type":"function","function":{{"name":"add","arguments":"{{\"x\": {turn}, \"y\": 2}}"}}}}]}}"#
            )
        } else {
            r#"{"role":"assistant","content":"Done."}"#.to_owned()
        };
        let reason = if turn < turns { "tool_calls" } else { "stop" };
        let reply = format!(
            r#"{{"id":"c","object":"chat.completion","created":1,"model":"bench","choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        stream.get_mut().write_all(format!("{head}{reply}").as_bytes()).await?;
    }
}
