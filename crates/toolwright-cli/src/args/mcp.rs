//! `serve` and `mcp`: our tools for MCP clients, and the tools of MCP servers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::{RecordArgs, SandboxArgs, duration};

pub(super) const SERVE_HELP: &str = "\
Tools that change nothing, or that work in the sandbox, are approved. About all others the person at the client is asked, where the client can do that; \
where it cannot, they are refused unless a policy approves them. Every call is validated, approved, bounded and recorded \
like a model's; over HTTP it is recorded with --transcript only.

A file may also offer `prompts`, and `resources`: files that clients can read.

A client is told to start `toolwright serve` (`toolwright mcp install` writes that for many of them):
  {\"mcpServers\": {\"toolwright\": {\"command\": \"toolwright\", \"args\": [\"serve\"]}}}

Over HTTP the endpoint is /mcp, and /health says whether the server is up. Requests for other host names, and from pages \
of other sites, are refused. An address that other machines can reach needs a token.

Examples:
  toolwright serve tools.yaml
  toolwright serve tools.yaml --http 127.0.0.1:3000
  TOKEN=... toolwright serve --http 0.0.0.0:3000 --allow-host tools.example.com --token-env TOKEN --rate 20";

#[derive(clap::Args)]
pub struct Serve {
    /// Offer the tools of this file instead of the built-in ones. Clients start servers where they like, so a
    /// `toolwright.yaml` that happens to lie there is not taken.
    pub file: Option<PathBuf>,
    /// The same, as other commands take it.
    #[arg(short = 'f', long = "file", value_name = "FILE", hide = true, conflicts_with = "file")]
    pub also_file: Option<PathBuf>,
    /// Offer only the tools that match; `!pattern` takes tools away.
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub tools: Vec<String>,
    /// Approval rules (YAML).
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub http: ServeHttp,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// How to serve over HTTP.
#[derive(clap::Args)]
#[command(next_help_heading = "HTTP")]
pub struct ServeHttp {
    /// Listen on this address instead of stdin; port 0 picks one, which is printed.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub http: Option<std::net::SocketAddr>,
    /// A host name under which the server is reached, beside this machine's own.
    #[arg(long, value_name = "HOST", requires = "http")]
    pub allow_host: Vec<String>,
    /// Let pages of this origin use the server, such as `https://app.example.com`.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
    /// Ask for the token in this variable.
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub token_env: Option<String>,
    /// Take the tokens of this authorization server (OAuth).
    #[arg(long, value_name = "ISSUER", requires = "http", requires = "audience", conflicts_with_all = ["token_env", "open"])]
    pub oauth: Option<String>,
    /// What a token must be made for: the public address of this server.
    #[arg(long, value_name = "URL", requires = "oauth")]
    pub audience: Option<String>,
    /// A scope a token must have.
    #[arg(long, value_name = "SCOPE", requires = "oauth")]
    pub scope: Vec<String>,
    /// Ask for no token, though other machines can reach the address.
    #[arg(long, requires = "http", conflicts_with = "token_env")]
    pub open: bool,
    /// How many requests a second each client may make.
    #[arg(long, value_name = "N", requires = "http")]
    pub rate: Option<u32>,
    /// The longest request, in bytes.
    #[arg(long, value_name = "BYTES", requires = "http", default_value_t = 4 * 1024 * 1024)]
    pub max_body: usize,
    /// How many connections may be open at once.
    #[arg(long, value_name = "N", requires = "http", default_value_t = 1024)]
    pub max_connections: usize,
    /// How many of them one address may have; a load balancer is one address.
    #[arg(long, value_name = "N", requires = "http", default_value_t = 256)]
    pub max_connections_each: usize,
    /// The variable with the key (32 bytes or more) that instances behind one load balancer share.
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub state_key_env: Option<String>,
}

/// An address to listen on. `localhost:3000` and `3000` are this machine.
fn listen_address(text: &str) -> Result<std::net::SocketAddr, String> {
    let host = |rest: &str| format!("127.0.0.1:{rest}");
    let whole = match text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')) {
        Some(port) => host(port),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => host(text),
        None => text.to_owned(),
    };
    whole.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:3000 or [::1]:3000".to_owned())
}

#[derive(Subcommand)]
pub enum Mcp {
    /// List the tools of a server.
    #[command(
        after_help = "Example:\n  toolwright mcp list -- npx -y @modelcontextprotocol/server-everything\n  toolwright mcp list --url https://mcp.example.com/mcp\n  toolwright mcp list --sandboxed --read ~/server -- ~/server/run"
    )]
    List(McpList),
    /// Call a tool of a server.
    #[command(
        after_help = "Example:\n  toolwright mcp call echo message=hi -- npx -y @modelcontextprotocol/server-everything"
    )]
    Call(McpCall),
    /// Approve the tools of a server as they are now, in a lock file.
    #[command(after_help = LOCK_HELP)]
    Lock(McpLock),
    /// Tell an MCP client how to reach our server.
    #[command(after_help = INSTALL_HELP)]
    Install(McpInstall),
}

