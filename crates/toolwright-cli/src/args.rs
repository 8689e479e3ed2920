//! The command line. Every word of help is here.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

/// Tools for language models: written once, called safely.
#[derive(Parser)]
#[command(name = "toolwright", version = crate::version::LONG, propagate_version = true, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Print answers, and errors, as JSON for programs.
    #[arg(long, global = true)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  toolwright ask 'What can you do?'      a model works with the tools (no key needed: the demo model answers)
  toolwright chat                        talk with it
  toolwright tools                       the tools there are
  toolwright call add x=1 y=2            call one of them
  toolwright serve                       offer the tools to an MCP client
  toolwright mcp list -- COMMAND         the tools of an MCP server
  toolwright call bash command='ls -la'  a command, in a sandbox that may only read this folder
  toolwright init; toolwright check      write a file of your own tools, and check it
  toolwright runs; toolwright view       what happened in earlier runs, here or in a browser
  toolwright doctor                      what works here, and how to get the rest

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.";

#[derive(Subcommand)]
pub enum Command {
    /// Let a model work with the tools until it has an answer.
    Ask(Ask),
    /// Let a model take one step, by hand: messages in, the next message out.
    #[command(after_help = STEP_HELP)]
    Step(Step),
    /// Talk with a model that uses the tools.
    #[command(after_help = CHAT_HELP)]
    Chat(Chat),
    /// Call one tool.
    #[command(after_help = CALL_EXAMPLES)]
    Call(Call),
    /// Evaluate one template, for learning and scripting.
    #[command(after_help = EVAL_EXAMPLES)]
    Eval(Eval),
    /// Run the `cli` section of a file, input by input.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunFile),
    /// Write a commented starter file.
    Init(Init),
    /// List the tools, or print their definitions.
    Tools(Tools),
    /// Check a file of tools, or a policy, without running anything.
    Check(Check),
    /// Offer the tools to an MCP client, on stdin and stdout.
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// List, call and lock the tools of an MCP server.
    #[command(subcommand)]
    Mcp(Mcp),
    /// List, filter and show recorded runs.
    #[command(after_help = RUNS_EXAMPLES, args_conflicts_with_subcommands = true)]
    Runs(Runs),
    /// Look at recorded runs in a browser, also while they go on.
    #[command(after_help = VIEW_HELP)]
    View(View),
    /// Run a recorded run again, offline: the model's and the tools' answers come from the record.
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
    /// Compare two recorded runs: what was said, called, decided and given back.
    #[command(
        after_help = "The exit code is 0 when they are the same and 1 when they differ.\n\nExample:\n  toolwright diff last~1 last"
    )]
    Diff(DiffRuns),
    /// Show what a sandbox lets through.
    Sandbox(SandboxCommand),
    /// Say what works on this machine, and how to get the rest.
    Doctor,
    /// Print completions for a shell.
    #[command(
        after_help = "Example:\n  toolwright completions bash > ~/.local/share/bash-completion/completions/toolwright"
    )]
    Completions(Completions),
    /// Print the manual page.
    #[command(after_help = "Example:\n  toolwright man > ~/.local/share/man/man1/toolwright.1")]
    Man(Man),
}

const CALL_EXAMPLES: &str = "\
Arguments are name=value; the tool's schema says whether a value is text, a number, a list or an object. With
name:=JSON the value is JSON whatever the schema says.

Examples:
  toolwright call add x=1 y=2
  toolwright call word_count text='to be or not to be'
  toolwright call bash command='make test' --write .
  toolwright call add --args '{\"x\": 1, \"y\": 2}'
  echo '{\"x\": 1, \"y\": 2}' | toolwright call add --args -";

const EVAL_EXAMPLES: &str = "\
A template that is one expression keeps its type, and is printed as JSON unless it is text; any other is text.

Examples:
  toolwright eval '${1 + 1}'
  toolwright eval 'Hello ${name.title()}' --vars '{\"name\": \"ada\"}'
  toolwright eval '${[n * n for n in range(5)]}'";

