//! The attack table: every probe over pipes and over a terminal, as root and as nobody, with a canary
//! outside.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use toolwright_core::{DynSandbox, ExecRequest, SpawnRequest};
use toolwright_sandbox::{Layer, LocalSandbox, ProcessSandbox, SandboxPolicy};

use crate::probe::{BLOCKED, PROBES, Probe};
use crate::support::{Case, exe, folder};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, probe) in PROBES.iter().enumerate() {
        let name = format!("{}::{}", probe.id, probe.name.replace(' ', "_"));
        cases.push(Case::new(format!("attacks::pipes::{name}"), move || async move {
            let field = Field::new()?;
            let sandbox = field.sandbox(&[]).await?;
            field.judge(&PROBES[at], field.over_pipes(&sandbox, &PROBES[at]).await)
        }));
        cases.push(Case::new(format!("attacks::terminal::{name}"), move || async move {
            let field = Field::new()?;
            let sandbox = field.sandbox(&[]).await?;
            field.judge(&PROBES[at], field.over_terminal(&sandbox, &PROBES[at]).await)
        }));
    }
    cases.push(Case::new("attacks::with_a_layer_removed", ablation));
    cases.push(Case::new("attacks::without_a_sandbox_they_succeed", control).harmless());
    cases
}

/// Everything outside that an attack could touch, and the means to see whether it did.
pub(crate) struct Field {
    root: PathBuf,
    canary: PathBuf,
    workspace: PathBuf,
    /// Another folder that may be written.
    other: PathBuf,
    before: BTreeMap<PathBuf, (u32, u64, i64, String)>,
    abstract_name: String,
    port: u16,
    hits: Arc<AtomicUsize>,
    _listeners: ([UnixListener; 3], std::net::UdpSocket),
}

const SECRET: &str = "canary-7f3a-do-not-leak";

impl Field {
    pub(crate) fn new() -> Result<Field, String> {
        Self::build().map_err(|error| format!("the field cannot be made: {error}"))
    }

