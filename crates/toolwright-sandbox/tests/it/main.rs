//! The integration tests. They have a `main` of their own because the launcher hook must come first, and
//! because some of them start this program again: as an ordinary user, as an attacker inside a sandbox, as a
//! runtime to be killed.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "these are tests; the lints know only those of the standard harness"
)]

mod attacks;
mod changes;
mod conformance;
mod engine;
mod files;
mod git;
mod home;
mod layers;
mod load;
mod mounts;
mod network;
mod probe;
mod processes;
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use support::{Case, alone, as_nobody, block_on};

fn main() -> ExitCode {
    toolwright_sandbox::launcher::main_if_launcher();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name] = words.as_slice()
        && first == "run-case"
    {
        return support::run_case(&cases(), name);
    }
    if let [first, name] = words.as_slice()
        && first == "attack"
    {
        probe::main(name);
    }
    if let [first, name] = words.as_slice()
        && ["changes", "load", "engine", "home"].contains(&first.as_str())
    {
        let work = async {
            match first.as_str() {
                "changes" => changes::main(name).await,
                "load" => load::main(name).await,
                "home" => home::main(name).await,
                _ => engine::main(name).await,
            }
        };
        return match block_on(work) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        };
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for case in cases() {
        let Case { name, run, as_users, as_root, apart } = case;
        let nobody_name = name.clone();
        if as_root || !support::is_root() {
            let inner = name.clone();
            trials.push(Trial::test(name, move || {
                let done = if apart { block_on(alone("run-case", &inner)) } else { block_on(run()) };
                done.map_err(Failed::from)
            }));
        }
        if as_users && support::is_root() {
            let inner = nobody_name.clone();
            trials.push(Trial::test(format!("as_nobody::{nobody_name}"), move || {
                as_nobody(&inner).map_err(Failed::from)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(conformance::cases());
    cases.extend(attacks::cases());
    cases.extend(changes::cases());
    cases.extend(processes::cases());
    cases.extend(files::cases());
    cases.extend(git::cases());
    cases.extend(home::cases());
    cases.extend(mounts::cases());
    cases.extend(layers::cases());
    cases.extend(load::cases());
    cases.extend(engine::cases());
    cases.extend(network::cases());
    cases
}
