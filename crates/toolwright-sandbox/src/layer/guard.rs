//! Files of the workspace, and of every other folder that can be written, that must stay as they are, even
//! when they do not exist yet.
//!
//! What exists is bound read-only over itself, and every folder on the way is bound over itself too, so that
//! it cannot be renamed away. What does not exist gets a placeholder on the host to mount over, empty but for
//! one; the last sandbox that uses a placeholder removes it. Placeholders are known by their odd modification
//! time, held by a shared lock. What is at the place of one and does not look like one is a user's file and
//! stays.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use super::git::{self, Obeyed};
use super::view::beneath;
use crate::policy::SandboxPolicy;
use crate::sys::{self, mount};

/// The modification time that marks a placeholder.
const MARK: i64 = toolwright_core::PLACEHOLDER_TIME;

/// The placeholder that holds something.
const LOGIN: (&str, &str) = toolwright_core::PLACEHOLDER_LOGIN;

/// What a repository has; the first choices for what keeps a folder from being taken for one, and the last.
const PARTS: [&str; 2] = ["refs", "objects"];
const LAST_PART: &str = "HEAD";

/// How often a placeholder is tried to be held, 5 ms apart.
const TRIES: usize = 200;

/// One path to bind over itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Guard {
    /// Where it is in the view.
    pub(crate) path: PathBuf,
    /// Keep the contents writable and only pin the name.
    pub(crate) pin: bool,
}

impl Guard {
    /// Puts the guard on, inside the view.
    pub(crate) fn attach(&self, root: BorrowedFd<'_>) -> io::Result<()> {
        let target = beneath(root, &self.path)?;
        let mount = mount::detach(target.as_fd())?;
        let attributes = if self.pin { 0 } else { mount::RDONLY };
        mount::restrict(mount.as_fd(), attributes | mount::NOSUID | mount::NODEV)?;
        mount::attach(mount.as_fd(), target.as_fd())
    }
}

/// A folder that can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writable {
    /// Where it is now.
    pub(crate) at: PathBuf,
    /// Where it is in the view.
    pub(crate) shown: PathBuf,
}

impl Writable {
    fn open(&self) -> io::Result<OwnedFd> {
        sys::open_at(None, &sys::c_path(&self.at)?, libc::O_PATH | libc::O_DIRECTORY, 0)
    }

    /// A folder that is where it is shown.
    pub(crate) fn here(path: &Path) -> Writable {
        Writable { at: path.to_owned(), shown: path.to_owned() }
    }
}

/// The guards of a sandbox, and the placeholders they need. Dropping it removes the placeholders that no
/// other sandbox uses.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// Outer paths first.
    pub(crate) list: Vec<Guard>,
    placeholders: Vec<Placeholder>,
}

#[derive(Debug)]
struct Placeholder {
    parent: OwnedFd,
    name: CString,
    file: OwnedFd,
}

impl Guards {
    /// The folders of a policy that can be written, where nothing is shown elsewhere than it is.
    pub(crate) fn folders(policy: &SandboxPolicy, workspace: Option<&Path>) -> Vec<Writable> {
        let own = workspace.filter(|_| !policy.read_only);
        let more = policy.write.iter().map(PathBuf::as_path).filter(|path| path.is_dir());
        own.into_iter().chain(more).map(Writable::here).collect()
    }

    /// Decides what to guard, making placeholders in the folders. The error says which path cannot be
    /// protected. What must be found again where it is, since something is put over it by name, is `kept`,
    /// said as the view shows it.
    pub(crate) fn prepare(
        folders: &[Writable],
        protect: &[PathBuf],
        kept: &[PathBuf],
    ) -> Result<Guards, (PathBuf, io::Error)> {
        Self::of(needed(folders, protect, GitView::Outside)?, folders, kept)
    }

    /// The same from inside a view.
    pub(super) fn prepare_again(
        folders: &[Writable],
        protect: &[PathBuf],
        before: &[Obeyed],
        kept: &[PathBuf],
    ) -> Result<Guards, (PathBuf, io::Error)> {
        Self::of(needed(folders, protect, GitView::Inside(before))?, folders, kept)
    }

