//! Server processes: how one is started, and how its whole tree is ended.
//!
//! A server runs in a process group of its own and carries a mark in its environment, so that helpers which
//! left the group, or were orphaned, are found and ended too. A watchdog ends it when this program cannot.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::process::{Child, Command};
use toolwright_core::Secret;

use super::secret_scrubber::holds_credentials;
use super::watchdog::Watchdog;
use crate::client::command_text::without_secrets;

/// The variables a server is given unless told otherwise: what programs need to find their files and speak
/// the user's language, and nothing that is likely to be a secret.
pub const DEFAULT_ENVIRONMENT: [&str; 12] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "SYSTEMROOT",
];

/// The variable that marks every process of a server.
pub(super) const MARK: &str = "TOOLWRIGHT_MCP_TREE";

/// How a server process is started. No shell is involved.
#[derive(Clone)]
pub struct ServerCommand {
    program: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    environment: BTreeMap<String, OsString>,
    inherited: Vec<String>,
}

impl ServerCommand {
    /// A program, found on the path unless it is one.
    pub fn new(program: impl Into<OsString>) -> Self {
        ServerCommand {
            program: program.into(),
            arguments: Vec::new(),
            folder: None,
            environment: BTreeMap::new(),
            inherited: DEFAULT_ENVIRONMENT.map(str::to_owned).to_vec(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Gives it a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Passes these variables of ours on, in place of [`DEFAULT_ENVIRONMENT`].
    #[must_use]
    pub fn inherit<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.inherited = names.into_iter().map(Into::into).collect();
        self
    }

    /// The program and its arguments, as a person would write them, without the values of secrets.
    pub fn to_text(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        // What it is given as a secret in a variable may stand in its arguments too.
        let named = |name: &str| holds_credentials(name);
        let given = self.environment.iter().filter(|(name, _)| named(name));
        let given = given.map(|(_, value)| Secret::new(value.to_string_lossy()));
        let ours = std::env::vars().filter(|(name, _)| named(name)).map(|(_, value)| Secret::new(value));
        let secrets: Vec<Secret> = given.chain(ours).collect();
        without_secrets(&words, &secrets)
    }

    pub(crate) fn spawn(&self) -> std::io::Result<Process> {
        let mark = new_mark();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.inherited.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(&self.environment)
            .env(MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        command.process_group(0);
        // It watches before there is anything to watch over, so that no moment is left out.
        let mut watchdog = Watchdog::new(&format!("{MARK}={mark}"));
        let child = command.spawn()?;
        if let (Some(watchdog), Some(root)) = (&mut watchdog, child.id()) {
            watchdog.watch(root);
        }
        let tree = Tree { root: child.id(), mark, _watchdog: watchdog };
        Ok(Process { child, tree })
    }
}

impl fmt::Debug for ServerCommand {
    /// Values of variables are often secrets, so only the names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("folder", &self.folder)
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A running server.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) tree: Tree,
}

/// All processes of a server. Dropping it ends them.
pub(crate) struct Tree {
    root: Option<u32>,
    mark: String,
    /// Called off with the tree.
    _watchdog: Option<Watchdog>,
}

impl Tree {
    /// Asks the server's process group to end.
    pub(crate) fn terminate(&self) {
        #[cfg(unix)]
        signal_group(self.root, rustix::process::Signal::TERM);
    }

    /// Says that the server itself has ended and its number may be given to another process: what is left of
    /// its group is ended at once, and the number is not used again.
    pub(crate) fn root_ended(&mut self) {
        #[cfg(unix)]
        signal_group(self.root, rustix::process::Signal::KILL);
        self.root = None;
    }

    /// Ends every process of the tree: the group, all descendants, and all that carry the mark.
    pub(crate) fn kill(&self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process};
            signal_group(self.root, Signal::KILL);
            // A process may be forking while it is looked for, so the search ends when nothing is found any
            // more.
            for _ in 0..20 {
                let found = members(self.root, &self.mark);
                if found.is_empty() {
                    break;
                }
                for pid in found.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                    // It may have ended by itself in between.
                    let _ = kill_process(pid, Signal::KILL);
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A mark no other server has. Within a server of ours it follows the outer mark, so that the outer tree
/// includes it.
fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let outer = std::env::var(MARK).unwrap_or_default();
    format!("{outer}[{:x}-{:x}-{count:x}]", since.as_nanos(), std::process::id())
}

#[cfg(unix)]
fn signal_group(root: Option<u32>, signal: rustix::process::Signal) {
    use rustix::process::{Pid, kill_process_group};
    let group = root.and_then(|root| i32::try_from(root).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // No such group means that there is nothing to end.
        let _ = kill_process_group(group, signal);
    }
}

/// The live processes of a tree, as far as `/proc` shows them.
#[cfg(unix)]
fn members(root: Option<u32>, mark: &str) -> Vec<i32> {
    use std::collections::{HashMap, HashSet};
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut parents: HashMap<i32, i32> = HashMap::new();
    let mut found: HashSet<i32> = HashSet::new();
    for pid in pids {
        // A process that has ended and waits to be reaped has neither children nor an environment.
        let Some((state, parent)) = state_and_parent(pid) else { continue };
        if state == 'Z' {
            continue;
        }
        parents.insert(pid, parent);
        if Some(pid) == root.and_then(|root| i32::try_from(root).ok()) || has_mark(pid, mark) {
            found.insert(pid);
        }
    }
    loop {
        let children: Vec<i32> = parents
            .iter()
            .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if children.is_empty() {
            break;
        }
        found.extend(children);
    }
    let us = i32::try_from(std::process::id()).unwrap_or_default();
    found.into_iter().filter(|pid| *pid > 1 && *pid != us).collect()
}

#[cfg(unix)]
fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may itself hold brackets and blanks.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[cfg(unix)]
fn has_mark(pid: i32, mark: &str) -> bool {
    use std::io::Read as _;
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
    let mut environment = Vec::new();
    if file.take(1024 * 1024).read_to_end(&mut environment).is_err() {
        return false;
    }
    let wanted = format!("{MARK}={mark}");
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(wanted.as_bytes()))
}
