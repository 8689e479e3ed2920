//! The `toolwright` program. This crate is the only place that prints, prompts, and takes settings from the environment.
//!
//! Data goes to stdout, everything else to stderr. Exit 0: done; 1: it ended without success; 2: usage or configuration.

/// Says something on stderr.
macro_rules! eprintln {
    ($($words:tt)*) => {{
        $crate::lines::say(&format!($($words)*));
    }};
}

mod answers;
mod args;
mod chat;
mod commands;
mod demo;
mod fields;
mod files;
mod json_text;
mod keyboard;
mod lines;
mod models;
mod opening;
mod prompt;
mod report;
mod runs;
mod sandboxes;
mod saved;
mod spending;
mod tokens;
mod toolbox;
mod trust;
mod unset;
mod version;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};

/// The longest that ending the servers of a file may take: two seconds by themselves, two more when they are asked.
const LAST_MOMENT: std::time::Duration = std::time::Duration::from_secs(6);

fn main() -> ExitCode {
    // A sandbox starts this program again; that instance ends here.
    toolwright::sandbox::launcher::main_if_launcher();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return report::misused(error),
    };
    let json = args.json;
    let outcome = run(args);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if report::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report::print(&error, json);
            report::exit_code(&error)
        }
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    if let Some(instead) = args.command.is_for_people().filter(|_| args.json) {
        return Err(report::Usage::new("what this command prints is not JSON").hint(instead).into());
    }
    let json = args.json;
    match args.command {
        Command::Completions(what) => commands::completions::run(&what),
        Command::Man(what) => commands::man::run(&what),
        Command::Eval(what) => commands::eval::run(&what, json),
        Command::Init(what) => commands::init::run(&what, json),
        Command::Runs(what) => commands::runs::run(&what, json),
        Command::Diff(what) => commands::diff::run(&what, json),
        Command::Call(what) => on_runtime(commands::call::run(what, json)),
        Command::Step(what) => on_runtime(commands::step::run(what)),
        Command::Ask(what) => on_runtime(commands::ask::run(what, json)),
        Command::Serve(what) => on_runtime(commands::serve::run(what, json)),
        Command::Mcp(what) => on_runtime(commands::interruptible(commands::mcp::run(what, json))),
        Command::Sandbox(what) => on_runtime(commands::sandbox::run(&what, json)),
        Command::Doctor => on_runtime(commands::doctor::run(json)),
        Command::Run(what) => on_runtime(commands::run::run(what, json)),
        Command::Chat(what) => on_runtime(chat::run(what)),
        Command::View(what) => on_runtime(commands::view::run(what, json)),
        Command::Replay(what) => on_runtime(commands::interruptible(commands::replay::run(what, json))),
        Command::Tools(what) => on_runtime(commands::tools::run(what, json)),
        Command::Models(what) => on_runtime(commands::models::run(what, json)),
        Command::Check(what) => on_runtime(commands::check::run(what, json)),
    }
}

/// Does the work of a command that waits for something, and ends what it started.
fn on_runtime(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(work);
    // What was started is ended, with everything it started; who takes longer than this to do so is not waited for.
    runtime.block_on(async {
        let ended =
            async { tokio::join!(toolwright::mcp::servers_ended(), toolwright::sandbox::sandboxes_ended()) };
        let Ok(((), left)) = tokio::time::timeout(LAST_MOMENT, ended).await else { return };
        for (folder, why) in left {
            eprintln!("a private folder could not be removed: `{}`: {why}", folder.display());
        }
    });
    // Work that was abandoned on a time-out or a Ctrl-C must not keep the program alive.
    runtime.shutdown_background();
    outcome
}
