//! The rules that hold in every folder: those of the person, and those of the machine.

use std::path::{Path, PathBuf};

use toolwright::Policy;

use crate::report::Usage;
use crate::runs;

/// The rules of the machine. They can tighten, and nothing loosens them.
const MANAGED: &str = "/etc/toolwright/policy.yaml";

/// The person's own rules: `policy.yaml` in the program's folder among the user's settings.
pub fn user() -> anyhow::Result<Option<Policy>> {
    match user_file() {
        Some(path) => read(&path),
        None => Ok(None),
    }
}

/// Where the person's own rules are.
pub fn user_file() -> Option<PathBuf> {
    Some(runs::settings()?.join("policy.yaml"))
}

/// The rules of the machine. A file that others than its administrator could have written is an error: it may
/// not be what it was.
pub fn managed() -> anyhow::Result<Option<Policy>> {
    let path = Path::new(MANAGED);
    if std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    for of_root in path.parent().into_iter().chain([path]) {
        owned_by_root(of_root).map_err(|why| {
            let problem = Usage::new(format!("cannot use `{MANAGED}`: `{}` {why}", of_root.display()));
            problem.hint("it belongs to root, and nobody else may write it")
        })?;
    }
    let policy = read(path)?;
    match policy.as_ref().is_some_and(Policy::takes_first) {
        true => Err(Usage::new(format!("`{MANAGED}` is a list of rules, not of approvers")).into()),
        false => Ok(policy),
    }
}

#[cfg(unix)]
fn owned_by_root(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let found = std::fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    match found.permissions().mode() & 0o022 {
        _ if found.is_symlink() => Err("is a link".to_owned()),
        _ if found.uid() != 0 => Err(format!("belongs to user {}", found.uid())),
        0 => Ok(()),
        _ => Err("can be written by others".to_owned()),
    }
}

#[cfg(not(unix))]
fn owned_by_root(_: &Path) -> Result<(), String> {
    Err("has no owner that is known on this system".to_owned())
}

fn read(path: &Path) -> anyhow::Result<Option<Policy>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Usage::new(format!("cannot read `{}`: {error}", path.display())).into()),
    };
    let policy = Policy::from_yaml(&text);
    policy.map(Some).map_err(|error| Usage::new(format!("`{}`: {error}", path.display())).into())
}
