//! Extended attributes of open files.

use std::ffi::{CStr, CString, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// The most the system holds: of one value, and of all names of a file.
const MOST: usize = 64 * 1024;

/// The names of all attributes of a file.
pub(crate) fn attribute_names(file: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = vec![0u8; MOST];
    // SAFETY: the pointer is to `MOST` bytes that live until the call returns.
    let length = unsafe { libc::flistxattr(file.as_raw_fd(), names.as_mut_ptr().cast(), MOST) };
    names.truncate(length_of(length)?);
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| CString::new(name).map_err(io::Error::from)).collect()
}

/// The value of an attribute.
pub(crate) fn attribute(file: BorrowedFd<'_>, name: &CStr) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; MOST];
    let into = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: `name` is NUL-terminated and the pointer is to `MOST` bytes; both live until the call returns.
    let length = unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), into, MOST) };
    value.truncate(length_of(length)?);
    Ok(value)
}

/// Sets an attribute.
pub(crate) fn set_attribute(file: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> io::Result<()> {
    let from = value.as_ptr().cast::<c_void>();
    // SAFETY: `name` is NUL-terminated and the pointer is to as many bytes as are named; both live until the
    // call returns.
    check(unsafe { libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), from, value.len(), 0) }.into()).map(drop)
}

/// Takes an attribute away.
pub(crate) fn remove_attribute(file: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: `name` is NUL-terminated and lives until the call returns.
    check(unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) }.into()).map(drop)
}

fn length_of(length: isize) -> io::Result<usize> {
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}
