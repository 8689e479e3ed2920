//! The file system a sandbox sees: planned from a policy as data, then built from mounts and pivoted into.
//!
//! The view starts empty. System folders are bound read-only, the workspace writable at its own path, private
//! folders are bounded tmpfs of their own, devices are bound one by one, and masks and guards go on top.
//! Building happens once for a sandbox; each command gets a copy of the finished mounts and only adds its own
//! `/proc`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use toolwright_core::{ErrorKind, ToolError};

use super::git::Obeyed;
use super::guard::{GitView, Guard, Guards, Needed, Writable, needed, unprotected};
use super::identity::{HOME, INSIDE, Identity, NAME};
use super::landlock::Allow;
use super::mounts::Mounts;
use super::sockets;
use super::stage::{STAGE as CHANGES, StagedFolders};
use crate::policy::{SandboxLimits, SandboxPolicy, is_of_the_machine};
use crate::sys::{self, mount};

/// Where the private workspace of a sandbox without one of its own appears.
pub(crate) const PRIVATE_WORKSPACE: &str = "/workspace";

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const SCRATCH: [(&str, u32); 3] = [("/tmp", 0o1777), ("/dev/shm", 0o1777), (HOME, 0o700)];
/// What masks are made of. They stay in the view, where every command can put on a mask that has come off.
const EMPTY_FILE: &str = "run/.empty";
const EMPTY_FOLDER: &str = "run/.none";
/// The folder on the host that the new root is first mounted on; any that exists would do.
const STAGE: &std::ffi::CStr = c"/tmp";

/// How a path of the view can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Can be read and executed.
    ReadOnly,
    /// Can be changed; changes are seen outside.
    Writable,
    /// Can be changed; gone when the sandbox is closed, and never seen outside.
    Private,
    /// Shown empty.
    Masked,
    /// Inside a writable folder, yet cannot be changed or made.
    Protected,
    /// A harmless device.
    Device,
    /// Processes of the sandbox itself, read-only.
    Processes,
}

/// One path of the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ViewEntry {
    /// Where it is inside.
    #[serde(serialize_with = "toolwright_effects::path_text::one::serialize")]
    pub path: PathBuf,
    /// How it can be used.
    pub access: Access,
}

/// A folder or file of the host that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) writable: bool,
    folder: bool,
    workspace: bool,
}

/// The view as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewPlan {
    links: Vec<(PathBuf, PathBuf)>,
    system: Vec<Bind>,
    /// Folders the policy names, the workspace last among equals.
    pub(crate) binds: Vec<Bind>,
    /// As the view shows them.
    pub(crate) mask: Vec<PathBuf>,
    protect: Vec<PathBuf>,
    /// What of that git obeys.
    obeyed: Vec<Obeyed>,
    /// The private folders, each with its mode.
    scratch: Vec<(&'static str, u32)>,
    limits: SandboxLimits,
    /// What else is mounted below the folders the policy names, in the order of `binds`.
    mounted: Vec<Vec<PathBuf>>,
    /// Folders that can be written are read-only in the view, under the overlays of jobs.
    pub(crate) staged: bool,
}

