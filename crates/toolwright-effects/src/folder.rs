//! An open folder. Whatever is opened in it is looked up without following links and without leaving it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use crate::identity::FileIdentity;

/// The longest extended attribute, and list of their names, that Linux holds.
const MAX_ATTRIBUTE: usize = 64 * 1024;
/// Room for the names that most files have.
const FEW_ATTRIBUTES: usize = 512;

/// The most names in one folder that are looked at.
const MAX_NAMES: usize = 1_000_000;

/// The attributes that overlayfs keeps for itself begin so, by who mounted it.
const OVERLAY: [&[u8]; 2] = [b"user.overlay.", b"trusted.overlay."];

#[derive(Debug)]
pub(crate) struct OpenFolder(OwnedFd);

impl AsFd for OpenFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl OpenFolder {
    /// Opens a folder by its absolute path, of which no part may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<OpenFolder> {
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let below = path.strip_prefix("/").unwrap_or(path);
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(OpenFolder(openat2(&root, below, flags, Mode::empty(), resolve)?))
    }

    fn inside(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
    }

    /// A folder inside, by relative path.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<OpenFolder> {
        self.inside(path, OFlags::RDONLY | OFlags::DIRECTORY).map(OpenFolder)
    }

    /// Opens a regular file for reading; a pipe does not block.
    pub(crate) fn file(&self, name: &Path) -> io::Result<File> {
        let file = File::from(self.inside(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
    }

    /// A place that can be named, not read.
    pub(crate) fn place(&self, name: &Path) -> io::Result<OwnedFd> {
        self.inside(name, OFlags::PATH | OFlags::NOFOLLOW)
    }

    /// What is at a name directly in this folder, if anything.
    pub(crate) fn status(&self, name: &Path) -> io::Result<Option<FileIdentity>> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The status of the folder itself.
    pub(crate) fn own_status(&self) -> io::Result<FileIdentity> {
        Ok(rustix::fs::fstat(&self.0)?.into())
    }

    /// The names in it, sorted; an error when there are more than [`MAX_NAMES`].
    pub(crate) fn names(&self) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            if names.len() >= MAX_NAMES {
                return Err(io::Error::other(format!("more than {MAX_NAMES} names in one folder")));
            }
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(PathBuf::from(OsString::from_vec(name)));
            }
        }
        names.sort();
        Ok(names)
    }

    pub(crate) fn link_target(&self, name: &Path) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// The path of a name in this folder by way of the open descriptor, for calls that take only paths.
    pub(crate) fn proc_path(&self, name: &Path) -> PathBuf {
        Path::new("/proc/self/fd").join(self.0.as_raw_fd().to_string()).join(name)
    }

    /// The names of the extended attributes of an entry, not following a link.
    pub(crate) fn attribute_names(&self, name: &Path) -> Vec<OsString> {
        let path = self.proc_path(name);
        let mut list = vec![0_u8; FEW_ATTRIBUTES];
        let mut length = rustix::fs::llistxattr(&path, list.as_mut_slice());
        if length == Err(Errno::RANGE) {
            list.resize(MAX_ATTRIBUTE, 0);
            length = rustix::fs::llistxattr(&path, list.as_mut_slice());
        }
        let Ok(length) = length else { return Vec::new() };
        list.truncate(length);
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| OsString::from_vec(name.to_vec())).collect()
    }

    pub(crate) fn attribute(&self, name: &Path, attribute: &OsString) -> Option<Vec<u8>> {
        let mut value = vec![0_u8; MAX_ATTRIBUTE];
        let length =
            rustix::fs::lgetxattr(self.proc_path(name), attribute.as_os_str(), value.as_mut_slice()).ok()?;
        value.truncate(length);
        Some(value)
    }

    /// Whether overlayfs hides what the lower layer has in this folder of an upper layer.
    pub(crate) fn is_opaque(&self, name: &Path) -> bool {
        let opaque = |prefix: &&[u8]| {
            let attribute = OsString::from_vec([prefix, b"opaque".as_slice()].concat());
            self.attribute(name, &attribute).as_deref() == Some(b"y")
        };
        OVERLAY.iter().any(opaque)
    }

    /// Whether an empty regular file stands for an absence, the form that whiteouts have where devices cannot
    /// be made.
    pub(crate) fn is_whiteout_file(&self, name: &Path) -> bool {
        let whiteout = |prefix: &&[u8]| {
            let attribute = OsString::from_vec([prefix, b"whiteout".as_slice()].concat());
            self.attribute(name, &attribute).is_some()
        };
        OVERLAY.iter().any(whiteout)
    }
}

/// Whether an attribute is overlayfs's own.
pub(crate) fn is_of_overlay(attribute: &OsString) -> bool {
    OVERLAY.iter().any(|prefix| attribute.as_encoded_bytes().starts_with(prefix))
}

/// Opens the parents of one path after another; neighbours share the open folder.
#[derive(Debug)]
pub(crate) struct FolderCache {
    root: OpenFolder,
    last: Option<(PathBuf, OpenFolder)>,
}

impl FolderCache {
    pub(crate) fn new(root: OpenFolder) -> Self {
        FolderCache { root, last: None }
    }

    pub(crate) fn root(&self) -> &OpenFolder {
        &self.root
    }

    /// The folder that holds a path, and the path's last name.
    pub(crate) fn parent<'p>(&mut self, path: &'p Path) -> io::Result<(&OpenFolder, &'p Path)> {
        let name = path.file_name().map(Path::new).ok_or(Errno::INVAL)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok((&self.root, name));
        }
        let is_open = self.last.as_ref().is_some_and(|(open, _)| open == parent);
        if !is_open {
            self.last = Some((parent.to_owned(), self.root.folder(parent)?));
        }
        let (_, folder) = self.last.as_ref().ok_or(Errno::INVAL)?;
        Ok((folder, name))
    }

    /// Lets go of the open folder, which may be removed next.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}
