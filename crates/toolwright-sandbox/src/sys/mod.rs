//! Thin, safe wrappers over the system calls the launcher needs and the standard library lacks.
//!
//! Each function is one kernel call (or one fixed sequence) with owned descriptors and `io::Result`. No
//! policy lives here. Processes that use the fork family below have a single thread, so the child may
//! allocate.

pub(crate) mod attributes;
pub(crate) mod diag;
pub(crate) mod mount;
pub(crate) mod pages;
pub(crate) mod process;
pub(crate) mod socket;

pub(crate) use attributes::{attribute, attribute_names, remove_attribute, set_attribute};

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Turns the `-1 and errno` convention into a result.
pub(crate) fn check(value: libc::c_long) -> io::Result<libc::c_long> {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// A path as the kernel wants it. A path with a NUL byte cannot exist.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// The errno of an error, or `EIO` for one the kernel did not make.
pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Takes ownership of a descriptor number the kernel just returned.
pub(crate) fn own(fd: libc::c_long) -> OwnedFd {
    // SAFETY: every caller passes a descriptor that a system call has just returned and nothing else owns.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// Opens relative to a folder with raw flags; close-on-exec is always set.
pub(crate) fn open_at(
    dir: Option<BorrowedFd<'_>>,
    path: &CStr,
    flags: i32,
    mode: u32,
) -> io::Result<OwnedFd> {
    let dir = dir.map_or(libc::AT_FDCWD, |fd| fd.as_raw_fd());
    // SAFETY: `path` is NUL-terminated and outlives the call.
    let fd = unsafe { libc::openat(dir, path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
    check(fd.into()).map(own)
}

/// `openat2` with resolution rules such as `RESOLVE_BENEATH`.
pub(crate) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &CStr,
    flags: i32,
    mode: u32,
    resolve: u64,
) -> io::Result<OwnedFd> {
    // SAFETY: `open_how` is plain numbers, for which all zeroes is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.mode = mode.into();
    how.resolve = resolve;
    // SAFETY: `path` is NUL-terminated, `how` is a valid structure of the size given; both outlive the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            dir.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    check(fd).map(own)
}

/// Gives an open file without a name one. Goes by way of `/proc`, since naming it directly takes a
/// capability.
pub(crate) fn link_open_file(file: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let from = c_path(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
    let to = c_path(path)?;
    // SAFETY: both paths are NUL-terminated and outlive the call.
    let linked = unsafe {
        libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    };
    check(linked.into()).map(drop)
}

/// Whether an owner or group is the one it looks like. In a user namespace all that are not mapped look like
/// one.
pub(crate) fn is_own_id(id: u32) -> bool {
    const UNMAPPED: u32 = 65534;
    let whole = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    id != UNMAPPED || std::fs::read_to_string("/proc/self/gid_map").is_ok_and(whole)
}

/// `fstat`.
pub(crate) fn stat(fd: BorrowedFd<'_>) -> io::Result<libc::stat> {
    // SAFETY: `stat` is plain numbers, for which all zeroes is a valid value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `stat` structure.
    check(unsafe { libc::fstat(fd.as_raw_fd(), &raw mut stat) }.into())?;
    Ok(stat)
}

/// Whether a folder can hold what is written to an overlay.
pub(crate) fn takes_overlays(path: &Path) -> io::Result<bool> {
    // ext4, XFS, Btrfs, tmpfs, F2FS, bcachefs.
    const FIT: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0xca45_1a4e];
    let path = c_path(path)?;
    // SAFETY: `statfs` is plain numbers, for which all zeroes is a valid value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated and the pointer is to a live `statfs` structure.
    check(unsafe { libc::statfs(path.as_ptr(), &raw mut about) }.into())?;
    Ok(FIT.contains(&(about.f_type as u64)))
}

/// Whether something is mounted exactly here.
pub(crate) fn is_mount_root(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: `statx` is plain numbers, for which all zeroes is a valid value.
    let mut about: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a NUL-terminated constant and the pointer is to a live `statx` structure.
    let done = unsafe { libc::statx(fd.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, 0, &raw mut about) };
    check(done.into())?;
    Ok(about.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0)
}

/// Closes every descriptor from `first` up.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers only; the caller is a fresh launcher that owns no descriptor from `first` up.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) }).map(drop)
}

/// Marks every descriptor from `first` up to be closed by `exec`.
pub(crate) fn close_from_on_exec(first: RawFd) -> io::Result<()> {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: takes numbers only and closes nothing now.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) })
        .map(drop)
}

