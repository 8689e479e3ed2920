//! The integration tests, with a real interpreter in a real sandbox. They have a `main` of their own because
//! the launcher hook of the sandbox must come first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests, in a harness that clippy does not know for one"
)]

mod calls;
mod hostile;
mod peers;
mod schemas;
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    toolwright_sandbox::launcher::main_if_launcher();
    let trials = [schemas::tests(), calls::tests(), hostile::tests(), peers::tests()].into_iter().flatten();
    let trials = trials.map(|(name, run)| {
        Trial::test(name, move || {
            support::block_on(run());
            Ok(())
        })
        .with_ignored_flag(support::python().is_none())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
