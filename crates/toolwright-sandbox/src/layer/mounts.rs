//! What is mounted on the host, at and below the folders that are shown.
//!
//! A file system of the kernel below a folder (the `/proc` of a container's root, say) gives what no file
//! does, so it is masked. Every other mount is shown, if it can be.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// File systems in which the kernel shows itself: settings, processes, devices.
const OF_THE_KERNEL: [&str; 30] = [
    "autofs",
    "bdev",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "debugfs",
    "devfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "functionfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tracefs",
    "xenfs",
];

/// The mounts of this process.
#[derive(Debug)]
pub(crate) struct Mounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    /// Major and minor number.
    device: (u32, u32),
    of_the_kernel: bool,
}

impl Mounts {
    pub(crate) fn read() -> io::Result<Mounts> {
        Ok(Mounts::parse(&fs::read("/proc/self/mountinfo")?))
    }

    fn parse(table: &[u8]) -> Mounts {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ');
            let (major, minor) = std::str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
            let device = (major.parse().ok()?, minor.parse().ok()?);
            let at = PathBuf::from(OsString::from_vec(unescaped(fields.nth(1)?)));
            let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
            Some(Mount { at, device, of_the_kernel: OF_THE_KERNEL.iter().any(|one| one.as_bytes() == kind) })
        };
        Mounts(table.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Whether a real path lies in a file system of the kernel.
    pub(crate) fn is_of_the_kernel(&self, path: &Path) -> bool {
        self.around(path).is_some_and(|mount| mount.of_the_kernel)
    }

    /// The file systems that real paths and all below them lie in.
    pub(crate) fn devices(&self, paths: &[&Path]) -> BTreeSet<(u32, u32)> {
        let mounts = paths.iter().flat_map(|path| self.around(path).into_iter().chain(self.below(path)));
        mounts.map(|mount| mount.device).collect()
    }

    /// The mount that a path lies in: of several at one place, the last.
    fn around(&self, path: &Path) -> Option<&Mount> {
        let around = self.0.iter().filter(|mount| path.starts_with(&mount.at));
        around.max_by_key(|mount| mount.at.components().count())
    }

    /// Where file systems of the kernel are mounted below a real path, without those below another.
    pub(crate) fn of_the_kernel_below(&self, path: &Path) -> Vec<PathBuf> {
        outermost(self.below(path).filter(|mount| mount.of_the_kernel).map(|mount| mount.at.clone()))
    }

    /// Where anything else is mounted below a real path, outer mounts first.
    pub(crate) fn others_below(&self, path: &Path) -> Vec<PathBuf> {
        let left_out = self.of_the_kernel_below(path);
        let mut found: Vec<PathBuf> = self.below(path).map(|mount| mount.at.clone()).collect();
        found.retain(|at| !left_out.iter().any(|one| at.starts_with(one)));
        found.sort_by_key(|at| at.components().count());
        found.dedup();
        found
    }

    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Mount> {
        self.0.iter().filter(move |mount| mount.at.starts_with(path) && mount.at != path)
    }
}

fn outermost(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    // In this order a path follows what it is below.
    paths.dedup_by(|later, earlier| later.starts_with(earlier));
    paths
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        let digits =
            more.first_chunk::<3>().filter(|digits| digits.iter().all(|one| (b'0'..=b'7').contains(one)));
        match digits {
            Some(digits) if *first == b'\\' => {
                let value = digits.iter().fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                bytes.push(value as u8);
                rest = more.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_told_apart() {
        let table = b"1 0 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
                      2 1 0:5 / /w/root\\040fs/proc rw - proc proc rw\n\
                      3 2 0:6 / /w/root\\040fs/proc/sys/fs/binfmt_misc rw - binfmt_misc none rw\n\
                      4 1 0:7 / /w/data/deep rw shared:2 master:1 - ext4 - rw\n\
                      5 1 0:8 / /w/data rw - overlay proc rw\n\
                      6 1 0:9 / /other rw - tmpfs tmpfs rw\n\
                      a line that says nothing\n";
        let mounts = Mounts::parse(table);
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(mounts.of_the_kernel_below(Path::new("/w")), paths(&["/w/root fs/proc"]));
        assert_eq!(mounts.others_below(Path::new("/w")), paths(&["/w/data", "/w/data/deep"]));
        assert!(mounts.is_of_the_kernel(Path::new("/w/root fs/proc/sys/vm")));
        assert!(!mounts.is_of_the_kernel(Path::new("/w/root fs")));
        assert!(mounts.others_below(Path::new("/w/data/deep")).is_empty());
        assert_eq!(mounts.devices(&[Path::new("/w/data/x")]), BTreeSet::from([(0, 8)]));
        assert_eq!(mounts.devices(&[Path::new("/other"), Path::new("/w/data")]).len(), 3);
    }
}