    fn of(
        needed: Vec<Needed<'_>>,
        folders: &[Writable],
        kept: &[PathBuf],
    ) -> Result<Guards, (PathBuf, io::Error)> {
        let mut guards = Guards::default();
        for Needed { within, path, folder, .. } in needed {
            let added = within.open().and_then(|root| guards.add(root, &within.shown, &path, folder));
            added.map_err(|error| (within.shown.join(path), error))?;
        }
        for within in folders {
            for path in kept {
                let Some(inside) =
                    path.strip_prefix(&within.shown).ok().filter(|path| *path != Path::new(""))
                else {
                    continue;
                };
                let kept = within.open().and_then(|root| guards.keep(root, &within.shown, inside));
                kept.map_err(|error| (path.clone(), error))?;
            }
        }
        guards.list.sort_by(|a, b| {
            (a.path.components().count(), &a.path, a.pin).cmp(&(b.path.components().count(), &b.path, b.pin))
        });
        // A path that is guarded and pinned is guarded.
        guards.list.dedup_by(|later, earlier| later.path == earlier.path);
        Ok(guards)
    }

    /// Pins the folders on the way: once one is renamed, the next sandbox would not find what is in it. Where
    /// there is nothing to mask, a placeholder keeps a command from putting a link there.
    fn keep(&mut self, root: OwnedFd, shown: &Path, path: &Path) -> io::Result<()> {
        let absent = match beneath(root.as_fd(), path) {
            Ok(here) => is_placeholder(&sys::stat(here.as_fd())?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            // What a link leads to is masked where it is.
            Err(error)
                if matches!(sys::errno(&error), libc::ENOTDIR | libc::ELOOP | libc::EXDEV | libc::EACCES) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if absent && path.components().all(|part| matches!(part, Component::Normal(_))) {
            return match self.add(root, shown, path, false) {
                // What this user cannot make, its commands cannot.
                Err(error) if matches!(sys::errno(&error), libc::EACCES | libc::EROFS) => Ok(()),
                other => other,
            };
        }
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        self.list.extend(folders.map(|folder| Guard { path: shown.join(folder), pin: true }));
        Ok(())
    }

    fn add(&mut self, root: OwnedFd, shown: &Path, path: &Path, wants_folder: bool) -> io::Result<()> {
        let whole = shown.join(path);
        if self.list.iter().any(|guard| !guard.pin && whole.starts_with(&guard.path)) {
            return Ok(());
        }
        let parts: Vec<&Path> = path.components().map(|part| Path::new(part.as_os_str())).collect();
        let mut parent = root;
        let mut so_far = shown.to_owned();
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            so_far.push(part);
            let here = match beneath(parent.as_fd(), part) {
                Ok(here) => here,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let folder = wants_folder || !last;
                    self.placeholders.push(Placeholder::take(parent, sys::c_path(part)?, folder)?);
                    self.list.push(Guard { path: so_far, pin: false });
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let about = sys::stat(here.as_fd())?;
            let folder = about.st_mode & libc::S_IFMT == libc::S_IFDIR;
            if last || !folder {
                if is_placeholder(&about) {
                    self.placeholders.push(Placeholder::take(parent, sys::c_path(part)?, folder)?);
                }
                self.list.push(Guard { path: so_far, pin: false });
                return Ok(());
            }
            if is_placeholder(&about) {
                self.placeholders.push(Placeholder::take(parent, sys::c_path(part)?, true)?);
                self.list.push(Guard { path: so_far, pin: false });
                return Ok(());
            }
            self.list.push(Guard { path: so_far.clone(), pin: true });
            parent = here;
        }
        Ok(())
    }
}

/// A path that needs protection.
#[derive(Debug)]
pub(crate) struct Needed<'a> {
    pub(crate) within: &'a Writable,
    /// Relative to that folder.
    pub(crate) path: PathBuf,
    folder: bool,
    /// Git obeys it; the policy does not name it.
    obeyed: bool,
}

impl Needed<'_> {
    /// As the view shows it, if it is there for the sake of git alone.
    pub(super) fn obeyed(&self) -> Option<Obeyed> {
        self.obeyed.then(|| Obeyed { path: self.within.shown.join(&self.path), folder: self.folder })
    }
}

/// From where git's settings are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum GitView<'a> {
    /// From the host, with all settings of git.
    Outside,
    /// From a view, with what was seen from the host before.
    Inside(&'a [Obeyed]),
}

