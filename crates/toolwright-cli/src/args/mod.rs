//! The command line. Every word of help is here, and in the files beside: one for each group of commands.

mod hook;
mod mcp;
mod read;
mod runs;
mod sandbox;
mod talk;
mod tools;
mod trust;

use std::time::Duration;

use clap::{Parser, Subcommand};

pub use hook::{Hook, HookAnswer, HookClient, HookInstall, HookWhat};
pub use mcp::{Mcp, McpCall, McpClient, McpInstall, McpList, McpLock, McpTarget, Serve, ServeHttp};
pub use read::ReadArgs;
pub use runs::{Commit, DiffRuns, RecordArgs, Replay, Runs, RunsWhat, Undo, ViewArgs};
pub use sandbox::{SandboxArgs, SandboxCommand, SandboxWhat};
pub use talk::{Ask, Chat, ModelArgs, PromptWay, StepArgs, StepFormat, UsingArgs};
pub use tools::{CallArgs, Check, Eval, Format, Init, RunFile, Tools};
pub use trust::{Trust, TrustWhat};

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
  toolwright ask 'What can you do?'      a model works with tools; without a key, a demo
  toolwright chat                        talk with it
  toolwright tools                       the tools there are
  toolwright call add x=1 y=2            call one of them
  toolwright serve                       offer the tools to an MCP client
  toolwright mcp list -- COMMAND         the tools of an MCP server
  toolwright call bash command='ls -la'  a command, in a sandbox that may only read this folder
  toolwright read paper.pdf              a document as a model gets it
  toolwright init; toolwright check      write a file of your own tools, and check it
  toolwright runs; toolwright view       what happened in earlier runs, here or in a browser
  toolwright doctor                      what works here, and how to get the rest

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.";

#[derive(Subcommand)]
pub enum Command {
    /// Let a model work with the tools until it has an answer.
    Ask(Ask),
    /// Let a model take one step, by hand: messages in, the next message out.
    #[command(after_help = talk::STEP_HELP)]
    Step(StepArgs),
    /// Talk with a model that uses the tools.
    #[command(after_help = talk::CHAT_HELP, arg = no_json())]
    Chat(Chat),
    /// List the models there are: those of keys, of local servers and of a file.
    #[command(after_help = talk::MODELS_HELP)]
    Models(ModelArgs),
    /// Call one tool.
    #[command(after_help = tools::CALL_EXAMPLES)]
    Call(CallArgs),
    /// Print a document as a model gets it: PDF, Office, mail, workbooks and more.
    #[command(after_help = read::EXAMPLES)]
    Read(ReadArgs),
    /// Evaluate one template, for learning and scripting.
    #[command(after_help = tools::EVAL_EXAMPLES)]
    Eval(Eval),
    /// Run the `cli` section of a file, input by input.
    #[command(after_help = tools::RUN_EXAMPLES)]
    Run(RunFile),
    /// Write a commented starter file.
    Init(Init),
    /// List the tools, or print their definitions.
    Tools(Tools),
    /// Check a file of tools, or a policy, without running anything.
    Check(Check),
    /// Offer the tools to an MCP client, on stdin and stdout.
    #[command(after_help = mcp::SERVE_HELP)]
    Serve(Serve),
    /// List, call and lock the tools of an MCP server.
    #[command(subcommand)]
    Mcp(Mcp),
    /// Answer the hooks of other agents: your rules about their calls, and a record of them.
    #[command(after_help = hook::HOOK_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Hook(Hook),
    /// List, filter and show recorded runs.
    #[command(after_help = runs::RUNS_EXAMPLES, args_conflicts_with_subcommands = true)]
    Runs(Runs),
    /// Look at recorded runs in a browser, also while they go on.
    #[command(after_help = runs::VIEW_HELP)]
    View(ViewArgs),
    /// Run a recorded run again, offline: the model's and the tools' answers come from the record.
    #[command(after_help = runs::REPLAY_HELP)]
    Replay(Replay),
    /// Compare two recorded runs: what was said, called, decided and given back.
    #[command(
        after_help = "The exit code is 0 when they are the same and 1 when they differ.\n\nExample:\n  toolwright diff last~1 last"
    )]
    Diff(DiffRuns),
    /// Apply changes of calls that were set aside.
    #[command(after_help = runs::COMMIT_HELP)]
    Commit(Commit),
    /// Undo what calls changed in the folders they could write.
    #[command(after_help = runs::UNDO_HELP)]
    Undo(Undo),
    /// Show what a sandbox lets through.
    Sandbox(SandboxCommand),
    /// Trust a folder; list, show and revoke trust in files that are found.
    #[command(after_help = trust::TRUST_HELP, args_conflicts_with_subcommands = true, arg_required_else_help = true)]
    Trust(Trust),
    /// Say what works on this machine, and how to get the rest.
    Doctor,
    /// Print completions for a shell.
    #[command(
        after_help = "Example:\n  toolwright completions bash > ~/.local/share/bash-completion/completions/toolwright",
        arg = no_json()
    )]
    Completions(Completions),
    /// Print the manual page.
    #[command(
        after_help = "Examples:\n  toolwright man chat | man -l -\n  toolwright man --to ~/.local/share/man/man1",
        arg = no_json()
    )]
    Man(Man),
}

impl Command {
    /// What a program should ask instead, where a command is for people alone.
    pub fn is_for_people(&self) -> Option<&'static str> {
        match self {
            Command::Chat(_) => Some(
                "`toolwright ask --json` answers one question; `toolwright step` takes the messages of a conversation and gives the next",
            ),
            Command::Completions(_) | Command::Man(_) => Some("leave out --json"),
            _ => None,
        }
    }
}

/// In place of the program's own `--json`, where there is nothing to offer: it is still understood, to be
/// refused.
fn no_json() -> clap::Arg {
    clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue).hide(true)
}

#[derive(clap::Args)]
pub struct Man {
    /// The command whose page to print; left out, the program's.
    pub command: Option<String>,
    /// Write the pages of the program and of all its commands into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub to: Option<std::path::PathBuf>,
}

#[derive(clap::Args)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// The names of the commands.
pub fn command_names() -> Vec<String> {
    use clap::CommandFactory as _;
    Args::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
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

    /// A paragraph of help is one line: how long it may be is the terminal's affair.
    #[test]
    fn help_is_wrapped_by_the_terminal() {
        use clap::CommandFactory as _;
        let mut open = vec![Args::command()];
        while let Some(command) = open.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for (line, next) in help.lines().zip(help.lines().skip(1)) {
                let flows = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let both = flows(line) && flows(next) && !line.ends_with(':');
                assert!(!both, "{}: two lines of one paragraph:\n{line}\n{next}", command.get_name());
            }
            open.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
