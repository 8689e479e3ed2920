//! Processes, output and hangs: the PR and HG cases, and the limits that name themselves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolwright_core::{
    DynSandbox, ErrorKind, ExecRequest, ExecResult, Sandbox as _, SpawnRequest, ToolError,
};
use toolwright_sandbox::{LocalSandbox, ProcessSandbox, SandboxPolicy};

use crate::support::{Case, check, descendants, equal, text, wait_until};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, script, seconds, most) in HANGS {
        for backend in ["process", "local"] {
            cases.push(Case::new(format!("hangs::{backend}::{name}"), move || async move {
                let sandbox = open(backend).await?;
                hang(sandbox.as_ref(), script, *seconds, *most).await
            }));
        }
    }
    cases.extend([
        Case::new("PR-01::daemons_die_with_their_command", daemons),
        Case::new("PR-03::a_fork_bomb_stays_inside", fork_bomb),
        Case::new("PR-04::many_short_children_leave_no_zombies", zombies),
        Case::new("PR-05::memory_is_limited", memory),
        Case::new("PR-08::the_exit_counts_not_the_end_of_output", closed_output),
        Case::new("PR-11::oversized_arguments_are_typed_errors", oversized),
        Case::new("PR-12::the_status_is_exact", statuses),
        Case::new("PR-10::ignored_child_signals_do_not_matter", ignored_children).once(),
        Case::new("HG-02::a_password_prompt_does_not_hang", prompt),
        Case::new("HG-04::odd_times_are_clamped_or_honoured", odd_times),
        Case::new("HG-06::cancelling_at_any_moment_leaves_nothing", cancel),
        Case::new("limits::file_size_open_files_and_cpu_time", limits),
        Case::new("limits::the_least_are_enough_to_run", least),
    ]);
    cases
}

/// The least limits that a policy may have are enough for something to run.
async fn least() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    let limits = &mut policy.limits;
    (limits.memory, limits.processes, limits.open_files) = (Some(16 << 20), Some(4), Some(16));
    (limits.cpu_seconds, limits.scratch, limits.timeout_seconds) = (Some(1), 4096, Some(60));
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let said = sandbox.exec(ExecRequest::new(["sh", "-c", "echo $(cat /proc/sys/kernel/ostype)"]));
    equal(said.await.map_err(text)?.stdout.as_str(), "Linux\n")
}

/// Name, script, time-out in seconds (0: none), the most it may take in all.
const HANGS: &[(&str, &str, f64, f64)] = &[
    ("grandchild_holds_the_pipe", "sleep 30 & echo done", 0.0, 0.6),
    ("setsid_grandchild_holds_the_pipe", "setsid sleep 30 & echo done", 0.0, 0.6),
    ("double_fork_holds_the_pipe", "(setsid sh -c 'sleep 30 & sleep 30' &) ; echo done", 0.0, 0.6),
    ("background_with_timeout", "sleep 48 & sleep 48", 0.5, 1.0),
    ("ignores_every_signal", "trap '' TERM INT HUP QUIT; while :; do sleep 1; done", 0.5, 1.0),
    ("handler_restarts_itself", "trap 'exec sh -c \"sleep 40\"' TERM; while :; do sleep 1; done", 0.5, 1.0),
    ("stopped_child", "kill -STOP $$", 0.5, 1.0),
    ("stopped_grandchild", "sh -c 'kill -STOP $$' & wait", 0.5, 1.0),
    ("drip", "while :; do echo x; sleep 0.2; done", 0.5, 1.0),
    ("flood_on_stdout", "yes", 0.5, 1.0),
    ("flood_on_both", "yes & yes >&2", 0.5, 1.0),
    ("flood_without_newline", "cat /dev/zero", 0.5, 1.0),
    ("reads_stdin_for_ever", "cat > /dev/null; read x; cat; sleep 20", 0.5, 1.0),
    ("closes_its_output", "exec >&- 2>&-; sleep 20", 0.5, 1.0),
    ("spins", "while :; do :; done", 0.5, 1.0),
    ("spins_in_many", "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait", 0.5, 1.0),
    ("waits_for_a_fifo", "mkfifo f; cat f", 0.5, 1.0),
    ("waits_for_a_lock", "exec 9>lock; flock 9; (flock 9) 9<lock & wait", 0.5, 1.0),
    ("forks_in_a_loop", "while :; do sleep 20 & sleep 0.01; done", 0.5, 1.0),
    ("nested_shells", "sh -c 'sh -c \"sh -c \\\"sleep 20\\\"\"'", 0.5, 1.0),
    ("disowned_pipeline", "yes | sleep 20 | cat", 0.5, 1.0),
    ("reads_the_terminal", "head -c 1 /dev/tty; sleep 20", 0.5, 1.0),
    ("opens_a_terminal_pair", "script -qc 'sleep 20' /dev/null; sleep 20", 0.5, 1.0),
    ("nohup", "nohup sleep 20 & sleep 20", 0.5, 1.0),
    ("vfork_like_chain", "exec sh -c 'exec sh -c \"exec sleep 20\"'", 0.5, 1.0),
];

