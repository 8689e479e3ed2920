//! Starting a display inside a sandbox, and reaching it.
//!
//! The X server listens on a socket that only the sandbox can see, so the protocol crosses over the pipes of
//! a process: a small relay inside connects its input and output to the socket. Any backend that can start a
//! process can do that, no folder is shared, no port is open, and what the server sends is read on our side
//! as hostile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::timeout;
use toolwright_core::{DynProcessHandle, DynSandbox, ErrorKind, ExecRequest, SpawnRequest, ToolError};

use crate::scale::Size;
use crate::x11::lock;

/// How long a display may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// So much of what the script writes to its stderr is kept for errors.
const STDERR_TAIL: usize = 4096;
/// The length of an authority cookie.
const COOKIE: usize = 16;

/// The exit codes of the scripts when a program is missing.
const NO_SERVER: i32 = 117;
const NO_RELAY: i32 = 118;

/// Connects standard input and output to the Unix socket `$socket`, with whatever there is.
const RELAY: &str = r#"
if command -v socat >/dev/null 2>&1; then exec socat -b 65536 - "UNIX-CONNECT:$socket"; fi
if command -v perl >/dev/null 2>&1; then exec perl -e '
  use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die; connect($s, pack_sockaddr_un($ARGV[0])) or die "$ARGV[0]: $!\n";
  sub pass { my ($from, $to) = @_; my $data;
    while (my $count = sysread($from, $data, 65536)) { my $at = 0;
      while ($at < $count) { my $sent = syswrite($to, $data, $count - $at, $at); exit 1 unless $sent; $at += $sent } } }
  if (fork) { pass($s, *STDOUT) } else { pass(*STDIN, $s); shutdown($s, 1) }' "$socket"; fi
if command -v python3 >/dev/null 2>&1; then exec python3 -c '
import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
def send():
    while data := os.read(0, 65536): s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := s.recv(65536):
    while data: data = data[os.write(1, data):]' "$socket"; fi
if command -v nc >/dev/null 2>&1; then exec nc -U "$socket"; fi
exit 118
"#;

/// Starts an X server with a cookie of its own, a bus for accessibility and a window manager where there are
/// some, reports the display, and becomes the relay. Arguments: the given display or nothing, the screen,
/// the cookie in octal.
const SCRIPT: &str = r#"
given=$1; screen=$2; cookie=$3
umask 077
folder=$(mktemp -d "${TMPDIR:-/tmp}/toolwright-desktop-XXXXXX") || exit 1
if [ -n "$given" ]; then
  DISPLAY=$given
else
  command -v Xvfb >/dev/null 2>&1 || exit 117
  XAUTHORITY=$folder/authority
  printf '\377\377\0\0\0\0\0\022MIT-MAGIC-COOKIE-1\0\020' >"$XAUTHORITY"
  printf "$cookie" >>"$XAUTHORITY"
  # A server that does not run as root does not make this folder.
  mkdir -p -m 1777 /tmp/.X11-unix 2>/dev/null
  mkfifo "$folder/number" || exit 1
  # Programs of other commands may reach the socket by its path only: clients that are refused another way
  # do not try the path.
  Xvfb -displayfd 3 -auth "$XAUTHORITY" -screen 0 "$screen" -nolisten tcp -nolisten local -noreset -s 0 \
    3>"$folder/number" </dev/null >/dev/null &
  read number <"$folder/number" || exit 119
  DISPLAY=:$number
  export XAUTHORITY
fi
export DISPLAY
if [ -z "$given" ] && command -v dbus-daemon >/dev/null 2>&1; then
  DBUS_SESSION_BUS_ADDRESS=unix:path=$folder/bus
  dbus-daemon --session --nofork --nopidfile --address="$DBUS_SESSION_BUS_ADDRESS" </dev/null >/dev/null 2>&1 &
  export DBUS_SESSION_BUS_ADDRESS
