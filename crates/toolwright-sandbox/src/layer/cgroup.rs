//! SandboxLimits on the sandbox as a whole, where a control group is available: version 1, version 2, or
//! neither.
//!
//! The monitor makes one group per controller before anything runs and removes it after everything is gone. A
//! group left by a killed monitor is removed by the next one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::policy::{Layer, SandboxLimits};

/// The control groups of one sandbox; dropping them removes the folders.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    folders: Vec<PathBuf>,
    /// Version 1: a process that writes itself here moves in. Moving another takes a lock of the whole
    /// machine, 11 ms.
    doors: Vec<File>,
    /// Version 2: the monitor moves the keeper.
    lists: Vec<PathBuf>,
    /// The limits that are in force.
    pub(crate) layers: Vec<Layer>,
    /// Who was killed for the memory.
    pub(crate) kills: Option<Kills>,
}

/// Counts the processes of a sandbox that were killed because its memory was used up.
#[derive(Debug)]
pub(crate) struct Kills(File);

impl Kills {
    /// So many until now; the file is read from wherever its descriptor was taken to.
    pub(crate) fn count(&self) -> u64 {
        let mut text = [0; 1024];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Groups {
    /// Makes the control groups that are available here; for each of the others, the missing layer and the
    /// reason.
    pub(crate) fn create(limits: &SandboxLimits) -> (Groups, Vec<(Layer, String)>) {
        let mut groups = Groups::default();
        let mut missing = Vec::new();
        let wanted =
            [(Layer::MemoryCgroup, "memory", limits.memory), (Layer::PidsCgroup, "pids", limits.processes)];
        for (layer, controller, limit) in wanted {
            let Some(limit) = limit else { continue };
            match groups.add(controller, limit) {
                Ok(()) => groups.layers.push(layer),
                Err(error) => missing.push((layer, error.to_string())),
            }
        }
        (groups, missing)
    }

    /// Moves a process in from outside; what it starts from then on is inside too.
    pub(crate) fn admit(&self, pid: i32) -> io::Result<()> {
        self.lists.iter().try_for_each(|list| fs::write(list, pid.to_string()))
    }

    /// Moves the calling process in, with the rights of the process that opened the files.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.doors.iter().try_for_each(|mut door| door.write_all(b"0"))
    }

    fn add(&mut self, controller: &str, limit: u64) -> io::Result<()> {
        let place = ControllerDir::find(controller)?;
        let folder = self.folder_in(&place)?;
        let files: &[&str] = match (controller, place.version) {
            ("memory", 1) => &["memory.limit_in_bytes"],
            ("memory", _) => &["memory.max"],
            _ => &["pids.max"],
        };
        for file in files {
            fs::write(folder.join(file), limit.to_string())?;
        }
        if controller == "memory" {
            if place.version == 2 {
                // Swap would only delay the end; kernels without swap accounting lack the file.
                let _ = fs::write(folder.join("memory.swap.max"), "0");
            }
            let told = if place.version == 1 { "memory.oom_control" } else { "memory.events" };
            self.kills = File::open(folder.join(told)).ok().map(Kills);
        }
        Ok(())
    }

    fn folder_in(&mut self, place: &ControllerDir) -> io::Result<PathBuf> {
        let parent = place.parent.as_path();
        if let Some(folder) = self.folders.iter().find(|folder| folder.parent() == Some(parent)) {
            return Ok(folder.clone());
        }
        sweep(parent);
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        self.folders.push(folder.clone());
        match place.version {
            1 => self.doors.push(File::options().write(true).open(folder.join("tasks"))?),
            _ => self.lists.push(folder.join("cgroup.procs")),
        }
        Ok(folder)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The last process may still be on its way out.
            for _ in 0..50 {
                match fs::remove_dir(folder) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                    _ => break,
                }
            }
        }
    }
}

const PREFIX: &str = "toolwright-";

/// Removes groups whose monitor is gone.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The cgroup directory in which a controller is available.
struct ControllerDir {
    parent: PathBuf,
    version: u8,
}

impl ControllerDir {
    fn find(controller: &str) -> io::Result<ControllerDir> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        if let Some(parent) = version_1(&own, &mounts, controller) {
            return Ok(ControllerDir { parent, version: 1 });
        }
        let own = version_2(&own, &mounts)
            .ok_or_else(|| io::Error::other(format!("no `{controller}` controller is mounted")))?;
        // A group that holds processes cannot hand controllers to its children, but its parent may have done
        // so for it.
        let enabled = |folder: &&Path| {
            fs::read_to_string(folder.join("cgroup.subtree_control"))
                .is_ok_and(|list| list.split_whitespace().any(|word| word == controller))
        };
        [Some(own.as_path()), own.parent()]
            .into_iter()
            .flatten()
            .find(enabled)
            .map(|parent| ControllerDir { parent: parent.to_owned(), version: 2 })
            .ok_or_else(|| io::Error::other(format!("the `{controller}` controller is not delegated to us")))
    }
}

/// Our own folder in the version 1 hierarchy of a controller.
fn version_1(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|one| one == controller).then(|| fields.next())?
    })?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let version_1 = kind.next()? == "cgroup";
        let options = kind.nth(1)?;
        (version_1 && options.split(',').any(|one| one == controller)).then(|| below(place, group))?
    });
    mount.filter(|folder| folder.is_dir())
}

/// Our own folder in the version 2 hierarchy.
fn version_2(own: &str, mounts: &str) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts
        .lines()
        .find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            kind.starts_with("cgroup2 ").then(|| below(place, group))?
        })
        .filter(|folder| folder.is_dir())
}

/// The folder of a group below a mount, given the first half of its `mountinfo` line.
fn below(place: &str, group: &str) -> Option<PathBuf> {
    let mut fields = place.split(' ').skip(3);
    let (root, target) = (fields.next()?, fields.next()?);
    let group = Path::new(group).strip_prefix(root).unwrap_or(Path::new(group));
    Some(Path::new(target).join(group.strip_prefix("/").unwrap_or(group)))
}
