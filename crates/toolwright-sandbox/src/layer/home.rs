//! Paths of a policy that begin with `~/`: what is secret, and what programs obey, in the home folders of
//! this machine.
//!
//! They matter only where a folder that is shown holds them, so nothing else is looked at. What the policy
//! shows by its own name is meant to be seen.

use std::fs;
use std::path::{Path, PathBuf};

use toolwright_core::{ErrorKind, ToolError};

use crate::policy::SandboxPolicy;

/// A policy whose paths are absolute where they began with `~/`.
#[derive(Debug)]
pub(crate) struct AtHome {
    pub(crate) policy: SandboxPolicy,
    /// To be masked once they are there.
    pub(crate) later: Vec<PathBuf>,
}

/// Finds the paths in the homes of this machine. `look_up` is the caller's environment.
pub(crate) fn resolve(
    policy: &SandboxPolicy,
    look_up: impl Fn(&str) -> Option<String>,
) -> Result<AtHome, ToolError> {
    let mut found = AtHome { policy: policy.clone(), later: Vec::new() };
    let of_home = |path: &PathBuf| path.strip_prefix("~").is_ok();
    found.policy.mask.retain(|path| !of_home(path));
    found.policy.protect.retain(|path| !of_home(path));
    let shown = Shown::of(policy);
    if shown.read.is_empty() && shown.written.is_empty() {
        return Ok(found);
    }
    for root in roots(&shown, look_up) {
        let inside =
            |path: &PathBuf| Some(root.at.join(path.strip_prefix("~").ok()?.strip_prefix(root.of).ok()?));
        for path in policy.mask.iter().filter_map(inside).filter(|path| shown.holds(path)) {
            shown.mask(path, &mut found)?;
        }
        for path in &policy.protect {
            let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
            let Some(at) = inside(path).filter(|path| shown.can_change(path)) else { continue };
            found.policy.protect.push(if is_folder { at.join("") } else { at });
        }
    }
    Ok(found)
}

/// A folder that paths of a home folder begin in.
struct Root {
    /// What of such a path the folder stands for.
    of: &'static str,
    at: PathBuf,
}

/// The home folders that hold, or lie in, something that is shown; and the two that the caller may have
/// elsewhere.
fn roots(shown: &Shown, look_up: impl Fn(&str) -> Option<String>) -> Vec<Root> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = users.lines().filter_map(|line| line.split(':').nth(5)).map(str::to_owned);
    let homes = homes.chain(look_up("HOME")).map(|home| ("", home));
    let moved = [(".config", "XDG_CONFIG_HOME"), (".local/share", "XDG_DATA_HOME")];
    let moved = moved.into_iter().filter_map(|(of, name)| Some((of, look_up(name)?)));
    let mut roots: Vec<Root> = Vec::new();
    for (of, at) in homes.chain(moved) {
        // Some users of the system have the root folder, or one that does not exist.
        let Some(at) = fs::canonicalize(&at).ok().filter(|real| real.parent().is_some()) else { continue };
        if shown.touches(&at) && !roots.iter().any(|root| (root.of, &root.at) == (of, &at)) {
            roots.push(Root { of, at });
        }
    }
    roots
}

/// What a policy shows of the host's own folders, without links.
struct Shown {
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Shown {
    fn of(policy: &SandboxPolicy) -> Shown {
        let real = |path: &PathBuf| fs::canonicalize(path).ok();
        let mut shown = Shown {
            read: policy.read.iter().filter_map(real).collect(),
            written: policy.write.iter().filter_map(real).collect(),
        };
        let workspace = policy.workspace.iter().filter_map(real);
        if policy.read_only { &mut shown.read } else { &mut shown.written }.extend(workspace);
        shown
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.read.iter().chain(&self.written)
    }

    fn touches(&self, path: &Path) -> bool {
        self.all().any(|one| one.starts_with(path) || path.starts_with(one))
    }

    /// Whether a path lies in a folder that is shown.
    fn holds(&self, path: &Path) -> bool {
        self.all().any(|one| path.starts_with(one) && path != one)
    }

    fn can_change(&self, path: &Path) -> bool {
        self.written.iter().any(|one| path.starts_with(one) && path != one)
    }

    /// Masks one path where it is, but for what is shown by its own name.
    fn mask(&self, path: PathBuf, found: &mut AtHome) -> Result<(), ToolError> {
        let Ok(real) = fs::canonicalize(&path) else {
            found.later.push(path);
            return Ok(());
        };
        if !self.holds(&real) || self.all().any(|one| *one == real) {
            return Ok(());
        }
        if real != path && self.can_change(&path) {
            let message = format!(
                "cannot mask `{}`, a link that commands could change; it leads to `{}`",
                path.display(),
                real.display()
            );
            return Err(ToolError::of(ErrorKind::SandboxUnavailable, message).hint(
                "name that in `read` if it may be seen, or do not make the folder with the link writable",
            ));
        }
        if self.all().any(|one| one.starts_with(&real)) {
            for beside in fs::read_dir(&real).into_iter().flatten().flatten() {
                self.mask(beside.path(), found)?;
            }
        } else {
            found.policy.mask.push(real);
        }
        Ok(())
    }
}