fi
number=${DISPLAY#*:}; number=${number%%.*}
socket=/tmp/.X11-unix/X$number
chosen=
if [ -z "$given" ]; then
  for manager in openbox matchbox-window-manager icewm xfwm4 metacity twm; do
    if command -v $manager >/dev/null 2>&1; then chosen=$manager; $manager </dev/null >/dev/null 2>&1 & break; fi
  done
fi
printf 'desktop\n%s\n%s\n%s\n%s\n%s\n' "$DISPLAY" "$folder" "$(id -u)" "${XAUTHORITY:-$HOME/.Xauthority}" "$chosen"
"#;

/// What a display in a sandbox consists of.
pub(crate) struct LaunchedDisplay {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) cookie: Vec<u8>,
    pub(crate) session: DesktopSession,
    pub(crate) process: DesktopProcess,
}

/// How programs find the display.
#[derive(Debug, Clone, Default)]
pub(crate) struct DesktopSession {
    pub(crate) display: String,
    /// The folder of its files, inside of the sandbox.
    pub(crate) folder: String,
    pub(crate) user: String,
    authority: String,
    /// The window manager that was started; empty for none.
    pub(crate) manager: String,
    own: bool,
}

/// The processes of a display. Dropping it stops them.
pub(crate) struct DesktopProcess {
    handle: Box<DynProcessHandle>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

impl DesktopSession {
    /// True when the display was started for the run, and nobody else uses it.
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }

    /// A command that finds the display.
    pub(crate) fn command(&self, command: ExecRequest) -> ExecRequest {
        let mut command = command.env("DISPLAY", &self.display).env("XAUTHORITY", &self.authority);
        if self.own {
            let bus = format!("unix:path={}/bus", self.folder);
            // Programs describe themselves to assistive technology only where this says so.
            command = command
                .env("DBUS_SESSION_BUS_ADDRESS", bus)
                .env("GTK_MODULES", "gail:atk-bridge")
                .env("QT_ACCESSIBILITY", "1")
                .env("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1")
                .env("ACCESSIBILITY_ENABLED", "1");
        }
        command
    }
}

/// Starts a display of that size, or connects to the one that is given.
pub(crate) async fn launch(
    sandbox: &DynSandbox,
    given: Option<&str>,
    size: Size,
) -> Result<LaunchedDisplay, ToolError> {
    let mut cookie = [0; COOKIE];
    getrandom::fill(&mut cookie).map_err(|error| ToolError::fatal(error.to_string()))?;
    let octal: String = cookie.iter().map(|byte| format!("\\{byte:03o}")).collect();
    let screen = format!("{}x{}x24", size.width, size.height);
    let script = format!("{SCRIPT}{RELAY}");
    let command = ["sh", "-c", &script, "sh", given.unwrap_or_default(), &screen, &octal];
    let mut started = sandbox.spawn(SpawnRequest::piped(ExecRequest::new(command))).await?;
    let streams = started.stdin.take().zip(started.stdout.take());
    let (writer, mut reader) = streams.ok_or_else(|| ToolError::fatal("the sandbox gave no pipes"))?;
    let stderr = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(stream) = started.stderr.take() {
        tokio::spawn(keep_tail(stream, stderr.clone()));
    }
    let process = DesktopProcess { handle: started.handle, stderr };
    let head = timeout(START_TIMEOUT, read_head(&mut *reader)).await;
    let Ok(Some([display, folder, user, authority, manager])) = head else {
        return Err(process.failure().await);
    };
    let session = DesktopSession { display, folder, user, authority, manager, own: given.is_none() };
    let cookie = match given {
        None => cookie.to_vec(),
        // A display without an authority file lets its own user in.
        Some(_) => match sandbox.read_file(&session.authority).await {
            Ok(file) => cookie_of(&file, &session.display).unwrap_or_default(),
            Err(_) => Vec::new(),
        },
    };
    Ok(LaunchedDisplay { reader, writer, cookie, session, process })
}

