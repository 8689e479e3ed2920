//! Floods, leaks, and the death of the runtime itself. Sizes are small enough for each run; the variables in
//! the comments make them full.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolwright_core::{DynSandbox, ErrorKind, ExecRequest, Sandbox as _};
use toolwright_sandbox::{LocalSandbox, ProcessSandbox, SandboxPolicy};

use crate::processes::{daemon_script, running};
use crate::support::{Case, alone, check, descendants, descendants_of, equal, exe, text, wait_until};

pub(crate) fn cases() -> Vec<Case> {
    // Memory and descriptors are those of the whole process, so each of these has a process to itself.
    vec![
        Case::new("load::a_flood_is_drained_in_bounded_memory", || alone("load", "flood")).once(),
        Case::new("load::many_floods_at_once_are_too", || alone("load", "floods")).once(),
        Case::new("load::cancelled_calls_leave_nothing", || alone("load", "leaks")),
        Case::new("load::a_killed_runtime_leaves_nothing", || alone("load", "kills")),
        Case::new("load::a_noisy_neighbour_is_only_a_nuisance", || alone("load", "neighbours")).once(),
        Case::new("HG-07::terminals_stand_what_people_do_to_them", terminals),
        Case::new("load::many_sessions_live_at_once", || alone("load", "sessions")).once(),
    ]
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The other end of [`alone`].
pub(crate) async fn main(what: &str) -> Result<(), String> {
    match what {
        "flood" => flood(number("TOOLWRIGHT_FLOOD_MIB", 1024)).await,
        "floods" => floods(64, number("TOOLWRIGHT_FLOODS_MIB", 32)).await,
        "leaks" => leaks(number("TOOLWRIGHT_LEAK_CALLS", 300)).await,
        "kills" => kills(number("TOOLWRIGHT_KILLS", 30)).await,
        "runtime" => runtime().await,
        "neighbours" => neighbours().await,
        "sessions" => sessions(number("TOOLWRIGHT_SESSIONS", 100)).await,
        other => Err(format!("no load `{other}`")),
    }
}

/// A field of our own status, in KiB.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|value| value.parse().ok()).unwrap_or_default()
}

async fn flood(mebibytes: u64) -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let warm = sandbox.exec(ExecRequest::new(["true"])).await.map_err(text)?;
    equal(warm.code, 0)?;
    let bytes = mebibytes << 20;
    let script = format!("head -c {bytes} /dev/zero");

    // The same bytes through a plain pipe, read by a plain loop, for comparison.
    let start = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut pipe) = child.stdout.take() {
        let mut buffer = vec![0; 65536];
        while std::io::Read::read(&mut pipe, &mut buffer).is_ok_and(|count| count > 0) {}
    }
    let _ = child.wait();
    let plain = start.elapsed();

    let before = memory("VmHWM:");
    let start = Instant::now();
    let result = sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await;
    let took = start.elapsed();
    let grown = memory("VmHWM:") - before;
    let error = match result {
        Err(error) if error.kind() == ErrorKind::OutputLimit => error,
        other => return Err(format!("{other:?}")),
    };
    let kept = error.partial().map(|partial| partial.to_text().len()).unwrap_or_default();
    let omitted = error.partial().map(|partial| partial.value()["omitted_bytes"].clone());
    equal(omitted, Some((bytes - (1 << 20)).into()))?;
    println!(
        "flood of {mebibytes} MiB: {took:.2?} against {plain:.2?} through a plain pipe, +{} MiB, {kept} bytes kept",
        grown / 1024
    );
    check(&format!("memory grew by {grown} KiB"), grown < 16 * 1024)
}

async fn floods(count: usize, mebibytes: u64) -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    sandbox.exec(ExecRequest::new(["true"])).await.map_err(text)?;
    let before = memory("VmHWM:");
    let script = format!("head -c {} /dev/zero", mebibytes << 20);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let (sandbox, script) = (sandbox.clone(), script.clone());
        tasks.spawn(async move {
            let result = sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await;
            // Only the kind is kept: what a caller does with the partial output is its own memory.
            result.map(drop).map_err(|error| error.kind())
        });
    }
    while let Some(done) = tasks.join_next().await {
        equal(done.map_err(|error| error.to_string())?, Err(ErrorKind::OutputLimit))?;
    }
    let grown = memory("VmHWM:") - before;
    println!("{count} floods of {mebibytes} MiB at once: +{} MiB", grown / 1024);
    check(&format!("memory grew by {grown} KiB"), grown < 128 * 1024)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map(|entries| entries.count()).unwrap_or_default()
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mountinfo").map(|text| text.lines().count()).unwrap_or_default()
}

fn groups() -> usize {
    let below = |folder: &str| std::fs::read_dir(folder).into_iter().flatten().flatten();
    ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
        .iter()
        .flat_map(|folder| below(folder))
        .filter(|entry| {
            let name = entry.file_name();
            // Only those of monitors that are gone: other tests run beside this one.
            let pid = name.to_str().and_then(|name| name.strip_prefix("toolwright-")).map(str::to_owned);
            pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists())
        })
        .count()
}