impl ViewPlan {
    /// Looks at the host and decides what goes where. `workspace` is the folder on the host; without one it
    /// is private.
    pub(crate) fn make(policy: &SandboxPolicy, workspace: Option<&Path>) -> Result<ViewPlan, ToolError> {
        let mut links = Vec::new();
        let mut system = Vec::new();
        for path in &policy.system {
            let Ok(about) = fs::symlink_metadata(path) else { continue };
            if about.is_symlink() {
                let to = fs::read_link(path).map_err(|error| missing(path, error))?;
                links.push((path.clone(), to));
            } else {
                let (source, target) = (path.clone(), path.clone());
                let folder = about.is_dir();
                system.push(Bind { source, target, writable: false, folder, workspace: false });
            }
        }
        let real = |path: &PathBuf| fs::canonicalize(path).map_err(|error| missing(path, error));
        let mut binds = Vec::new();
        for (paths, writable) in [(&policy.read, false), (&policy.write, true)] {
            for path in paths {
                let source = real(path)?;
                let folder = source.is_dir();
                let target = source.clone();
                binds.push(Bind { target, source, writable, folder, workspace: false });
            }
        }
        let mut scratch = SCRATCH.to_vec();
        let source = workspace.map(|path| real(&path.to_owned())).transpose()?;
        for bind in binds.iter().filter(|bind| bind.writable).map(|bind| &bind.source).chain(&source) {
            if bind.parent().is_none() || policy.system.iter().any(|path| path.starts_with(bind)) {
                return Err(missing(bind, io::Error::other("too much to make writable")));
            }
        }
        let target = match (&policy.workspace, &source) {
            (Some(_), Some(source)) => source.clone(),
            _ => PathBuf::from(PRIVATE_WORKSPACE),
        };
        match source {
            Some(source) => {
                let (writable, target) = (!policy.read_only, target.clone());
                binds.push(Bind { source, target, writable, folder: true, workspace: true });
            }
            None => scratch.push((PRIVATE_WORKSPACE, if policy.read_only { 0o555 } else { 0o755 })),
        }
        let mounts = Mounts::read().map_err(|error| missing(Path::new("/proc/self/mountinfo"), error))?;
        let of_the_machine = |path: &Path| is_of_the_machine(path) || mounts.is_of_the_kernel(path);
        if let Some(bind) = binds.iter().find(|bind| of_the_machine(&bind.source)) {
            return Err(missing(&bind.source, io::Error::other("of the machine, cannot be shown")));
        }
        // Outer folders go first, so that inner ones land on top of them.
        binds.sort_by_key(|bind| bind.target.components().count());
        let mut mask: Vec<PathBuf> = policy.mask.iter().map(|path| target.join(path)).collect();
        mask.extend(behind_links(&mask, &binds)?);
        // Nobody else has been in a private workspace, which is shown elsewhere than it is.
        let shown: Vec<&Path> = binds
            .iter()
            .filter(|bind| bind.source == bind.target)
            .map(|bind| bind.source.as_path())
            .collect();
        let sockets = sockets::of_the_host(&shown, &mask, &mounts);
        mask.extend(sockets.map_err(|why| ToolError::of(ErrorKind::SandboxUnavailable, why))?);
        let system_folders = system.iter().map(|bind| bind.source.as_path());
        mask.extend(
            shown.iter().copied().chain(system_folders).flat_map(|path| mounts.of_the_kernel_below(path)),
        );
        let mounted = binds.iter().map(|bind| mounts.others_below(&bind.source)).collect();
        let limits = policy.limits.clone();
        let (protect, obeyed) = (Vec::new(), Vec::new());
        let mut plan =
            ViewPlan { links, system, binds, mask, protect, obeyed, scratch, limits, mounted, staged: false };
        let folders = plan.writable();
        let staged = policy.is_staged();
        let protect = needed(&folders, &policy.protect, GitView::Outside)
            .map_err(|why| ToolError::of(ErrorKind::SandboxUnavailable, unprotected(why)))?;
        plan.protect = protect.iter().map(|one| one.within.shown.join(&one.path)).collect();
        plan.obeyed = protect.iter().filter_map(Needed::obeyed).collect();
        plan.staged = staged;
        Ok(plan)
    }

    /// What must be found again where it is, since something is put over it by name: masks, and folders
    /// within others.
    pub(crate) fn kept(&self) -> Vec<PathBuf> {
        let folders = self.binds.iter().filter(|bind| bind.source == bind.target).map(|bind| &bind.target);
        self.mask.iter().chain(folders).cloned().collect()
    }

    /// The folders that can be written, in which protected files are protected. A private workspace, which is
    /// shown elsewhere than it is, has nothing to protect.
    pub(crate) fn writable(&self) -> Vec<Writable> {
        let writable =
            self.binds.iter().filter(|bind| bind.writable && bind.folder && bind.source == bind.target);
        writable.map(|bind| Writable { at: bind.source.clone(), shown: bind.target.clone() }).collect()
    }