/// Connects to a Unix socket inside of the sandbox.
pub(crate) async fn relay(sandbox: &DynSandbox, socket: &str) -> Result<LaunchedRelay, ToolError> {
    let script = format!("socket=$1\n{RELAY}");
    let command = ExecRequest::new(["sh", "-c", &script, "sh", socket]);
    let mut started = sandbox.spawn(SpawnRequest::piped(command)).await?;
    let streams = started.stdin.take().zip(started.stdout.take());
    let (writer, reader) = streams.ok_or_else(|| ToolError::fatal("the sandbox gave no pipes"))?;
    Ok(LaunchedRelay { reader, writer, process: started.handle })
}

/// A connection to a socket of the sandbox.
pub(crate) struct LaunchedRelay {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) process: Box<DynProcessHandle>,
}

/// The lines that the script writes before it becomes the relay. They are read byte by byte: what follows
/// belongs to the protocol.
async fn read_head(reader: &mut (dyn AsyncRead + Send + Unpin)) -> Option<[String; 5]> {
    let mut bytes = Vec::new();
    while bytes.len() < 4096 && bytes.iter().filter(|byte| **byte == b'\n').count() < 6 {
        bytes.push(reader.read_u8().await.ok()?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some("desktop")).then_some(())?;
    let mut line = || lines.next().map(str::to_owned);
    Some([line()?, line()?, line()?, line()?, line()?])
}

/// The cookie of a display in an authority file: entries of a family, an address, a number, a name and data.
fn cookie_of(mut file: &[u8], display: &str) -> Option<Vec<u8>> {
    fn field<'a>(file: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (length, rest) = file.split_first_chunk::<2>()?;
        let (field, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        *file = rest;
        Some(field)
    }
    let number = display.rsplit(':').next()?.split('.').next()?.as_bytes();
    loop {
        file = file.get(2..)?;
        let _address = field(&mut file)?;
        let (known, name, data) = (field(&mut file)?, field(&mut file)?, field(&mut file)?);
        if name == b"MIT-MAGIC-COOKIE-1" && (known == number || known.is_empty()) {
            return Some(data.to_vec());
        }
    }
}

impl DesktopProcess {
    /// Why a display that has just been started cannot be used.
    pub(crate) async fn failure(&self) -> ToolError {
        let code = timeout(Duration::from_secs(2), self.handle.wait()).await;
        let missing = |what: &str, hint: &str| {
            ToolError::of(ErrorKind::SandboxUnavailable, format!("the sandbox has no {what}"))
                .hint(hint.to_owned())
        };
        match code {
            Ok(Ok(NO_SERVER)) => {
                return missing("X server", "install `xvfb` (in Debian), and `openbox` for windows");
            }
            Ok(Ok(NO_RELAY)) => return missing("relay for sockets", "install `socat`, `perl` or `python3`"),
            _ => {}
        }
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let tail = String::from_utf8_lossy(&bytes).trim().to_owned();
        let error =
            ToolError::of(ErrorKind::SandboxUnavailable, format!("the desktop did not start: {tail}"));
        error.hint("check that `Xvfb` runs in the sandbox")
    }
}

/// Reads a stream to its end, and keeps the last part.
pub(crate) async fn keep_tail(mut stream: Box<dyn AsyncRead + Send + Unpin>, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        let mut tail = lock(&tail);
        tail.extend(piece.get(..count).unwrap_or_default());
        let over = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_of_a_display_is_found_in_an_authority_file() {
        let entry = |number: &str, name: &str, data: &[u8]| {
            let mut bytes = vec![1, 0];
            for field in [b"host", number.as_bytes(), name.as_bytes(), data] {
                bytes.extend(u16::try_from(field.len()).unwrap().to_be_bytes());
                bytes.extend(field);
            }
            bytes
        };
        let name = "MIT-MAGIC-COOKIE-1";
        let file =
            [entry("1", name, b"other"), entry("0", "XDM", b"no"), entry("0", name, b"right")].concat();
        assert_eq!(cookie_of(&file, ":0.0").unwrap(), b"right");
        assert_eq!(cookie_of(&file, ":1").unwrap(), b"other");
        assert_eq!(cookie_of(&file, ":7"), None);
        for end in 0..file.len() {
            let _ = cookie_of(&file[..end], ":0");
        }
    }
}