const RUN_EXAMPLES: &str = "\
Each result is printed as soon as it is there; progress goes to stderr. `-` stands for the lines of stdin.

Examples:
  toolwright run summarise.yaml notes.txt report.txt
  ls | toolwright run rename.yaml -";

#[derive(clap::Args)]
pub struct Eval {
    /// The template.
    pub template: String,
    /// Variables, as one JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub vars: String,
}

#[derive(clap::Args)]
pub struct RunFile {
    /// The file.
    pub file: PathBuf,
    /// Its inputs; `-` stands for the lines of stdin.
    pub inputs: Vec<String>,
    /// Go on with the next input when one fails; the exit code is still 1.
    #[arg(long)]
    pub keep_going: bool,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

#[derive(clap::Args)]
pub struct Init {
    /// Where to write it. An existing file is never overwritten.
    #[arg(default_value = "toolwright.yaml")]
    pub file: PathBuf,
    /// Ask nothing.
    #[arg(long)]
    pub yes: bool,
}

#[derive(clap::Args)]
pub struct Man {
    /// The command whose page to print; left out, the program's.
    pub command: Option<String>,
}

const SERVE_HELP: &str = "\
Tools that change nothing are approved. About all others the person at the client is asked, where the client can do that;
where it cannot, they are refused unless a policy approves them. Every call is validated, approved, bounded and recorded
like a model's.

A client is told to start `toolwright serve` (`toolwright mcp install` writes that for many of them):
  {\"mcpServers\": {\"toolwright\": {\"command\": \"toolwright\", \"args\": [\"serve\"]}}}

Over HTTP the endpoint is /mcp, and /health says whether the server is up. Requests for other host names, and from pages
of other sites, are refused. An address that other machines can reach needs a token.

Examples:
  toolwright serve tools.yaml
  toolwright serve tools.yaml --http 127.0.0.1:3000
  TOKEN=... toolwright serve --http 0.0.0.0:3000 --allow-host tools.example.com --token-env TOKEN --rate 20";

#[derive(clap::Args)]
pub struct Serve {
    /// Offer the tools of this file instead of the built-in ones.
    pub file: Option<PathBuf>,
    /// Offer only the tools that match; `!pattern` takes tools away.
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub tools: Vec<String>,
    /// Approval rules (YAML).
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Record everything that happens in this file.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
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
    #[arg(long, value_name = "ADDR")]
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
    #[arg(long, value_name = "ISSUER", requires = "audience", conflicts_with_all = ["token_env", "open"])]
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
    /// The variable with the key (32 bytes or more) that instances behind one load balancer share.
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub state_key_env: Option<String>,
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

const INSTALL_HELP: &str = "\
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
}

const LOCK_HELP: &str = "\
The lock keeps the definition of every tool: name, description, schemas, annotations, and the server's command. With
--check nothing is written: a tool that differs from the lock is shown with the difference, and the exit code is 1.

Examples:
  toolwright mcp lock --name files -- npx -y @modelcontextprotocol/server-filesystem .
  toolwright mcp lock --check --name files -- npx -y @modelcontextprotocol/server-filesystem .";

/// A server to start, or one with an address. A process is given the usual variables (PATH, HOME, LANG ...) and those
/// named here.
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
    /// Speak the transport of 2024-11-05 (HTTP with one stream of events).
    #[arg(long, requires = "url")]
    pub sse: bool,
    /// A variable for the server: NAME=VALUE, or NAME to pass ours on.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Run the server in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Show what the server writes on stderr.
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
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub save_to: PathBuf,
    #[command(flatten)]
    pub target: McpTarget,
}

#[derive(clap::Args)]
pub struct McpLock {
    /// The server's name in the lock.
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The lock.
    #[arg(long, value_name = "FILE", default_value = "tools.lock")]
    pub file: PathBuf,
    /// Only compare.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub target: McpTarget,
}

#[derive(clap::Args)]
pub struct Ask {
    /// What to ask.
    pub prompt: String,
    /// The model, for example `anthropic/claude-sonnet-4-5`, `openai/gpt-5` or `ollama/qwen3`, with the key in the
    /// vendor's usual environment variable; `scripted/FILE` plays the replies in a YAML file, `demo` is the
    /// built-in demo. Left out: TOOLWRIGHT_MODEL, a vendor whose key is set, a local server, or the demo.
    #[arg(long, value_name = "VENDOR/MODEL")]
    pub model: Option<String>,
    /// Stop after so many answers of the model.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub max_turns: u64,
    /// Describe the tools in the prompt and read calls from the text, for a model without a tool API.
    #[arg(long, value_name = "FORMAT")]
    pub prompted: Option<PromptWay>,
    #[command(flatten)]
    pub using: UsingArgs,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// How tools and calls are written in a prompt.
#[derive(Clone, Copy, ValueEnum)]
pub enum PromptWay {
    /// `<function_calls>` with one tag for each argument; large models know it.
    Xml,
    /// JSON between `<tool_call>` tags; small models know it.
    Json,
}

/// The tools a model may use, and under which rules.
#[derive(clap::Args)]
pub struct UsingArgs {
    /// Use the tools of this file instead of the built-in ones.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Use only the tools that match; `!pattern` takes tools away.
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub tools: Vec<String>,
    /// Approval rules (YAML); left out, tools that change nothing are approved and the rest is asked about.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

const STEP_HELP: &str = "\
Messages come in on stdin, as a JSON list or one message a line; the next one goes out on stdout, on one line, so that a
conversation is a file that grows:

