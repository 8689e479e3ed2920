//! What is on is said, what is missing refuses, and every way to start something shows the same layers.

use std::os::fd::IntoRawFd;

use tokio::io::AsyncReadExt;
use toolwright_core::{ErrorKind, ExecRequest, Sandbox, SpawnRequest};
use toolwright_sandbox::{Layer, Network, ProcessSandbox, SandboxPolicy};

use crate::support::{Case, check, equal, folder, is_root, text};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("layers::results_list_what_was_on", listed),
        Case::new("SB-09::descriptors_of_the_runtime_are_not_inherited", inherited),
        Case::new("SB-24::nothing_of_one_call_reaches_the_next", environment),
        Case::new("SB-28::a_required_layer_that_is_missing_refuses", required),
        Case::new("SB-30::every_way_to_start_shows_the_same_layers", same_layers),
        Case::new("SB-31::two_sandboxes_do_not_see_each_other", apart),
        Case::new("layers::loopback_reaches_only_the_sandbox", loopback),
        Case::new("layers::files_belong_to_the_owner_of_the_workspace", owner),
        Case::new("SB-05::writable_folders_of_other_owners_can_be_written", owners).once(),
        Case::new("layers::placeholders_are_gone_afterwards", placeholders),
        Case::new("layers::more_folders_can_be_shown", more_folders),
        Case::new("probe::this_machine_can_be_described", described),
    ]
}

async fn listed() -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let result = sandbox.exec(ExecRequest::new(["true"])).await.map_err(text)?;
    let names: Vec<&str> = sandbox.layers().iter().map(|layer| layer.as_str()).collect();
    equal(result.layers.iter().map(String::as_str).collect::<Vec<_>>(), names)?;
    for layer in Layer::DEFAULT_REQUIRED.iter().chain([&Layer::OrdinaryUser]) {
        check(layer.as_str(), sandbox.layers().contains(layer))?;
    }
    let told = sandbox.layers().len() + sandbox.missing().len();
    check(&format!("{:?}", sandbox.missing()), told >= Layer::ALL.len())
}

async fn inherited() -> Result<(), String> {
    // A descriptor that a careless library left open across exec.
    let leaked = std::fs::File::open("/").map_err(|error| error.to_string())?.into_raw_fd();
    // SAFETY: takes numbers only; the descriptor is ours.
    unsafe { libc::fcntl(leaked, libc::F_SETFD, 0) };
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let result = sandbox.exec(ExecRequest::new(["ls", "/proc/self/fd"])).await.map_err(text)?;
    // `ls` itself opens the folder it lists.
    equal(result.stdout.as_str(), "0\n1\n2\n3\n")
}

async fn environment() -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let poison = "echo 'export LD_PRELOAD=/tmp/x.so' > ~/.profile; cp ~/.profile ~/.bashrc; cp ~/.profile .bash_profile; \
                  export PYTHONPATH=/tmp GIT_DIR=/tmp; echo done";
    let set = ExecRequest::new(["sh", "-c", poison]).env("NODE_OPTIONS", "--require /tmp/x.js");
    sandbox.exec(set).await.map_err(text)?;
    let result = sandbox.exec(ExecRequest::new(["env"])).await.map_err(text)?;
    let mut names: Vec<&str> = result.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    equal(names, vec!["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"])
}

async fn required() -> Result<(), String> {
    for layer in [
        Layer::UserNamespace,
        Layer::MountNamespace,
        Layer::PidNamespace,
        Layer::NetNamespace,
        Layer::IpcNamespace,
        Layer::UtsNamespace,
        Layer::Seccomp,
        Layer::Landlock,
    ] {
        let mut policy = SandboxPolicy::private();
        policy.require.push(Layer::Landlock);
        match ProcessSandbox::open_without(policy, &[layer]).await {
            Err(error) => {
                equal(error.kind(), ErrorKind::SandboxUnavailable)?;
                check(error.message(), error.message().contains(layer.as_str()))?;
            }
            Ok(_) => return Err(format!("opened without {layer}")),
        }
    }
    let mut policy = SandboxPolicy::private();
    policy.require.push(Layer::MemoryCgroup);
    policy.limits.memory = None;
    match ProcessSandbox::open(policy).await {
        Err(error) => equal(error.kind(), ErrorKind::SandboxUnavailable),
        Ok(_) => Err("opened without a memory group".to_owned()),
    }
}

