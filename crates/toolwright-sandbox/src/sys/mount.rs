//! Mount calls. Sources are detached first and attached by descriptor, so a path is looked up exactly once.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null;

use super::{check, own};

pub(crate) const RDONLY: u64 = 0x1;
pub(crate) const NOSUID: u64 = 0x2;
pub(crate) const NODEV: u64 = 0x4;
pub(crate) const NOEXEC: u64 = 0x8;
const IDMAP: u64 = 0x0010_0000;

const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;

/// The kernel's `struct mount_attr`.
#[derive(Default)]
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// A detached copy of the mount at an open file or folder, with everything mounted below it.
pub(crate) fn detach(at: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    clone(at, libc::AT_RECURSIVE as libc::c_uint)
}

/// A detached copy of this mount alone.
pub(crate) fn detach_one(at: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    clone(at, 0)
}

fn clone(at: BorrowedFd<'_>, more: libc::c_uint) -> io::Result<OwnedFd> {
    let flags =
        OPEN_TREE_CLONE | libc::O_CLOEXEC as libc::c_uint | libc::AT_EMPTY_PATH as libc::c_uint | more;
    // SAFETY: the path is a NUL-terminated constant; the rest are numbers.
    check(unsafe { libc::syscall(libc::SYS_open_tree, at.as_raw_fd(), c"".as_ptr(), flags) }).map(own)
}

/// Attaches a detached mount at an open file or folder.
pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths are NUL-terminated constants; the rest are numbers.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    })
    .map(drop)
}

/// Sets attributes on a mount and everything below it, and cuts it off from the one it is a copy of: what is
/// mounted there later does not appear here.
pub(crate) fn restrict(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    set(mount, MountAttr { set: attributes, propagation: libc::MS_PRIVATE, ..MountAttr::default() }, true)
}

/// Sets attributes on this mount alone.
pub(crate) fn restrict_one(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    set(mount, MountAttr { set: attributes, ..MountAttr::default() }, false)
}

/// Shows the owners of files of this mount alone through the mapping of a user namespace.
pub(crate) fn map_owners(mount: BorrowedFd<'_>, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let userns = namespace.as_raw_fd() as u64;
    set(mount, MountAttr { set: IDMAP, userns, ..MountAttr::default() }, false)
}

fn set(mount: BorrowedFd<'_>, attributes: MountAttr, recursive: bool) -> io::Result<()> {
    let mut flags = libc::AT_EMPTY_PATH as libc::c_uint;
    if recursive {
        flags |= libc::AT_RECURSIVE as libc::c_uint;
    }
    // SAFETY: the path is a NUL-terminated constant and `attributes` a live structure of the size given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Mounts a new filesystem of the given type.
pub(crate) fn filesystem(kind: &CStr, target: &CStr, flags: libc::c_ulong, options: &CStr) -> io::Result<()> {
    // SAFETY: all strings are NUL-terminated and outlive the call.
    check(
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) }
            .into(),
    )
    .map(drop)
}

/// Takes off what is mounted at a path; what is open in it stays open.
pub(crate) fn take_off(path: &CStr) -> io::Result<()> {
    // SAFETY: the path is NUL-terminated and outlives the call.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) }.into()).map(drop)
}

/// Cuts this namespace's mounts off from the one they were copied from.
pub(crate) fn make_private() -> io::Result<()> {
    // SAFETY: the target is a NUL-terminated constant; the null arguments are allowed for this call.
    check(
        unsafe { libc::mount(null(), c"/".as_ptr(), null(), libc::MS_REC | libc::MS_PRIVATE, null()) }.into(),
    )
    .map(drop)
}

/// Makes the current folder the root and lets go of everything else.
pub(crate) fn make_root_here() -> io::Result<()> {
    // SAFETY: the paths are NUL-terminated constants.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) })?;
    // SAFETY: the path is a NUL-terminated constant. After the pivot the old root lies on top of ".", so it
    // goes first.
    check(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) }.into())?;
    std::env::set_current_dir("/")
}
