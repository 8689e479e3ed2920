//! What tells one version of a file from another.

use rustix::fs::{FileType, Stat, Timespec, Timestamps};
use serde::{Deserialize, Serialize};

/// The status of a file at one moment. Two equal ones are the same version of the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    /// Last change of the contents, in nanoseconds since 1970.
    pub(crate) modified: i64,
    /// Last change of anything, in nanoseconds since 1970.
    pub(crate) changed: i64,
}

impl FileIdentity {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    pub(crate) fn is_link(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    /// The time of the last change, for a copy of the file.
    pub(crate) fn times(&self) -> Timestamps {
        let time = Timespec {
            tv_sec: self.modified.div_euclid(1_000_000_000),
            tv_nsec: self.modified.rem_euclid(1_000_000_000),
        };
        Timestamps { last_access: time, last_modification: time }
    }

    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// The same file with the same contents; its name, owner and links may have changed.
    pub(crate) fn same_contents(&self, other: &FileIdentity) -> bool {
        let key = |one: &FileIdentity| (one.device, one.inode, one.mode, one.size, one.modified);
        key(self) == key(other)
    }
}

impl From<Stat> for FileIdentity {
    fn from(stat: Stat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        FileIdentity {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: nanoseconds(stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            changed: nanoseconds(stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        }
    }
}