/// Writes a whole buffer to a descriptor.
pub(crate) fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the pointer and length describe `bytes`.
        let count = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match check(count as libc::c_long) {
            Ok(count) => bytes = bytes.get(count as usize..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes once and tells how much was taken.
pub(crate) fn write_once(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `bytes`.
    let count = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    check(count as libc::c_long).map(|count| count as usize)
}

/// Reads once into `buffer`; 0 is end of input.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the pointer and length describe `buffer`, which is writable.
        let count = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match check(count as libc::c_long) {
            Ok(count) => return Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads exactly `buffer.len()` bytes.
pub(crate) fn read_exact(fd: BorrowedFd<'_>, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(fd, buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => buffer = buffer.get_mut(count..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Duplicates `fd` onto exactly `target`, without close-on-exec.
pub(crate) fn place(fd: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
    if fd.as_raw_fd() == target {
        // SAFETY: takes numbers only.
        return check(unsafe { libc::fcntl(target, libc::F_SETFD, 0) }.into()).map(drop);
    }
    // SAFETY: takes numbers only; `target` is 0, 1 or 2 in a child that is about to exec.
    check(unsafe { libc::dup2(fd.as_raw_fd(), target) }.into()).map(drop)
}

/// A pair of pipe ends: read, write.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the pointer is to two integers.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    let [read, write] = ends;
    Ok((own(read.into()), own(write.into())))
}

/// Asks for a larger pipe, and says whether there is one; a refusal only costs speed.
pub(crate) fn widen_pipe(fd: BorrowedFd<'_>, bytes: usize) -> bool {
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) >= wanted }
}

/// How many bytes wait in a pipe.
pub(crate) fn waiting(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the pointer is to an integer, which is what this request writes.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) }.into())?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Moves bytes from a pipe to another file without looking at them, as many as are there.
pub(crate) fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, count: usize) -> io::Result<usize> {
    let nowhere = std::ptr::null_mut;
    // SAFETY: no offsets are given; the rest are numbers.
    let moved = unsafe {
        libc::splice(from.as_raw_fd(), nowhere(), to.as_raw_fd(), nowhere(), count, libc::SPLICE_F_NONBLOCK)
    };
    check(moved as libc::c_long).map(|moved| moved as usize)
}

/// Sets or clears `O_NONBLOCK` on the open file.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) }.into())? as i32;
    let flags = if on { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
    // SAFETY: takes numbers only.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) }.into()).map(drop)
}

/// Waits until one of the descriptors has an event; `None` waits without a limit. Returns the events of each.
pub(crate) fn poll<const N: usize>(
    fds: [(BorrowedFd<'_>, i16); N],
    timeout_ms: Option<i32>,
) -> io::Result<[i16; N]> {
    let mut polled = fds.map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
    loop {
        // SAFETY: the pointer and count describe `polled`.
        let count = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, timeout_ms.unwrap_or(-1)) };
        match check(count.into()) {
            Ok(_) => return Ok(polled.map(|one| one.revents)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sets the size of a terminal.
pub(crate) fn set_terminal_size(fd: BorrowedFd<'_>, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `TIOCSWINSZ` reads one `winsize` from the pointer.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }.into()).map(drop)
}

/// The process group in the foreground of a terminal, asked through its master side.
pub(crate) fn terminal_foreground(fd: BorrowedFd<'_>) -> io::Result<i32> {
    let mut group: libc::pid_t = 0;
    // SAFETY: `TIOCGPGRP` writes one `pid_t` to the pointer.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGPGRP, &raw mut group) }.into())?;
    Ok(group)
}

/// The key that hands over a line before its end, asked through the master side of a terminal; `None` where
/// the terminal does not collect lines or has no such key.
pub(crate) fn terminal_end_key(fd: BorrowedFd<'_>) -> io::Result<Option<u8>> {
    // SAFETY: `termios` is plain data, for which all zeroes is a valid value.
    let mut mode: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one `termios` to the pointer.
    check(unsafe { libc::tcgetattr(fd.as_raw_fd(), &raw mut mode) }.into())?;
    let key = mode.c_cc.get(libc::VEOF).copied().filter(|key| *key != 0);
    Ok(key.filter(|_| mode.c_lflag & libc::ICANON != 0))
}

/// Opens a new terminal in the mounted devpts: master, slave.
pub(crate) fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let master = open_at(None, c"/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY, 0)?;
    let unlock: libc::c_int = 0;
    // SAFETY: `TIOCSPTLCK` reads one integer from the pointer.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock) }.into())?;
    // SAFETY: `TIOCGPTPEER` takes open flags and returns a new descriptor.
    let slave = unsafe {
        libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC)
    };
    let slave = check(slave.into()).map(own)?;
    Ok((master, slave))
}

/// Makes the terminal on standard input the session's own.
pub(crate) fn take_terminal() -> io::Result<()> {
    // SAFETY: `TIOCSCTTY` takes a number.
    check(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }.into()).map(drop)
}

/// Brings the loopback interface of the current network namespace up.
pub(crate) fn raise_loopback() -> io::Result<()> {
    // SAFETY: takes numbers only.
    let socket =
        own(check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into())?);
    // SAFETY: `ifreq` is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // C libraries do not agree on the type of a request.
    let raise = libc::SIOCSIFFLAGS as _;
    // SAFETY: `SIOCSIFFLAGS` reads one `ifreq` from the pointer.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), raise, &raw const request) }.into()).map(drop)
}

/// Bytes the kernel's random generator made.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the pointer and length describe `bytes`. A short read only leaves zeroes; names are also taken
    // exclusively.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    u64::from_ne_bytes(bytes)
}

/// The user and group this process acts as.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: neither call takes arguments or can fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
