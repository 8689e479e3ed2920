//! Which changes of a job are never committed: what programs outside obey, and what is masked.
//!
//! Nothing in a job's own layer is guarded, so names count here, at any depth: a file that is obeyed in one
//! folder is obeyed in every other that a person goes to.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use super::guard::{GitView, Writable, needed};
use super::view::ViewPlan;
use crate::policy::{PROTECTED, SandboxPolicy};
use crate::sys;

/// What of a repository is data: a history, an index, and messages. All else in `.git` is obeyed.
const GIT_DATA: [&str; 19] = [
    "objects",
    "refs",
    "logs",
    "index",
    "index.lock",
    "HEAD",
    "HEAD.lock",
    "packed-refs",
    "packed-refs.lock",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "SQUASH_MSG",
];
/// Of the data, what names other repositories.
const GIT_ALTERNATES: &str = "objects/info";

/// What a folder has that git takes for a repository.
const PARTS: [&str; 3] = ["HEAD", "objects", "refs"];
/// What git obeys in such a folder.
const OBEYED_PARTS: [&str; 8] =
    ["HEAD", "objects", "refs", "config", "hooks", "info", "modules", "worktrees"];

/// The rules of one sandbox.
#[derive(Debug)]
pub(crate) struct CommitRules {
    /// Protected wherever they are: names of one part, and of several.
    names: HashSet<OsString>,
    long_names: Vec<PathBuf>,
    /// Protected below each folder that can be written.
    relative: Vec<PathBuf>,
    /// Protected or masked where they are.
    absolute: Vec<PathBuf>,
    /// Protected with all but git's data.
    git: bool,
    policy: SandboxPolicy,
}

impl CommitRules {
    pub(crate) fn new(policy: &SandboxPolicy, plan: &ViewPlan, later: &[PathBuf]) -> CommitRules {
        let mut rules = CommitRules {
            names: HashSet::new(),
            long_names: Vec::new(),
            relative: Vec::new(),
            absolute: plan.mask.iter().chain(later).cloned().collect(),
            git: false,
            policy: policy.clone(),
        };
        for path in &policy.protect {
            // Without a final slash, so that paths can be compared.
            let plain: PathBuf = path.components().collect();
            let is_default = PROTECTED.iter().any(|one| Path::new(one) == path.as_path());
            if plain == Path::new(".git") {
                rules.git = true;
            } else if plain.is_absolute() {
                rules.absolute.push(plain);
            } else if plain == Path::new("HEAD") {
                // Stands for what keeps a folder from becoming a repository.
            } else if is_default && plain.components().count() == 1 {
                rules.names.insert(plain.into());
            } else if is_default {
                rules.long_names.push(plain);
            } else {
                rules.relative.push(plain);
            }
        }
        rules
    }

    /// The rules for one folder, as it and the layer over it are now.
    pub(crate) fn for_folder<'r>(&'r self, folder: &'r Path, upper: &'r Path) -> io::Result<FolderRules<'r>> {
        let writable = [Writable::here(folder)];
        // What git obeys may have changed on the host since the sandbox was opened.
        let obeyed = needed(&writable, &self.policy.protect, GitView::Outside).map_err(|(path, error)| {
            io::Error::new(error.kind(), format!("cannot protect `{}`: {error}", path.display()))
        })?;
        let obeyed = obeyed.iter().filter(|one| one.obeyed().is_some());
        let obeyed = obeyed.map(|one| one.path.components().collect()).collect();
        let inside = |path: &PathBuf| path.strip_prefix(folder).ok().map(Path::to_owned);
        let own = self.absolute.iter().filter_map(inside).chain(self.relative.iter().cloned()).collect();
        Ok(FolderRules { rules: self, folder, upper, own, obeyed })
    }
}

/// The rules for one folder.
pub(crate) struct FolderRules<'r> {
    rules: &'r CommitRules,
    folder: &'r Path,
    upper: &'r Path,
    /// Protected or masked in this folder.
    own: Vec<PathBuf>,
    /// What git obeys here beside what the policy names.
    obeyed: Vec<PathBuf>,
}

