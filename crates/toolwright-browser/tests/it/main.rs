//! The integration tests, against a real browser inside a real sandbox. They have a `main` of their own
//! because the launcher hook of the sandbox must come first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::print_stderr,
    unreachable_pub,
    reason = "these are tests, in a harness that clippy does not know for one"
)]

mod acts;
mod browser;
mod inspect;
mod pages;
mod server;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    toolwright_sandbox::launcher::main_if_launcher();
    let arguments = Arguments::from_args();
    let missing = browser::missing();
    let cases = pages::cases().into_iter().chain(acts::cases()).chain(inspect::cases());
    let trial = |case: browser::Case| {
        Trial::test(case.name, move || {
            match missing {
                Some(why) => eprintln!("SKIPPED: {why}"),
                None => browser::block_on((case.run)()),
            }
            Ok::<(), Failed>(())
        })
    };
    libtest_mimic::run(&arguments, cases.map(trial).collect()).exit_code()
}
