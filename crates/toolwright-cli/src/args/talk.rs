//! `ask`, `step` and `chat`: a model works.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{RecordArgs, SandboxArgs};
use crate::toolbox::Profile;

pub(super) const ASK_HELP: &str = "\
The answer goes to stdout. Calls, progress and costs go to stderr; -q leaves them out.

Examples:
  toolwright ask 'Which of these files is the largest?'
  journalctl -b | toolwright ask 'Why did it fail?'
  toolwright ask 'What is in this picture?' @diagram.png
  toolwright ask -a report.pdf 'Summarise it' --tools none
  toolwright ask -c 'And in one sentence?'
  toolwright ask 'List the authors' --schema authors.json | jq .";

#[derive(clap::Args)]
pub struct Ask {
    /// What to ask. `-` stands for stdin, and so does no prompt where stdin is a pipe or a file; beside a
    /// prompt, what is piped in comes before it. `@FILE` attaches a file.
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Attach a file: text, a picture, a PDF or another document.
    #[arg(short, long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// Continue the last conversation of this folder, with its model and its file of tools.
    #[arg(short = 'c', long = "continue")]
    pub go_on: bool,
    /// Instructions for the model in place of the usual ones; `@FILE` reads them from a file, and an empty
    /// text gives none.
    #[arg(short, long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Answer with JSON that follows this JSON Schema (a file, or JSON). An answer that does not is sent back
    /// to the model, twice at most.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<String>,
    /// The model, for example `anthropic/claude-sonnet-4-5`, `openai/gpt-5` or `ollama/qwen3`, with the key
    /// in the vendor's usual environment variable; `scripted/FILE` plays the replies in a YAML file, `demo`
    /// is the built-in demo. Left out: TOOLWRIGHT_MODEL, a vendor whose key is set, a local server, or,
    /// without a file of tools, the demo.
    #[arg(short, long, value_name = "VENDOR/MODEL")]
    pub model: Option<String>,
    /// Stop after N turns of the model. The default is the file's `limits`, or 20.
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u64>,
    /// Stop once the answer has cost more than this many US dollars.
    #[arg(long, value_name = "USD", value_parser = super::dollars)]
    pub max_cost: Option<f64>,
    /// Give the model at most BYTES of text of each call; 0 means unlimited. The default is the file's
    /// `limits`, or 16384.
    #[arg(long, value_name = "BYTES")]
    pub max_output: Option<usize>,
    /// Whether the model calls tools: `auto`, as it likes; `any`, at least one before it answers; `none`; or
    /// a tool's name, for that one first.
    #[arg(long, value_name = "auto|any|none|NAME", default_value = "auto", hide_default_value = true)]
    pub tool_choice: String,
    /// Describe the tools in the prompt and read calls from the text, for a model without a tool API.
    #[arg(long, value_name = "FORMAT")]
    pub prompted: Option<PromptWay>,
    /// Print every event of the run on stdout as it happens, one JSON object a line.
    #[arg(long, conflicts_with = "json")]
    pub jsonl: bool,
    /// Show the instructions, the tools that are offered, and all nested calls.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
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
    /// Use the tools of this file instead of the built-in ones; `toolwright.yaml` when there is one here.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Use only the tools that match: names or patterns with commas between; `!pattern` takes tools away, and
    /// `none` offers none.
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// The built-in tools to offer where no file is used.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,
    /// Approval rules (YAML); left out, tools that change nothing or work in a sandbox are approved, and the
    /// rest is asked about.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Approve what rules ask about. What they refuse stays refused.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

pub(super) const STEP_HELP: &str = "\
Messages come in on stdin, as a JSON list or one message a line; the next one goes out on stdout, on one line, so that a \
conversation is a file that grows:

  echo '{\"role\": \"user\", \"content\": \"What is 1 + 2?\"}' > talk.jsonl
  toolwright step < talk.jsonl >> talk.jsonl          the model answers, perhaps with calls
  toolwright step --call < talk.jsonl >> talk.jsonl   the calls it asked for are made: their results
  toolwright step < talk.jsonl >> talk.jsonl          and the model goes on

Between the steps you may look at the calls, change them, or write the results yourself. With --state the conversation, \
the pending calls and what was spent are kept in a file, and stdin only holds what is new.

With --format anthropic-tools the messages have the roles user, assistant, tool_inputs and tool_outputs, and the model \
is told about the tools in its prompt. A call it got wrong comes out as {\"status\": \"ERROR\", \"error_message\": TEXT}.";

#[derive(clap::Args)]
pub struct StepArgs {
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
    /// Whether the model calls tools: `auto`, as it likes; `any`, at least one; `none`; or a tool's name, for
    /// that one.
    #[arg(long, value_name = "auto|any|none|NAME", default_value = "auto", hide_default_value = true)]
    pub tool_choice: String,
    /// Describe the tools in the prompt and read calls from the text, for a model without a tool API.
    #[arg(long, value_name = "FORMAT")]
    pub prompted: Option<PromptWay>,
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

pub(super) const CHAT_HELP: &str = "\
Enter sends, Alt+Enter or Ctrl+J begins a new line, Tab completes /commands and @files, Ctrl-C stops an answer and keeps \
the conversation. /help lists the commands. Calls that change something outside the sandbox are asked about; --write . lets tools write in this folder. The session is kept when you \
leave, and --resume takes it up. Without a terminal, every line of stdin is an input and answers go to stdout.

Examples:
  toolwright chat
  toolwright chat tools.yaml --model anthropic/claude-sonnet-4-5
  toolwright chat --resume
  echo 'What time is it?' | toolwright chat --model ollama/qwen3";

#[derive(clap::Args)]
pub struct Chat {
    /// The file of tools, with its `chat` section; `toolwright.yaml` when there is one here. With --resume,
    /// it may be a session (NAME.chat.yaml).
    pub file: Option<PathBuf>,
    /// The same, as other commands take it.
    #[arg(short = 'f', long = "file", value_name = "FILE", hide = true, conflicts_with = "file")]
    pub also_file: Option<PathBuf>,
    /// The model: `vendor/model`, or a name of the file's `models`. A resumed session has its own.
    #[arg(short, long, value_name = "VENDOR/MODEL")]
    pub model: Option<String>,
    /// Instructions for the model in place of the usual ones, or of the file's; `@FILE` reads them from a
    /// file, and an empty text gives none.
    #[arg(short, long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Go on with the last session of this folder, or with the one that is named.
    #[arg(long)]
    pub resume: bool,
    /// Use only the tools that match: names or patterns with commas between; `!pattern` takes tools away, and
    /// `none` offers none.
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// The built-in tools to offer where no file is used.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,
    /// Approval rules (YAML); left out, tools that change nothing or work in a sandbox are approved, and the
    /// rest is asked about.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Approve what rules ask about. What they refuse stays refused.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

pub(super) const MODELS_HELP: &str = "\
Vendors whose key is set, the models of local llama.cpp and Ollama servers, and those a file names. Nothing is sent to a \
vendor, and no key is shown.

Examples:
  toolwright models
  toolwright ask 'What can you do?' --model ollama/llama3.2";

#[derive(clap::Args)]
pub struct ModelArgs {
    /// The file whose models to list too; left out, `toolwright.yaml` when there is one.
    pub file: Option<PathBuf>,
    /// The same, as other commands take it.
    #[arg(short = 'f', long = "file", value_name = "FILE", hide = true, conflicts_with = "file")]
    pub also_file: Option<PathBuf>,
}
