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
    let (no_python, no_peers) = (support::python().is_none(), peers::environment().is_none());
    let own = [schemas::tests(), calls::tests(), hostile::tests()].into_iter().flatten();
    let own = own.map(|test| (test, no_python));
    let with_peers = peers::tests().into_iter().map(|test| (test, no_python || no_peers));
    let trials = own.chain(with_peers).map(|((name, run), ignored)| {
        Trial::test(name, move || {
            support::block_on(run());
            Ok(())
        })
        .with_ignored_flag(ignored)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