    /// What jobs put overlays on, or why none can be.
    pub(crate) fn staged_folders(&self, policy: &SandboxPolicy) -> Result<StagedFolders, String> {
        let writable = |bind: &&Bind| bind.writable && bind.source == bind.target;
        for (bind, mounted) in self.binds.iter().zip(&self.mounted).filter(|(bind, _)| writable(bind)) {
            if !bind.folder {
                return Err(format!("`{}` is a single file", bind.target.display()));
            }
            if let Some(path) = mounted.first() {
                return Err(format!("`{}` is another file system", path.display()));
            }
        }
        let (folders, read_only): (Vec<&Bind>, Vec<&Bind>) =
            self.binds.iter().partition(|bind| writable(bind));
        let targets = |binds: Vec<&Bind>| binds.into_iter().map(|bind| bind.target.clone()).collect();
        let (folders, read_only) = (targets(folders), targets(read_only));
        let rules = self.rules(true);
        Ok(StagedFolders { folders, read_only, rules, network: policy.network.clone() })
    }

    /// The view as a list, for people.
    pub(crate) fn entries(&self) -> Vec<ViewEntry> {
        let entry = |path: &Path, access| ViewEntry { path: path.to_owned(), access };
        let mut entries = Vec::new();
        entries.extend(self.links.iter().map(|(path, _)| entry(path, Access::ReadOnly)));
        entries.extend(self.system.iter().chain(&self.binds).map(|bind| {
            entry(&bind.target, if bind.writable { Access::Writable } else { Access::ReadOnly })
        }));
        entries.extend(self.scratch.iter().map(|(path, _)| entry(Path::new(path), Access::Private)));
        entries.extend(DEVICES.iter().map(|name| entry(&Path::new("/dev").join(name), Access::Device)));
        entries.push(entry(Path::new("/dev/pts"), Access::Device));
        entries.push(entry(Path::new("/proc"), Access::Processes));
        entries.extend(self.mask.iter().map(|path| entry(path, Access::Masked)));
        entries.extend(self.protect.iter().map(|path| entry(path, Access::Protected)));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    /// The same folders as Landlock rules.
    pub(crate) fn rules(&self, viewed: bool) -> Vec<(PathBuf, Allow)> {
        let mut rules = Vec::new();
        if viewed {
            // Every command mounts a `/proc` of its own later; Landlock can only name it by the folder above.
            // All there is below the root of the view may be read, and a way out of the view would not be
            // below it.
            rules.push((PathBuf::from("/"), Allow::Look));
        }
        rules.extend(self.system.iter().chain(&self.binds).map(|bind| {
            let path = if viewed { &bind.target } else { &bind.source };
            (path.clone(), if bind.writable { Allow::Write } else { Allow::Read })
        }));
        rules.extend(DEVICES.iter().map(|name| (Path::new("/dev").join(name), Allow::Device)));
        rules.push((PathBuf::from("/proc"), Allow::Read));
        if viewed {
            rules.push((PathBuf::from("/dev/pts"), Allow::Device));
            rules.extend(self.scratch.iter().map(|(path, _)| (PathBuf::from(path), Allow::Write)));
        }
        rules
    }
}

/// What masks lead to through links. A link that a command can change does not say what the next sandbox must
/// mask, so it is refused, unless it leads out of the view anyway.
fn behind_links(mask: &[PathBuf], binds: &[Bind]) -> Result<Vec<PathBuf>, ToolError> {
    let mut found = Vec::new();
    for path in mask {
        let Ok(real) = fs::canonicalize(path) else { continue };
        if real == *path {
            continue;
        }
        let writable = |bind: &&Bind| bind.writable && bind.source == bind.target;
        let changeable = binds.iter().filter(writable).any(|bind| path.starts_with(&bind.target));
        if changeable && binds.iter().any(|bind| real.starts_with(&bind.source)) {
            let message = format!(
                "cannot mask `{}`, which goes through a link or `..`: name what it leads to, `{}`",
                path.display(),
                real.display()
            );
            return Err(ToolError::of(ErrorKind::SandboxUnavailable, message));
        }
        found.push(real);
    }
    Ok(found)
}

fn missing(path: &Path, error: io::Error) -> ToolError {
    let message = format!("cannot show `{}` in the sandbox: {error}", path.display());
    ToolError::of(ErrorKind::SandboxUnavailable, message)
}

/// What went wrong while building, with the step it happened in.
pub(crate) type Built<T> = Result<T, String>;

fn at<T>(step: impl std::fmt::Display, result: io::Result<T>) -> Built<T> {
    result.map_err(|error| format!("{step}: {error}"))
}

/// A folder that a policy names, detached.
#[derive(Debug)]
pub(crate) struct DetachedTree {
    mount: OwnedFd,
    /// What is mounted below and is not part of `mount`, by its place in the view, outer mounts first.
    below: Vec<(PathBuf, OwnedFd)>,
}

/// Detaches the folders a policy names, with all that is mounted below them.
pub(crate) fn detach_binds(plan: &ViewPlan) -> Built<Vec<DetachedTree>> {
    let detach = |bind: &Bind| {
        let mount = mount::detach(resolved(&bind.source)?.as_fd())?;
        Ok(DetachedTree { mount, below: Vec::new() })
    };
    plan.binds.iter().map(|bind| at(bind.source.display(), detach(bind))).collect()
}

/// Detaches the folders a policy names mount by mount, mapping the owners of each, for a caller that is root.
/// A folder whose owners cannot be mapped is an error, unless it is only there to be read. A mount below one
/// of which that is true is left out and told.
pub(crate) fn detach_mapped(plan: &ViewPlan, identity: Identity) -> Built<(Vec<DetachedTree>, Vec<PathBuf>)> {
    let mut namespaces = BTreeMap::new();
    let mut map = |mount: &OwnedFd, owner: Option<(u32, u32)>| {
        let Some(owner) = owner else { return Ok(()) };
        let namespace = match namespaces.entry(owner) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(new) => new.insert(identity.mount_namespace(owner)?),
        };
        mount::map_owners(mount.as_fd(), namespace.as_fd())
    };
    let mut left_out: Vec<PathBuf> = Vec::new();
    let mut detach = |bind: &Bind, mounted: &[PathBuf]| {
        let mount = mount::detach_one(resolved(&bind.source)?.as_fd())?;
        let about = sys::stat(mount.as_fd())?;
        let mut owner = identity.shown_in(&about, bind.writable);
        match map(&mount, owner) {
            Err(error) if bind.writable || bind.workspace => return Err(error),
            // Read as the user it is read by.
            Err(_) => owner = None,
            Ok(()) => {}
        }
        let mut below = Vec::new();
        for path in mounted {
            if left_out.iter().any(|one| path.starts_with(one)) {
                continue;
            }
            let Ok(place) = resolved(path) else { continue };
            // Another mount may lie over its place.
            if !sys::is_mount_root(place.as_fd())? {
                continue;
            }
            let copy = mount::detach_one(place.as_fd());
            match copy.and_then(|copy| map(&copy, owner).map(|()| copy)) {
                Ok(copy) => {
                    let inside = path.strip_prefix(&bind.source).unwrap_or(path);
                    below.push((bind.target.join(inside), copy));
                }
                Err(_) => left_out.push(path.clone()),
            }
        }
        Ok(DetachedTree { mount, below })
    };
    let each = plan.binds.iter().zip(&plan.mounted);
    let trees =
        each.map(|(bind, mounted)| at(bind.source.display(), detach(bind, mounted))).collect::<Built<_>>()?;
    Ok((trees, left_out))
}

