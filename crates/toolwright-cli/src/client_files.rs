//! The settings files of other people's programs: read as they stand, and replaced whole.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::report::Usage;
use crate::write_file::{self, FileAccess};

/// Where the settings are. People link them to a folder of settings they keep together: such a link is
/// followed when it, the file and their folders are the user's own. A link in a project may be a stranger's,
/// and is replaced.
pub fn settled(path: &Path) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if path.is_relative() || !is_link {
        return Ok(path.to_owned());
    }
    let user = rustix::process::geteuid().as_raw();
    let own = |found: std::io::Result<std::fs::Metadata>| found.is_ok_and(|found| found.uid() == user);
    let own_folder = |file: &Path| {
        let folder = file.parent().map(std::fs::metadata);
        folder.is_some_and(|found| found.is_ok_and(|found| found.uid() == user && found.mode() & 0o022 == 0))
    };
    match std::fs::canonicalize(path) {
        Ok(target)
            if own(std::fs::symlink_metadata(path))
                && own(std::fs::metadata(&target))
                && own_folder(path)
                && own_folder(&target) =>
        {
            Ok(target)
        }
        found => {
            let target =
                found.map_or_else(|_| "nothing".to_owned(), |target| format!("`{}`", target.display()));
            let problem = format!(
                "`{}` is a link to {target}: it is followed only when it, the file and their folders are yours, and nobody else can write there",
                path.display()
            );
            Err(Usage::new(problem).hint("leave out --write, and add what is printed by hand").into())
        }
    }
}

/// The settings as they stand there: a JSON object.
pub fn read_json(path: &Path) -> anyhow::Result<String> {
    let text = read(path)?;
    if text.trim().is_empty() {
        return Ok("{}\n".to_owned());
    }
    match serde_json::from_str::<Map<String, Value>>(&text) {
        Ok(_) => Ok(text),
        // Comments and other extensions of JSON are not read right.
        Err(_) => {
            let problem = Usage::new(format!("{} is not plain JSON, so it is left alone", path.display()));
            Err(problem.hint("leave out --write, and add what is printed by hand").into())
        }
    }
}

/// The settings as they stand there; empty when there is no file.
pub fn read(path: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Usage::new(format!("cannot read {}: {error}", path.display())).into()),
    }
}

/// Replaces the file whole, so that a crash leaves the old one or the new one.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        // A project may come from a stranger, and its `.cursor` lead into the user's own.
        if path.is_relative() && std::fs::symlink_metadata(folder)?.is_symlink() {
            let problem =
                Usage::new(format!("`{}` is a link, so nothing is written there", folder.display()));
            return Err(problem.hint("leave out --write, and add what is printed by hand").into());
        }
    }
    write_file::replace(path, text.as_bytes(), FileAccess::Inherit)
}
