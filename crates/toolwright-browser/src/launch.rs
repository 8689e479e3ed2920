//! Starting a browser inside a sandbox. Its protocol runs over its standard input and output, so that no
//! port exists which another process could open.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use toolwright_core::{DynProcessHandle, DynSandbox, ErrorKind, ExecRequest, SpawnRequest, ToolError};

use crate::cdp::lock;

/// So much of what a browser writes to its stderr is kept for errors.
const STDERR_TAIL: usize = 4096;

/// The exit code of the script when there is no browser.
const NO_BROWSER: i32 = 117;

/// Finds a browser, makes a private profile, and moves the debugging pipe to stdin and stdout. Requests
/// follow the proxy variables of the sandbox, also those to loopback addresses that the policy opens.
const SCRIPT: &str = r#"
for name in "$1" chromium-headless-shell chrome-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
  [ -n "$name" ] && program=$(command -v "$name") && break
  program=
done
[ -n "$program" ] || exit 117
inner=$2; shift 2
profile=$(mktemp -d "${TMPDIR:-/tmp}/toolwright-browser-XXXXXX") || exit 1
HOME=$profile; XDG_CONFIG_HOME=$profile; XDG_CACHE_HOME=$profile; export HOME XDG_CONFIG_HOME XDG_CACHE_HOME
if [ "$inner" = no ] || [ "$(id -u)" = 0 ]; then set -- --no-sandbox "$@"; fi
if [ -n "$http_proxy" ]; then
  direct="<-loopback>"
  for host in $(printf %s "$no_proxy" | tr ',' ' '); do
    case $host in *:*) host="[$host]";; esac
    direct="$direct;$host"
  done
  set -- --proxy-server="$http_proxy" --proxy-bypass-list="$direct" \
    --host-resolver-rules="MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost , EXCLUDE [::1]" "$@"
fi
exec "$program" --headless=new --remote-debugging-pipe --user-data-dir="$profile" "$@" about:blank 3<&0 4>&1 0</dev/null 1>/dev/null
"#;

/// Flags that hold for every browser: nothing in the background, no way round the proxy, no questions.
const FLAGS: [&str; 20] = [
    "--window-size=1280,800",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--no-service-autorun",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-crash-reporter",
    "--disable-breakpad",
    "--mute-audio",
    "--hide-scrollbars",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
];

/// A browser that was started, and its pipes.
pub(crate) struct LaunchedBrowser {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) process: BrowserProcess,
}

/// The process of a browser. Dropping it stops the browser and everything it started.
pub(crate) struct BrowserProcess {
    handle: Box<DynProcessHandle>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    // The sandbox stays open for as long as its browser does.
    _sandbox: Arc<DynSandbox>,
}

/// Starts a browser: `program`, or the first of the usual ones that the sandbox has.
pub(crate) async fn launch(
    sandbox: Arc<DynSandbox>,
    program: Option<&str>,
) -> Result<LaunchedBrowser, ToolError> {
    // The layers of a process sandbox and of a container refuse what Chromium's own sandbox needs.
    let inner = if sandbox.isolates() { "no" } else { "yes" };
    let mut command = vec!["sh", "-c", SCRIPT, "sh", program.unwrap_or_default(), inner];
    command.extend(FLAGS);
    let mut started = sandbox.spawn(SpawnRequest::piped(ExecRequest::new(command))).await?;
    let stderr = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(stream) = started.stderr.take() {
        tokio::spawn(keep_tail(stream, stderr.clone()));
    }
    let streams = started.stdin.take().zip(started.stdout.take());
    let (writer, reader) = streams.ok_or_else(|| ToolError::fatal("the sandbox gave no pipes"))?;
    let process = BrowserProcess { handle: started.handle, stderr, _sandbox: sandbox };
    Ok(LaunchedBrowser { reader, writer, process })
}

impl BrowserProcess {
    /// Why a browser that has just been started is gone.
    pub(crate) async fn failure(&self) -> ToolError {
        let code = tokio::time::timeout(std::time::Duration::from_secs(2), self.handle.wait()).await;
        if matches!(code, Ok(Ok(NO_BROWSER))) {
            let error = ToolError::of(ErrorKind::SandboxUnavailable, "the sandbox has no browser");
            return error.hint(
                "install `chromium-headless-shell` or `chromium` (both in Debian), or set `TOOLWRIGHT_BROWSER`",
            );
        }
        let tail = self.stderr_tail();
        let code = match code {
            Ok(Ok(code)) => format!(" with code {code}"),
            _ => String::new(),
        };
        ToolError::new(format!("the browser ended{code}: {tail}"))
    }

    fn stderr_tail(&self) -> String {
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(4).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

async fn keep_tail(mut stream: Box<dyn AsyncRead + Send + Unpin>, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        let mut tail = lock(&tail);
        tail.extend(piece.get(..count).unwrap_or_default());
        let over = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..over);
    }
}
