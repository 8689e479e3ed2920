//! One command: process 1 of its pid namespace. Puts the layers on itself, starts the program, reaps, and at
//! the end kills and collects everything before it reports.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::keeper::Keeper;
use super::memory::Memory;
use super::wire::{Job, JobCommand, JobEvent, LaunchMode, MAX_JOB, Stage, Work};
use crate::files;
use crate::layer::cgroup::Kills;
use crate::layer::stage;
use crate::layer::view::mount_processes;
use crate::policy::Layer;
use crate::rlimit;
use crate::sys::process::{self, ForkSide, Strings, Waited, exit_now, fork};
use crate::sys::{self, socket};

/// How long the end of a tree is waited for before it is reported anyway.
const KILL_PATIENCE: Duration = Duration::from_millis(300);
/// How long a tree without a namespace is hunted after that.
const STUBBORN_PATIENCE: Duration = Duration::from_secs(60);

/// Runs one job to its end.
pub(super) fn run(keeper: &Keeper, line: OwnedFd, stdio: [OwnedFd; 3]) -> ! {
    process::set_name(c"tw-job");
    match start(keeper, &line, stdio) {
        Ok(running) => running.watch(&line),
        Err((stage, error)) => {
            let event = JobEvent::Failed(stage, sys::errno(&error));
            let _ = socket::send(line.as_fd(), &event.encode(), &[]);
        }
    }
    exit_now(0)
}

type StartFailure = (Stage, io::Error);

fn setup(error: io::Error) -> StartFailure {
    (Stage::Setup, error)
}

fn start<'a>(
    keeper: &'a Keeper,
    line: &OwnedFd,
    stdio: [OwnedFd; 3],
) -> Result<StartedJob<'a>, StartFailure> {
    if keeper.mode == LaunchMode::Isolated {
        process::die_with_parent().map_err(setup)?;
    } else {
        process::adopt_orphans().map_err(setup)?;
    }
    if keeper.on(Layer::MountNamespace) && keeper.on(Layer::PidNamespace) {
        mount_processes(c"/proc").map_err(setup)?;
    } else if !keeper.on(Layer::PidNamespace) {
        process::adopt_orphans().map_err(setup)?;
    }
    let job = receive(line.as_fd()).map_err(setup)?;
    let mut own_rules = None;
    if let Some(staged) = &keeper.staged {
        if let Some(number) = job.stage {
            staged.mount(number).map_err(setup)?;
            own_rules = keeper.ruleset.as_ref().map(|_| staged.ruleset()).transpose().map_err(setup)?;
        }
        stage::hide().map_err(setup)?;
    }
    if let Some(covers) = &keeper.covers {
        covers.renew().map_err(setup)?;
    }
    let mut stdio = stdio;
    let mut terminal = None;
    if let Some(size) = job.terminal {
        let (master, slave) = sys::open_terminal().map_err(setup)?;
        sys::set_terminal_size(master.as_fd(), size.rows, size.columns).map_err(setup)?;
        let again = || slave.try_clone().map_err(setup);
        stdio = [again()?, again()?, slave];
        terminal = Some(master);
    }
    let program = JobProgram::new(&job).map_err(|error| (Stage::Exec, error))?;
    if keeper.mode == LaunchMode::Isolated {
        rlimit::apply(&keeper.limits, keeper.memory).map_err(setup)?;
        if let Some(ruleset) = own_rules.as_ref().or(keeper.ruleset.as_ref()) {
            process::landlock_enter(ruleset.as_fd()).map_err(setup)?;
        }
        process::drop_capabilities().map_err(setup)?;
    }
    std::env::set_current_dir(&job.cwd).map_err(|error| (Stage::Cwd, error))?;
    let children = process::child_events().map_err(setup)?;
    let (outcome, report) = sys::pipe().map_err(setup)?;
    if !keeper.filter.is_empty() {
        process::filter(&keeper.filter).map_err(setup)?;
    }
    let before = keeper.kills.as_ref().map_or(0, Kills::count);
    let main = match fork(0).map_err(setup)? {
        ForkSide::Child => become_program(&program, &stdio, report, terminal.is_some()),
        ForkSide::Parent(pid) => pid,
    };
    drop(report);
    let [_, _, stderr] = stdio;
    // On a terminal the shell tells it.
    let memory = match (&keeper.kills, keeper.limits.memory, &terminal) {
        (Some(kills), Some(limit), None) => Some(Memory { kills, limit, before, stderr }),
        _ => None,
    };
    if job.announce {
        let mut failure = [0; JobEvent::SIZE];
        // The pipe closes when the program starts; until then it carries at most one report.
        if sys::read_exact(outcome.as_fd(), &mut failure).is_ok() {
            let _ = process::wait(main, true);
            let _ = socket::send(line.as_fd(), &failure, &[]);
            exit_now(0);
        }
        let fds: Vec<BorrowedFd<'_>> = terminal.iter().map(|master| master.as_fd()).collect();
        // A closed connection is noticed by the watcher; the started program must be stopped either way.
        let _ = socket::send(line.as_fd(), &JobEvent::Started.encode(), &fds);
    }
    let alone = keeper.on(Layer::PidNamespace);
    let grace = Duration::from_millis(job.grace);
    Ok(StartedJob { main, children, outcome, terminal, alone, grace, memory, ended: None })
}