pub(super) const INSTALL_HELP: &str = "\
The entry is printed; with --write it is added to the client's file, and everything else there stays as it is.

Examples:
  toolwright mcp install --client claude-desktop --write
  toolwright mcp install --client vscode --project tools.yaml
  toolwright mcp install --client cursor --url http://127.0.0.1:3000/mcp";

#[derive(clap::Args)]
pub struct McpInstall {
    /// The client.
    #[arg(long)]
    pub client: McpClient,
    /// The file of tools to serve.
    pub file: Option<PathBuf>,
    /// What the client calls the server.
    #[arg(long, default_value = "toolwright")]
    pub name: String,
    /// The address of a server that runs already (`toolwright serve --http`).
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    pub url: Option<String>,
    /// For this project only, where the client knows projects.
    #[arg(long)]
    pub project: bool,
    /// Write the client's file.
    #[arg(long)]
    pub write: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpClient {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    Vscode,
    Windsurf,
    GeminiCli,
    Codex,
    Opencode,
}

pub(super) const LOCK_HELP: &str = "\
The lock keeps the definition of every tool: name, description, schemas, annotations, and the server's command. A tool that \
is approved for the first time is one line; --verbose prints its definition. With --check nothing is written: a tool that differs from the lock is shown with the difference, and the exit code is 1.

Examples:
  toolwright mcp lock --name files -- npx -y @modelcontextprotocol/server-filesystem .
  toolwright mcp lock --check --name files -- npx -y @modelcontextprotocol/server-filesystem .";

/// A server to start, or one with an address. A process is given the usual variables (PATH, HOME, LANG ...)
/// and those named here.
#[derive(clap::Args)]
pub struct McpTarget {
    /// The command that starts the server, after `--`.
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The address of the server. One that asks for a token sends you to a page in your browser.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// A header for the server: NAME=VALUE, or NAME=@VARIABLE to take the value from a variable.
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub header: Vec<String>,
    /// Speak the transport of 2024-11-05 (HTTP with one stream of events) at once; otherwise it is found out.
    #[arg(long, requires = "url")]
    pub sse: bool,
    /// A variable for the server: NAME=VALUE, or NAME to pass ours on.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Run the server in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Show what the server writes on stderr, and definitions of tools whole.
    #[arg(long)]
    pub verbose: bool,
    /// Run the server in a sandbox, which the next options describe.
    #[arg(long, conflicts_with = "url")]
    pub sandboxed: bool,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

#[derive(clap::Args)]
pub struct McpList {
    #[command(flatten)]
    pub target: McpTarget,
}

#[derive(clap::Args)]
pub struct McpCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[arg(value_name = "NAME=VALUE")]
    pub arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from stdin.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Stop the call after this long: `30`, `1.5s`, `2m`.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub timeout: Duration,
    /// Save pictures and other files of the result here.
    #[arg(long, value_name = "FOLDER")]
    pub save_to: Option<PathBuf>,
    #[command(flatten)]
    pub target: McpTarget,
}

#[derive(clap::Args)]
pub struct McpLock {
    /// The server's name in the lock.
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The lock. Files of tools obey the `tools.lock` beside them, and that of the current folder.
    #[arg(long, value_name = "FILE", default_value = "tools.lock")]
    pub file: PathBuf,
    /// Only compare.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub target: McpTarget,
}
