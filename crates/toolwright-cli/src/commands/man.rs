//! `toolwright man`: the manual page, from the same words as `--help`.

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Args, Man};
use crate::console::Console;
use crate::report::Usage;

pub fn run(what: &Man, console: &Console) -> anyhow::Result<()> {
    let mut command = Args::command().disable_help_subcommand(true);
    if let Some(folder) = &what.to {
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .with_context(|| format!("cannot write the pages to `{}`", folder.display()))?;
        return Ok(());
    }
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
    Ok(clap_mangen::Man::new(page).render(&mut console.stdout())?)
}
