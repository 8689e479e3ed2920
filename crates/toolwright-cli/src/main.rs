//! The `toolwright` program. This crate is the only place that prints, prompts, and takes settings from the
//! environment.
//!
//! Data goes to stdout, everything else to stderr. Exit 0: done; 1: it ended without success; 2: usage or
//! configuration.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod changes;
mod chat;
mod client_files;
mod commands;
mod console;
mod demo;
mod files;
mod form_fields;
mod hook;
mod json_text;
mod keyboard;
mod lines;
mod models;
mod oauth_setup;
mod opening;
mod policies;
mod prompt;
mod prompt_env;
mod report;
mod runs;
mod sandboxes;
mod server_questions;
mod spending;
mod toml_text;
mod toolbox;
mod trust;
mod version;
mod view;
mod write_file;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command, HookWhat};
use crate::console::{Console, Output};

/// The longest that ending the servers of a file may take: two seconds by themselves, two more when they are
/// asked.
const LAST_MOMENT: std::time::Duration = std::time::Duration::from_secs(6);

fn main() -> ExitCode {
    // A sandbox starts this program again; that instance ends here.
    toolwright::sandbox::launcher::main_if_launcher();
    // So does reading a document.
    toolwright::documents::main_if_worker();
    toolwright::tools::main_if_worker();
    harden();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return report::misused(&Console::new(Output::Text), error),
    };
    let console = Console::new(if args.json { Output::Json } else { Output::Text });
    match run(args, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if report::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report::print(&console, &error);
            report::exit_code(&error)
        }
    }
}

/// Keeps keys out of core files, and other processes of the same user out of this one's memory. Programs that
/// it starts decide for themselves.
fn harden() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
        // Neither can fail for a process about itself; where a filter refuses them it is as it would be.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

fn run(args: Args, console: &Console) -> anyhow::Result<()> {
    if let Some(instead) = args.command.is_for_people().filter(|_| console.is_json()) {
        return Err(report::Usage::new("what this command prints is not JSON").hint(instead).into());
    }
    changes::recover(console);
    match args.command {
        Command::Commit(what) => commands::commit::run(&what, console),
        Command::Undo(what) => commands::undo::run(&what, console),
        Command::Completions(what) => commands::completions::run(&what, console),
        Command::Man(what) => commands::man::run(&what, console),
        Command::Eval(what) => commands::eval::run(&what, console),
        Command::Read(what) => commands::read::run(&what, console),
        Command::Init(what) => commands::init::run(&what, console),
        Command::Hook(what) => match &what.what {
            Some(HookWhat::Install(install)) => hook::install::run(install, console),
            None => hook::run(&what.answer, console),
        },
        Command::Runs(what) => commands::runs::run(&what, console),
        Command::Diff(what) => commands::diff::run(&what, console),
        Command::Call(what) => on_runtime(console, commands::call::run(what, console)),
        Command::Step(what) => on_runtime(console, commands::step::run(what, console)),
        Command::Ask(what) => on_runtime(console, commands::ask::run(what, console)),
        Command::Serve(what) => on_runtime(console, commands::serve::run(what, console)),
        Command::Mcp(what) => on_runtime(console, commands::interruptible(commands::mcp::run(what, console))),
        Command::Sandbox(what) => on_runtime(console, commands::sandbox::run(&what, console)),
        Command::Trust(what) => on_runtime(console, commands::trust::run(what, console)),
        Command::Doctor => on_runtime(console, commands::doctor::run(console)),
        Command::Run(what) => on_runtime(console, commands::run::run(what, console)),
        Command::Chat(what) => on_runtime(console, chat::run(what, console)),
        Command::View(what) => on_runtime(console, commands::view::run(what, console)),
        Command::Replay(what) => {
            on_runtime(console, commands::interruptible(commands::replay::run(what, console)))
        }
        Command::Tools(what) => on_runtime(console, commands::tools::run(what, console)),
        Command::Models(what) => on_runtime(console, commands::models::run(what, console)),
        Command::Check(what) => on_runtime(console, commands::check::run(what, console)),
    }
}

/// Does the work of a command that waits for something, and ends what it started.
fn on_runtime(console: &Console, work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(work);
    // What was started is ended, with everything it started; who takes longer than this to do so is not
    // waited for.
    runtime.block_on(async {
        let ended =
            async { tokio::join!(toolwright::mcp::servers_ended(), toolwright::sandbox::sandboxes_ended()) };
        let Ok(((), left)) = tokio::time::timeout(LAST_MOMENT, ended).await else { return };
        for (folder, why) in left {
            console.say(format_args!("a private folder could not be removed: `{}`: {why}", folder.display()));
        }
    });
    // Work that was abandoned on a time-out or a Ctrl-C must not keep the program alive.
    runtime.shutdown_background();
    outcome
}
