//! What the tests share: cases, users, and folders to work in.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// What a case is called, what it does, whether it is also run as an ordinary user, and whether in a process
/// of its own.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) run: Body,
    pub(crate) as_users: bool,
    pub(crate) as_root: bool,
    pub(crate) apart: bool,
}

pub(crate) type Future = Pin<Box<dyn std::future::Future<Output = Result<(), String>> + Send>>;
pub(crate) type Body = Arc<dyn Fn() -> Future + Send + Sync>;

impl Case {
    pub(crate) fn new<F>(name: impl Into<String>, run: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: std::future::Future<Output = Result<(), String>> + Send + 'static,
    {
        Case {
            name: name.into(),
            run: Arc::new(move || Box::pin(run())),
            as_users: true,
            as_root: true,
            apart: false,
        }
    }

    /// Never as root: on the host itself it would do harm.
    pub(crate) fn harmless(mut self) -> Self {
        self.as_root = false;
        self
    }

    /// In a process of its own: what it asks for is told once in each.
    pub(crate) fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// Only as the user that runs the tests.
    pub(crate) fn once(mut self) -> Self {
        self.as_users = false;
        self
    }
}

pub(crate) fn block_on<T>(future: impl std::future::Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

pub(crate) fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

pub(crate) const NOBODY: u32 = 65534;

/// Runs one case in a new process of this program that belongs to `nobody`.
pub(crate) fn as_nobody(name: &str) -> Result<(), String> {
    let output = Command::new(exe())
        .args(["run-case", name])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .env("HOME", "/nonexistent")
        .env("USER", "nobody")
        .env_remove("TMPDIR")
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// The other end of [`as_nobody`].
pub(crate) fn run_case(cases: &[Case], name: &str) -> ExitCode {
    let Some(case) = cases.iter().find(|case| case.name == name) else {
        eprintln!("no case `{name}`");
        return ExitCode::FAILURE;
    };
    match block_on((case.run)()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn exe() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// Runs a piece of work in a process of its own.
pub(crate) async fn alone(family: &str, what: &str) -> Result<(), String> {
    let output = Command::new(exe()).args([family, what]).output().map_err(|error| error.to_string())?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The same as `nobody`, or as the user that runs the tests when that is not root.
pub(crate) fn as_ordinary_user(family: &str, what: &str) -> Result<(), String> {
    let mut command = Command::new(exe());
    command.args([family, what]).current_dir("/").env_remove("TMPDIR");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// A new folder for one test.
pub(crate) fn folder(what: &str) -> PathBuf {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let time = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.subsec_nanos());
    let path = std::env::temp_dir().join(format!("tw-test-{what}-{}-{count}-{time}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

pub(crate) fn check(what: &str, holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("got {got:?}, wanted {want:?}")) }
}

pub(crate) fn text(error: toolwright_core::ToolError) -> String {
    let partial = error.partial().map(|partial| partial.to_text()).unwrap_or_default();
    format!("{error:?} {partial:.300}")
}

/// Looks again every 10 ms until it holds or the time is over.
pub(crate) async fn wait_until(most: std::time::Duration, holds: impl Fn() -> bool) -> bool {
    let start = std::time::Instant::now();
    while start.elapsed() < most {
        if holds() {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    holds()
}

/// Every process below this one, by number and name.
pub(crate) fn descendants() -> Vec<(i32, String)> {
    descendants_of(std::process::id() as i32)
}

pub(crate) fn descendants_of(root: i32) -> Vec<(i32, String)> {
    let mut parents = std::collections::HashMap::<i32, Vec<(i32, String)>>::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
        let Some((pid, name)) = head.split_once(" (") else { continue };
        let parent = tail.split(' ').nth(1).and_then(|field| field.parse().ok());
        if let (Ok(pid), Some(parent)) = (pid.parse(), parent) {
            parents.entry(parent).or_default().push((pid, name.to_owned()));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for (child, name) in parents.remove(&pid).unwrap_or_default() {
            open.push(child);
            found.push((child, name));
        }
    }
    found
}