impl FolderRules<'_> {
    /// Whether a path, relative to the folder, stays as it is.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        let below = |one: &PathBuf| path.starts_with(one);
        let is_name = |part: Component<'_>| self.rules.names.contains(part.as_os_str());
        if self.own.iter().any(below)
            || path.components().any(is_name)
            || has_name(path, &self.rules.long_names)
        {
            return true;
        }
        if let Some((repository, inside)) = in_git(path) {
            return self.rules.git && !self.is_git_data(&repository, &inside);
        }
        self.obeyed.iter().any(below) || (self.rules.git && self.is_in_bare_repository(path))
    }

    /// Whether a path in a `.git` is the data of a repository that was there before. A new one is protected
    /// as a whole: without its settings it would not be what the command made.
    fn is_git_data(&self, repository: &Path, inside: &Path) -> bool {
        let at = self.folder.join(repository);
        if !fs::symlink_metadata(&at).is_ok_and(|about| about.is_dir()) {
            return false;
        }
        // The whole of a history is not dropped, or replaced by that of another repository.
        let is_base = inside.as_os_str().is_empty() || PARTS.iter().any(|one| Path::new(one) == inside);
        let base: PathBuf = repository.components().chain(inside.components()).collect();
        if is_base && self.is_gone(&base) {
            return false;
        }
        if inside.as_os_str().is_empty() {
            // It is its parts that are judged.
            return true;
        }
        GIT_DATA.iter().any(|data| inside.starts_with(data)) && !inside.starts_with(GIT_ALTERNATES)
    }

    /// Whether a path is part of a folder that git would take for a repository after the commit.
    fn is_in_bare_repository(&self, path: &Path) -> bool {
        let mut above = PathBuf::new();
        for part in path.components() {
            let is_part = OBEYED_PARTS.iter().any(|one| part.as_os_str() == *one);
            if is_part && PARTS.iter().all(|one| self.will_exist(&above.join(one))) {
                return true;
            }
            above.push(part);
        }
        false
    }

    fn will_exist(&self, path: &Path) -> bool {
        match fs::symlink_metadata(self.upper.join(path)) {
            Ok(about) => !about.file_type().is_char_device(),
            Err(_) => fs::symlink_metadata(self.folder.join(path)).is_ok(),
        }
    }

    /// Whether the layer hides what the folder has at a path, with all below it.
    fn is_gone(&self, path: &Path) -> bool {
        let place = self.upper.join(path);
        let Ok(about) = fs::symlink_metadata(&place) else { return false };
        if !about.is_dir() {
            return about.file_type().is_char_device();
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let opened = sys::c_path(&place).and_then(|place| sys::open_at(None, &place, flags, 0));
        let opaque = opened.and_then(|folder| sys::attribute(folder.as_fd(), c"user.overlay.opaque"));
        opaque.is_ok_and(|opaque| opaque == b"y")
    }
}

/// The `.git` that a path lies in, or is, and what follows it.
fn in_git(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut repository = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        repository.push(part);
        // Some file systems know no case.
        if part.as_os_str().eq_ignore_ascii_case(".git") {
            return Some((repository, parts.as_path().to_owned()));
        }
    }
    None
}

/// Whether one of the names, of one part or several, occurs in a path.
fn has_name(path: &Path, names: &[PathBuf]) -> bool {
    let mut rest = path.components();
    loop {
        let here = rest.as_path();
        if here.as_os_str().is_empty() {
            return false;
        }
        if names.iter().any(|name| here.starts_with(name)) {
            return true;
        }
        rest.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_at_any_depth_and_git_data_is_data() {
        let folder = std::env::temp_dir().join(format!("toolwright-rules-{:x}", sys::random_u64()));
        let upper = folder.join("upper");
        let work = folder.join("work");
        fs::create_dir_all(work.join(".git/objects")).unwrap();
        fs::create_dir_all(work.join("bare/objects")).unwrap();
        fs::create_dir_all(upper.join("bare/refs")).unwrap();
        fs::create_dir_all(upper.join("new/.git/objects")).unwrap();
        fs::write(upper.join("bare/HEAD"), "ref: refs/heads/x").unwrap();
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
        let mut policy = SandboxPolicy::for_workspace(&work);
        policy.protect.retain(|path| !path.starts_with("~"));
        policy.protect.push("own/part".into());
        let plan = ViewPlan::make(&policy, Some(&work)).unwrap();
        let rules = CommitRules::new(&policy, &plan, &[]);
        let rules = rules.for_folder(&work, &upper).unwrap();
        for path in [
            ".bashrc",
            "deep/down/.mcp.json",
            "deep/.vscode/tasks.json",
            "toolwright.yaml",
            ".gitmodules",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/objects/info/alternates",
            ".git/modules/x/HEAD",
            ".GIT/config",
            "new/.git",
            "new/.git/objects/aa",
            "bare/HEAD",
            "bare/config",
            "bare/refs/heads/x",
            "own/part/x",
        ] {
            assert!(rules.is_protected(Path::new(path)), "{path}");
        }
        for path in [
            "README",
            "src/HEAD",
            "deep/own/part",
            ".git",
            ".git/objects/aa/bb",
            ".git/refs/heads/x",
            ".git/index",
            ".git/HEAD",
            "bare/README",
            "tools.lock.d",
        ] {
            assert!(!rules.is_protected(Path::new(path)), "{path}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
