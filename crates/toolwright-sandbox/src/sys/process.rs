//! Processes: creating them with namespaces, giving up rights, waiting, killing.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{check, own};

/// Which side of a fork this is.
pub(crate) enum ForkSide {
    /// The new process.
    Child,
    /// The old one, with the new one's number.
    Parent(i32),
}

/// Forks, giving the child new namespaces of the kinds in `flags`. The calling process has one thread.
pub(crate) fn fork(flags: libc::c_int) -> io::Result<ForkSide> {
    // The old call on purpose: `clone3` is refused by our own filter, under which a job forks its program.
    // SAFETY: without `CLONE_VM` and with no stack this behaves as fork. The launcher has one thread, so no
    // lock is held by a thread that the child lacks.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) })?;
    Ok(if pid == 0 { ForkSide::Child } else { ForkSide::Parent(pid as i32) })
}

/// Ends the process at once, without running destructors or exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns; nothing of this process is used afterwards.
    unsafe { libc::_exit(code) }
}

/// What `waitpid` reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// A child ended: its number, and its exit code or minus its signal.
    Ended(i32, i32),
    /// There are children, none of which has ended.
    NoneYet,
    /// There are no children.
    NoChildren,
}

/// Collects one ended child. `pid` -1 means any.
pub(crate) fn wait(pid: i32, block: bool) -> io::Result<Waited> {
    let mut status = 0;
    let options = if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the pointer is to one integer.
        match check(unsafe { libc::waitpid(pid, &raw mut status, options) }.into()) {
            Ok(0) => return Ok(Waited::NoneYet),
            Ok(pid) => {
                let code = if libc::WIFSIGNALED(status) {
                    -libc::WTERMSIG(status)
                } else {
                    libc::WEXITSTATUS(status)
                };
                return Ok(Waited::Ended(pid as i32, code));
            }
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Waited::NoChildren),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends a signal; the numbers mean what they mean to `kill(2)`.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::kill(pid, signal) }.into()).map(drop)
}

fn prctl(option: i32, a: libc::c_ulong, b: libc::c_ulong) -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used here take numbers only.
    check(unsafe { libc::prctl(option, a, b, zero, zero) }.into()).map(drop)
}

/// Asks to be killed when the parent process ends. Parents that use this have one thread.
pub(crate) fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0)
}

/// Makes every orphan below this process its child.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0)
}

/// Gives up ever gaining rights through `exec`.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)
}

/// Hides memory and `/proc` entries of this process from others of the same user.
pub(crate) fn hide() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0, 0)
}

/// The name of the process in listings.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the name is NUL-terminated; the kernel copies at most 16 bytes. Failure is of no consequence.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Empties the bounding and ambient capability sets, so that nothing started from here can hold a capability.
pub(crate) fn bound_capabilities() -> io::Result<()> {
    for capability in 0..64 {
        match prctl(libc::PR_CAPBSET_DROP, capability, 0) {
            Ok(()) => {}
            // The first number the kernel does not know ends the list.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0)
}

/// Empties the effective, permitted and inheritable capability sets.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let data = [0u32; 6];
    // SAFETY: version 3 of the call reads an 8-byte header and 24 bytes of data.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) }).map(drop)
}

/// Becomes another user and group inside the user namespace, keeping capabilities in it.
pub(crate) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: takes numbers only. The bare calls change this thread alone, and it is the only one.
    check(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }).map(drop)
}

/// Leaves all supplementary groups.
pub(crate) fn leave_groups() -> io::Result<()> {
    // SAFETY: a count of zero reads nothing from the pointer.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) }).map(drop)
}

/// Starts a session of its own, without a terminal.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: takes nothing.
    check(unsafe { libc::setsid() }.into()).map(drop)
}

/// The number of a resource that can be limited. C libraries do not agree on its type.
#[cfg(target_env = "musl")]
pub(crate) type LimitedResource = libc::c_int;
#[cfg(not(target_env = "musl"))]
pub(crate) type LimitedResource = libc::__rlimit_resource_t;

/// The most this process may ask for of one resource.
pub(crate) fn hard_limit(resource: LimitedResource) -> io::Result<u64> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to one `rlimit`.
    check(unsafe { libc::getrlimit(resource, &raw mut now) }.into())?;
    Ok(now.rlim_max)
}

/// Sets soft and hard limit of one resource, never raising the hard one.
pub(crate) fn limit(resource: LimitedResource, value: u64) -> io::Result<()> {
    let value = value.min(hard_limit(resource)?);
    let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the pointer is to one `rlimit`.
    check(unsafe { libc::setrlimit(resource, &raw const wanted) }.into()).map(drop)
}

/// Sets the name of the host in this namespace.
pub(crate) fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and length describe `name`.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into()).map(drop)
}

/// Sets the file-creation mask.
pub(crate) fn set_umask(mask: u32) {
    // SAFETY: takes a number and cannot fail.
    unsafe { libc::umask(mask) };
}

/// Every signal but `SIGCHLD` at its default, none blocked.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: installs the default action; numbers the kernel refuses (KILL, STOP, libc's own) are left
        // as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised by `sigemptyset` before it is read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Has ended children vanish without being waited for.
pub(crate) fn ignore_children() {
    // SAFETY: installs a predefined disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// A descriptor that becomes readable when a child ends. Blocks the signal itself.
pub(crate) fn child_events() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by `sigemptyset` before it is used.
    let fd = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    check(fd.into()).map(own)
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn watch(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(own)
}

/// A list of strings as `exec` wants it; keeps the strings alive.
pub(crate) struct Strings {
    pointers: Vec<*const libc::c_char>,
    _owned: Vec<CString>,
}

impl Strings {
    pub(crate) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Strings { pointers, _owned: owned }
    }
}

/// Becomes another program. Returns only on failure.
pub(crate) fn exec(program: &CStr, arguments: &Strings, environment: &Strings) -> io::Error {
    // SAFETY: all three are NUL-terminated, the lists end in a null pointer, and `Strings` owns what they
    // point at.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Installs a seccomp program on this process; it needs `no_new_privileges` first.
pub(crate) fn filter(program: &[libc::sock_filter]) -> io::Result<()> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: `program` describes a live slice that the kernel only reads.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const program) }).map(drop)
}

/// Creates a Landlock ruleset from the first `size` bytes of `attributes`.
pub(crate) fn landlock_ruleset(attributes: &[u64; 3], size: usize) -> io::Result<OwnedFd> {
    let size = size.min(size_of_val(attributes));
    // SAFETY: the pointer and size describe `attributes`.
    check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attributes.as_ptr(), size, 0) }).map(own)
}

/// The Landlock version of the kernel.
pub(crate) fn landlock_version() -> io::Result<u32> {
    let none: *const u64 = std::ptr::null();
    // SAFETY: with the version flag the kernel reads nothing from the pointer.
    check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, 1) })
        .map(|version| version as u32)
}

/// Allows `access` below an open file or folder.
pub(crate) fn landlock_allow(ruleset: BorrowedFd<'_>, at: BorrowedFd<'_>, access: u64) -> io::Result<()> {
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        parent: i32,
    }
    const RULE_PATH_BENEATH: libc::c_int = 1;
    let rule = Beneath { access, parent: at.as_raw_fd() };
    // SAFETY: `rule` has the layout the kernel documents for this rule type.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), RULE_PATH_BENEATH, &raw const rule, 0)
    })
    .map(drop)
}

/// Puts this process and what it starts under a ruleset.
pub(crate) fn landlock_enter(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}
