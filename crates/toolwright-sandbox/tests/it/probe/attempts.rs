//! What probes are made of.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::Target;

/// `Ok` is "blocked, because"; `Err` is "escaped, by".
pub(super) type Attempt = Result<String, String>;

/// Every attempt must fail; the first that does not is the way out.
pub(super) fn all(attempts: impl IntoIterator<Item = (String, io::Result<()>)>) -> Attempt {
    let mut reasons = Vec::new();
    for (what, result) in attempts {
        match result {
            Ok(()) => return Err(what),
            Err(error) => reasons.push(format!("{what}: {error}")),
        }
    }
    Ok(reasons.join("; "))
}

pub(super) fn one(what: &str, result: io::Result<()>) -> Attempt {
    all([(what.to_owned(), result)])
}

pub(super) fn write_to(path: impl AsRef<Path>) -> (String, io::Result<()>) {
    let path = path.as_ref();
    (
        path.display().to_string(),
        OpenOptions::new().create(true).append(true).open(path).and_then(|mut f| f.write_all(b"x")),
    )
}

pub(super) fn read_of(path: impl AsRef<Path>) -> (String, io::Result<()>) {
    let path = path.as_ref();
    let read = || {
        if path.is_dir() {
            // A masked folder can be listed; it is empty.
            return match fs::read_dir(path)?.next() {
                Some(_) => Ok(()),
                None => Err(io::Error::other("empty")),
            };
        }
        let mut bytes = [0; 64];
        match File::open(path)?.read(&mut bytes)? {
            0 => Err(io::Error::other("empty")),
            _ => Ok(()),
        }
    };
    (path.display().to_string(), read())
}

pub(super) fn raw(what: &str, value: libc::c_long) -> (String, io::Result<()>) {
    (what.to_owned(), if value < 0 { Err(io::Error::last_os_error()) } else { Ok(()) })
}

/// A system call by number.
pub(super) fn call(
    what: &str,
    number: i64,
    a: i64,
    b: i64,
    c: i64,
    d: i64,
    e: i64,
) -> (String, io::Result<()>) {
    // SAFETY: the arguments are numbers or pointers to constants; the calls are expected to be refused.
    raw(what, unsafe { libc::syscall(number, a, b, c, d, e) })
}

pub(super) fn c(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

pub(super) fn pointer(text: &std::ffi::CStr) -> i64 {
    text.as_ptr() as i64
}

/// A call that does something only for its exit status in a child, so that the probe itself survives.
pub(super) fn in_child(what: &str, run: impl Fn() -> bool) -> (String, io::Result<()>) {
    // SAFETY: the child only makes system calls and leaves.
    let result = unsafe {
        match libc::fork() {
            0 => libc::_exit(if run() { 0 } else { 1 }),
            child => {
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
                    Ok(())
                } else if libc::WIFSIGNALED(status) {
                    Err(io::Error::other(format!("killed by {}", libc::WTERMSIG(status))))
                } else {
                    Err(io::Error::other("refused"))
                }
            }
        }
    };
    (what.to_owned(), result)
}

pub(super) const CLONE_ALL: [(&str, i32); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

pub(super) fn status_field(name: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or("absent")
        .trim_matches([':', '\t', ' '])
        .to_owned()
}

pub(super) fn walk_out(target: &Target, through: &str) -> (String, io::Result<()>) {
    read_of(format!("{through}{}/secret", target.canary.display()))
}

pub(super) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(family, kind, protocol) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls through entries that filters forget: the 32-bit one and x32. Each in a child, since the right answer
/// is death.
#[cfg(target_arch = "x86_64")]
pub(super) fn other_entries() -> Vec<(String, io::Result<()>)> {
    let x32 = in_child("x32 socket", || {
        // SAFETY: takes numbers only.
        unsafe { libc::syscall(0x4000_0000 | 41, libc::AF_UNIX, libc::SOCK_STREAM, 0) >= 0 }
    });
    let i386 = in_child("i386 socket", || {
        let result: i32;
        // SAFETY: a 32-bit call with numbers only; rbx is saved around it because the compiler reserves it.
        unsafe {
            std::arch::asm!(
                "push rbx", "mov ebx, 1", "int 0x80", "pop rbx",
                inlateout("eax") 359 => result, in("ecx") 1, in("edx") 0,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            );
        }
        result >= 0
    });
    let pid = in_child("i386 getpid", || {
        let result: i32;
        // SAFETY: as above, without arguments.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("eax") 20 => result,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        result > 0
    });
    vec![x32, i386, pid]
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn other_entries() -> Vec<(String, io::Result<()>)> {
    Vec::new()
}

pub(super) trait Custom {
    fn custom(&mut self, flags: i32) -> &mut Self;
}

impl Custom for OpenOptions {
    fn custom(&mut self, flags: i32) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt;
        self.custom_flags(flags)
    }
}