/// What needs protection in folders that can be written: what `protect` names in each of them, and what git
/// obeys because of the repositories there.
pub(super) fn needed<'a>(
    folders: &'a [Writable],
    protect: &[PathBuf],
    seen: GitView<'_>,
) -> Result<Vec<Needed<'a>>, (PathBuf, io::Error)> {
    let mut found = named(folders, protect);
    let of_git: Vec<&Path> =
        protect.iter().map(PathBuf::as_path).filter(|path| path.starts_with(".git")).collect();
    for folder in folders {
        let failed = |error| (folder.shown.join(".git"), error);
        let obeyed = match seen {
            GitView::Outside => git::obeyed(&folder.at, &of_git),
            GitView::Inside(before) => git::obeyed_still(&folder.at, &of_git, before),
        };
        for one in obeyed.map_err(failed)? {
            let inside = |within: &'a Writable| {
                let path = one.path.strip_prefix(&within.at).ok()?.to_owned();
                Some(Needed { within, path, folder: one.folder, obeyed: true })
            };
            let inside = folders.iter().find_map(inside);
            if inside.as_ref().is_some_and(|needed| needed.path == Path::new("")) {
                return Err((
                    one.path,
                    io::Error::other("git runs what is in it, so none of it could be written"),
                ));
            }
            found.extend(inside);
        }
    }
    Ok(found)
}

fn named<'a>(folders: &'a [Writable], protect: &[PathBuf]) -> Vec<Needed<'a>> {
    let mut found = Vec::new();
    for within in folders {
        for path in protect {
            let folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
            let path = match path.as_path() {
                path if path == Path::new(LAST_PART) => no_repository(&within.at),
                // What lies in a home folder is not looked for in every other.
                path if path.is_absolute() => {
                    path.strip_prefix(&within.at).ok().filter(|path| *path != Path::new(""))
                }
                path => Some(path),
            };
            found.extend(path.map(|path| Needed { within, path: path.to_owned(), folder, obeyed: false }));
        }
    }
    found
}

/// The part of a repository whose absence keeps git from taking a folder for one, if there is no repository
/// in its `.git`. `HEAD` is the last choice: while there is such a file, git cannot tell it from the
/// revision.
fn no_repository(folder: &Path) -> Option<&'static Path> {
    let own = folder.join(".git");
    if own.is_file() || own.join("HEAD").exists() {
        return None;
    }
    let free =
        |name: &&str| std::fs::symlink_metadata(folder.join(name)).map_or(true, |about| about.is_file());
    Some(Path::new(PARTS.into_iter().find(free).unwrap_or(LAST_PART)))
}

/// Removes the placeholders that commands have made where something was changed on the host since their
/// sandbox was opened, and what was not protected then is now. Folders must be shown where they are.
pub(crate) fn sweep(folders: &[Writable], protect: &[PathBuf], kept: &[PathBuf]) {
    let Ok(root) = sys::open_at(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0) else { return };
    let needed = needed(folders, protect, GitView::Outside).unwrap_or_else(|_| named(folders, protect));
    let needed = needed.iter().map(|one| one.within.at.join(&one.path));
    // There may be a repository again.
    let parts =
        folders.iter().flat_map(|folder| PARTS.iter().chain([&LAST_PART]).map(|part| folder.at.join(part)));
    for path in needed.chain(parts).chain(kept.iter().cloned()) {
        let inside =
            |path: &&Path| folders.iter().any(|folder| path.starts_with(&folder.at) && *path != folder.at);
        for path in path.ancestors().take_while(inside) {
            // Errors are ignored: closing a sandbox cannot fail.
            let _ = remove_at(root.as_fd(), path);
        }
    }
}

/// The message for a path that cannot be protected.
pub(crate) fn unprotected((path, error): (PathBuf, io::Error)) -> String {
    format!("cannot protect `{}`: {error}", path.display())
}

fn is_placeholder(about: &libc::stat) -> bool {
    let kind = about.st_mode & libc::S_IFMT;
    let own = |size: i64| size == 0 || size == LOGIN.1.len() as i64;
    let empty = kind == libc::S_IFDIR || (kind == libc::S_IFREG && own(about.st_size));
    about.st_mtime == MARK && about.st_mtime_nsec == 0 && empty
}

