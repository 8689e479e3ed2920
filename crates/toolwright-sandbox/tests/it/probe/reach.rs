//! What can be reached, left behind or used up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;

use super::attempts::*;
use super::{Probe, probes};

pub(super) const PROBES: &[Probe] = probes![
    ("SB-20", "connect to sockets of the host", |t| all([
        t.canary.join("socket"),
        "/var/run/docker.sock".into(),
        "/run/docker.sock".into(),
        "/run/dbus/system_bus_socket".into(),
        "/run/systemd/private".into(),
        "/tmp/.X11-unix/X0".into(),
    ]
    .map(|path: PathBuf| (path.display().to_string(), UnixStream::connect(&path).map(drop))))),
    ("SB-20", "connect to a socket in the workspace", |_| one(
        "connect",
        UnixStream::connect("socket").map(drop)
    )),
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
    ("SB-22", "write settings of processes", |_| all([
        "/proc/self/uid_map",
        "/proc/self/setgroups",
        "/proc/self/attr/current",
        "/proc/self/coredump_filter",
        "/proc/self/timerslack_ns",
        "/proc/self/comm",
        "/proc/self/mem",
        "/proc/1/oom_score_adj",
        "/proc/1/comm"
    ]
    .map(|path| (path.to_owned(), OpenOptions::new().write(true).open(path).map(drop))))),
    ("SB-08", "open what process 1 has open", |_| all([
        "/proc/1/fd",
        "/proc/1/root/etc",
        "/proc/1/cwd",
        "/proc/1/exe",
        "/proc/1/maps",
        "/proc/1/map_files"
    ]
    .map(|path| {
        let read = fs::read_dir(path).map(drop).or_else(|_| File::open(path).map(drop));
        (path.to_owned(), read)
    }))),
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
    ("SB-32", "raise a limit", |_| all([libc::RLIMIT_NOFILE, libc::RLIMIT_NPROC, libc::RLIMIT_FSIZE].map(
        |resource| {
            let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the pointer is to one `rlimit`.
            raw("setrlimit", unsafe { libc::setrlimit(resource, &raw const unlimited) }.into())
        }
    ))),
    ("SB-34", "have the host's handler of crashes started", |_| all([0, libc::RLIM_INFINITY].map(|value| {
        let mut limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: the pointers are to one `rlimit`. Only with a limit of exactly 1 no handler is started.
        let is_one = unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
            libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit);
            limit.rlim_cur == 1
        };
        (
            format!("core limit {value}"),
            if is_one { Err(io::Error::from_raw_os_error(libc::EPERM)) } else { Ok(()) },
        )
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
