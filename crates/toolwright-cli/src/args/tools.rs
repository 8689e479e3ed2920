//! Tools and files of tools: `call`, `eval`, `run`, `init`, `tools`, `check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{RecordArgs, SandboxArgs, duration};

pub(super) const CALL_EXAMPLES: &str = "\
Arguments are name=value; the tool's schema says whether a value is text, a number, a list or an object. With \
name:=JSON the value is JSON whatever the schema says.

Examples:
  toolwright call add x=1 y=2
  toolwright call word_count text='to be or not to be'
  toolwright call bash command='make test' --write .
  toolwright call add --args '{\"x\": 1, \"y\": 2}'
  echo '{\"x\": 1, \"y\": 2}' | toolwright call add --args -";

pub(super) const EVAL_EXAMPLES: &str = "\
A template that is one expression keeps its type, and is printed as JSON unless it is text; any other is text.

Examples:
  toolwright eval '${1 + 1}'
  toolwright eval 'Hello ${name.title()}' --vars '{\"name\": \"ada\"}'
  toolwright eval '${[n * n for n in range(5)]}'";

pub(super) const RUN_EXAMPLES: &str = "\
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
pub struct CallArgs {
    /// The tool.
    pub tool: String,
    /// A file of tools to find it in, besides the built-in ones; `toolwright.yaml` when there is one here.
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
    #[arg(long, value_name = "FOLDER")]
    pub save_to: Option<PathBuf>,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

#[derive(clap::Args)]
pub struct Tools {
    /// A file of tools (its name ends in .yaml or .yml; `toolwright.yaml` when there is one here, else the
    /// built-in tools), and patterns over names; `!pattern` takes tools away.
    #[arg(value_name = "FILE|PATTERN")]
    pub which: Vec<String>,
    /// A file of tools, whatever its name.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print whole definitions in this form; what gets lost on the way is said on stderr, and with `--json`
    /// in the answer.
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
    /// The same, as other commands take it.
    #[arg(short = 'f', long = "file", value_name = "FILE", hide = true, conflicts_with = "file")]
    pub also_file: Option<PathBuf>,
    /// A policy to check: a list of approval rules, or Inspect's `approvers`.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Starts the MCP servers that the file imports tools from, so that calls of those tools are checked too.
    #[arg(long, alias = "connect")]
    pub start_servers: bool,
}