fn receive(line: BorrowedFd<'_>) -> io::Result<Job> {
    let mut length = [0; 4];
    sys::read_exact(line, &mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_JOB {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut body = vec![0; length];
    sys::read_exact(line, &mut body)?;
    serde_json::from_slice(&body).map_err(|_| io::Error::from_raw_os_error(libc::EPROTO))
}

/// What the child will do, made ready before the fork.
enum JobProgram {
    Exec { candidates: Vec<CString>, arguments: Strings, environment: Strings },
    File(Work),
}

impl JobProgram {
    fn new(job: &Job) -> io::Result<JobProgram> {
        let Work::Exec { command } = &job.work else { return Ok(JobProgram::File(job.work.clone())) };
        let text = |text: &str| CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        let name = command.first().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        let path = job.env.iter().find_map(|entry| entry.strip_prefix("PATH=")).unwrap_or(crate::env::PATH);
        let candidates = if name.contains('/') {
            vec![text(name)?]
        } else {
            let in_folder = |folder: &str| {
                let folder = if folder.is_empty() { "." } else { folder };
                text(&format!("{folder}/{name}"))
            };
            path.split(':').map(in_folder).collect::<io::Result<_>>()?
        };
        Ok(JobProgram::Exec {
            candidates,
            arguments: Strings::new(command.iter().map(|one| text(one)).collect::<io::Result<_>>()?),
            environment: Strings::new(job.env.iter().map(|one| text(one)).collect::<io::Result<_>>()?),
        })
    }
}

/// The child's side of the fork: streams in place, signals as they should be, and off.
fn become_program(program: &JobProgram, stdio: &[OwnedFd; 3], report: OwnedFd, terminal: bool) -> ! {
    let fail = |stage, error: &io::Error| -> ! {
        let _ = sys::write_all(report.as_fd(), &JobEvent::Failed(stage, sys::errno(error)).encode());
        exit_now(127)
    };
    let prepared = (|| {
        process::new_session()?;
        let [stdin, stdout, stderr] = stdio;
        sys::place(stdin.as_fd(), 0)?;
        sys::place(stdout.as_fd(), 1)?;
        sys::place(stderr.as_fd(), 2)?;
        if terminal {
            sys::take_terminal()?;
        }
        sys::close_from_on_exec(3)?;
        process::reset_signals();
        Ok(())
    })();
    if let Err(error) = prepared {
        fail(Stage::Setup, &error);
    }
    match program {
        JobProgram::Exec { candidates, arguments, environment } => {
            // As a shell does: go on past what is missing, but remember that something was there and refused.
            let mut failure = io::Error::from_raw_os_error(libc::ENOENT);
            for candidate in candidates {
                let error = process::exec(candidate, arguments, environment);
                match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENOTDIR) => {}
                    Some(libc::EACCES) => failure = error,
                    _ => fail(Stage::Exec, &error),
                }
            }
            fail(Stage::Exec, &failure)
        }
        JobProgram::File(work) => match files::serve(work) {
            Ok(()) => exit_now(0),
            Err(error) => fail(Stage::File, &error),
        },
    }
}

/// A started job.
struct StartedJob<'a> {
    main: i32,
    children: OwnedFd,
    outcome: OwnedFd,
    terminal: Option<OwnedFd>,
    /// In a pid namespace of its own, where "everybody" means this job.
    alone: bool,
    grace: Duration,
    /// Where a control group limits it, and standard error is a pipe.
    memory: Option<Memory<'a>>,
    ended: Option<i32>,
}

