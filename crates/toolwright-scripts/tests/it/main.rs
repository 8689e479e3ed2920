//! The integration tests, with real scripts in a real sandbox. They have a `main` of their own because the
//! launcher hook of the sandbox must come first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests, in a harness that clippy does not know for one"
)]

mod calls;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    toolwright_sandbox::launcher::main_if_launcher();
    let trials = calls::tests().into_iter().map(|(name, program, run)| {
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(run());
            Ok(())
        })
        .with_ignored_flag(!calls::has(program))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
