//! The monitor: prepares what needs the caller's rights, starts the keeper, waits, and cleans up after it.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::keeper::{self, Keeper};
use super::staging::Staging;
use super::wire::{LaunchMode, MAX_SETUP, STAGING_FAILED, Setup, SetupReply};
use crate::layer::cgroup::Groups;
use crate::layer::commit_rules::CommitRules;
use crate::layer::guard::{self, Guards, Writable, unprotected};
use crate::layer::identity::Identity;
use crate::layer::view::{ViewPlan, detach, detach_mapped};
use crate::policy::Layer;
use crate::remove;
use crate::rlimit::MemoryLimit;
use crate::sys::process::{self, ForkSide, exit_now, fork};
use crate::sys::{self, socket};

/// How long removing a private workspace may take.
const REMOVAL: Duration = Duration::from_secs(60);

/// Runs a launcher from its first message to its end.
pub(super) fn run() -> ! {
    process::set_name(c"tw-monitor");
    // The control socket is standard input; nothing else of the caller is needed or wanted.
    let _ = sys::close_from(3);
    let control = sys::own(0);
    let _ = process::new_session();
    process::set_umask(0o022);
    // In a shortage of memory, sandboxes go before the programs that use them.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let mut buffer = vec![0; MAX_SETUP];
    let (setup, changes): (Setup, _) = match socket::receive(control.as_fd(), &mut buffer) {
        Ok((count, mut fds)) if count > 0 => {
            let setup = match serde_json::from_slice(buffer.get(..count).unwrap_or_default()) {
                Ok(setup) => setup,
                Err(error) => fail(control.as_fd(), &format!("unreadable setup: {error}")),
            };
            (setup, fds.pop())
        }
        _ => exit_now(1),
    };
    drop(buffer);
    let code = match setup.mode {
        LaunchMode::Local => local(setup, control),
        LaunchMode::Isolated => isolated(setup, control, changes),
    };
    exit_now(code)
}

pub(super) fn reply(control: BorrowedFd<'_>, reply: &SetupReply, fds: &[BorrowedFd<'_>]) {
    if let Ok(text) = serde_json::to_vec(reply) {
        let _ = socket::send(control, &text, fds);
    }
}

fn fail(control: BorrowedFd<'_>, message: &str) -> ! {
    reply(control, &SetupReply::Failed { message: message.to_owned() }, &[]);
    exit_now(1)
}

/// A descriptor that tells when the runtime is gone even if some other process still holds its sockets.
fn watch_runtime() -> Option<OwnedFd> {
    process::watch(std::os::unix::process::parent_id() as i32).ok()
}

fn local(setup: Setup, control: OwnedFd) -> i32 {
    // A container engine shows the placeholders; the monitor sees to it that they go, even if the runtime is
    // killed.
    let folders = Guards::folders(&setup.policy, setup.workspace.as_deref());
    let guards = match Guards::prepare(&folders, &setup.policy.protect, &[]) {
        Ok(guards) => guards,
        Err(reason) => fail(control.as_fd(), &unprotected(reason)),
    };
    reply(control.as_fd(), &SetupReply::Ready { layers: Vec::new(), missing: Vec::new() }, &[]);
    let keeper = Keeper {
        limits: setup.policy.limits.clone(),
        mode: LaunchMode::Local,
        layers: Vec::new(),
        memory: MemoryLimit::WholeSandbox,
        ruleset: None,
        filter: Vec::new(),
        covers: None,
        kills: None,
        staged: None,
    };
    keeper.serve(&control, watch_runtime().as_ref());
    drop(guards);
    remove_private(&setup)
}

fn isolated(setup: Setup, control: OwnedFd, changes: Option<OwnedFd>) -> i32 {
    match start(&setup, &control, changes) {
        Ok(running) => {
            drop(control);
            // From here on only the keeper answers. Everything below it is gone when it is.
            let MonitoredSandbox { keeper, guards, groups, folders, kept, staging } = running;
            if let Some((mut staging, changes)) = staging {
                if let Ok(watch) = process::watch(keeper) {
                    staging.serve(&changes, &watch);
                }
                let _ = process::wait(keeper, true);
                drop(changes);
                staging.remove();
            } else {
                let _ = process::wait(keeper, true);
            }
            drop((guards, groups));
            guard::sweep(&folders, &setup.policy.protect, &kept);
            remove_private(&setup)
        }
        Err(message) => {
            remove_private(&setup);
            fail(control.as_fd(), &message)
        }
    }
}

/// Removes a private workspace that is a folder of the host. The number of the error is the code this process
/// ends with, which a runtime that is still there hears.
fn remove_private(setup: &Setup) -> i32 {
    let (None, Some(private)) = (&setup.policy.workspace, &setup.workspace) else { return 0 };
    match remove::tree(private, Instant::now() + REMOVAL) {
        Err(error) if error.kind() != ErrorKind::NotFound => error.raw_os_error().unwrap_or(libc::ETIMEDOUT),
        _ => 0,
    }
}

struct MonitoredSandbox {
    keeper: i32,
    guards: Guards,
    groups: Groups,
    /// In which there are placeholders.
    folders: Vec<Writable>,
    kept: Vec<PathBuf>,
    /// Where changes are staged, and the socket on which the runtime asks for what becomes of them.
    staging: Option<(Staging, OwnedFd)>,
}