pub(crate) fn detach(path: &Path) -> io::Result<OwnedFd> {
    let place = sys::open_at(None, &sys::c_path(path)?, libc::O_PATH, 0)?;
    mount::detach(place.as_fd())
}

/// Opens a path that was resolved before: a link on the way now was put there since, perhaps by an attacker.
fn resolved(path: &Path) -> io::Result<OwnedFd> {
    let root = sys::open_at(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)?;
    beneath(root.as_fd(), path)
}

/// Builds the view in a mount namespace of its own and makes it the root. `binds` are those of `plan.binds`,
/// detached, in the same order.
pub(crate) fn build(
    plan: &ViewPlan,
    binds: Vec<DetachedTree>,
    guards: &[Guard],
    staging: Option<OwnedFd>,
) -> Built<()> {
    at("private mounts", mount::make_private())?;
    let system: Vec<OwnedFd> = plan
        .system
        .iter()
        .map(|bind| at(bind.source.display(), detach(&bind.source)))
        .collect::<Built<_>>()?;
    let devices = DEVICES
        .iter()
        .map(|name| at(name, detach(&Path::new("/dev").join(name))))
        .collect::<Built<Vec<OwnedFd>>>()?;

    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    at("root", mount::filesystem(c"tmpfs", STAGE, flags, c"mode=0755,size=1m,nr_inodes=4096"))?;
    at("root", std::env::set_current_dir("/tmp"))?;
    let root = at("root", sys::open_at(None, c".", libc::O_PATH | libc::O_DIRECTORY, 0))?;
    let root = root.as_fd();

    for (path, to) in &plan.links {
        let inside = path.strip_prefix("/").unwrap_or(path);
        at(path.display(), symlink(to, inside))?;
    }
    for (bind, mount) in plan.system.iter().zip(&system) {
        show(root, bind, mount.as_fd(), mount::RDONLY | mount::NOSUID | mount::NODEV)?;
    }
    for (name, device) in DEVICES.iter().zip(&devices) {
        let path = Path::new("/dev").join(name);
        let target = at(path.display(), place(root, &path, false))?;
        at("device", mount::restrict(device.as_fd(), mount::NOSUID | mount::NOEXEC))?;
        at(path.display(), mount::attach(device.as_fd(), target.as_fd()))?;
    }
    terminals_and_processes(root)?;
    scratch(root, plan)?;
    for (bind, tree) in plan.binds.iter().zip(&binds) {
        let access = if bind.writable && !plan.staged { 0 } else { mount::RDONLY };
        let attributes = access | mount::NOSUID | mount::NODEV;
        show(root, bind, tree.mount.as_fd(), attributes)?;
        for (path, mount) in &tree.below {
            at(path.display(), mount::restrict(mount.as_fd(), attributes))?;
            let target = at(path.display(), beneath(root, path))?;
            at(path.display(), mount::attach(mount.as_fd(), target.as_fd()))?;
        }
    }
    names_and_masks(root, &plan.mask)?;
    if let Some(staging) = staging {
        at("staging", mount::restrict(staging.as_fd(), mount::NOSUID | mount::NODEV))?;
        let target = at("staging", place(root, Path::new(CHANGES), true))?;
        at("staging", mount::attach(staging.as_fd(), target.as_fd()))?;
    }
    for guard in guards {
        at(guard.path.display(), guard.attach(root))?;
    }

    at("pivot", mount::make_root_here())?;
    let root = at("root", sys::open_at(None, c"/", libc::O_PATH, 0))?;
    at("root", mount::restrict_one(root.as_fd(), mount::RDONLY))
}

