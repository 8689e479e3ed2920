//! What `cargo xtask` runs against our own crates. A package of its own, so that `cargo xtask quick` starts
//! without building them.

mod live;
mod vectors;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    // The vectors of file tools run commands.
    toolwright_sandbox::launcher::main_if_launcher();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["vectors", rest @ ..] => vectors::main(rest),
        ["live", url, format, task] => live::run(url, format, task),
        _ => bail!("usage: xtask-runs vectors FAMILY FILE... | live URL FORMAT TASK"),
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
