//! The attacker: runs inside a sandbox and tries one thing. Ends with `BLOCKED` and the reason, or `ESCAPED` and how.
//!
//! Each probe is its own row with the id of the case it belongs to. A probe must be able to succeed: what it tries works
//! on the host, or did in some sandbox before it was fixed.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

pub(crate) const BLOCKED: i32 = 10;
pub(crate) const ESCAPED: i32 = 66;

/// `Ok` is "blocked, because"; `Err` is "escaped, by".
type Attempt = Result<String, String>;

/// What the attacker knows: everything, as a careful designer assumes.
struct Target {
    /// A folder outside that anybody on the host may read and change.
    canary: PathBuf,
    abstract_name: String,
    port: u16,
    host_pid: i32,
}

pub(crate) struct Probe {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    run: fn(&Target) -> Attempt,
    /// The attempt ends in death by SIGSYS when it is blocked.
    pub(crate) deadly: bool,
}

/// Runs one probe and ends the process.
pub(crate) fn main(name: &str) -> ! {
    let get = |name: &str| std::env::var(name).unwrap_or_default();
    let target = Target {
        canary: get("CANARY").into(),
        abstract_name: get("ABSTRACT"),
        port: get("PORT").parse().unwrap_or(1),
        host_pid: get("HOST_PID").parse().unwrap_or(1),
    };
    let Some(probe) = PROBES.iter().find(|probe| probe.name == name) else {
        println!("UNKNOWN probe {name}");
        std::process::exit(2);
    };
    match (probe.run)(&target) {
        Ok(reason) => {
            println!("BLOCKED {reason}");
            std::process::exit(BLOCKED)
        }
        Err(how) => {
            println!("ESCAPED {how}");
            std::process::exit(ESCAPED)
        }
    }
}

macro_rules! probes {
    ($(($id:literal, $name:literal, $run:expr)),* $(,)?) => {
        &[$(Probe { id: $id, name: $name, run: $run, deadly: false }),*]
    };
}

/// Every attempt must fail; the first that does not is the way out.
fn all(attempts: impl IntoIterator<Item = (String, io::Result<()>)>) -> Attempt {
    let mut reasons = Vec::new();
    for (what, result) in attempts {
        match result {
            Ok(()) => return Err(what),
            Err(error) => reasons.push(format!("{what}: {error}")),
        }
    }
    Ok(reasons.join("; "))
}

fn one(what: &str, result: io::Result<()>) -> Attempt {
    all([(what.to_owned(), result)])
}

fn write_to(path: impl AsRef<Path>) -> (String, io::Result<()>) {
    let path = path.as_ref();
    (
        path.display().to_string(),
        OpenOptions::new().create(true).append(true).open(path).and_then(|mut f| f.write_all(b"x")),
    )
}

