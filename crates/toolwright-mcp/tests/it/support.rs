//! What the tests share: the example server, scripted servers, and a look at which processes are left.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use toolwright_mcp::{McpServer, McpServerBuilder, ServerCommand};

/// The example server, which is built with the tests.
pub(crate) fn everything() -> ServerCommand {
    ServerCommand::new(example())
}

pub(crate) fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let path = folder.join("examples/everything");
    assert!(
        path.exists(),
        "the example `everything` is not built: run `cargo test -p toolwright-mcp` without a filter on targets"
    );
    path
}

/// A server written in shell: `init` answers `initialize` and reads `initialized`, `forever` reads without
/// answering until its input ends, `hang` does not even read.
pub(crate) fn script(body: &str) -> ServerCommand {
    let prelude = r#"
say() { printf '%s\n' "$1"; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
init() { read -r line; answer 1 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"script","version":"1"}}'; read -r line; }
ADD='{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}'
tools() { read -r line; answer "$1" "{\"tools\":[$ADD]}"; }
forever() { cat > /dev/null; }
hang() { while :; do sleep 0.1; done; }
"#;
    ServerCommand::new("/bin/sh").args(["-c".to_owned(), format!("{prelude}\n{body}")])
}

/// Longer than anything takes on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A scripted server under supervision, with patience for machines that have other things to do.
pub(crate) fn server(body: &str) -> McpServerBuilder {
    McpServer::builder("script", script(body))
        .timeout(PATIENCE)
        .first_pause(Duration::from_millis(50))
        .options(|options| {
            options.start_timeout = PATIENCE;
            options.request_timeout = PATIENCE;
            options.silence = PATIENCE;
        })
}

/// Lines a server wrote for people.
#[derive(Clone, Default)]
pub(crate) struct Log(pub(crate) Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn sink(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let lines = self.0.clone();
        move |line| lines.lock().unwrap().push(line.to_owned())
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

/// Whether a process runs. One that has ended and only waits to be reaped does not.
pub(crate) fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some(Some(state)) if state != 'Z' && state != 'X')
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Asks again until the answer has this status.
pub(crate) async fn until_status(wanted: u16, ask: impl AsyncFn() -> u16) {
    let start = Instant::now();
    loop {
        let status = ask().await;
        if status == wanted {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{status}, never {wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