impl StartedJob<'_> {
    /// Waits for the end of the program, an order to stop, or the loss of the line.
    fn watch(mut self, line: &OwnedFd) {
        let mut orders = Vec::new();
        while self.ended.is_none() {
            let events = [(line.as_fd(), libc::POLLIN), (self.children.as_fd(), libc::POLLIN)];
            let Ok([spoken, died]) = sys::poll(events, None) else { break };
            if died != 0 {
                let _ = sys::read(self.children.as_fd(), &mut [0; 128 * 4]);
                self.reap();
            }
            if spoken != 0 && self.ended.is_none() {
                let mut bytes = [0; 64];
                match sys::read(line.as_fd(), &mut bytes) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => orders.extend_from_slice(bytes.get(..count).unwrap_or_default()),
                }
                if self.obey(&mut orders) {
                    break;
                }
            }
        }
        if !self.grace.is_zero() {
            // What may end by itself is not waited for before the report.
            self.report(line);
            self.wait_for_all();
            self.destroy(STUBBORN_PATIENCE);
            return;
        }
        let all_dead = self.destroy(KILL_PATIENCE);
        self.report(line);
        // In a namespace of its own the rest dies with this process. Outside one, leaving would set it free.
        if !all_dead && !self.alone {
            self.destroy(STUBBORN_PATIENCE);
        }
    }

    /// Tells how the program ended, or that it never ran.
    fn report(&mut self, line: &OwnedFd) {
        if let Some(memory) = self.memory.take() {
            memory.tell();
        }
        let mut failure = [0; JobEvent::SIZE];
        let event = match sys::set_nonblocking(self.outcome.as_fd(), true)
            .and_then(|()| sys::read_exact(self.outcome.as_fd(), &mut failure))
        {
            Ok(()) => failure,
            Err(_) => JobEvent::Ended(self.ended.unwrap_or(-libc::SIGKILL)).encode(),
        };
        let _ = socket::send(line.as_fd(), &event, &[]);
    }

    /// Carries out complete orders; true means stop.
    fn obey(&self, orders: &mut Vec<u8>) -> bool {
        let mut stop = false;
        while let Some((order, rest)) = orders.split_first_chunk::<2>() {
            match JobCommand::decode(*order) {
                Some(JobCommand::Signal(signal)) => {
                    let group =
                        self.terminal.as_ref().and_then(|fd| sys::terminal_foreground(fd.as_fd()).ok());
                    let group = group.filter(|group| *group > 0).unwrap_or(self.main);
                    let _ = process::kill(-group, signal.into());
                }
                Some(JobCommand::Kill) | None => stop = true,
            }
            *orders = rest.to_vec();
        }
        stop
    }

    /// Collects everything that has ended; true when nothing is left.
    fn reap(&mut self) -> bool {
        loop {
            match process::wait(-1, false) {
                Ok(Waited::Ended(pid, code)) if pid == self.main => self.ended = Some(code),
                Ok(Waited::Ended(..)) => {}
                Ok(Waited::NoneYet) => return false,
                Ok(Waited::NoChildren) | Err(_) => return true,
            }
        }
    }

    /// Lets everything end by itself for as long as it was promised.
    fn wait_for_all(&mut self) {
        let patience = Instant::now() + self.grace;
        while Instant::now() < patience && !self.reap() {
            let _ = sys::poll([(self.children.as_fd(), libc::POLLIN)], Some(20));
            let _ = sys::read(self.children.as_fd(), &mut [0; 128 * 4]);
        }
    }

    /// Kills all that is left, again and again until nothing is, and tells whether that was reached in time.
    /// Something stuck in the kernel is waited for a bounded time only; it dies as soon as it can.
    fn destroy(&mut self, patience: Duration) -> bool {
        let patience = Instant::now() + patience;
        loop {
            if self.alone {
                let _ = process::kill(-1, libc::SIGKILL);
            } else {
                for pid in descendants() {
                    let _ = process::kill(pid, libc::SIGKILL);
                }
            }
            if self.reap() {
                return true;
            }
            if Instant::now() > patience {
                return false;
            }
            let _ = sys::poll([(self.children.as_fd(), libc::POLLIN)], Some(20));
            let _ = sys::read(self.children.as_fd(), &mut [0; 128 * 4]);
        }
    }
}

/// Every process below this one. Orphans count: this process adopts them.
fn descendants() -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![std::process::id() as i32];
    while let Some(pid) = open.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let Ok(list) = std::fs::read(thread.path().join("children")) else { continue };
            let list = String::from_utf8_lossy(&list);
            let children = list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            for child in children.filter(|child| !found.contains(child)).collect::<Vec<_>>() {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}
