//! Files outside, and files that must stay as they are.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::attempts::*;
use super::{Probe, probes};

pub(super) const PROBES: &[Probe] = probes![
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
            "tools.lock",
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
    ("SB-06", "change protected files of another folder", |t| {
        let _ = fs::create_dir_all(t.other.join(".git/hooks"));
        let files =
            [".git/hooks/pre-commit", ".git/config", ".mcp.json", ".vscode/tasks.json", "toolwright.yaml"];
        let mut tried: Vec<_> = files.map(|name| write_to(t.other.join(name))).into();
        tried.push(("rename .git".into(), fs::rename(t.other.join(".git"), t.other.join("away"))));
        all(tried)
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
];
