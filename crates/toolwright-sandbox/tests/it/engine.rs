//! The conformance suite on Docker and Podman, against engines these tests start themselves: a daemon with
//! folders of its own, and an image made of this machine's shell and small tools. Without root or the
//! programs they are skipped by name.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolwright_core::{ErrorKind, ExecRequest, Sandbox};
use toolwright_sandbox::conformance::{CHECKS, CheckOutcome};
use toolwright_sandbox::{EngineSandbox, Layer, Network, SandboxPolicy};

use crate::support::{Case, alone, as_ordinary_user, check, equal, folder, is_root, text, wait_until};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const IMAGE: &str = "toolwright-test";
const TOOLS: &str = "sh cat chmod cp dd echo env grep head id kill ls mkdir mkfifo mv printf pwd readlink rm seq setsid \
                     sleep stat stty tail touch tr true truncate tty uname wc";

pub(crate) fn cases() -> Vec<Case> {
    // Engines are told by the environment where they are, so each has a process to itself.
    vec![
        Case::new("engine::docker", || alone("engine", "docker")).once(),
        Case::new("engine::podman", || alone("engine", "podman")).once(),
        Case::new("engine::podman_of_an_ordinary_user", || async { as_ordinary_user("engine", "podman") })
            .once(),
        Case::new("engine::a_missing_engine_is_said", || alone("engine", "missing")).once(),
    ]
}

/// The other end of [`alone`].
pub(crate) async fn main(what: &str) -> Result<(), String> {
    let engine = match what {
        "docker" => Engine::docker(),
        "podman" => Engine::podman(),
        "missing" => return missing().await,
        "runtime" => return runtime().await,
        other => return Err(format!("no engine `{other}`")),
    };
    let engine = match engine {
        Ok(engine) => engine,
        Err(reason) => {
            let whose = if is_root() { "" } else { " of an ordinary user" };
            println!("skipped {what}{whose}: {reason}");
            return Ok(());
        }
    };
    let outcome = engine.suite().await;
    // Dropping sandboxes orders their containers to end; the engine must live to see it.
    let gone = wait_until(PATIENCE, || engine.containers().is_empty()).await;
    outcome?;
    check(&format!("containers were left: {:?}", engine.containers()), gone)
}

async fn missing() -> Result<(), String> {
    // SAFETY: nothing else of this process runs yet that could read the environment.
    unsafe { std::env::set_var("PATH", "/nonexistent") };
    let policy = SandboxPolicy { image: Some(IMAGE.to_owned()), ..SandboxPolicy::private() };
    let error = EngineSandbox::docker(policy).await.map(drop).expect_err("there is no engine");
    equal(error.kind(), ErrorKind::SandboxUnavailable)?;
    let error =
        EngineSandbox::podman(SandboxPolicy::private()).await.map(drop).expect_err("there is no image");
    check(&format!("{error:?}"), error.message().contains("needs an image"))
}

/// A running engine; dropping it ends it and removes its folders.
struct Engine {
    program: &'static str,
    folder: PathBuf,
    daemon: Option<Child>,
}

