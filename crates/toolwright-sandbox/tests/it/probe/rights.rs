//! Mounts, namespaces, rights, other processes, the kernel and its devices.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use super::attempts::*;
use super::{Probe, probes};

pub(super) const PROBES: &[Probe] = probes![
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
];