impl Placeholder {
    /// Makes the placeholder, or shares the one that is there, and holds it.
    fn take(parent: OwnedFd, name: CString, folder: bool) -> io::Result<Placeholder> {
        let kind = if folder { libc::O_DIRECTORY } else { 0 };
        // Another sandbox may remove its placeholder between our open and our lock; then there is a next try.
        // A command may hold the lock for as long as it likes, so the wait is bounded.
        for _ in 0..TRIES {
            let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | kind;
            let opened = sys::open_at(Some(parent.as_fd()), &name, flags, 0);
            let file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make(parent.as_fd(), &name, folder)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            // SAFETY: takes numbers only.
            match sys::check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) }.into()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    continue;
                }
                other => other?,
            };
            let about = sys::stat(file.as_fd())?;
            if about.st_nlink > 0 {
                if !is_placeholder(&about) {
                    mark(file.as_fd())?;
                }
                return Ok(Placeholder { parent, name, file });
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // Errors are ignored: closing a sandbox cannot fail.
        let _ = remove(self.parent.as_fd(), &self.name, Some(&self.file));
    }
}

impl Drop for Guards {
    /// A command makes a placeholder of its own where something was taken away on the host since. These go
    /// too.
    fn drop(&mut self) {
        self.placeholders.clear();
        let Ok(root) = sys::open_at(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0) else { return };
        for guard in self.list.iter().rev() {
            let _ = remove_at(root.as_fd(), &guard.path);
        }
    }
}

fn remove_at(root: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    remove(beneath(root, folder)?.as_fd(), &sys::c_path(Path::new(name))?, None)
}

