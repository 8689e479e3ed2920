//! Recording the runs of commands, unless somebody says no.

use std::path::{Path, PathBuf};

use toolwright::events::{Durability, Redactor};
use toolwright::model::vendor::VENDORS;
use toolwright::run::RunBuilder;
use toolwright::tool::Secret;

use crate::args::RecordArgs;
use crate::console::Console;
use crate::report::{self, Usage};

/// What is said about a run in its record.
pub struct About<'a> {
    /// The command that made it.
    pub command: &'a str,
    /// The file of tools it used.
    pub file: Option<&'a UsedFile>,
}

/// A file of tools that a run uses.
#[derive(Debug, Clone)]
pub struct UsedFile {
    pub path: PathBuf,
    /// The hash of its content, so that a replay knows whether it is the same.
    pub content: String,
}

/// The label with the hash of the content of a run's file.
pub const FILE_CONTENT: &str = "file_content";

/// Makes a run be recorded. Gives back its id when it went to the user's folder of runs.
///
/// A file that was named must be writable. The folder of runs need not be: then nothing is recorded, and that
/// is said.
pub fn record(
    console: &Console,
    builder: RunBuilder,
    args: &RecordArgs,
    about: &About<'_>,
    secrets: impl IntoIterator<Item = Secret>,
) -> anyhow::Result<(RunBuilder, Option<String>)> {
    let mut builder = builder.label("command", about.command).label("program", crate::version::SHORT);
    if let Ok(folder) = std::env::current_dir() {
        builder = builder.label("folder", folder.to_string_lossy());
    }
    if let Some(file) = about.file {
        builder = builder.label("file", std::path::absolute(&file.path)?.to_string_lossy());
        builder = builder.label(FILE_CONTENT, file.content.as_str());
    }
    let secrets: Vec<Secret> = secrets.into_iter().chain(keys()).collect();
    if let Some(path) = &args.transcript {
        if path.is_symlink() {
            // A tool may have made it, and what is recorded would go wherever it leads.
            let problem = Usage::new(format!("cannot write `{}`: it is a link", path.display()));
            return Err(problem.hint("name the file itself").into());
        }
        return Ok((builder.transcript(path, secrets, Durability::Process).map_err(report::unusable)?, None));
    }
    if args.no_record {
        return Ok((builder, None));
    }
    let Some(folder) = super::folder() else {
        console.say("not recorded: HOME is not set (--no-record says this is meant)");
        return Ok((builder, None));
    };
    if let Err(error) = make(&folder) {
        console.say(format_args!(
            "not recorded: cannot use `{}`: {error} (--no-record says this is meant)",
            folder.display()
        ));
        return Ok((builder, None));
    }
    super::prune();
    let id = builder.run_id().to_string();
    let path = super::file(&id)?;
    let recorded = builder.transcript(&path, secrets, Durability::Process).map_err(report::unusable)?;
    Ok((recorded, Some(id)))
}

/// The folder, for its owner only.
pub fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    // Only writing tells whether a folder can be written in.
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(probe)
}

/// What takes secrets out of everything that is written down: those of a file, and the vendors' keys.
pub fn redactor(secrets: impl IntoIterator<Item = Secret>) -> Redactor {
    Redactor::new(secrets.into_iter().chain(keys()))
}

/// The vendors' keys: a tool may print its environment, and the record must not keep them.
fn keys() -> impl Iterator<Item = Secret> {
    let names = VENDORS.iter().flat_map(|vendor| vendor.key_variables.iter());
    names.filter_map(|name| std::env::var(name).ok()).filter(|key| !key.is_empty()).map(Secret::new)
}
