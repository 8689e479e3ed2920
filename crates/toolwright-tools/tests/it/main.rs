//! The integration tests. They have a `main` of their own because the launcher hook of the sandbox must come
//! first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "these are tests, in a harness that clippy does not know for one"
)]

mod data;
mod definitions;
mod documents;
mod edits;
mod pages;
#[allow(dead_code, reason = "the tests of the reader use more of it")]
#[path = "../../../toolwright-documents/tests/it/paper.rs"]
mod paper;
mod patches;
mod paths;
mod people;
mod pythons;
mod sessions;
mod shells;
mod sizes;
mod support;
mod vectors;
mod web;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use support::{Backend, Case};

fn main() -> ExitCode {
    toolwright_sandbox::launcher::main_if_launcher();
    toolwright_tools::main_if_worker();
    toolwright_documents::main_if_worker_sealed_by(support::seal);
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let cases = if vectors::is_asked() { vectors::cases() } else { cases() };
    for Case { name, run } in cases {
        for backend in Backend::ALL {
            let name = format!("{}::{name}", backend.name());
            let missing = backend.missing();
            trials.push(
                Trial::test(name, move || {
                    support::block_on(run(backend));
                    Ok::<(), Failed>(())
                })
                .with_ignored_flag(missing),
            );
        }
    }
    if vectors::is_asked() {
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    trials.extend(data::trials());
    trials.extend(definitions::trials());
    trials.extend(pages::trials());
    trials.extend(patches::trials());
    trials.extend(vectors::trials());
    trials.extend(web::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn cases() -> Vec<Case> {
    [
        documents::cases(),
        edits::cases(),
        paths::cases(),
        people::cases(),
        pythons::cases(),
        sessions::cases(),
        shells::cases(),
        sizes::cases(),
        vectors::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
