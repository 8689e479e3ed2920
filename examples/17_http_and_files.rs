//! Tools that wait for others: one asks a service, one works in a folder of its own and takes it away again,
//! whatever ends the call.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolwright::content::ToolCall;
use toolwright::tool::ErrorKind;
use toolwright::{Run, ToolContext, ToolError, Toolset, tool};
use toolwright_net::reqwest::{Client, Url};

/// The service, where every tool of the run finds it. Models name a path in it; the host is not theirs to
/// choose.
struct Api {
    client: Client,
    base: Url,
}

const MOST: usize = 1024 * 1024;

/// Gets data from the service.
#[tool(read_only)]
async fn fetch_api_data(
    context: &ToolContext,
    /// The path, for example `users`.
    endpoint: String,
    /// Query parameters.
    #[tool(default)]
    params: BTreeMap<String, String>,
) -> Result<Value, ToolError> {
    let api = context.state::<Api>()?;
    let mut url = api.base.clone();
    url.set_path(&endpoint);
    url.query_pairs_mut().extend_pairs(&params);
    let failed = |error| ToolError::new("the service cannot be reached").with_source(error);
    let mut response = api.client.get(url).send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&piece);
        if body.len() > MOST {
            return Err(ToolError::of(
                ErrorKind::OutputLimit,
                format!("the answer has more than {MOST} bytes"),
            ));
        }
    }
    let data: Value = serde_json::from_slice(&body)
        .map_err(|error| ToolError::new("the answer is not JSON").with_source(error))?;
    Ok(json!({"status": response.status().as_u16(), "data": data}))
}

/// A folder that is gone when this is: after the end, an error, a time-out or a panic alike.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, ToolError> {
        let folder = Self::place();
        std::fs::create_dir(&folder)?;
        Ok(Scratch(folder))
    }

    fn place() -> PathBuf {
        std::env::temp_dir().join(format!("toolwright-example-{}", std::process::id()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Counts the lines of a large text, piece by piece.
#[tool(read_only)]
async fn count_lines(
    /// The text.
    text: String,
    /// How many bytes to look at at once.
    #[tool(default = 8192, min = 1)]
    chunk_size: usize,
    /// Milliseconds to rest after each piece.
    #[tool(default = 0)]
    rest: u64,
) -> Result<Value, ToolError> {
    let scratch = Scratch::new()?;
    let path = scratch.0.join("text");
    tokio::fs::write(&path, text).await?;
    let mut file = tokio::fs::File::open(&path).await?;
    let mut chunk = vec![0; chunk_size.min(MOST)];
    let (mut lines, mut pieces) = (0, 0);
    loop {
        match file.read(&mut chunk).await? {
            0 => return Ok(json!({"lines": lines, "pieces": pieces})),
            count => lines += chunk[..count].iter().filter(|byte| **byte == b'\n').count(),
        }
        pieces += 1;
        tokio::time::sleep(Duration::from_millis(rest)).await;
    }
}

/// A service of one page that answers, and one that never does.
async fn serve() -> std::io::Result<Url> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let count = stream.read(&mut request).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            if let Some(query) = request.strip_prefix("GET /users?") {
                let query = query.split(' ').next().unwrap_or_default();
                let body = json!({"asked": query, "users": ["ada", "grace"]}).to_string();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes()).await;
            }
            open.push(stream);
        }
    });
    base.parse().map_err(std::io::Error::other)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let minute = Duration::from_secs(60);
    let api = Api { client: toolwright_net::client(false, minute, minute)?, base: serve().await? };
    // The time limit is the tool's setting, and holds whatever the tool waits for.
    let soon = Duration::from_millis(100);
    let tools = Toolset::of((
        fetch_api_data().with_timeout(minute),
        fetch_api_data().with_name("fetch_soon").with_timeout(soon),
        count_lines().with_timeout(minute),
        count_lines().with_name("count_soon").with_timeout(soon),
    ))?;
    let run = Run::builder(tools).state(api).build()?;
    for (name, arguments) in [
        ("fetch_api_data", json!({"endpoint": "users", "params": {"limit": "2"}})),
        ("fetch_soon", json!({"endpoint": "slow"})),
        ("count_lines", json!({"text": "one\ntwo\nthree\n", "chunk_size": 4})),
        ("count_soon", json!({"text": "one\ntwo\nthree\n", "chunk_size": 4, "rest": 3_600_000})),
    ] {
        let result = run.call(ToolCall::new("call_1", name, arguments)).await?;
        println!("{name}: {}", result.to_text());
        // A call that was stopped has been answered; what it held is let go at the next opportunity.
        while Scratch::place().exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    println!("nothing is left behind");
    Ok(())
}