fn start(setup: &Setup, control: &OwnedFd, changes: Option<OwnedFd>) -> Result<MonitoredSandbox, String> {
    let off = |layer: Layer| setup.without.contains(&layer);
    if let Some(layer) = setup.policy.require.iter().chain([&Layer::UserNamespace]).find(|layer| off(**layer))
    {
        return Err(format!("the policy requires `{layer}`, which is not available: left out"));
    }
    let owner = match &setup.workspace {
        Some(folder) => {
            let about = fs::metadata(folder).map_err(|error| format!("workspace: {error}"))?;
            (about.uid(), about.gid())
        }
        None => sys::effective_ids(),
    };
    let mut plan =
        ViewPlan::make(&setup.policy, setup.workspace.as_deref()).map_err(|error| error.to_string())?;
    let mut identity = Identity::choose(owner);
    let mut missing = Vec::new();

    let mut binds = None;
    if !off(Layer::MountNamespace) && sys::effective_ids().0 == 0 {
        match detach_mapped(&plan, identity) {
            Ok((trees, left_out)) => {
                binds = Some(trees);
                if !left_out.is_empty() {
                    let names: Vec<_> = left_out.iter().map(|path| format!("`{}`", path.display())).collect();
                    let reason =
                        format!("shown empty, since owners cannot be mapped there: {}", names.join(", "));
                    missing.push((Layer::OrdinaryUser, reason));
                }
                plan.mask.extend(left_out);
            }
            // Only the workspace's own owner matters that much.
            Err(_) if identity.shown.is_none() => {}
            Err(reason) => {
                identity = identity.without_mapping();
                missing.push((Layer::OrdinaryUser, reason));
            }
        }
    }
    let staging = match changes.filter(|_| plan.staged && !off(Layer::MountNamespace)) {
        Some(changes) => Some((stage(setup, &mut plan, identity)?, changes)),
        None if plan.staged => return Err("changes can only be staged in `mount_namespace`".to_owned()),
        None => None,
    };
    // Only root may detach a mount here; the keeper of another user finds the folder by its path.
    let mount = staging.as_ref().filter(|_| sys::effective_ids().0 == 0);
    let mount = mount.and_then(|(staging, _)| detach(&staging.folder).ok());
    let guards = if off(Layer::MountNamespace) || plan.staged {
        Guards::default()
    } else {
        Guards::prepare(&plan.writable(), &setup.policy.protect, &plan.kept()).map_err(unprotected)?
    };
    let (mut groups, more) = Groups::create(&setup.policy.limits);
    missing.extend(more);
    let watch = watch_runtime();

    let mut flags = libc::CLONE_NEWUSER;
    let mut layers = vec![Layer::UserNamespace];
    for (layer, flag) in [
        (Layer::MountNamespace, libc::CLONE_NEWNS),
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::NetNamespace, libc::CLONE_NEWNET),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC),
        (Layer::UtsNamespace, libc::CLONE_NEWUTS),
        (Layer::CgroupNamespace, libc::CLONE_NEWCGROUP),
    ] {
        if off(layer) {
            missing.push((layer, "left out".to_owned()));
        } else {
            flags |= flag;
            layers.push(layer);
        }
    }
    if identity.uid != 0 {
        layers.push(Layer::OrdinaryUser);
    }
    layers.extend(&groups.layers);

    let (hold, release) = sys::pipe().map_err(|error| error.to_string())?;
    let side = fork(flags)
        .map_err(|error| format!("namespaces: {error} (are user namespaces allowed for this user?)"))?;
    let pid = match side {
        ForkSide::Child => {
            drop(release);
            // Commits are the parent's work.
            let staging = staging.map(|(staging, _)| (staging.folder, mount));
            if sys::read_exact(hold.as_fd(), &mut [0]).is_err() {
                exit_now(1);
            }
            if let Err(error) = groups.enter() {
                fail(control.as_fd(), &format!("control group: {error}"));
            }
            let (guards, kills) = (&guards.list, groups.kills.take());
            let start =
                keeper::Start { setup, plan, identity, binds, guards, layers, missing, kills, staging };
            keeper::run(start, control, watch.as_ref())
        }
        ForkSide::Parent(pid) => pid,
    };
    drop(hold);
    let prepared = identity
        .write_maps(pid)
        .and_then(|()| groups.admit(pid))
        .and_then(|()| sys::write_all(release.as_fd(), &[1]))
        .map_err(|error| format!("user_namespace: {error}"));
    if let Err(message) = prepared {
        let _ = process::kill(pid, libc::SIGKILL);
        let _ = process::wait(pid, true);
        return Err(message);
    }
    // Where changes are staged there are no placeholders.
    let folders = if plan.staged { Vec::new() } else { plan.writable() };
    Ok(MonitoredSandbox { keeper: pid, guards, groups, folders, kept: plan.kept(), staging })
}

/// Makes the folder in which changes are staged. Commands do not see it, even where a folder that they see
/// holds it.
fn stage(setup: &Setup, plan: &mut ViewPlan, identity: Identity) -> Result<Staging, String> {
    let folders = plan.staged_folders(&setup.policy).map_err(|why| format!("{STAGING_FAILED}{why}"))?;
    let rules = CommitRules::new(&setup.policy, plan, &setup.later);
    let staging = Staging::make(&setup.staging, folders.folders, rules, setup.policy.changes, identity)?;
    plan.mask.extend(staging.hidden());
    Ok(staging)
}
