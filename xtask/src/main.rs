//! Everything the repository does to itself: tests, vectors, benchmarks.

mod bench;
mod conformance;
mod fuzz;
mod live;
mod npm;
mod package;
mod programs;
mod skips;
mod test;
mod vectors;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask test                     install what the tests need, and run them all
cargo xtask checks                   format, lints, docs, licences
cargo xtask conformance              MCP's own suite against our server and client
cargo xtask attacks                  run the attacks on files and expressions with the times they may take
cargo xtask oracle                   have the vendors' own clients read our requests
cargo xtask vectors FAMILY FILE...   run observed input/output pairs
cargo xtask pictures                 film a run and photograph the viewer, for README and docs
cargo xtask package                  the program with pages and completions: an archive, a Debian package
cargo xtask package static           an archive with a program that needs no C library
cargo xtask live [FORMAT] [TASK]     tasks for a small real model over three wire formats (downloads 1.1 GB)
cargo xtask bench NAME               one benchmark beside its peer (`all` writes docs/benchmarks.md)
cargo xtask fuzz RUNS [TARGET]       run the fuzz targets that often, from the vectors as seeds";

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
        ["test", rest @ ..] => test::run(rest),
        ["checks"] => test::checks(),
        ["conformance"] => conformance::run(),
        ["attacks"] => test::attacks(),
        ["oracle"] => test::oracle(),
        ["vectors", family, files @ ..] => {
            vectors::run(family, &files.iter().map(PathBuf::from).collect::<Vec<_>>())
        }
        ["bench", name] => bench::run(name),
        ["live"] => live::run("", ""),
        ["live", format] => live::run(format, ""),
        ["live", format, task] => live::run(format, task),
        ["pictures"] => test::pictures(),
        ["package"] => package::run(),
        ["package", "static"] => package::run_static(),
        ["fuzz", runs] => fuzz::run(runs, None),
        ["fuzz", runs, target] => fuzz::run(runs, Some(target)),
        ["help" | "--help" | "-h"] | [] => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown command\n\n{HELP}"),
    }
}

/// Where everything is built.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
