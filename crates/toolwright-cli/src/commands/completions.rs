//! `toolwright completions SHELL`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Args, Completions};

pub fn run(what: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(what.shell, &mut Args::command(), "toolwright", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}
