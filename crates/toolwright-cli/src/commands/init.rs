//! `toolwright init`: a commented starter file.

use std::io::Write as _;

use anyhow::Context as _;

use crate::args::Init;

const STARTER: &str = include_str!("starter.yaml");

pub fn run(what: &Init) -> anyhow::Result<()> {
    let path = what.file.display();
    let mut file = std::fs::File::create_new(&what.file).with_context(|| format!("cannot write `{path}`"))?;
    file.write_all(STARTER.as_bytes())?;
    eprintln!("wrote {path}; try:\n  toolwright check {path}\n  toolwright call greet name=Ada -f {path}");
    Ok(())
}
