//! Recording runs, and `runs`, `view`, `replay` and `diff`, which look at them.

use std::path::PathBuf;

use clap::Subcommand;

/// Where the run is recorded. Left alone, in the user's folder of runs; `toolwright runs` lists them.
#[derive(Clone, clap::Args)]
pub struct RecordArgs {
    /// Record everything that happens in this file instead of the folder of runs.
    #[arg(long, value_name = "FILE", conflicts_with = "no_record")]
    pub transcript: Option<PathBuf>,
    /// Record nothing.
    #[arg(long)]
    pub no_record: bool,
}

pub(super) const RUNS_EXAMPLES: &str = "\
A run is named by `last`, `last~1` (the one before), a part of its id, or the path of a transcript.

Runs are kept in $XDG_DATA_HOME/toolwright/runs (~/.local/share/toolwright/runs), readable by you alone, without your \
keys; TOOLWRIGHT_RUNS names another folder. The newest 1000 are kept; TOOLWRIGHT_KEEP_RUNS sets another number.

Examples:
  toolwright runs                     the newest 20
  toolwright runs --failed --tool bash
  toolwright runs --search 'no such file' --all
  toolwright runs show last
  toolwright runs remove last~3";

pub(super) const UNDO_HELP: &str = "\
A file is restored only where it is still as the call left it; the others are named. What calls replaced is kept for a \
week, up to 2 GiB. Undoing an undo does it again: both print the commit that they made.

Examples:
  toolwright undo                      the latest change in this folder
  toolwright undo last                 all changes of the latest run
  toolwright undo toolu_01A7           those of one call of the latest run
  toolwright undo 019a9b1c2d3e-5f607182   one commit, as `runs show` names it";

/// What to undo.
#[derive(clap::Args)]
pub struct Undo {
    /// A commit, a run, or the id of a call of the run; left out, the latest commit in this folder.
    pub what: Option<String>,
    /// The run that the call is of.
    #[arg(long, value_name = "RUN", default_value = "last")]
    pub run: String,
}

pub(super) const COMMIT_HELP: &str = "\
Changes are set aside when somebody was to be asked about them and nobody could be: many deletions, files that programs outside \
obey, new programs, and conflicts. They are kept for a week. A file is changed only where it is still as it was then.

Examples:
  toolwright commit                        what is set aside
  toolwright commit 019a9b1c2d3e-5f607182  apply it, as the result of the call names it
  toolwright commit toolu_01A7             the latest of that call
  toolwright commit toolu_01A7 --drop      give it up";

/// What to apply.
#[derive(clap::Args)]
pub struct Commit {
    /// What was set aside, or the id of a call; left out, all that is set aside is listed.
    pub what: Option<String>,
    /// Drop it in place of applying it.
    #[arg(long, requires = "what")]
    pub drop: bool,
}

pub(super) const VIEW_HELP: &str = "\
Prints the address of a page on this machine: runs, a timeline of messages and calls, arguments, results, pictures, \
errors, approvals, tokens and cost. Nobody else can reach it: it listens on 127.0.0.1, and the address holds a random word.

Examples:
  toolwright view
  toolwright view last
  toolwright view run.jsonl --port 8765";

#[derive(clap::Args)]
pub struct ViewArgs {
    /// The run to begin with; left out, the newest.
    pub run: Option<String>,
    /// Listen on this port; 0 takes any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

pub(super) const REPLAY_HELP: &str = "\
Nothing is run and nobody is asked: every call goes through today's tools, schemas and policy, and where it would be \
run, the recorded answer is given. So a replay shows what a change of a tool, a file or a policy would have done to a \
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