/// A loaded machine may add this much before a case fails.
const SLACK: Duration = Duration::from_secs(8);

async fn hang(sandbox: &DynSandbox, script: &str, seconds: f64, most: f64) -> Result<(), String> {
    let start = Instant::now();
    let mut request = ExecRequest::new(["sh", "-c", script]);
    if seconds > 0.0 {
        request = request.timeout(Duration::from_secs_f64(seconds));
    }
    let result = sandbox.exec(request).await;
    let took = start.elapsed();
    match result {
        Ok(result) if seconds == 0.0 => equal(result.stdout.as_str(), "done\n")?,
        Err(error) if seconds > 0.0 => equal(error.kind(), ErrorKind::Timeout)?,
        other => return Err(format!("unexpected {other:?}")),
    }
    check(&format!("took {took:?}"), took <= Duration::from_secs_f64(most) + SLACK)?;
    // The sandbox is as good as new.
    let after = sandbox.exec(ExecRequest::new(["echo", "alive"])).await.map_err(text)?;
    equal(after.stdout.as_str(), "alive\n")
}

async fn open(backend: &str) -> Result<Box<DynSandbox>, String> {
    Ok(match backend {
        "local" => Box::new(LocalSandbox::open(SandboxPolicy::private()).await.map_err(text)?),
        _ => Box::new(ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?),
    })
}

async fn run(sandbox: &DynSandbox, script: &str) -> Result<ExecResult, ToolError> {
    sandbox.exec(ExecRequest::new(["sh", "-c", script]).timeout(Duration::from_secs(20))).await
}

/// A script that leaves daemons, and the word their command lines share.
pub(crate) fn daemon_script() -> (String, String) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let word = format!("51.{}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let script = format!(
        "for i in 1 2 3; do (setsid sh -c 'setsid sleep {word} & setsid sleep {word} &' &) & done; sleep 0.2"
    );
    (script, word)
}

/// How many processes on the machine have the word in their command line.
pub(crate) fn running(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

async fn daemons() -> Result<(), String> {
    for backend in ["process", "local"] {
        let sandbox = open(backend).await?;
        let (script, word) = daemon_script();
        run(sandbox.as_ref(), &script).await.map_err(text)?;
        equal(running(&word), 0)?;
    }
    Ok(())
}

async fn fork_bomb() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    policy.limits.processes = Some(64);
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let request = ExecRequest::new(["bash", "-c", ":(){ :|:& };:; sleep 5"]).timeout(Duration::from_secs(2));
    let start = Instant::now();
    let bomb = sandbox.exec(request);
    let watch = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let start = Instant::now();
        std::process::Command::new("true").status().map_err(|error| error.to_string())?;
        check("the host still forks", start.elapsed() < Duration::from_secs(20))?;
        // The same case may run as another user at the same time.
        check("the bomb is bounded", descendants().iter().filter(|(_, name)| name == "bash").count() < 160)
    };
    let (result, watched) = tokio::join!(bomb, watch);
    watched?;
    check("it ended in time", start.elapsed() < Duration::from_secs(20))?;
    let text_of = match &result {
        Ok(result) => result.stderr.clone(),
        Err(error) => error.partial().map(|partial| partial.to_text()).unwrap_or_default(),
    };
    check(
        &format!("the limit shows: {text_of:.200}"),
        text_of.contains("fork") || text_of.contains("Resource"),
    )?;
    equal(run(&sandbox, "echo alive").await.map_err(text)?.stdout.as_str(), "alive\n")
}

