//! Everything the repository does to itself: tests, vectors, benches.

mod bench;
mod seeds;
mod vectors;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["vectors", family, files @ ..] => {
            let files: Vec<_> = files.iter().map(std::path::PathBuf::from).collect();
            vectors::run(family, &files)
        }
        ["bench", "expr" | "load"] => bench::expr::run().map(drop),
        ["fuzz-seeds"] => seeds::run(),
        _ => bail!("usage: cargo xtask vectors FAMILY FILE... | bench expr | fuzz-seeds"),
    }
}