fn read_of(path: impl AsRef<Path>) -> (String, io::Result<()>) {
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

fn raw(what: &str, value: libc::c_long) -> (String, io::Result<()>) {
    (what.to_owned(), if value < 0 { Err(io::Error::last_os_error()) } else { Ok(()) })
}

/// A system call by number.
fn call(what: &str, number: i64, a: i64, b: i64, c: i64, d: i64, e: i64) -> (String, io::Result<()>) {
    // SAFETY: the arguments are numbers or pointers to constants; the calls are expected to be refused.
    raw(what, unsafe { libc::syscall(number, a, b, c, d, e) })
}

fn c(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

fn pointer(text: &std::ffi::CStr) -> i64 {
    text.as_ptr() as i64
}

/// A call that does something only for its exit status in a child, so that the probe itself survives.
fn in_child(what: &str, run: impl Fn() -> bool) -> (String, io::Result<()>) {
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

const CLONE_ALL: [(&str, i32); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

fn status_field(name: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or("absent")
        .trim_matches([':', '\t', ' '])
        .to_owned()
}

fn walk_out(target: &Target, through: &str) -> (String, io::Result<()>) {
    read_of(format!("{through}{}/secret", target.canary.display()))
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(family, kind, protocol) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) const PROBES: &[Probe] = probes![
    ("SB-01", "write system folders", |_| all(
        ["/etc/x", "/usr/bin/x", "/usr/lib/x", "/bin/x", "/opt/x"].map(write_to)
    )),
    ("SB-01", "write home folders", |_| all(
        ["/root/x", "/root/.ssh/authorized_keys", "/home/x"].map(write_to)
    )),
    ("SB-01", "write the root of the view", |_| all(
        ["/x", "/dev/x", "/run/x", "/var/x", "/proc/x"].map(write_to)
    )),
    ("SB-01", "write the canary", |t| all([
        write_to(t.canary.join("secret")),
        write_to(t.canary.join("new"))
    ])),
    ("SB-01", "delete and rename outside", |t| all([
        ("unlink".into(), fs::remove_file(t.canary.join("secret"))),
        ("rename".into(), fs::rename(t.canary.join("secret"), t.canary.join("moved"))),
        ("rmdir /etc/ssl".into(), fs::remove_dir_all("/etc/ssl")),
    ])),
    ("SB-02", "read the canary", |t| all([read_of(t.canary.join("secret")), read_of(&t.canary)])),
    ("SB-02", "read keys and tokens", |_| all([
        "/root/.ssh/id_rsa",
        "/root/.aws/credentials",
        "/root/.netrc",
        "/root/.bashrc",
        "/root",
        "/home/user",
        "/var/lib",
        "/var/log",
        "/boot",
        "/srv",
        "/mnt",
    ]
    .map(read_of))),
    ("SB-02", "read masked files", |_| all([
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh",
        "/etc/ssl/private"
    ]
    .map(read_of))),
    ("SB-02", "read a masked file of the workspace", |_| all([read_of(".env"), read_of("private")])),
    ("SB-03", "write through a link", |t| {
        let _ = symlink("/etc", "link-etc");
        let _ = symlink(&t.canary, "link-canary");
        all([write_to("link-etc/x"), write_to("link-canary/x"), read_of("link-canary/secret")])
    }),
    ("SB-03", "write through a chain of five links", |t| {
        let _ = symlink(&t.canary, "chain-1");
        for at in 2..=5 {
            let _ = symlink(format!("chain-{}", at - 1), format!("chain-{at}"));
        }
        all([write_to("chain-5/x"), read_of("chain-5/secret")])
    }),
    ("SB-04", "hard link an outside file", |t| all([
        ("canary".into(), fs::hard_link(t.canary.join("secret"), "hard-1")),
        ("/etc/passwd".into(), fs::hard_link("/etc/passwd", "hard-2")),
        ("/usr/bin/env".into(), fs::hard_link("/usr/bin/env", "hard-3")),
    ])),
    ("SB-06", "make protected files", |_| {
        let _ = fs::create_dir_all(".git/hooks");
        let _ = fs::create_dir_all(".vscode");
        all([
            ".git/hooks/pre-commit",
            ".git/config",
            ".git/commondir",
            ".git/config.worktree",
            ".git/modules",
            ".git/worktrees",
            ".mcp.json",
            ".bashrc",
            ".vscode/tasks.json",
            "toolwright.yaml",
            ".toolwright/config.yaml",
        ]
        .map(write_to))
    }),
    ("SB-06", "replace protected files by rename or link", |_| {
        let _ = fs::write("mine", "x");
        all([
            ("rename file".into(), fs::rename("mine", ".mcp.json")),
            ("link file".into(), fs::hard_link("mine", ".bashrc")),
            ("symlink".into(), symlink("mine", ".mcp.json")),
            ("unlink file".into(), fs::remove_file(".mcp.json")),
            ("rmdir".into(), fs::remove_dir(".vscode")),
            ("rename away".into(), fs::rename(".vscode", "away")),
            ("truncate".into(), OpenOptions::new().write(true).truncate(true).open(".git/config").map(drop)),
            ("unlink head".into(), fs::remove_file(".git/HEAD")),
            ("chmod".into(), fs::set_permissions(".mcp.json", PermissionsExt::from_mode(0o777))),
        ])
    }),
    ("SB-07", "rename the folder of a protected file", |_| all([
        ("rename .git".into(), fs::rename(".git", "git-away")),
        ("remove .git".into(), fs::remove_dir_all(".git")),
        ("exchange".into(), {
            let _ = fs::create_dir("other");
            // SAFETY: the paths are NUL-terminated constants.
            raw(
                "",
                unsafe {
                    libc::renameat2(-100, c".git".as_ptr(), -100, c"other".as_ptr(), libc::RENAME_EXCHANGE)
                }
                .into(),
            )
            .1
        }),
    ])),
    ("SB-08", "walk out through proc", |t| all([
        walk_out(t, "/proc/self/root"),
        walk_out(t, "/proc/1/root"),
        walk_out(t, "/proc/1/cwd/../../.."),
        walk_out(t, "/proc/self/cwd/../../../../.."),
        walk_out(t, &format!("/proc/{}/root", t.host_pid)),
        walk_out(t, "/proc/thread-self/root"),
        walk_out(t, "/proc/self/task/1/root"),
    ])),
    ("SB-08", "walk out through descriptors", |t| {
        all((0..64).map(|fd| walk_out(t, &format!("/proc/self/fd/{fd}/../../../.."))))
    }),
    ("SB-08", "see processes outside", |t| {
        let pids = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let many = pids.count();
        all([
            (format!("{many} processes"), if many > 8 { Ok(()) } else { Err(io::Error::other("few")) }),
            (
                "runtime's environment".into(),
                fs::read(format!("/proc/{}/environ", t.host_pid)).map(drop).and_then(|()| {
                    let text = fs::read_to_string(format!("/proc/{}/cmdline", t.host_pid))?;
                    if text.contains("attack") || text.contains("toolwright-sandbox") {
                        Err(io::Error::other("own"))
                    } else {
                        Ok(())
                    }
                }),
            ),
        ])
    }),
    ("SB-09", "use inherited descriptors", |_| {
        let own =
            fs::read_dir("/proc/self/fd").map_err(|error| error.to_string()).map_or(Vec::new(), |entries| {
                entries
                    .flatten()
                    .filter_map(|entry| {
                        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
                        let to = fs::read_link(entry.path()).ok()?;
                        (number > 2 && !to.starts_with("/proc"))
                            .then(|| format!("{number} -> {}", to.display()))
                    })
                    .collect()
            });
        one(&format!("{own:?}"), if own.is_empty() { Err(io::Error::other("none")) } else { Ok(()) })
    }),
    ("SB-10", "mount", |_| all([
        call("mount tmpfs", libc::SYS_mount, pointer(c"x"), pointer(c"/tmp"), pointer(c"tmpfs"), 0, 0),
        call("bind", libc::SYS_mount, pointer(c"/etc"), pointer(c"/tmp"), 0, libc::MS_BIND as i64, 0),
        call("umount /proc", libc::SYS_umount2, pointer(c"/proc"), libc::MNT_DETACH.into(), 0, 0, 0),
        call(
            "umount /etc/shadow",
            libc::SYS_umount2,
            pointer(c"/etc/shadow"),
            libc::MNT_DETACH.into(),
            0,
            0,
            0
        ),
        call("pivot_root", libc::SYS_pivot_root, pointer(c"/tmp"), pointer(c"/tmp"), 0, 0, 0),
        call("chroot", libc::SYS_chroot, pointer(c"/tmp"), 0, 0, 0, 0),
    ])),
    ("SB-10", "make namespaces", |_| all(CLONE_ALL.map(|(name, flag)| {
        in_child(name, || {
            // SAFETY: takes numbers only.
            unsafe { libc::unshare(flag) == 0 }
        })
    }))),
    ("SB-10", "clone into namespaces", |_| all(CLONE_ALL.map(|(name, flag)| {
        // SAFETY: behaves as fork; the child leaves at once.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flag | libc::SIGCHLD, 0, 0, 0, 0) };
        if pid == 0 {
            // SAFETY: never returns.
            unsafe { libc::_exit(0) };
        }
        raw(name, pid)
    }))),
    ("SB-10", "clone3 into a user namespace", |_| {
        // SAFETY: all zeroes is a valid value of plain numbers.
        let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
        args.flags = libc::CLONE_NEWUSER as u64;
        args.exit_signal = libc::SIGCHLD as u64;
        // SAFETY: behaves as fork; the child leaves at once.
        let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
        if pid == 0 {
            // SAFETY: never returns.
            unsafe { libc::_exit(0) };
        }
        all([raw("clone3", pid)])
    }),
    ("SB-10", "enter other namespaces", |_| all(["user", "mnt", "pid", "net"].map(|kind| {
        let fd = File::open(format!("/proc/1/ns/{kind}"));
        (
            kind.to_owned(),
            fd.and_then(|fd| {
                // SAFETY: takes numbers only.
                raw("", unsafe { libc::setns(fd.as_raw_fd(), 0) }.into()).1
            }),
        )
    }))),
    ("SB-11", "remount writable", |_| all(["/usr", "/etc", "/", "/proc"].map(|path| {
        let path = c(path);
        let flags = (libc::MS_REMOUNT | libc::MS_BIND) as i64;
        call("remount", libc::SYS_mount, 0, pointer(&path), 0, flags, 0)
    }))),
    ("SB-11", "use the new mount calls", |_| all([
        call("open_tree", libc::SYS_open_tree, -100, pointer(c"/etc"), 1, 0, 0),
        call("fsopen", libc::SYS_fsopen, pointer(c"tmpfs"), 0, 0, 0, 0),
        call("fspick", libc::SYS_fspick, -100, pointer(c"/"), 0, 0, 0),
        call("move_mount", libc::SYS_move_mount, -100, pointer(c"/etc/shadow"), -100, pointer(c"/tmp"), 0),
        call(
            "mount_setattr",
            libc::SYS_mount_setattr,
            -100,
            pointer(c"/usr"),
            0,
            [0u64, 1, 0, 0].as_ptr() as i64,
            32
        ),
        call("open_tree_attr", 467, -100, pointer(c"/etc"), 1, 0, 0),
    ])),
    ("SB-12", "gain rights by set-user-id programs", |_| {
        let before = status_field("Uid");
        let gained = ["/bin/su", "/usr/bin/sudo", "/bin/mount", "/usr/bin/passwd", "/bin/ping"].iter().any(
            |program| {
                let run = std::process::Command::new(program).arg("--version").output();
                run.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("uid=0"))
            },
        );
        one(&before, if gained { Ok(()) } else { Err(io::Error::other("no gain")) })
    }),
    ("SB-12", "hold a capability", |_| all(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|set| {
        let value = status_field(set);
        (
            format!("{set} {value}"),
            if value == "0000000000000000" { Err(io::Error::other("empty")) } else { Ok(()) },
        )
    }))),
    ("SB-12", "run without no_new_privs or a filter", |_| all([("NoNewPrivs", "1"), ("Seccomp", "2")].map(
        |(field, want)| {
            let value = status_field(field);
            (format!("{field} {value}"), if value == want { Err(io::Error::other("on")) } else { Ok(()) })
        }
    ))),
    ("SB-12", "become root by call", |_| all([
        call("setuid", libc::SYS_setuid, 0, 0, 0, 0, 0),
        call("setgid", libc::SYS_setgid, 0, 0, 0, 0, 0),
        call("setgroups", libc::SYS_setgroups, 1, [0u32].as_ptr() as i64, 0, 0, 0),
        call("setresuid", libc::SYS_setresuid, 0, 0, 0, 0, 0),
    ])),
    ("SB-13", "trace the keeper's job or the runtime", |t| all([
        call("ptrace 1", libc::SYS_ptrace, 16, 1, 0, 0, 0),
        call("ptrace runtime", libc::SYS_ptrace, 16, t.host_pid.into(), 0, 0, 0),
        call("process_vm_readv", libc::SYS_process_vm_readv, 1, 0, 0, 0, 0),
        call("process_vm_writev", libc::SYS_process_vm_writev, 1, 0, 0, 0, 0),
    ])),
    ("SB-13", "write memory of others", |t| all([
        ("/proc/1/mem".into(), OpenOptions::new().write(true).open("/proc/1/mem").map(drop)),
        ("/proc/1/environ".into(), File::open("/proc/1/environ").map(drop)),
        (
            "runtime".into(),
            OpenOptions::new().write(true).open(format!("/proc/{}/mem", t.host_pid)).map(drop)
        ),
        call("pidfd_getfd", libc::SYS_pidfd_getfd, 3, 3, 0, 0, 0),
    ])),
    ("SB-14", "kill process 1", |_| {
        for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1]
        {
            // SAFETY: takes numbers only.
            unsafe { libc::kill(1, signal) };
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        let state = fs::read_to_string("/proc/1/stat").unwrap_or_default();
        one(
            &state,
            if state.contains(") T") || state.is_empty() {
                Ok(())
            } else {
                Err(io::Error::other("still there"))
            },
        )
    }),
    ("SB-14", "signal the runtime", |t| {
        // The number may mean one of our own processes in here; that one may be signalled.
        let own = fs::read_to_string(format!("/proc/{}/stat", t.host_pid)).is_ok();
        let result = if own {
            Err(io::Error::other("a process of this sandbox"))
        } else {
            call("", libc::SYS_kill, t.host_pid.into(), 0, 0, 0, 0).1
        };
        one("kill", result)
    }),
    ("SB-15", "use io_uring", |_| all([
        call("setup", libc::SYS_io_uring_setup, 8, [0u8; 256].as_ptr() as i64, 0, 0, 0),
        call("enter", libc::SYS_io_uring_enter, 3, 1, 1, 0, 0),
        call("register", libc::SYS_io_uring_register, 3, 0, 0, 0, 0),
    ])),
    ("SB-16", "make a socket through another entry", |_| all(other_entries())),
    ("SB-17", "use kernel interfaces", |_| all([
        call("bpf", libc::SYS_bpf, 0, [0u8; 128].as_ptr() as i64, 128, 0, 0),
        call("perf_event_open", libc::SYS_perf_event_open, [0u8; 128].as_ptr() as i64, 0, -1, -1, 0),
        call("userfaultfd", libc::SYS_userfaultfd, 1, 0, 0, 0, 0),
        call("keyctl", libc::SYS_keyctl, 0, -3, 1, 0, 0),
        call("add_key", libc::SYS_add_key, pointer(c"user"), pointer(c"k"), pointer(c"v"), 1, -3),
        call("request_key", libc::SYS_request_key, pointer(c"user"), pointer(c"k"), 0, -3, 0),
        call("kexec_load", libc::SYS_kexec_load, 0, 0, 0, 0, 0),
        call("init_module", libc::SYS_init_module, pointer(c"x"), 1, pointer(c""), 0, 0),
        call("finit_module", libc::SYS_finit_module, 0, pointer(c""), 0, 0, 0),
        call("fanotify_init", libc::SYS_fanotify_init, 0, 0, 0, 0, 0),
        call("syslog", libc::SYS_syslog, 3, [0u8; 64].as_ptr() as i64, 64, 0, 0),
        call("quotactl", libc::SYS_quotactl, 0x800001u32 as i64, 0, 0, 0, 0),
        call("unknown call 600", 600, 0, 0, 0, 0, 0),
    ])),
    ("SB-17", "open files by handle", |_| {
        let mut handle = [0u8; 136];
        handle[0] = 128;
        let mut mount = 0i32;
        let (at, id) = (handle.as_mut_ptr() as i64, &raw mut mount as i64);
        all([
            call("name_to_handle_at", libc::SYS_name_to_handle_at, -100, pointer(c"/usr"), at, id, 0),
            call("open_by_handle_at", libc::SYS_open_by_handle_at, -100, at, 0, 0, 0),
        ])
    }),
    ("SB-18", "type into the terminal", |_| all([
        (0, libc::TIOCSTI),
        (0, libc::TIOCLINUX),
        (1, libc::TIOCSTI),
        (2, libc::TIOCSTI)
    ]
    .map(|(fd, request)| {
        // SAFETY: the request reads one byte from the pointer.
        raw("ioctl", unsafe { libc::ioctl(fd, request, b"x".as_ptr()) }.into())
    }))),
    ("SB-19", "make devices", |_| all([
        ("block", libc::S_IFBLK, 0xfe00u64),
        ("memory", libc::S_IFCHR, 0x101),
        ("null", libc::S_IFCHR, 0x103),
    ]
    .map(|(name, kind, device)| {
        let path = c(&format!("device-{name}"));
        // SAFETY: the path is NUL-terminated.
        raw(name, unsafe { libc::mknod(path.as_ptr(), kind | 0o666, device) }.into())
    }))),
    ("SB-19", "open devices", |_| all([
        "/dev/mem",
        "/dev/kmsg",
        "/dev/vda",
        "/dev/sda",
        "/dev/kvm",
        "/dev/fuse",
        "/dev/net/tun",
        "/dev/port",
        "/dev/console",
        "/dev/loop-control"
    ]
    .map(|path| {
        (path.to_owned(), OpenOptions::new().read(true).custom(libc::O_NONBLOCK).open(path).map(drop))
    }))),
    ("SB-19", "find a device that should not be there", |_| {
        let allowed = [
            "null", "zero", "full", "random", "urandom", "tty", "ptmx", "shm", "pts", "fd", "stdin",
            "stdout", "stderr",
        ];
        let odd: Vec<_> = fs::read_dir("/dev")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| !allowed.iter().any(|one| name == *one))
            .collect();
        one(&format!("{odd:?}"), if odd.is_empty() { Err(io::Error::other("none")) } else { Ok(()) })
    }),
    ("SB-20", "connect to sockets of the host", |t| all([
        t.canary.join("socket"),
        "/var/run/docker.sock".into(),
        "/run/docker.sock".into(),
        "/run/dbus/system_bus_socket".into(),
        "/run/systemd/private".into(),
        "/tmp/.X11-unix/X0".into(),
    ]
    .map(|path: PathBuf| (path.display().to_string(), UnixStream::connect(&path).map(drop))))),
    ("SB-21", "connect to an abstract socket of the host", |t| {
        use std::os::linux::net::SocketAddrExt;
        let address = SocketAddr::from_abstract_name(&t.abstract_name);
        one("connect", address.and_then(|address| UnixStream::connect_addr(&address)).map(drop))
    }),
    ("SB-22", "write kernel settings", |_| all([
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/sys/fs/binfmt_misc/register",
        "/sys/kernel/uevent_helper",
        "/sys/fs/cgroup/release_agent",
        "/sys/fs/cgroup/memory/release_agent",
        "/proc/self/oom_score_adj",
        "/proc/sys/net/ipv4/ip_forward"
    ]
    .map(|path| (path.to_owned(), OpenOptions::new().write(true).open(path).map(drop))))),
    ("SB-23", "change attributes outside", |t| {
        let passwd = c"/usr/bin/env";
        let canary = c(&t.canary.join("secret").display().to_string());
        // SAFETY: the paths are NUL-terminated; the times pointer may be null.
        unsafe {
            all([
                raw("chmod", libc::chmod(passwd.as_ptr(), 0o777).into()),
                raw("chown", libc::chown(passwd.as_ptr(), 1000, 1000).into()),
                raw("utimes", libc::utimes(passwd.as_ptr(), std::ptr::null()).into()),
                raw(
                    "setxattr",
                    libc::setxattr(passwd.as_ptr(), c"user.x".as_ptr(), b"x".as_ptr().cast(), 1, 0).into(),
                ),
                raw("chmod canary", libc::chmod(canary.as_ptr(), 0o777).into()),
                raw("utimes canary", libc::utimes(canary.as_ptr(), std::ptr::null()).into()),
                raw("truncate canary", libc::truncate(canary.as_ptr(), 0).into()),
                raw(
                    "setxattr canary",
                    libc::setxattr(canary.as_ptr(), c"user.x".as_ptr(), b"x".as_ptr().cast(), 1, 0).into(),
                ),
            ])
        }
    }),
    ("SB-24", "find the runtime's variables", |_| {
        let odd: Vec<_> = std::env::vars()
            .map(|(name, _)| name)
            .filter(|name| {
                ["LD_", "PYTHON", "NODE_", "GIT_", "AWS_", "CARGO", "SECRET", "SSH_"]
                    .iter()
                    .any(|start| name.starts_with(start))
            })
            .collect();
        one(&format!("{odd:?}"), if odd.is_empty() { Err(io::Error::other("none")) } else { Ok(()) })
    }),
    ("SB-25", "nest another sandbox", |_| all([
        ("unshare", vec!["-Ur", "true"]),
        ("unshare", vec!["-m", "true"]),
        ("nsenter", vec!["-t", "1", "-m", "true"]),
        ("bwrap", vec!["--ro-bind", "/", "/", "true"]),
    ]
    .map(|(program, arguments)| {
        let run = std::process::Command::new(program).args(arguments).output();
        (
            program.to_owned(),
            run.and_then(
                |output| if output.status.success() { Ok(()) } else { Err(io::Error::other("refused")) },
            ),
        )
    }))),
    ("SB-26", "run a program from memory to be free", |_| {
        // SAFETY: the name is a NUL-terminated constant.
        let fd = unsafe { libc::memfd_create(c"x".as_ptr(), 0) };
        let path = format!("/proc/self/fd/{fd}");
        let copied = fs::read("/bin/cat").and_then(|bytes| fs::write(&path, bytes));
        let output =
            copied.and_then(|()| std::process::Command::new(&path).arg("/proc/self/status").output());
        let status =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let marks = ["Seccomp:\t2", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"];
        let free = !status.is_empty() && !marks.iter().all(|mark| status.contains(mark));
        one("fexecve", if free { Ok(()) } else { Err(io::Error::other("same limits")) })
    }),
    ("SB-27", "fill the private folders", |_| all(["/tmp/fill", "/dev/shm/fill"].map(|path| {
        let fill = || {
            let mut file = File::create(path)?;
            let block = vec![1u8; 1 << 20];
            for _ in 0..200 {
                file.write_all(&block)?;
            }
            Ok(())
        };
        let result = fill();
        let _ = fs::remove_file(path);
        (path.to_owned(), result)
    }))),
    ("SB-27", "use up inodes", |_| {
        let _ = fs::create_dir("/tmp/many");
        let made = (0..40_000).try_for_each(|at| File::create(format!("/tmp/many/{at}")).map(drop));
        let _ = fs::remove_dir_all("/tmp/many");
        one("40,000 files", made)
    }),
    ("SB-32", "change clock, name and priority", |_| all([
        call("clock_settime", libc::SYS_clock_settime, 0, [1u64, 0].as_ptr() as i64, 0, 0, 0),
        call("settimeofday", libc::SYS_settimeofday, [1u64, 0].as_ptr() as i64, 0, 0, 0, 0),
        call("sethostname", libc::SYS_sethostname, pointer(c"x"), 1, 0, 0, 0),
        call("nice", libc::SYS_setpriority, 0, 0, -5, 0, 0),
        call("ioprio", libc::SYS_ioprio_set, 1, 0, 1 << 13, 0, 0),
    ])),
    ("SB-32", "raise a limit", |_| all([
        libc::RLIMIT_NOFILE,
        libc::RLIMIT_NPROC,
        libc::RLIMIT_CORE,
        libc::RLIMIT_FSIZE
    ]
    .map(|resource| {
        let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the pointer is to one `rlimit`.
        raw("setrlimit", unsafe { libc::setrlimit(resource, &raw const unlimited) }.into())
    }))),
    ("SB-33", "leave a set-user-id program behind", |_| {
        let _ = fs::copy("/bin/true", "suid");
        let open = |mode: u32| {
            // SAFETY: the path is NUL-terminated.
            raw(
                "open",
                unsafe { libc::open(c"suid-open".as_ptr(), libc::O_CREAT | libc::O_WRONLY, mode) }.into(),
            )
        };
        all([
            ("chmod u+s".into(), fs::set_permissions("suid", PermissionsExt::from_mode(0o4755))),
            ("chmod g+s".into(), fs::set_permissions("suid", PermissionsExt::from_mode(0o2755))),
            open(0o4755),
            call(
                "openat2",
                libc::SYS_openat2,
                -100,
                pointer(c"suid-2"),
                [0x42u64, 0o4755, 0].as_ptr() as i64,
                24,
                0,
            ),
            call("fchmodat2", libc::SYS_fchmodat2, -100, pointer(c"suid"), 0o4755, 0, 0),
            call(
                "file capability",
                libc::SYS_setxattr,
                pointer(c"suid"),
                pointer(c"security.capability"),
                [1u8, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].as_ptr() as i64,
                20,
                0,
            ),
        ])
    }),
    ("SN-01", "make sockets", |_| all([
        ("tcp", libc::AF_INET, libc::SOCK_STREAM, 0),
        ("udp", libc::AF_INET, libc::SOCK_DGRAM, 0),
        ("icmp", libc::AF_INET, libc::SOCK_DGRAM, 1),
        ("raw", libc::AF_INET, libc::SOCK_RAW, 1),
        ("sctp", libc::AF_INET, libc::SOCK_STREAM, 132),
        ("tcp6", libc::AF_INET6, libc::SOCK_STREAM, 0),
        ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0),
        ("netlink", libc::AF_NETLINK, libc::SOCK_RAW, 0),
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        ("bluetooth", 31, libc::SOCK_RAW, 1),
    ]
    .map(|(name, family, kind, protocol)| (name.to_owned(), socket(family, kind, protocol))))),
    ("SN-01", "reach a listener of the host", |t| all([
        ("tcp".into(), std::net::TcpStream::connect(("127.0.0.1", t.port)).map(drop)),
        (
            "udp".into(),
            std::net::UdpSocket::bind("0.0.0.0:0")
                .and_then(|socket| socket.send_to(b"x", ("127.0.0.1", t.port)))
                .map(drop)
        ),
    ])),
    ("SN-02", "reach out by programs", |t| all([
        format!("exec 3<>/dev/tcp/127.0.0.1/{}", t.port),
        format!("curl -m 1 http://127.0.0.1:{}/", t.port),
        "getent hosts example.com".to_owned(),
        "git ls-remote https://example.com/x".to_owned(),
    ]
    .map(|script| {
        let output = std::process::Command::new("bash").args(["-c", &script]).output();
        (
            script,
            output.and_then(
                |output| if output.status.success() { Ok(()) } else { Err(io::Error::other("refused")) },
            ),
        )
    }))),
];

/// Calls through entries that filters forget: the 32-bit one and x32. Each in a child, since the right answer is death.
#[cfg(target_arch = "x86_64")]
fn other_entries() -> Vec<(String, io::Result<()>)> {
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
fn other_entries() -> Vec<(String, io::Result<()>)> {
    Vec::new()
}

trait Custom {
    fn custom(&mut self, flags: i32) -> &mut Self;
}

impl Custom for OpenOptions {
    fn custom(&mut self, flags: i32) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt;
        self.custom_flags(flags)
    }
}
