//! Our side of `cargo xtask bench mcp`, and the client that drives every side.
//!
//! `mcp serve` is the server on stdio, `mcp serve http` the one on a port of its choice, which it prints.
//! `mcp drive stdio|http CALLS COMMAND...` starts a server, calls `add` one at a time and 64 at a time, and
//! prints nanoseconds per call and at the 99th of 100 calls, as JSON. The client is plain text over plain
//! streams, so that what is measured is the server.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolwright_core::{CancelToken, Toolset, tool};
use toolwright_mcp::{HttpOptions, Server};
use toolwright_runtime::Run;

/// How many calls are under way at once in the second shape: over stdio on one pipe, over HTTP on as many
/// connections.
const AT_ONCE: usize = 64;

/// Rounds of each shape; the best counts, because the noise of a machine only ever adds.
const ROUNDS: usize = 3;

type Error = Box<dyn std::error::Error>;

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

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["drive", "stdio", calls, program, arguments @ ..] => {
            drive_stdio(calls.parse()?, Command::new(program).args(arguments))
        }
        ["drive", "http", calls, program, arguments @ ..] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(drive_http(calls.parse()?, Command::new(program).args(arguments)))
        }
        ["serve", rest @ ..] => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(serve(rest == ["http"]))
        }
        _ => Err("usage: mcp serve [http] | mcp drive stdio|http CALLS COMMAND...".into()),
    }
}

async fn serve(http: bool) -> Result<(), Error> {
    let add = add().with_output_schema(json!({"type": "integer"}));
    let run = Run::builder(Toolset::new().with(add)?).build()?;
    let server = Server::new(run.dispatch());
    if !http {
        return Ok(server.serve_stdio().await?);
    }
    let listening = server.listen(([127, 0, 0, 1], 0).into(), HttpOptions::default()).await?;
    say(&listening.address());
    listening.run(CancelToken::new()).await;
    Ok(())
}

/// What one shape took.
struct Shape {
    nanos: f64,
    p99: f64,
}

impl Shape {
    fn of(total: Duration, mut each: Vec<Duration>) -> Self {
        each.sort_unstable();
        let p99 = each.get(each.len() * 99 / 100).copied().unwrap_or_default();
        Shape { nanos: total.as_nanos() as f64 / each.len() as f64, p99: p99.as_nanos() as f64 }
    }

    fn best(self, other: Option<Shape>) -> Shape {
        match other {
            Some(other) if other.nanos < self.nanos => other,
            _ => self,
        }
    }
}