  echo '{\"role\": \"user\", \"content\": \"What is 1 + 2?\"}' > talk.jsonl
  toolwright step < talk.jsonl >> talk.jsonl          the model answers, perhaps with calls
  toolwright step --call < talk.jsonl >> talk.jsonl   the calls it asked for are made: their results
  toolwright step < talk.jsonl >> talk.jsonl          and the model goes on

Between the steps you may look at the calls, change them, or write the results yourself. With --state the conversation,
the pending calls and what was spent are kept in a file, and stdin only holds what is new.

With --format anthropic-tools the messages have the roles user, assistant, tool_inputs and tool_outputs, and the model
is told about the tools in its prompt. A call it got wrong comes out as {\"status\": \"ERROR\", \"error_message\": TEXT}.";

#[derive(clap::Args)]
pub struct Step {
    /// The model; see `toolwright ask --help`.
    #[arg(long, value_name = "VENDOR/MODEL")]
    pub model: Option<String>,
    /// Make the calls that are pending instead of asking the model.
    #[arg(long)]
    pub call: bool,
    /// How messages are written.
    #[arg(long, value_enum, default_value_t = StepFormat::Native)]
    pub format: StepFormat,
    /// Keep the state of the run in this file; it is made when it is not there.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub using: UsingArgs,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// How the messages of `step` are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StepFormat {
    /// The messages of transcripts and of `ask --json`.
    Native,
    /// Those of the anthropic-tools package.
    AnthropicTools,
}

const CHAT_HELP: &str = "\
Enter sends, Alt+Enter or Ctrl+J begins a new line, Tab completes /commands and @files, Ctrl-C stops an answer and keeps
the conversation. /help lists the commands. Calls that change something are asked about. The session is kept when you
leave, and --resume takes it up. Without a terminal, every line of stdin is an input and answers go to stdout.

Examples:
  toolwright chat
  toolwright chat tools.yaml --model anthropic/claude-sonnet-4-5
  toolwright chat --resume
  echo 'What time is it?' | toolwright chat --model ollama/qwen3";

#[derive(clap::Args)]
pub struct Chat {
    /// The file of tools, with its `chat` section; `toolwright.yaml` when there is one here. With --resume, it may be a
    /// session (NAME.chat.yaml).
    pub file: Option<PathBuf>,
    /// The model: `vendor/model`, or a name of the file's `models`.
    #[arg(long, value_name = "VENDOR/MODEL")]
    pub model: Option<String>,
    /// Go on with the last session of this folder, or with the one that is named.
    #[arg(long)]
    pub resume: bool,
    /// Approval rules (YAML); left out, tools that change nothing are approved and the rest is asked about.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

#[derive(clap::Args)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// A file of tools to find it in, besides the built-in ones.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Its arguments.
    #[arg(value_name = "NAME=VALUE")]
    pub arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from stdin.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Stop the call after this long: `30`, `1.5s`, `2m`.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Give back at most so many bytes of text; 0 means everything.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub max_output: usize,
    /// Save pictures and other files of the result here.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub save_to: PathBuf,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Where the run is recorded. Left alone, in the user's folder of runs; `toolwright runs` lists them.
#[derive(clap::Args)]
pub struct RecordArgs {
    /// Record everything that happens in this file instead of the folder of runs.
    #[arg(long, value_name = "FILE", conflicts_with = "no_record")]
    pub transcript: Option<PathBuf>,
    /// Record nothing.
    #[arg(long)]
    pub no_record: bool,
}

const RUNS_EXAMPLES: &str = "\
A run is named by `last`, `last~1` (the one before), a part of its id, or the path of a transcript.

Runs are kept in $XDG_DATA_HOME/toolwright/runs (~/.local/share/toolwright/runs), readable by you alone, without your
keys; TOOLWRIGHT_RUNS names another folder. The newest 1000 are kept; TOOLWRIGHT_KEEP_RUNS sets another number.

Examples:
  toolwright runs                     the newest 20
  toolwright runs --failed --tool bash
  toolwright runs --search 'no such file' --all
  toolwright runs show last
  toolwright runs remove last~3";

const VIEW_HELP: &str = "\
Prints the address of a page on this machine: runs, a timeline of messages and calls, arguments, results, pictures,
errors, approvals, tokens and cost. Nobody else can reach it: it listens on 127.0.0.1, and the address holds a random word.

Examples:
  toolwright view
  toolwright view last
  toolwright view run.jsonl --port 8765";

#[derive(clap::Args)]
pub struct View {
    /// The run to begin with; left out, the newest.
    pub run: Option<String>,
    /// Listen on this port; 0 takes any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

const REPLAY_HELP: &str = "\
Nothing is run and nobody is asked: every call goes through today's tools, schemas and policy, and where it would be
run, the recorded answer is given. So a replay shows what a change of a tool, a file or a policy would have done to a
run that happened. The exit code is 0 when nothing differs and 1 when something does.

Examples:
  toolwright replay last
  toolwright replay last --policy stricter.yaml
  toolwright replay last -f tools.yaml";

#[derive(clap::Args)]
pub struct Runs {
    #[command(subcommand)]
    pub what: Option<RunsWhat>,
    /// Show at most so many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Show all.
    #[arg(long)]
    pub all: bool,
    /// Only runs of this command, such as `ask` or `chat`.
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// Only runs that did not end well, or in which a call failed.
    #[arg(long)]
    pub failed: bool,
    /// Only runs that called this tool.
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only runs in which this text appears, whatever its case.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
}

#[derive(Subcommand)]
pub enum RunsWhat {
    /// Show one run from its first message to its end; with --json, its events as they were recorded.
    Show {
        /// The run.
        #[arg(default_value = "last")]
        run: String,
        /// Show whole arguments and results.
        #[arg(long)]
        full: bool,
    },
    /// Print where a run is kept.
    Path {
        /// The run.
        #[arg(default_value = "last")]
        run: String,
    },
    /// Remove runs.
    Remove {
        /// The runs.
        #[arg(required = true)]
        runs: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct Replay {
    /// The run.
    #[arg(default_value = "last")]
    pub run: String,
    /// Use the tools of this file instead of the one the run used.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Decide by these rules instead of as it was decided.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct DiffRuns {
    /// The earlier run.
    pub a: String,
    /// The later run.
    #[arg(default_value = "last")]
    pub b: String,
}

/// Where tools that need a sandbox work.
#[derive(clap::Args)]
pub struct SandboxArgs {
    /// The kind of sandbox: process, docker:IMAGE, podman:IMAGE, local or none. `local` isolates nothing; with `none` the
    /// tools that need a sandbox are refused.
    #[arg(long, value_name = "KIND", default_value = "process")]
    pub sandbox: SandboxKind,
    /// Let tools read this file or folder, beside the current folder and the system.
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Let tools write in this folder; `.` is the current one.
    #[arg(long, value_name = "FOLDER")]
    pub write: Vec<PathBuf>,
    /// Let tools reach this host (`example.com`, `*.example.com`, `example.com:8443`) through a filtering proxy.
    #[arg(long, value_name = "HOST")]
    pub allow_net: Vec<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub enum SandboxKind {
    Process,
    /// `docker` or `podman`, and the image.
    Engine(String),
    Local,
    None,
}

impl std::str::FromStr for SandboxKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "process" => Ok(SandboxKind::Process),
            "local" => Ok(SandboxKind::Local),
            "none" => Ok(SandboxKind::None),
            "docker" | "podman" => Err(format!("name the image, for example {text}:debian:12")),
            _ if text.starts_with("docker:") || text.starts_with("podman:") => {
                Ok(SandboxKind::Engine(text.to_owned()))
            }
            _ => Err("the kinds are process, docker:IMAGE, podman:IMAGE, local and none".to_owned()),
        }
    }
}

#[derive(clap::Args)]
pub struct SandboxCommand {
    #[command(subcommand)]
    pub what: SandboxWhat,
}

#[derive(Subcommand)]
pub enum SandboxWhat {
    /// Print what tools would see and which protections would be on.
    Explain {
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
}

#[derive(clap::Args)]
pub struct Tools {
    /// A file of tools (its name ends in .yaml or .yml), and patterns over names; `!pattern` takes tools away.
    #[arg(value_name = "FILE|PATTERN")]
    pub which: Vec<String>,
    /// Print whole definitions in this form; what gets lost on the way is said on stderr, and with `--json` in the
    /// answer.
    #[arg(long)]
    pub format: Option<Format>,
    /// In the vendor's strict mode, where the definitions allow it.
    #[arg(long, requires = "format")]
    pub strict: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// Toolwright's own.
    Json,
    /// As an MCP server lists them.
    Mcp,
    /// As the Anthropic Messages API takes them.
    Anthropic,
    /// As the OpenAI Chat Completions API takes them.
    Openai,
    /// As the OpenAI Responses API takes them.
    OpenaiResponses,
    /// As Google's `generateContent` takes them.
    Gemini,
    /// As Amazon Bedrock's Converse takes them.
    Bedrock,
}

#[derive(clap::Args)]
pub struct Check {
    /// A file of tools; `toolwright.yaml` when there is one here.
    pub file: Option<PathBuf>,
    /// A policy to check: a list of approval rules, or Inspect's `approvers`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Starts the MCP servers that the file imports tools from, so that calls of those tools are checked too.
    #[arg(long)]
    pub start_servers: bool,
}

#[derive(clap::Args)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// Reads `30`, `1.5s`, `200ms`, `2m`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.strip_prefix(number).unwrap_or_default();
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is not a unit of time; use ms, s, m or h")),
    };
    let value: f64 = number.parse().map_err(|_| "write a number and a unit, such as 30s".to_owned())?;
    let time = Duration::try_from_secs_f64(value * factor).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("no time at all is too short".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        for bad in ["", "s", "-1s", "5x", "0", "1e400"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