async fn zombies() -> Result<(), String> {
    let sandbox = open("process").await?;
    let script =
        "i=0; while [ $i -lt 1500 ]; do (true &) ; i=$((i+1)); done; sleep 0.2; ps -o stat= -A | grep -c Z";
    let result = run(sandbox.as_ref(), script).await.map_err(text)?;
    equal(result.stdout.trim(), "0")
}

async fn memory() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    policy.limits.memory = Some(64 << 20);
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let hog = "head -c 20000000000 /dev/zero | tail -c 20000000000 | wc -c";
    let result = run(&sandbox, hog).await.map_err(text)?;
    check(&format!("the hog got away: {result:?}"), result.stdout.trim() != "20000000000")?;
    if result.layers.iter().any(|layer| layer == "memory_cgroup") {
        let told = "toolwright: out of memory: the sandbox may use 64 MiB, and a process in it was killed\n";
        check(&format!("nobody told why: {result:?}"), result.stderr.ends_with(told))?;
        // Only the command in whose time it happened is told.
        equal(run(&sandbox, "echo fine >&2").await.map_err(text)?.stderr.as_str(), "fine\n")?;
    }
    equal(run(&sandbox, "echo alive").await.map_err(text)?.stdout.as_str(), "alive\n")
}

async fn closed_output() -> Result<(), String> {
    for backend in ["process", "local"] {
        let sandbox = open(backend).await?;
        let start = Instant::now();
        let result =
            run(sandbox.as_ref(), "echo said; exec >&- 2>&-; sleep 0.6; exit 9").await.map_err(text)?;
        equal((result.code, result.stdout.as_str()), (9, "said\n"))?;
        check("it waited for the exit", start.elapsed() >= Duration::from_millis(600))?;
    }
    Ok(())
}

async fn oversized() -> Result<(), String> {
    for backend in ["process", "local"] {
        let sandbox = open(backend).await?;
        let kind = |request: ExecRequest| {
            let sandbox = &sandbox;
            async move {
                match sandbox.exec(request).await {
                    Ok(result) => Err(format!("ran: {}", result.code)),
                    Err(error) => Ok(error.kind()),
                }
            }
        };
        equal(kind(ExecRequest::new(["true".to_owned(), "x".repeat(2 << 20)])).await?, ErrorKind::Parsing)?;
        equal(kind(ExecRequest::new(["true".to_owned(), "x".repeat(128 << 10)])).await?, ErrorKind::Parsing)?;
        equal(kind(ExecRequest::new(["tr\0ue"])).await?, ErrorKind::Parsing)?;
        equal(kind(ExecRequest::new(["true"]).env("A=B", "x")).await?, ErrorKind::Parsing)?;
        equal(kind(ExecRequest::new(Vec::<String>::new())).await?, ErrorKind::Parsing)?;
        equal(kind(ExecRequest::new([""])).await?, ErrorKind::FileNotFound)?;
        let mut many = ExecRequest::new(["sh", "-c", "env | grep -c ^V"]);
        many.env.extend((0..10_000).map(|at| (format!("V{at}"), "x".to_owned())));
        equal(sandbox.exec(many).await.map_err(text)?.stdout.trim(), "10000")?;
    }
    Ok(())
}