fn report(one: Option<Shape>, many: Option<Shape>) -> Result<(), Error> {
    let (one, many) = (one.ok_or("no rounds")?, many.ok_or("no rounds")?);
    say(&json!({"one": one.nanos, "one_p99": one.p99, "many": many.nanos, "many_p99": many.p99}));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is the program's output")]
fn say(what: &dyn std::fmt::Display) {
    println!("{what}");
}

/// Ends the server with the measurement, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hello() -> String {
    let client = json!({"name": "bench", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn request(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","arguments":{{"x":{id},"y":1}}}}}}"#
    )
}

/// Checks an answer, and says to which call.
fn checked(line: &[u8]) -> Result<usize, Error> {
    let answer: Value = serde_json::from_slice(line)?;
    let id = answer.get("id").and_then(Value::as_u64).ok_or("an answer without id")? as usize;
    let sum = answer.pointer("/result/structuredContent/result").and_then(Value::as_u64);
    if sum != Some(id as u64 + 1) {
        return Err(format!("a wrong answer: {answer}").into());
    }
    Ok(id)
}

struct Pipes {
    _server: Running,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipes {
    fn send(&mut self, lines: &str) -> Result<(), Error> {
        Ok(self.to.write_all(lines.as_bytes())?)
    }

    fn next(&mut self) -> Result<usize, Error> {
        self.line.clear();
        if self.from.read_until(b'\n', &mut self.line)? == 0 {
            return Err("the server ended".into());
        }
        checked(&self.line)
    }

    fn one(&mut self, calls: usize) -> Result<Shape, Error> {
        let mut each = Vec::with_capacity(calls);
        let start = Instant::now();
        for id in 1..=calls {
            let begun = Instant::now();
            self.send(&format!("{}\n", request(id)))?;
            self.next()?;
            each.push(begun.elapsed());
        }
        Ok(Shape::of(start.elapsed(), each))
    }

    /// Keeps as many calls under way as there are to be; what has come in is answered with new calls in one
    /// write.
    fn many(&mut self, calls: usize) -> Result<Shape, Error> {
        let mut each = Vec::with_capacity(calls);
        let mut begun = HashMap::new();
        let (mut next, mut new) = (1, AT_ONCE);
        let start = Instant::now();
        while each.len() < calls {
            let now = Instant::now();
            let mut lines = String::new();
            let end = (next + new).min(calls + 1);
            for id in next..end {
                lines.push_str(&request(id));
                lines.push('\n');
                begun.insert(id, now);
            }
            next = end;
            if !lines.is_empty() {
                self.send(&lines)?;
            }
            new = 0;
            while new == 0 || self.from.buffer().contains(&b'\n') {
                let id = self.next()?;
                each.push(begun.remove(&id).ok_or("two answers to one call")?.elapsed());
                new += 1;
                if each.len() == calls {
                    break;
                }
            }
        }
        Ok(Shape::of(start.elapsed(), each))
    }
}

fn drive_stdio(calls: usize, command: &mut Command) -> Result<(), Error> {
    let mut server = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let to = server.0.stdin.take().ok_or("no pipe")?;
    let from = BufReader::with_capacity(64 * 1024, server.0.stdout.take().ok_or("no pipe")?);
    let mut pipes = Pipes { _server: server, to, from, line: Vec::new() };
    pipes.send(&format!("{}\n", hello()))?;
    pipes.from.read_until(b'\n', &mut pipes.line)?;
    pipes.send(&format!("{INITIALIZED}\n"))?;
    pipes.one(calls / 10)?;
    let (mut one, mut many) = (None, None);
    for _ in 0..ROUNDS {
        one = Some(pipes.one(calls)?.best(one));
        many = Some(pipes.many(calls)?.best(many));
    }
    report(one, many)
}

/// One client with a session of its own, over one connection that is kept.
struct HttpClient {
    stream: tokio::io::BufReader<TcpStream>,
    session: String,
    body: Vec<u8>,
}

impl HttpClient {
    async fn begin(address: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut client = HttpClient {
            stream: tokio::io::BufReader::new(stream),
            session: String::new(),
            body: Vec::new(),
        };
        client.post(&hello()).await?;
        client.post(INITIALIZED).await?;
        Ok(client)
    }

    /// Sends one message, and reads the answer into `body`.
    async fn post(&mut self, message: &str) -> Result<(), Error> {
        let session = match self.session.as_str() {
            "" => String::new(),
            id => format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n"),
        };
        let length = message.len();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {length}\r\n\r\n{message}"
        );
        self.stream.write_all(head.as_bytes()).await?;
        self.read().await
    }

    async fn read(&mut self) -> Result<(), Error> {
        let (mut length, mut chunked, mut line) = (0, false, String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let head = line.trim_end().to_ascii_lowercase();
            if head.is_empty() {
                break;
            } else if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            } else if head.strip_prefix("transfer-encoding:").is_some_and(|value| value.trim() == "chunked") {
                chunked = true;
            } else if head.starts_with("mcp-session-id:") {
                self.session = line.trim_end().split_once(':').ok_or("a header")?.1.trim().to_owned();
            }
        }
        self.body.clear();
        if !chunked {
            self.body.resize(length, 0);
            self.stream.read_exact(&mut self.body).await?;
            return Ok(());
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line).await?;
            let size = usize::from_str_radix(line.trim_end(), 16)?;
            let start = self.body.len();
            self.body.resize(start + size + 2, 0);
            self.stream.read_exact(self.body.get_mut(start..).ok_or("a chunk")?).await?;
            self.body.truncate(start + size);
            if size == 0 {
                return Ok(());
            }
        }
    }

    async fn call(&mut self, id: usize) -> Result<Duration, Error> {
        let begun = Instant::now();
        self.post(&request(id)).await?;
        // An answer is JSON, or the last event of a stream.
        let answer = match self.body.first() {
            Some(b'{') => Some(self.body.as_slice()),
            _ => {
                let mut data =
                    self.body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
                data.next_back()
            }
        };
        if checked(answer.ok_or("an empty answer")?)? != id {
            return Err("an answer to another call".into());
        }
        Ok(begun.elapsed())
    }

    async fn calls(&mut self, count: usize) -> Result<Vec<Duration>, Error> {
        let mut each = Vec::with_capacity(count);
        for id in 1..=count {
            each.push(self.call(id).await?);
        }
        Ok(each)
    }
}

async fn drive_http(calls: usize, command: &mut Command) -> Result<(), Error> {
    let mut server = Running(command.stdout(Stdio::piped()).spawn()?);
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().ok_or("no pipe")?).read_line(&mut address)?;
    let address = address.trim();
    let patience = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > patience {
            return Err(format!("nobody answers at {address}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (mut one, mut many) = (None, None);
    for round in 0..=ROUNDS {
        let mut client = HttpClient::begin(address).await?;
        let start = Instant::now();
        let alone = client.calls(calls).await?;
        let shape = Shape::of(start.elapsed(), alone);
        // The first round warms up.
        one = if round == 0 { None } else { Some(shape.best(one)) };
        // Connections of their own for each round: servers close those that rest too long.
        let mut clients = Vec::new();
        for _ in 0..AT_ONCE {
            clients.push(HttpClient::begin(address).await?);
        }
        let start = Instant::now();
        let tasks = tokio::task::LocalSet::new();
        let running: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                tasks.spawn_local(async move {
                    client.calls(calls / AT_ONCE).await.map_err(|error| error.to_string())
                })
            })
            .collect();
        tasks.await;
        let mut together = Vec::new();
        for task in running {
            together.extend(task.await??);
        }
        let shape = Shape::of(start.elapsed(), together);
        many = if round == 0 { None } else { Some(shape.best(many)) };
    }
    report(one, many)
}