async fn leaks(calls: u64) -> Result<(), String> {
    let (script, word) = daemon_script();
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut slowest = Duration::ZERO;
    {
        let process = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
        let local = LocalSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
        let sandboxes: [&DynSandbox; 2] = [&process, &local];
        for sandbox in sandboxes {
            sandbox.exec(ExecRequest::new(["true"])).await.map_err(text)?;
        }
        let (fds, mounted) = (descriptors(), mounts());
        for at in 0..calls {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let sandbox = sandboxes[(at % 2) as usize];
            let call = sandbox.exec(ExecRequest::new(["sh", "-c", &script]));
            let _ = tokio::time::timeout(Duration::from_micros(seed % 60_000), call).await;
            if at % 25 == 0 {
                let start = Instant::now();
                check(
                    "processes were left",
                    wait_until(Duration::from_secs(2), || running(&word) == 0).await,
                )?;
                slowest = slowest.max(start.elapsed());
            }
        }
        check("processes were left", wait_until(Duration::from_secs(2), || running(&word) == 0).await)?;
        check("descriptors were left", wait_until(Duration::from_secs(2), || descriptors() <= fds).await)?;
        equal(mounts(), mounted)?;
    }
    let quiet = wait_until(Duration::from_secs(3), || descendants().is_empty()).await;
    check(&format!("after closing: {:?}", descendants()), quiet)?;
    check("control groups were left", wait_until(Duration::from_secs(3), || groups() == 0).await)?;
    println!("{calls} cancelled calls: nothing left; slowest death {slowest:?}");
    Ok(())
}

/// A runtime with eight live tools, which waits to be killed.
async fn runtime() -> Result<(), String> {
    let process = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let local = LocalSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let (script, word) =
        (std::env::var("SCRIPT").unwrap_or_default(), std::env::var("WORD").unwrap_or_default());
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..8 {
        let script = format!("{script}; sleep {word}");
        let sandbox: Box<DynSandbox> =
            if at % 2 == 0 { Box::new(process.clone()) } else { Box::new(local.clone()) };
        tasks.spawn(async move { sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await.map(drop) });
    }
    println!("ready");
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn kills(rounds: u64) -> Result<(), String> {
    let temporary = crate::support::folder("kills");
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let (script, word) = daemon_script();
        let mut child = Command::new(exe())
            .args(["load", "runtime"])
            .env("SCRIPT", &script)
            .env("WORD", &word)
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        equal(line.as_str(), "ready\n")?;
        tokio::time::sleep(Duration::from_millis(round * 37 % 260)).await;
        let below: Vec<i32> = descendants_of(child.id() as i32).into_iter().map(|(pid, _)| pid).collect();
        let start = Instant::now();
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string())?;
        let alive = |pid: &i32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // A zombie whose new parent has not looked yet is not running.
            name.starts_with("tw-") && !state.contains(") Z")
        };
        let gone = || running(&word) == 0 && !below.iter().any(alive);
        check(&format!("orphans after round {round}"), wait_until(Duration::from_secs(1), gone).await)?;
        slowest = slowest.max(start.elapsed());
    }
    let folders = || std::fs::read_dir(&temporary).map(|entries| entries.count()).unwrap_or_default();
    check("folders were left", wait_until(Duration::from_secs(3), || folders() == 0).await)?;
    let _ = std::fs::remove_dir(&temporary);
    println!("{rounds} kills of a runtime with 8 live tools: no orphans; slowest {slowest:?}");
    check("control groups were left", wait_until(Duration::from_secs(3), || groups() == 0).await)
}

async fn sessions(count: u64) -> Result<(), String> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
    let mut sandboxes = Vec::new();
    for _ in 0..8 {
        sandboxes.push(ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?);
    }
    let start = Instant::now();
    let mut live = Vec::new();
    for (at, sandbox) in (0..count).zip(sandboxes.iter().cycle()) {
        let script = "while read line; do echo \"$line\"; done";
        let request = toolwright_core::SpawnRequest::piped(ExecRequest::new(["sh", "-c", script]));
        live.push((at, sandbox.spawn(request).await.map_err(text)?));
    }
    let started = start.elapsed();
    let mut resident = 0;
    for (pid, _) in descendants() {
        let status = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
        resident +=
            line.split_whitespace().next().and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
    }
    for (at, process) in &mut live {
        if let Some(stdin) = &mut process.stdin {
            stdin.write_all(format!("token {at}\n").as_bytes()).await.map_err(|error| error.to_string())?;
        }
    }
    for (at, process) in &mut live {
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            tokio::io::BufReader::new(stdout)
                .read_line(&mut line)
                .await
                .map_err(|error| error.to_string())?;
        }
        equal(line, format!("token {at}\n"))?;
    }
    println!("{count} live sessions: up in {started:.2?}, {} MiB in all", resident / 1024);
    Ok(())
}

