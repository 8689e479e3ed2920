//! `toolwright man`: the manual page, from the same words as `--help`.

use clap::CommandFactory as _;

use crate::args::{Args, Man};
use crate::report::Usage;

pub fn run(what: &Man) -> anyhow::Result<()> {
    let mut command = Args::command();
    command.build();
    let page = match &what.command {
        None => command,
        Some(name) => {
            let names: Vec<String> =
                command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
            let found = command.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                Usage::new(format!("there is no command `{name}`"))
                    .hint(format!("there are {}", names.join(", ")))
            })?
        }
    };
    Ok(clap_mangen::Man::new(page).render(&mut std::io::stdout().lock())?)
}