    fn build() -> std::io::Result<Field> {
        let root = folder("field");
        let (canary, workspace, other) = (root.join("canary"), root.join("work"), root.join("other"));
        std::fs::create_dir_all(canary.join("deep"))?;
        std::fs::create_dir_all(workspace.join("private"))?;
        for path in [&workspace, &other] {
            std::fs::create_dir_all(path.join(".git"))?;
            std::fs::write(path.join(".git/config"), "[core]\n")?;
        }
        std::fs::write(workspace.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        std::fs::write(workspace.join(".env"), SECRET)?;
        std::fs::write(workspace.join("private/key"), SECRET)?;
        for path in ["secret", "deep/file"] {
            std::fs::write(canary.join(path), SECRET)?;
            std::fs::set_permissions(canary.join(path), PermissionsExt::from_mode(0o666))?;
        }
        for path in [&canary, &canary.join("deep")] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777))?;
        }
        let hits = Arc::new(AtomicUsize::new(0));
        let listen = |path: PathBuf| {
            let socket = UnixListener::bind(&path)?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
            std::io::Result::Ok(socket)
        };
        let (socket, inside) = (listen(canary.join("socket"))?, listen(workspace.join("socket"))?);
        let abstract_name = format!("toolwright-{}", root.display());
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name)?)?;
        let tcp = std::net::TcpListener::bind("127.0.0.1:0")?;
        let port = tcp.local_addr()?.port();
        let udp = std::net::UdpSocket::bind(("127.0.0.1", port))?;
        udp.set_nonblocking(true)?;
        let sockets = [socket, inside, hidden];
        sockets.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
        let count = hits.clone();
        std::thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = { stream }.read(&mut [0; 1]);
            }
        });
        let before = snapshot(&canary)?;
        Ok(Field {
            root,
            canary,
            workspace,
            other,
            before,
            abstract_name,
            port,
            hits,
            _listeners: (sockets, udp),
        })
    }

    pub(crate) async fn sandbox(&self, without: &[Layer]) -> Result<ProcessSandbox, String> {
        let mut policy = SandboxPolicy::for_workspace(&self.workspace);
        policy.read = vec![exe()];
        policy.write = vec![self.other.clone()];
        policy.mask.extend([".env".into(), "private".into()]);
        policy.limits.scratch = 64 << 20;
        policy.require.retain(|layer| !without.contains(layer));
        ProcessSandbox::open_without(policy, without).await.map_err(|error| format!("{error:?}"))
    }

    fn request(&self, probe: &Probe) -> ExecRequest {
        ExecRequest::new([exe().display().to_string().as_str(), "attack", probe.name])
            .env("CANARY", self.canary.display().to_string())
            .env("OTHER", self.other.display().to_string())
            .env("ABSTRACT", self.abstract_name.clone())
            .env("PORT", self.port.to_string())
            .env("HOST_PID", std::process::id().to_string())
            .timeout(Duration::from_secs(30))
    }

    pub(crate) fn canary(&self) -> &Path {
        &self.canary
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    async fn over_pipes(&self, sandbox: &DynSandbox, probe: &Probe) -> Result<(i32, String), String> {
        let result = sandbox.exec(self.request(probe)).await.map_err(|error| format!("{error:?}"))?;
        Ok((result.code, result.stdout + &result.stderr))
    }

    async fn over_terminal(&self, sandbox: &DynSandbox, probe: &Probe) -> Result<(i32, String), String> {
        let request = SpawnRequest::with_terminal(self.request(probe), 24, 80);
        let mut process = sandbox.spawn(request).await.map_err(|error| format!("{error:?}"))?;
        let mut text = Vec::new();
        if let Some(stdout) = &mut process.stdout {
            stdout.read_to_end(&mut text).await.map_err(|error| error.to_string())?;
        }
        let code = process.handle.wait().await.map_err(|error| format!("{error:?}"))?;
        Ok((code, String::from_utf8_lossy(&text).into_owned()))
    }

    /// Blocked means: the probe says so (or died of the filter), nothing outside changed or was reached, no
    /// secret seen.
    pub(crate) fn judge(&self, probe: &Probe, result: Result<(i32, String), String>) -> Result<(), String> {
        let (code, text) = result?;
        if code != BLOCKED && !(probe.deadly && code == -libc::SIGSYS) {
            return Err(format!("{} {}: code {code}: {text}", probe.id, probe.name));
        }
        self.untouched().map_err(|how| format!("{} {}: {how} ({text})", probe.id, probe.name))?;
        if text.contains(SECRET) { Err(format!("the secret was read: {text}")) } else { Ok(()) }
    }

    pub(crate) fn untouched(&self) -> Result<(), String> {
        let after = snapshot(&self.canary).map_err(|error| error.to_string())?;
        if after != self.before {
            return Err(format!("the canary changed: {after:?}"));
        }
        let (sockets, udp) = &self._listeners;
        let reached = sockets.iter().any(|socket| socket.accept().is_ok()) || udp.recv(&mut [0]).is_ok();
        if reached || self.hits.load(Ordering::SeqCst) > 0 {
            return Err("a listener outside was reached".to_owned());
        }
        Ok(())
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn snapshot(folder: &Path) -> std::io::Result<BTreeMap<PathBuf, (u32, u64, i64, String)>> {
    let mut seen = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let about = std::fs::symlink_metadata(&path)?;
        let text = if about.is_file() { std::fs::read_to_string(&path)? } else { String::new() };
        if about.is_dir() {
            open.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        }
        seen.insert(path, (about.mode(), about.nlink(), about.mtime(), text));
    }
    Ok(seen)
}

/// Probes that prove nothing would be blocked everywhere. On the host, as an ordinary user, many must get
/// through.
async fn control() -> Result<(), String> {
    let mut open = Vec::new();
    // Those that trace or signal would hit this very test, as the same user it runs as.
    let probes = PROBES.iter().filter(|probe| !["SB-13", "SB-14"].contains(&probe.id));
    let tried = probes.clone().count();
    for probe in probes {
        let field = Field::new()?;
        let policy = SandboxPolicy::for_workspace(&field.workspace);
        let sandbox = LocalSandbox::open(policy).await.map_err(|error| format!("{error:?}"))?;
        if field.judge(probe, field.over_pipes(&sandbox, probe).await).is_err() {
            open.push(probe.name);
        }
    }
    tell(&format!("no sandbox: {} of {tried} succeed: {open:?}", open.len()))?;
    if open.len() * 2 > PROBES.len() { Ok(()) } else { Err(format!("only {open:?} succeed")) }
}

/// What each layer holds alone, by the names of probes. Landlock and the network namespace are second locks.
const HELD_ALONE: [(Layer, &[&str]); 4] = [
    (
        Layer::MountNamespace,
        &[
            "read masked files",
            "read a masked file of the workspace",
            "see processes outside",
            "connect to sockets of the host",
            "connect to a socket in the workspace",
            "change attributes outside",
            // As the owner of the workspace:
            "make protected files",
            "replace protected files by rename or link",
            "rename the folder of a protected file",
            "change protected files of another folder",
        ],
    ),
    (Layer::NetNamespace, &[]),
    (Layer::Landlock, &[]),
    (
        Layer::Seccomp,
        &[
            "make namespaces",
            "clone into namespaces",
            "clone3 into a user namespace",
            "run without no_new_privs or a filter",
            "trace the keeper's job or the runtime",
            "make a socket through another entry",
            "use kernel interfaces",
            "open files by handle",
            "run a program from memory to be free",
            "have the host's handler of crashes started",
            "leave a set-user-id program behind",
            "make sockets",
        ],
    ),
];

/// Runs every probe with one layer off at a time. What is left must block all but the probes that are said to
/// hang on that layer.
async fn ablation() -> Result<(), String> {
    let mut report = String::new();
    for (layer, alone) in HELD_ALONE {
        let (mut open, mut more) = (Vec::new(), Vec::new());
        for probe in PROBES.iter() {
            // A field of its own: what one probe breaks must not help or hinder the next.
            let field = Field::new()?;
            let sandbox = field.sandbox(&[layer]).await?;
            if let Err(how) = field.judge(probe, field.over_pipes(&sandbox, probe).await) {
                more.extend((!alone.contains(&probe.name)).then_some(probe.name));
                open.push(format!(
                    "{} {} ({})",
                    probe.id,
                    probe.name,
                    how.lines().next().unwrap_or_default()
                ));
            }
        }
        let held = PROBES.len() - open.len();
        report += &format!("without {layer}: {held} of {} blocked\n", PROBES.len());
        for one in &open {
            report += &format!("  open: {one}\n");
        }
        if !more.is_empty() {
            return Err(format!("more hangs on {layer} alone than is said: {more:?}\n{report}"));
        }
    }
    tell(&report)
}

/// Prints a report, and adds it to the file that everybody who runs these tests adds to, if one is wanted.
fn tell(report: &str) -> Result<(), String> {
    use std::io::Write as _;
    println!("{report}");
    let Ok(path) = std::env::var("TOOLWRIGHT_ABLATION_REPORT") else { return Ok(()) };
    let write = || {
        let new = !Path::new(&path).exists();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
        if new {
            file.set_permissions(PermissionsExt::from_mode(0o666))?;
        }
        let who = std::fs::metadata("/proc/self")?.uid();
        writeln!(file, "as user {who}:\n{report}")
    };
    write().map_err(|error| format!("cannot write {path}: {error}"))
}