/// One sandbox misbehaves in every way; another goes on working, and the offender meets its own limits.
async fn neighbours() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    policy.limits.memory = Some(256 << 20);
    policy.limits.processes = Some(64);
    policy.limits.scratch = 64 << 20;
    let noisy = ProcessSandbox::open(policy).await.map_err(text)?;
    let quiet = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let work = |count: usize| {
        let quiet = quiet.clone();
        async move {
            let mut times = Vec::new();
            for at in 0..count {
                let start = Instant::now();
                let result = quiet.exec(ExecRequest::new(["echo", &at.to_string()])).await.map_err(text)?;
                equal(result.stdout, format!("{at}\n"))?;
                times.push(start.elapsed());
            }
            times.sort_unstable();
            Ok::<_, String>(times.last().copied().unwrap_or_default())
        }
    };
    let idle = work(20).await?;
    for (name, script) in [
        ("fork bomb", "b() { b | b & }; b; sleep 2"),
        ("memory", "python3 -c 'x = bytearray(20 << 30); x[::4096] = x[::4096]'"),
        ("disk", "head -c 1G /dev/zero > /tmp/full"),
        ("descriptors", "python3 -c 'k = [open(\"/dev/null\") for _ in range(100000)]'"),
        ("processor", "while :; do :; done"),
    ] {
        let request = ExecRequest::new(["sh", "-c", script]).timeout(Duration::from_secs(2));
        let (offender, slowest) = tokio::join!(noisy.exec(request), work(20));
        println!("{name}: the neighbour's slowest call took {:.1?}, {idle:.1?} when idle", slowest?);
        match offender {
            Ok(result) if matches!(name, "memory" | "disk" | "descriptors") => {
                check(&format!("{name}: {result:?}"), !result.success())?;
            }
            Err(error) => check(&format!("{name}: {error:?}"), !error.is_fatal())?,
            Ok(_) => {}
        }
        let cleared =
            noisy.exec(ExecRequest::new(["sh", "-c", "rm -f /tmp/full; echo fine"])).await.map_err(text)?;
        equal(cleared.stdout.as_str(), "fine\n")?;
    }
    Ok(())
}

/// Many terminals at once, sizes that change without end, a large paste, and a stopped program.
async fn terminals() -> Result<(), String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use toolwright_core::{SpawnRequest, TerminalSize};
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let mut open = Vec::new();
    let (_, word) = daemon_script();
    let script = format!("stty -echo; cat; : {word}");
    for _ in 0..64 {
        let request = SpawnRequest::with_terminal(ExecRequest::new(["sh", "-c", &script]), 24, 80);
        open.push(sandbox.spawn(request).await.map_err(text)?);
    }
    let words = ExecRequest::new([
        "sh",
        "-c",
        "stty raw -echo; echo ready; head -c 1048576 | wc -c; stty cooked; sh",
    ]);
    let mut process = sandbox.spawn(SpawnRequest::with_terminal(words, 24, 80)).await.map_err(text)?;
    let (Some(mut stdin), Some(mut stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err("no streams".to_owned());
    };
    let mut seen = String::new();
    let mut until = async |seen: &mut String, wanted: &str| {
        let mut buffer = [0; 4096];
        while !seen.contains(wanted) {
            match tokio::time::timeout(Duration::from_secs(20), stdout.read(&mut buffer)).await {
                Ok(Ok(count)) if count > 0 => seen.push_str(&String::from_utf8_lossy(&buffer[..count])),
                other => return Err(format!("{seen:?}, then {other:?}")),
            }
        }
        Ok(())
    };
    until(&mut seen, "ready").await?;
    let paste = async { stdin.write_all(&vec![b'x'; 1 << 20]).await.map_err(|error| error.to_string()) };
    let storm = async {
        for at in 0..500u16 {
            process
                .handle
                .resize(TerminalSize { rows: 10 + at % 50, columns: 20 + at % 200 })
                .map_err(text)?;
            tokio::task::yield_now().await;
        }
        Ok::<_, String>(())
    };
    tokio::try_join!(paste, storm)?;
    until(&mut seen, "1048576").await?;
    let stopped = "sh -c 'echo stop\"ping\"; kill -STOP $$; echo never'; echo af\"ter\"\n";
    stdin.write_all(stopped.as_bytes()).await.map_err(|error| error.to_string())?;
    until(&mut seen, "stopping").await?;
    // An interrupt does not reach a program that is stopped; the end of everything does.
    process.handle.signal(libc::SIGINT).await.map_err(text)?;
    let start = Instant::now();
    process.handle.kill().await;
    check("the end is waited for at most a little", start.elapsed() < Duration::from_secs(30))?;
    drop((stdin, process, open));
    check("terminals were left", wait_until(Duration::from_secs(5), || running(&word) == 0).await)
}
