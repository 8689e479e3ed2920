//! The integration tests, against a real X server and real programs inside a real sandbox. They have a `main`
//! of their own because the launcher hook of the sandbox must come first.

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

mod desk;
mod programs;
mod screen;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    toolwright_sandbox::launcher::main_if_launcher();
    let arguments = Arguments::from_args();
    let missing = desk::missing();
    let cases = screen::cases().into_iter().chain(programs::cases());
    let trial = |case: desk::Case| {
        let missing = missing.clone();
        Trial::test(case.name, move || {
            match missing {
                Some(why) => eprintln!("SKIPPED: {why}"),
                None => desk::block_on((case.run)()),
            }
            Ok::<(), Failed>(())
        })
    };
    libtest_mimic::run(&arguments, cases.map(trial).collect()).exit_code()
}