fn show(root: BorrowedFd<'_>, bind: &Bind, mount: BorrowedFd<'_>, attributes: u64) -> Built<()> {
    let path = &bind.target;
    at(path.display(), mount::restrict(mount, attributes))?;
    let about = at(path.display(), sys::stat(mount))?;
    let folder = about.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let target = at(path.display(), place(root, path, folder))?;
    at(path.display(), mount::attach(mount, target.as_fd()))
}

fn terminals_and_processes(root: BorrowedFd<'_>) -> Built<()> {
    at("/dev/pts", place(root, Path::new("/dev/pts"), true))?;
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    at("/dev/pts", mount::filesystem(c"devpts", c"dev/pts", flags, c"newinstance,ptmxmode=0666,mode=0620"))?;
    for (name, to) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        at(name, symlink(to, Path::new("dev").join(name)))?;
    }
    at("/proc", place(root, Path::new("/proc"), true))?;
    at("/proc", mount_processes(c"proc"))
}

/// Mounts the process list of the current pid namespace, read-only: no sysctl, trigger or score can be
/// written.
pub(crate) fn mount_processes(target: &std::ffi::CStr) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    mount::filesystem(c"proc", target, flags, c"")
}

/// The private folders, each with the limit of the policy.
fn scratch(root: BorrowedFd<'_>, plan: &ViewPlan) -> Built<()> {
    let (bytes, inodes) = (plan.limits.scratch, plan.limits.scratch_files());
    for (path, mode) in plan.scratch.iter().copied() {
        at(path, place(root, Path::new(path), true))?;
        let options = CString::new(format!("mode={mode:o},size={bytes},nr_inodes={inodes}"));
        let options = at(path, options.map_err(io::Error::other))?;
        let target = at(path, sys::c_path(Path::new(path.trim_start_matches('/'))))?;
        let read_only = if mode & 0o222 == 0 { libc::MS_RDONLY } else { 0 };
        let flags = libc::MS_NOSUID | libc::MS_NODEV | read_only;
        at(path, mount::filesystem(c"tmpfs", &target, flags, &options))?;
    }
    at("/var/tmp", place(root, Path::new("/var"), true))?;
    at("/var/tmp", symlink("../tmp", "var/tmp"))
}

