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
    match args.command {
        Command::Completions(what) => return commands::completions::run(&what),
        Command::Man(what) => return commands::man::run(&what),
        Command::Eval(what) => return commands::eval::run(&what, args.json),
        Command::Init(what) => return commands::init::run(&what, args.json),
        Command::Runs(what) => return commands::runs::run(&what, args.json),
        Command::Diff(what) => return commands::diff::run(&what, args.json),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        match args.command {
            Command::Call(what) => commands::call::run(what, args.json).await,
            Command::Step(what) => commands::step::run(what).await,
            Command::Ask(what) => commands::ask::run(what, args.json).await,
            Command::Serve(what) => commands::serve::run(what, args.json).await,
            Command::Mcp(what) => commands::interruptible(commands::mcp::run(what, args.json)).await,
            Command::Sandbox(what) => commands::sandbox::run(&what, args.json).await,
            Command::Doctor => commands::doctor::run(args.json).await,
            Command::Run(what) => commands::run::run(what, args.json).await,
            Command::Chat(what) => chat::run(what).await,
            Command::View(what) => commands::view::run(what, args.json).await,
            Command::Replay(what) => commands::interruptible(commands::replay::run(what, args.json)).await,
            // They may have to start the servers a file imports tools from.
            Command::Tools(what) => commands::tools::run(&what, args.json),
            Command::Models(what) => commands::models::run(what, args.json),
            Command::Check(what) => commands::check::run(&what, args.json),
            Command::Completions(_)
            | Command::Man(_)
            | Command::Eval(_)
            | Command::Init(_)
            | Command::Runs(_)
            | Command::Diff(_) => Ok(()),
        }
    });
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
