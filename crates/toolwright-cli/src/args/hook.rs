//! `hook`: our rules about the calls of agents that people already run.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::RecordArgs;

pub(super) const HOOK_HELP: &str = "\
The agent sends each call of its tools as JSON on stdin, and is answered on stdout: allowed, asked about, refused, or with other \
arguments. The rules are yours (`policy.yaml` in the settings folder), the machine's, and those of --policy; the strictest \
decides, and a call that no rule is about is asked about. A rule about `bash` holds for the agent's `Bash`, one about \
`mcp:server/tool` for the tools of its servers.

Whatever goes wrong refuses the call: exit code 2, with the reason on stderr. Every call is recorded; `toolwright runs` lists \
one run for each session of the agent.

Examples:
  toolwright hook install --client claude-code --policy policy.yaml --write
  toolwright hook install --client codex --project --write
  toolwright hook --client claude-code --policy policy.yaml < call.json";

#[derive(clap::Args)]
pub struct Hook {
    #[command(subcommand)]
    pub what: Option<HookWhat>,
    #[command(flatten)]
    pub answer: HookAnswer,
}

#[derive(Subcommand)]
pub enum HookWhat {
    /// Have an agent ask these rules about every call.
    Install(HookInstall),
}

/// Answers one event of an agent.
#[derive(clap::Args)]
pub struct HookAnswer {
    /// The agent that asks.
    #[arg(long)]
    pub client: Option<HookClient>,
    /// Approval rules (YAML).
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    #[command(flatten)]
    pub record: RecordArgs,
}

#[derive(clap::Args)]
pub struct HookInstall {
    /// The agent.
    #[arg(long)]
    pub client: HookClient,
    /// Approval rules (YAML), beside your own and the machine's.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// For this project only.
    #[arg(long)]
    pub project: bool,
    /// Write the agent's file.
    #[arg(long)]
    pub write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HookClient {
    ClaudeCode,
    Codex,
}
