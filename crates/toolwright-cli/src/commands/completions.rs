//! `toolwright completions SHELL`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::console::Console;

pub fn run(what: &Completions, console: &Console) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(what.shell, &mut Args::command(), "toolwright", &mut script);
    console.stdout().write_all(&script)?;
    Ok(())
}