async fn same_layers() -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let script = "for n in user net uts cgroup; do readlink /proc/self/ns/$n; done; \
                  grep -E '^(Cap|NoNew|Seccomp|Uid|Gid)' /proc/self/status";
    let request = || ExecRequest::new(["sh", "-c", script]);
    let exec = sandbox.exec(request()).await.map_err(text)?.stdout;
    let mut others = Vec::new();
    for spawn in [SpawnRequest::piped(request()), SpawnRequest::with_terminal(request(), 24, 80)] {
        let mut process = sandbox.spawn(spawn).await.map_err(text)?;
        let mut output = String::new();
        if let Some(stdout) = &mut process.stdout {
            stdout.read_to_string(&mut output).await.map_err(|error| error.to_string())?;
        }
        others.push(output.replace('\r', ""));
    }
    equal(others, vec![exec.clone(), exec.clone()])?;
    // The file worker is not a program, so it is tested through the files it can read.
    let status = sandbox.read_text("/proc/self/status").await.map_err(text)?;
    for line in exec.lines().filter(|line| line.contains(":\t")) {
        check(line, status.contains(line))?;
    }
    let host = std::fs::read_link("/proc/self/ns/user").map_err(|error| error.to_string())?;
    check(&exec, !exec.contains(&host.display().to_string()))
}

async fn apart() -> Result<(), String> {
    let (left, right) = (folder("left"), folder("right"));
    let open = |path: &std::path::Path| ProcessSandbox::open(SandboxPolicy::for_workspace(path));
    let (a, b) = (open(&left).await.map_err(text)?, open(&right).await.map_err(text)?);
    a.write_file("secret", b"mine").await.map_err(text)?;
    a.write_file("/tmp/secret", b"mine").await.map_err(text)?;
    let sleeper = a.spawn(SpawnRequest::piped(ExecRequest::new(["sleep", "20"]))).await.map_err(text)?;
    let path = left.join("secret").display().to_string();
    let outcome = async {
        check("workspace", b.read_file(&path).await.is_err())?;
        check("temporary", b.read_file("/tmp/secret").await.is_err())?;
        let see = b
            .exec(ExecRequest::new(["sh", "-c", "ls /tmp/secret; ps -A | grep -c sleep"]))
            .await
            .map_err(text)?;
        equal(see.stdout.trim(), "0")
    }
    .await;
    drop((sleeper, a, b));
    let _ = (std::fs::remove_dir_all(left), std::fs::remove_dir_all(right));
    outcome
}

async fn loopback() -> Result<(), String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let policy = SandboxPolicy { network: Network::Loopback, ..SandboxPolicy::private() };
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let result = sandbox.exec(ExecRequest::new(["bash", "-c", &script])).await.map_err(text)?;
    check("the host is not reached", result.code != 0 && listener.accept().is_err())?;
    let refused = result.stderr.contains("refused");
    check(&format!("loopback is there: {}", result.stderr), refused)?;
    let out = sandbox
        .exec(ExecRequest::new(["bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/80"]))
        .await
        .map_err(text)?;
    check(&out.stderr, out.stderr.contains("unreachable"))
}

async fn owner() -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let work = folder("owner");
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.protect.clear();
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    sandbox.exec(ExecRequest::new(["touch", "made"])).await.map_err(text)?;
    sandbox.write_file("written", b"x").await.map_err(text)?;
    let owner = std::fs::metadata(&work).map_err(|error| error.to_string())?.uid();
    for name in ["made", "written"] {
        equal(std::fs::metadata(work.join(name)).map_err(|error| error.to_string())?.uid(), owner)?;
    }
    let status = sandbox.exec(ExecRequest::new(["cat", "/proc/self/uid_map"])).await.map_err(text)?;
    let outside: u32 = status.stdout.split_whitespace().nth(1).and_then(|id| id.parse().ok()).unwrap_or(0);
    drop(sandbox);
    let _ = std::fs::remove_dir_all(work);
    check("never root outside", outside != 0 || !is_root())
}