/// The names of users and groups inside, and what masks are made of. The files lose their names once they are
/// mounted.
fn names_and_masks(root: BorrowedFd<'_>, masked: &[PathBuf]) -> Built<()> {
    let base = Path::new("run");
    at("/run", place(root, Path::new("/run"), true))?;
    let passwd = format!(
        "root:x:0:0:root:/:/usr/sbin/nologin\n{NAME}:x:{INSIDE}:{INSIDE}:{NAME}:{HOME}:/bin/sh\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    );
    let group = format!("root:x:0:\ntty:x:5:\n{NAME}:x:{INSIDE}:\nnogroup:x:65534:\n");
    for (name, text) in [("passwd", passwd), ("group", group)] {
        let target = Path::new("/etc").join(name);
        let Ok(target) = beneath(root, &target) else { continue };
        let source = base.join(name);
        at(name, fs::write(&source, text))?;
        let mount = at(name, detach(&source))?;
        at(name, mount::restrict(mount.as_fd(), mount::RDONLY))?;
        at(name, mount::attach(mount.as_fd(), target.as_fd()))?;
        at(name, fs::remove_file(&source))?;
    }
    at("mask", fs::write(EMPTY_FILE, ""))?;
    at("mask", fs::set_permissions(EMPTY_FILE, PermissionsExt::from_mode(0o000)))?;
    at("mask", fs::DirBuilder::new().mode(0o555).create(EMPTY_FOLDER))?;
    masked.iter().try_for_each(|path| at(path.display(), mask(root, path)))
}

/// Covers a path with something empty, unless it is covered already.
fn mask(root: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
    let target = match sys::open_beneath(root, &sys::c_path(path)?, libc::O_PATH, 0, resolve) {
        Ok(target) => target,
        // What is not in the view needs no mask.
        Err(error)
            if matches!(sys::errno(&error), libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EACCES) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let covered = sys::stat(target.as_fd())?;
    let folder = covered.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let source = beneath(root, Path::new(if folder { EMPTY_FOLDER } else { EMPTY_FILE }))?;
    let empty = sys::stat(source.as_fd())?;
    // That something is mounted there says nothing: it may be a mount of the host.
    if (covered.st_dev, covered.st_ino) == (empty.st_dev, empty.st_ino) {
        return Ok(());
    }
    let mount = mount::detach(source.as_fd())?;
    mount::restrict(mount.as_fd(), mount::RDONLY | mount::NOEXEC)?;
    mount::attach(mount.as_fd(), target.as_fd())
}

/// What lies on top of a finished view.
#[derive(Debug)]
pub(crate) struct Covers {
    mask: Vec<PathBuf>,
    kept: Vec<PathBuf>,
    guards: Vec<Guard>,
    /// Relative to each of the folders, or a place in one of them.
    protect: Vec<PathBuf>,
    obeyed: Vec<Obeyed>,
    /// Those that can be written, as the view shows them.
    folders: Vec<Writable>,
}

impl Covers {
    /// `later` is to be masked once it is there.
    pub(crate) fn new(plan: &ViewPlan, guards: &[Guard], protect: &[PathBuf], later: &[PathBuf]) -> Covers {
        let folders = plan.writable().iter().map(|folder| Writable::here(&folder.shown)).collect();
        let mask = plan.mask.iter().chain(later).cloned().collect();
        // From inside the view not all that git obeys can be found again: its settings in a home folder are
        // not there.
        let (protect, obeyed) = (protect.to_vec(), plan.obeyed.clone());
        Covers { mask, kept: plan.kept(), guards: guards.to_vec(), protect, obeyed, folders }
    }

    /// Puts on again what has come off. A mount goes away when, on the host, something else takes the place
    /// of what it covers: an editor that saves a file under its name, or `git init` after `rm -r .git`.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let root = sys::open_at(None, c"/", libc::O_PATH | libc::O_DIRECTORY, 0)?;
        self.mask.iter().try_for_each(|path| mask(root.as_fd(), path))?;
        let is_on = |guard: &Guard| {
            let place = beneath(root.as_fd(), &guard.path)?;
            sys::is_mount_root(place.as_fd())
        };
        if self.guards.iter().all(|guard| is_on(guard).unwrap_or(false)) {
            return Ok(());
        }
        let guards = Guards::prepare_again(&self.folders, &self.protect, &self.obeyed, &self.kept)
            .map_err(|(_, error)| error)?;
        // A folder whose name alone was pinned may have become one that is guarded, as may the root of some
        // other mount.
        let more = |guard: &Guard| !guard.pin && !self.guards.contains(guard);
        for guard in &guards.list {
            if more(guard) || !is_on(guard)? {
                guard.attach(root.as_fd())?;
            }
        }
        // New placeholders belong to the sandbox as a whole, which removes them at its end.
        std::mem::forget(guards);
        Ok(())
    }
}

/// Opens a path of the view without following a link anywhere on the way.
pub(crate) fn beneath(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let path = path.strip_prefix("/").unwrap_or(path);
    let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
    sys::open_beneath(root, &sys::c_path(path)?, libc::O_PATH, 0, resolve)
}

/// Opens the place something is to be mounted on, making it and its parents when they are not there yet.
fn place(root: BorrowedFd<'_>, path: &Path, folder: bool) -> io::Result<OwnedFd> {
    let mut here = root.try_clone_to_owned()?;
    let parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(Path::new(name)),
            _ => None,
        })
        .collect();
    for (index, part) in parts.iter().enumerate() {
        let next = match beneath(here.as_fd(), part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(here.as_fd(), part, folder || index + 1 < parts.len())?;
                beneath(here.as_fd(), part)?
            }
            other => other?,
        };
        here = next;
    }
    Ok(here)
}

fn make(parent: BorrowedFd<'_>, name: &Path, folder: bool) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let name = sys::c_path(name)?;
    if folder {
        // SAFETY: the name is NUL-terminated and outlives the call.
        return sys::check(unsafe { libc::mkdirat(parent.as_raw_fd(), name.as_ptr(), 0o755) }.into())
            .map(drop);
    }
    sys::open_at(Some(parent), &name, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY, 0o644).map(drop)
}