async fn statuses() -> Result<(), String> {
    for backend in ["process", "local"] {
        let sandbox = open(backend).await?;
        for (script, want) in [
            ("exit 255", 255),
            ("kill -TERM $$", -15),
            ("kill -SEGV $$", -11),
            ("ulimit -c unlimited 2>/dev/null; kill -ABRT $$; sleep 1", -6),
            ("(sleep 0.2; kill -KILL $$) & kill -STOP $$", -9),
        ] {
            equal((script, run(sandbox.as_ref(), script).await.map_err(text)?.code), (script, want))?;
        }
    }
    Ok(())
}

async fn ignored_children() -> Result<(), String> {
    // SAFETY: installs a predefined disposition, restored below.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let outcome = async {
        for backend in ["process", "local"] {
            let sandbox = open(backend).await?;
            equal(run(sandbox.as_ref(), "sh -c 'exit 3'; exit 7").await.map_err(text)?.code, 7)?;
        }
        Ok(())
    }
    .await;
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    outcome
}

async fn prompt() -> Result<(), String> {
    let sandbox = open("process").await?;
    let start = Instant::now();
    let result =
        run(sandbox.as_ref(), "read secret < /dev/tty; echo \"got $secret\"; read line; echo end").await;
    let result = result.map_err(text)?;
    check(&result.stdout, result.stdout.ends_with("end\n"))?;
    check("no terminal means no waiting", start.elapsed() < Duration::from_secs(20))?;
    let spawned = sandbox
        .spawn(SpawnRequest::with_terminal(ExecRequest::new(["sh", "-c", "read x; echo $x"]), 24, 80))
        .await
        .map_err(text)?;
    let waiting = tokio::time::timeout(Duration::from_millis(300), spawned.handle.wait()).await;
    check("a terminal does wait", waiting.is_err())?;
    spawned.handle.kill().await;
    equal(spawned.handle.wait().await.map_err(text)?, -9)
}

async fn odd_times() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    policy.limits.timeout_seconds = Some(1);
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    for timeout in [Some(Duration::ZERO), Some(Duration::from_secs(1 << 60)), Some(Duration::MAX), None] {
        let start = Instant::now();
        let mut request = ExecRequest::new(["sleep", "10"]);
        request.timeout = timeout;
        match sandbox.exec(request).await {
            Err(error) => equal(error.kind(), ErrorKind::Timeout)?,
            Ok(result) => return Err(format!("{timeout:?} ran to {}", result.code)),
        }
        check(&format!("{timeout:?}"), start.elapsed() < Duration::from_millis(1500) + SLACK)?;
    }
    Ok(())
}

async fn cancel() -> Result<(), String> {
    for backend in ["process", "local"] {
        let sandbox = open(backend).await?;
        let (script, word) = daemon_script();
        for delay in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89] {
            let call = sandbox.exec(ExecRequest::new(["sh", "-c", &script]));
            let _ = tokio::time::timeout(Duration::from_millis(delay), call).await;
        }
        check("everything is gone", wait_until(Duration::from_millis(1500), || running(&word) == 0).await)?;
        equal(run(sandbox.as_ref(), "echo alive").await.map_err(text)?.stdout.as_str(), "alive\n")?;
    }
    Ok(())
}

async fn limits() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    policy.limits.file_size = Some(1 << 20);
    policy.limits.open_files = Some(32);
    policy.limits.cpu_seconds = Some(1);
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let large =
        run(&sandbox, "head -c 2000000 /dev/zero > large; echo $?; wc -c < large").await.map_err(text)?;
    check(&large.stdout, large.stdout.trim_end().ends_with("1048576"))?;
    let opened = run(&sandbox, "ulimit -n; ulimit -c").await.map_err(text)?;
    equal(opened.stdout.as_str(), "32\n0\n")?;
    let spun = run(&sandbox, "while :; do :; done").await.map_err(text)?;
    check(&format!("stopped by the limit of processor time: {}", spun.code), [-9, -24].contains(&spun.code))?;
    match sandbox.write_file("too-large", &vec![0; 2 << 20]).await {
        Err(error) => equal(error.kind(), ErrorKind::Limit),
        Ok(()) => Err("a file beyond the limit was written".to_owned()),
    }
}