async fn owners() -> Result<(), String> {
    use std::os::unix::fs::{MetadataExt, chown};
    if !is_root() {
        println!("skipped: only root can give files away");
        return Ok(());
    }
    let error = |error: std::io::Error| error.to_string();
    let folders = [(folder("owned-a"), 0), (folder("owned-b"), 1234), (folder("owned-c"), 65534)];
    let remove = || folders.iter().try_for_each(|(path, _)| std::fs::remove_dir_all(path)).map_err(error);
    let bare = SandboxPolicy { protect: Vec::new(), ..SandboxPolicy::for_workspace(&folders[0].0) };
    let probe = ProcessSandbox::open(bare).await.map_err(text)?;
    if probe.missing().iter().any(|(layer, _)| *layer == Layer::OrdinaryUser) {
        println!("skipped: owners cannot be mapped here: {:?}", probe.missing());
        return remove();
    }
    drop(probe);
    for (path, owner) in &folders {
        chown(path, Some(*owner), Some(*owner)).map_err(error)?;
    }
    for (work, _) in &folders {
        let mut policy = SandboxPolicy::for_workspace(work);
        policy.protect.clear();
        policy.write = folders.iter().map(|(path, _)| path.clone()).filter(|path| path != work).collect();
        let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
        for (path, owner) in &folders {
            let made = path.join("made");
            let request = ExecRequest::new(["touch".to_owned(), made.display().to_string()]);
            let result = sandbox.exec(request).await.map_err(text)?;
            equal(result.stderr.as_str(), "")?;
            equal(std::fs::metadata(&made).map_err(error)?.uid(), *owner)?;
            std::fs::remove_file(made).map_err(error)?;
        }
    }
    // World-writable folders need no mapping: new files belong to their creator.
    let (shared, _) = &folders[0];
    std::fs::set_permissions(shared, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).map_err(error)?;
    let mut policy = SandboxPolicy::for_workspace(&folders[1].0);
    (policy.write, policy.protect) = (vec![shared.clone()], Vec::new());
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let made = shared.join("made");
    let request = ExecRequest::new(["touch".to_owned(), made.display().to_string()]);
    sandbox.exec(request).await.map_err(text)?;
    equal(std::fs::metadata(&made).map_err(error)?.uid(), 1234)?;
    drop(sandbox);
    remove()
}

async fn placeholders() -> Result<(), String> {
    let work = folder("placeholders");
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
    check("a placeholder is there", work.join(".mcp.json").exists())?;
    drop(sandbox);
    let gone = || std::fs::read_dir(&work).is_ok_and(|mut entries| entries.next().is_none());
    let gone = crate::support::wait_until(std::time::Duration::from_secs(60), gone).await;
    let _ = std::fs::remove_dir_all(work);
    check("placeholders were left", gone)
}

async fn more_folders() -> Result<(), String> {
    let (data, out) = (folder("data"), folder("out"));
    std::fs::write(data.join("input"), "in").map_err(|error| error.to_string())?;
    let mut policy = SandboxPolicy::private();
    policy.read.push(data.clone());
    policy.write.push(out.clone());
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let script = format!("cp {0}/input {1}/copy; echo x > {0}/new", data.display(), out.display());
    let result = sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await.map_err(text)?;
    let (copied, made) = (std::fs::read_to_string(out.join("copy")), data.join("new").exists());
    drop(sandbox);
    let _ = (std::fs::remove_dir_all(data), std::fs::remove_dir_all(out));
    check(&result.stderr, result.stderr.contains("Read-only"))?;
    equal((copied.unwrap_or_default().as_str(), made), ("in", false))
}

async fn described() -> Result<(), String> {
    let reports = toolwright_sandbox::probe().await;
    equal(reports.len(), Layer::ALL.len())?;
    let on = reports.iter().filter(|report| report.available).count();
    check(&format!("{reports:?}"), on >= 10)?;
    let told = toolwright_sandbox::explain(&SandboxPolicy::private()).await.map_err(text)?;
    check(&format!("{told:?}"), told.view.iter().any(|entry| entry.path.ends_with("workspace")))?;
    check("layers", told.layers.len() == Layer::ALL.len())
}