impl Engine {
    fn docker() -> Result<Engine, String> {
        let (mut engine, root) = Engine::prepare("docker", &["docker", "dockerd"])?;
        let at = |name: &str| engine.folder.join(name);
        let socket = format!("unix://{}", at("d.sock").display());
        let log = std::fs::File::create(at("log")).map_err(|error| error.to_string())?;
        let daemon = Command::new("dockerd")
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false", "-H", &socket])
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("pid"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        // SAFETY: nothing else of this process runs yet that could read the environment.
        unsafe { std::env::set_var("DOCKER_HOST", &socket) };
        let log = at("log");
        engine.daemon = Some(daemon);
        let start = Instant::now();
        while !quiet("docker", &["version"]) {
            if start.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(log).unwrap_or_default();
                return Err(format!(
                    "dockerd does not start here: {}",
                    log.lines().last().unwrap_or_default()
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        engine.import(&root)?;
        Ok(engine)
    }

    fn podman() -> Result<Engine, String> {
        let (engine, root) = Engine::prepare("podman", &["podman", "runc", "conmon"])?;
        let at = |name: &str| engine.folder.join(name);
        let write =
            |name: &str, text: String| std::fs::write(at(name), text).map_err(|error| error.to_string());
        write(
            "containers.conf",
            "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1000:1000\"]\n[engine]\nruntime = \"runc\"\n\
             cgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
                .to_owned(),
        )?;
        let (graph, run) = (at("data"), at("run"));
        write(
            "storage.conf",
            format!(
                "[storage]\ndriver = \"vfs\"\ngraphroot = {graph:?}\nrunroot = {run:?}\n\
                 [storage.options.vfs]\nignore_chown_errors = \"{}\"\n",
                !is_root()
            ),
        )?;
        for (name, file) in
            [("CONTAINERS_CONF", "containers.conf"), ("CONTAINERS_STORAGE_CONF", "storage.conf")]
        {
            // SAFETY: nothing else of this process runs yet that could read the environment.
            unsafe { std::env::set_var(name, at(file)) };
        }
        if !is_root() {
            for name in ["HOME", "XDG_RUNTIME_DIR"] {
                // SAFETY: as above.
                unsafe { std::env::set_var(name, &engine.folder) };
            }
        }
        engine.import(&root)?;
        // What a sandbox needs of an engine without root: a range of users to map the caller's into.
        let users: &[&str] = if is_root() { &[] } else { &["--userns", "keep-id"] };
        let tried = Command::new("podman")
            .args(["run", "--rm", "--network", "none", "--entrypoint", "/bin/true"])
            .args(users)
            .arg(IMAGE)
            .output()
            .map_err(|error| error.to_string())?;
        if !tried.status.success() {
            return Err(format!(
                "podman runs nothing here: {}",
                String::from_utf8_lossy(&tried.stderr).trim()
            ));
        }
        Ok(engine)
    }

    fn prepare(program: &'static str, needed: &[&str]) -> Result<(Engine, PathBuf), String> {
        if program == "docker" && !is_root() {
            return Err("starting its daemon takes root".to_owned());
        }
        if let Some(missing) = needed.iter().find(|name| which(name).is_none()) {
            return Err(format!("`{missing}` is not installed"));
        }
        let engine = Engine { program, folder: folder("engine"), daemon: None };
        // SAFETY: nothing else of this process runs yet that could read the environment.
        unsafe { std::env::set_var("XDG_CONFIG_HOME", engine.folder.join("settings")) };
        let root = engine.folder.join("root");
        root_folder(&root).map_err(|error| format!("no image can be made: {error}"))?;
        Ok((engine, root))
    }

    fn import(&self, root: &Path) -> Result<(), String> {
        let script = format!("tar -C '{}' -c . | {} import - {IMAGE}", root.display(), self.program);
        let output = Command::new("sh").args(["-c", &script]).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn containers(&self) -> Vec<String> {
        let output = Command::new(self.program)
            .args(["ps", "--all", "--format", "{{.ID}} {{.Status}} {{.Names}}"])
            .output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn open(&self, policy: SandboxPolicy) -> Result<EngineSandbox, String> {
        let policy = SandboxPolicy { image: Some(IMAGE.to_owned()), ..policy };
        match self.program {
            "docker" => EngineSandbox::docker(policy).await,
            _ => EngineSandbox::podman(policy).await,
        }
        .map_err(text)
    }

    async fn suite(&self) -> Result<(), String> {
        let mut failed = Vec::new();
        {
            let sandbox = self.open(SandboxPolicy::private()).await?;
            for check in CHECKS {
                match (check.run)(&sandbox).await {
                    CheckOutcome::Passed => println!("{}: {} holds", self.program, check.name),
                    CheckOutcome::Skipped(reason) => {
                        println!("{}: skipped {}: {reason}", self.program, check.name)
                    }
                    CheckOutcome::Failed(reason) => failed.push(format!("{}: {reason}", check.name)),
                }
            }
        }
        for (name, outcome) in [
            ("protections", self.protections().await),
            ("workspace", self.workspace().await),
            ("leftovers", self.leftovers().await),
            ("a killed runtime", self.killed().await),
        ] {
            match outcome {
                Ok(()) => println!("{}: {name} hold", self.program),
                Err(reason) => failed.push(format!("{name}: {reason}")),
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
    }

    async fn protections(&self) -> Result<(), String> {
        let sandbox = self.open(SandboxPolicy::private()).await?;
        let script = "id -u; cat /proc/self/status | grep -E '^(CapEff|NoNewPrivs|Seccomp):'; ls /sys/class/net; \
                      touch /etc/x 2>&1; echo $TOOLWRIGHT_SECRET";
        // SAFETY: the sandbox is told name by name what to pass, and this name is not among them.
        unsafe { std::env::set_var("TOOLWRIGHT_SECRET", "canary") };
        let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
        let out = result.stdout;
        check(&out, out.starts_with("1000\n") && out.contains("NoNewPrivs:\t1") && !out.contains("canary"))?;
        check(&out, out.contains("CapEff:\t0000000000000000") && out.contains("Seccomp:\t2"))?;
        check(&out, out.contains("lo\n") && !out.contains("eth0") && out.contains("Read-only"))?;
        for layer in [Layer::Seccomp, Layer::NoCapabilities, Layer::MemoryCgroup, Layer::PidsCgroup] {
            check(&format!("{layer} is listed"), result.layers.contains(&layer.as_str().to_owned()))?;
        }
        let bomb = ExecRequest::new(["sh", "-c", "b() { b | b & }; b; sleep 1; echo alive"]);
        let _ = sandbox.exec(bomb.timeout(Duration::from_secs(3))).await;
        let after = sandbox.exec(ExecRequest::new(["echo", "still here"])).await.map_err(text)?;
        equal(after.stdout.as_str(), "still here\n")?;
        let connection = sandbox.connection(None).await.map_err(text)?.map(|one| one.command);
        check(&format!("{connection:?}"), connection.is_some_and(|text| text.contains(" exec ")))?;
        let hosts =
            SandboxPolicy { network: Network::Allow(vec!["example.com".into()]), ..SandboxPolicy::private() };
        check("network to hosts is refused", self.open(hosts).await.is_err())?;
        let strict = SandboxPolicy { require: vec![Layer::Landlock], ..SandboxPolicy::private() };
        let refused = self.open(strict).await.map(drop).expect_err("a missing layer");
        check(&refused, refused.contains("landlock"))
    }

    async fn workspace(&self) -> Result<(), String> {
        let place = folder("engine-workspace");
        let other = folder("engine-other");
        std::fs::write(place.join(".env"), "secret").map_err(|error| error.to_string())?;
        std::fs::write(other.join("data"), "shared").map_err(|error| error.to_string())?;
        let settings = self.folder.join("settings");
        for path in ["gh/hosts.yml", "git/credentials"] {
            let path = settings.join(path);
            let made = std::fs::create_dir_all(path.parent().unwrap_or(&path));
            made.and_then(|()| std::fs::write(path, "secret")).map_err(|error| error.to_string())?;
        }
        {
            let mut policy = SandboxPolicy::for_workspace(&place);
            policy.read = vec![other.clone(), settings.clone()];
            policy.mask.push(".env".into());
            let sandbox = self.open(policy).await?;
            let script = format!(
                "echo made > made; cat {0}/data; echo; echo x > {0}/data; cat .env; echo x > .mcp.json; mv .git g; \
                 echo x > .git/config; cat {1}/gh/hosts.yml {1}/git/credentials; ls -a",
                other.display(),
                settings.display()
            );
            let result = sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await.map_err(text)?;
            check(
                &format!("{result:?}"),
                result.stdout.starts_with("shared\n") && !result.stdout.contains("secret"),
            )?;
            // What takes the place of something masked is not masked.
            let new = other.join("new");
            let replaced =
                std::fs::write(&new, "secret").and_then(|()| std::fs::rename(&new, place.join(".env")));
            replaced.map_err(|error| error.to_string())?;
            let seen = sandbox.exec(ExecRequest::new(["cat", ".env"])).await;
            let refused = seen.as_ref().is_err_and(|error| error.kind() == ErrorKind::SandboxUnavailable);
            check(&format!("{seen:?}"), refused)?;
        }
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        equal((read(place.join("made")), read(other.join("data"))), ("made\n".into(), "shared".into()))?;
        let clean = || !place.join(".mcp.json").exists() && !place.join(".git").exists();
        let gone = wait_until(PATIENCE, clean).await;
        check("placeholders were left", gone)?;
        let _ = (std::fs::remove_dir_all(place), std::fs::remove_dir_all(other));
        Ok(())
    }

    /// Daemons die with the command that started them, and only they do.
    async fn leftovers(&self) -> Result<(), String> {
        let sandbox = self.open(SandboxPolicy::private()).await?;
        let daemon = |name: &str| {
            format!(
                "setsid sh -c 'while :; do echo x >> {name}; sleep 0.05; done' </dev/null >/dev/null 2>&1 &"
            )
        };
        let keeps = ExecRequest::new(["sh", "-c", &format!("{} sleep 30", daemon("kept"))]);
        let kept = sandbox.spawn(toolwright_core::SpawnRequest::piped(keeps)).await.map_err(text)?;
        let sizes = || async {
            let count = "wc -c < kept; cat gone hidden 2>/dev/null | wc -c";
            let result = sandbox.exec(ExecRequest::new(["sh", "-c", count])).await.map_err(text)?;
            let mut sizes = result.stdout.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
            Ok::<_, String>((sizes.next().unwrap_or(0), sizes.next().unwrap_or(0)))
        };
        let script = format!(
            "{} env -i /usr/bin/{}",
            daemon("gone"),
            daemon("hidden").trim_start_matches("/usr/bin/")
        );
        let done = sandbox
            .exec(ExecRequest::new([
                "sh",
                "-c",
                &format!("{script} until [ -s gone ] && [ -s hidden ]; do sleep 0.05; done"),
            ]))
            .await
            .map_err(text)?;
        equal(done.code, 0)?;
        let start = Instant::now();
        let mut before = sizes().await?;
        loop {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let now = sizes().await?;
            let (kept_on, stopped) = (now.0 != before.0, now.1 == before.1);
            if kept_on && stopped {
                break;
            }
            check(&format!("{before:?} {now:?}: one goes on, the others stop"), start.elapsed() < PATIENCE)?;
            before = now;
        }
        drop(kept);
        Ok(())
    }

    /// A runtime that is killed takes its container with it.
    async fn killed(&self) -> Result<(), String> {
        let gone = wait_until(PATIENCE, || self.containers().is_empty()).await;
        check(&format!("containers were left: {:?}", self.containers()), gone)?;
        let mut child = Command::new(crate::support::exe())
            .args(["engine", "runtime"])
            .env("ENGINE", self.program)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            use std::io::BufRead;
            std::io::BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let before = self.containers().len();
        let _ = (child.kill(), child.wait());
        equal((line.as_str(), before), ("ready\n", 1))?;
        let gone = wait_until(PATIENCE, || self.containers().is_empty()).await;
        check("the container outlived the runtime", gone)
    }
}

/// A runtime with a live tool in a container, which waits to be killed.
async fn runtime() -> Result<(), String> {
    let policy = SandboxPolicy { image: Some(IMAGE.to_owned()), ..SandboxPolicy::private() };
    let sandbox = match std::env::var("ENGINE").as_deref() {
        Ok("docker") => EngineSandbox::docker(policy).await,
        _ => EngineSandbox::podman(policy).await,
    }
    .map_err(text)?;
    println!("ready");
    sandbox.exec(ExecRequest::new(["sleep", "600"])).await.map(drop).map_err(text)
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            // SAFETY: takes numbers only; the process is a child that has not been waited for.
            unsafe { libc::kill(daemon.id() as i32, libc::SIGTERM) };
            let _ = daemon.wait();
        }
        if self.program == "podman" {
            quiet("podman", &["rm", "--all", "--force"]);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn quiet(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').map(Path::new).chain(["/usr/sbin", "/usr/bin"].map(Path::new));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// This machine's shell and small tools with the libraries they need.
fn root_folder(root: &Path) -> std::io::Result<()> {
    for name in ["etc", "proc", "sys", "dev", "tmp", "home", "usr/bin"] {
        std::fs::create_dir_all(root.join(name))?;
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        std::fs::create_dir_all(root.join("usr").join(name))?;
        symlink(Path::new("usr").join(name), root.join(name))?;
    }
    std::fs::write(
        root.join("etc/passwd"),
        "root:x:0:0:root:/:/bin/sh\nsandbox:x:1000:1000::/home/sandbox:/bin/sh\n",
    )?;
    std::fs::set_permissions(root.join("tmp"), std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    std::fs::write(root.join("etc/group"), "root:x:0:\nsandbox:x:1000:\n")?;
    for tool in TOOLS.split_whitespace() {
        let Some(file) = which(tool) else { continue };
        std::fs::copy(&file, root.join("usr/bin").join(tool))?;
        let output = Command::new("ldd").arg(&file).output()?;
        for library in String::from_utf8_lossy(&output.stdout).split_whitespace() {
            let Some(inside) = library.strip_prefix('/') else { continue };
            let target = root.join(inside);
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            if !target.exists() {
                std::fs::copy(library, target)?;
            }
        }
    }
    Ok(())
}