/// Removes a placeholder that no other sandbox holds. A user may have put a file of their own in the place
/// of the one that is held, or taken it away and a command has made another.
fn remove(parent: BorrowedFd<'_>, name: &CString, held: Option<&OwnedFd>) -> io::Result<()> {
    let there = sys::open_at(Some(parent), name, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK, 0)?;
    let about = sys::stat(there.as_fd())?;
    let written = about.st_mode & libc::S_IFMT == libc::S_IFREG && about.st_size != 0;
    if !is_placeholder(&about) || (written && name.as_bytes() != LOGIN.0.as_bytes()) {
        return Ok(());
    }
    let is_there = |held: &libc::stat| (about.st_dev, about.st_ino) == (held.st_dev, held.st_ino);
    let same = held.filter(|held| sys::stat(held.as_fd()).is_ok_and(|held| is_there(&held)));
    // SAFETY: takes numbers only.
    let locked = unsafe { libc::flock(same.unwrap_or(&there).as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    sys::check(locked.into())?;
    let folder = about.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let flags = if folder { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: the name is NUL-terminated. A folder that is no longer empty stays.
    sys::check(unsafe { libc::unlinkat(parent.as_raw_fd(), name.as_ptr(), flags) }.into()).map(drop)
}

fn make(parent: BorrowedFd<'_>, name: &CString, folder: bool) -> io::Result<()> {
    let made = if folder {
        // SAFETY: the name is NUL-terminated and outlives the call.
        sys::check(unsafe { libc::mkdirat(parent.as_raw_fd(), name.as_ptr(), 0o555) }.into()).map(drop)
    } else {
        let file = sys::open_at(Some(parent), name, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY, 0o444);
        let text = if name.as_bytes() == LOGIN.0.as_bytes() { LOGIN.1 } else { "" };
        file.and_then(|file| sys::write_all(file.as_fd(), text.as_bytes()))
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn mark(file: BorrowedFd<'_>) -> io::Result<()> {
    let time = libc::timespec { tv_sec: MARK, tv_nsec: 0 };
    let times = [time, time];
    // SAFETY: the pointer is to two `timespec`s.
    sys::check(unsafe { libc::futimens(file.as_raw_fd(), times.as_ptr()) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn guarded(guards: &Guards) -> Vec<(String, bool)> {
        guards.list.iter().map(|guard| (guard.path.display().to_string(), guard.pin)).collect()
    }

    /// Shown as `/shown`, wherever it is.
    fn prepare(dir: &Path, protect: &[PathBuf]) -> Result<Guards, (PathBuf, io::Error)> {
        Guards::prepare(&[Writable { at: dir.to_owned(), shown: "/shown".into() }], protect, &[])
    }

    #[test]
    fn placeholders_are_shared_and_the_last_user_removes_them() {
        let dir = std::env::temp_dir().join(format!("toolwright-guard-{:x}", sys::random_u64()));
        fs::create_dir_all(dir.join(".git")).unwrap();
        fs::write(dir.join(".git/config"), "[core]").unwrap();
        let protect: Vec<PathBuf> =
            [".git/hooks/", ".git/config", ".mcp.json", ".vscode/settings.json"].map(PathBuf::from).into();
        let first = prepare(&dir, &protect).unwrap();
        let want = [
            (".git", true),
            (".mcp.json", false),
            (".vscode", false),
            (".git/config", false),
            (".git/hooks", false),
        ];
        assert_eq!(guarded(&first), want.map(|(path, pin)| (format!("/shown/{path}"), pin)));
        let second = prepare(&dir, &protect).unwrap();
        assert_eq!(guarded(&second), guarded(&first));
        drop(first);
        assert!(dir.join(".mcp.json").exists() && dir.join(".vscode").is_dir());
        drop(second);
        assert!(!dir.join(".mcp.json").exists() && !dir.join(".vscode").exists());
        assert!(!dir.join(".git/hooks").exists() && dir.join(".git/config").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_took_the_place_of_a_placeholder_is_left_alone() {
        let dir = std::env::temp_dir().join(format!("toolwright-guard-{:x}", sys::random_u64()));
        fs::create_dir_all(&dir).unwrap();
        let protect: Vec<PathBuf> = [".mcp.json", "b.yaml", "c.yaml", "d.yaml"].map(PathBuf::from).into();
        let guards = prepare(&dir, &protect).unwrap();
        fs::write(dir.join("new"), "{}").unwrap();
        fs::rename(dir.join("new"), dir.join(".mcp.json")).unwrap();
        fs::remove_file(dir.join("b.yaml")).unwrap();
        fs::write(dir.join("b.yaml"), "").unwrap();
        // Taken away, and made again as a command would.
        fs::remove_file(dir.join("c.yaml")).unwrap();
        mark(fs::File::create(dir.join("c.yaml")).unwrap().as_fd()).unwrap();
        fs::remove_file(dir.join("d.yaml")).unwrap();
        drop(guards);
        assert_eq!(fs::read_to_string(dir.join(".mcp.json")).unwrap(), "{}");
        assert!(dir.join("b.yaml").exists() && !dir.join("c.yaml").exists() && !dir.join("d.yaml").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_lock_that_is_never_given_back_is_not_waited_for() {
        let dir = std::env::temp_dir().join(format!("toolwright-guard-{:x}", sys::random_u64()));
        fs::create_dir_all(&dir).unwrap();
        let file = fs::File::create(dir.join(".mcp.json")).unwrap();
        mark(file.as_fd()).unwrap();
        file.lock().unwrap();
        let (_, error) = prepare(&dir, &[".mcp.json".into()]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
        drop(file);
        assert_eq!(prepare(&dir, &[".mcp.json".into()]).unwrap().list.len(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_pipe_that_looks_like_a_placeholder_is_not_waited_for() {
        let dir = std::env::temp_dir().join(format!("toolwright-guard-{:x}", sys::random_u64()));
        fs::create_dir_all(&dir).unwrap();
        let path = sys::c_path(&dir.join(".mcp.json")).unwrap();
        // SAFETY: the path is NUL-terminated.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
        let pipe = sys::open_at(None, &path, libc::O_RDONLY | libc::O_NONBLOCK, 0).unwrap();
        mark(pipe.as_fd()).unwrap();
        drop(pipe);
        let guards = prepare(&dir, &[".mcp.json".into()]).unwrap();
        assert_eq!(guarded(&guards), [("/shown/.mcp.json".to_owned(), false)]);
        drop(guards);
        assert!(dir.join(".mcp.json").exists(), "it is not a placeholder");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_link_on_the_way_is_refused() {
        let dir = std::env::temp_dir().join(format!("toolwright-guard-{:x}", sys::random_u64()));
        fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink("/etc", dir.join(".vscode")).unwrap();
        assert!(prepare(&dir, &[".vscode/x".into()]).is_err());
        assert!(prepare(&dir, &[".vscode".into()]).is_err());
        fs::remove_dir_all(dir).unwrap();
    }
}
