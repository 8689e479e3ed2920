//! Ends a server when this program cannot: it crashed, was killed, or got a signal nobody listened to.
//!
//! Most servers end when their input does. For the others a shell waits at a pipe whose other end is ours
//! alone: when we are gone it reads the end, gives the server a moment to end by itself, and ends its group
//! and all that carry its mark.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// Reads the server's group, then waits for the end of the pipe. `$1` is the variable that marks the server's
/// processes.
const SCRIPT: &str = r#"read -r group
while read -r nothing; do :; done
sleep 1
[ -z "$group" ] || kill -9 "-$group"
for found in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
    found=${found#/proc/}
    kill -9 "${found%/environ}"
done"#;

/// A watchdog, called off when it is dropped.
pub(super) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Watches over the processes that carry this variable; `None` where there is no shell to do so.
    pub(super) fn new(mark: &str) -> Option<Watchdog> {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SCRIPT, "toolwright-watchdog", mark])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            // Ours, if we are ourselves a server: who ends us so ends it too.
            .envs(std::env::var_os(super::stdio::MARK).map(|outer| (super::stdio::MARK, outer)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A Ctrl-C in the terminal is not meant for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        Some(Watchdog { shell: shell.spawn().ok()? })
    }

    /// Tells it the server's process group.
    pub(super) fn watch(&mut self, group: u32) {
        if let Some(pipe) = &mut self.shell.stdin {
            // It is gone only if somebody ended it; the server is then watched by its pipe alone.
            let _ = writeln!(pipe, "{group}");
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
