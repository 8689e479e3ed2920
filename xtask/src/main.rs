//! Everything the repository does to itself: tests, vectors, benches.

mod bench;
mod vectors;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    toolwright_sandbox::launcher::main_if_launcher();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["vectors", family, files @ ..] => {
            let files: Vec<_> = files.iter().map(std::path::PathBuf::from).collect();
            vectors::run(family, &files)
        }
        ["bench", "spawn"] => bench::spawn::run().map(drop),
        _ => bail!("usage: cargo xtask vectors FAMILY FILE... | bench spawn"),
    }
}
