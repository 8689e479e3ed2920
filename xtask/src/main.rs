//! Everything the repository does to itself: tests, vectors, benchmarks.

mod bench;
mod checks;
mod clients;
mod conformance;
mod fuzz;
mod house;
mod live;
mod npm;
mod package;
mod programs;
mod quick;
mod skips;
mod source;
mod test;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask quick                    format, house rules, lints and unit tests: the loop while you work
cargo xtask test [ARG...]            install what the tests need, and run them all; ARGs go to nextest
cargo xtask checks                   format, house rules, lints, features, docs, licences
cargo xtask tidy [--write]           house rules; --write lowers the numbers of xtask/tidy.toml
cargo xtask house                    figures of the code: lines, names, globals, bool parameters
cargo xtask conformance              MCP's own suite against our server and client
cargo xtask clients                  four agents from npm against `serve` and `hook`, with a scripted model
cargo xtask attacks                  the attacks on files and expressions, in a release build with time bounds
cargo xtask oracle                   check our requests with the vendors' own clients
cargo xtask vectors FAMILY FILE...   run observed input/output pairs; --help lists the families
cargo xtask pictures                 record a run and the viewer, for README and docs
cargo xtask package                  all packages of the program, installed and tried: those of the next two lines
cargo xtask package linked           an archive and a Debian package; the program needs the C library of this machine
cargo xtask package static           an archive, a wheel (PyPI) and an npm package; the program needs no C library
cargo xtask live [FORMAT] [TASK]     tasks for a small real model over three wire formats (downloads 1.1 GB)
cargo xtask bench NAME               one benchmark beside its peer (`all` writes docs/benchmarks.md)
cargo xtask fuzz RUNS [TARGET]       run the fuzz targets that often, from the vectors as seeds";

fn main() -> ExitCode {
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
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", rest @ ..] => test::run(rest),
        ["quick"] => quick::run(),
        ["checks"] => checks::run(),
        ["house"] => house::run(),
        ["tidy"] => tidy::run(false),
        ["tidy", "--write"] => tidy::run(true),
        ["conformance"] => conformance::run(),
        ["clients"] => clients::run(),
        ["attacks"] => test::attacks(),
        ["oracle"] => test::oracle(),
        ["vectors", ..] => test::runs(&words),
        ["bench", name] => bench::run(name),
        ["live"] => live::run("", ""),
        ["live", format] => live::run(format, ""),
        ["live", format, task] => live::run(format, task),
        ["pictures"] => test::pictures(),
        ["package"] => package::run(package::Kind::All),
        ["package", "linked"] => package::run(package::Kind::Linked),
        ["package", "static"] => package::run(package::Kind::Static),
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
