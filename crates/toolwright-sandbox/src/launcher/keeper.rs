//! The keeper: process 1 of a sandbox. Builds the view once, then forks a job for each command it is sent.
//!
//! It holds capabilities in the sandbox's own user namespace, which it needs to make the namespaces of a job.
//! Nothing a command can do reaches it: commands live in pid namespaces below its own, and it reads only from
//! the runtime.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::job;
use super::monitor::reply;
use super::wire::{JobEvent, LaunchMode, STAGING_FAILED, Setup, SetupReply, Stage};
use crate::layer::cgroup::Kills;
use crate::layer::guard::Guard;
use crate::layer::identity::{INSIDE, Identity};
use crate::layer::stage::StagedFolders;
use crate::layer::view::{self, Covers, DetachedTree, ViewPlan};
use crate::layer::{landlock, seccomp};
use crate::policy::{Layer, Network, SandboxLimits};
use crate::proxy;
use crate::rlimit::MemoryLimit;
use crate::sys::process::{self, ForkSide, exit_now, fork};
use crate::sys::{self, socket};

/// What the keeper knows when it starts, inside its new namespaces.
pub(super) struct Start<'a> {
    pub(super) setup: &'a Setup,
    pub(super) plan: ViewPlan,
    pub(super) identity: Identity,
    /// Mounts detached by the monitor; without them the keeper detaches its own.
    pub(super) binds: Option<Vec<DetachedTree>>,
    pub(super) guards: &'a [Guard],
    pub(super) layers: Vec<Layer>,
    pub(super) missing: Vec<(Layer, String)>,
    pub(super) kills: Option<Kills>,
    /// Where changes are staged on the host; detached by the monitor where the keeper may not look it up.
    pub(super) staging: Option<(PathBuf, Option<OwnedFd>)>,
}

/// Builds the sandbox, answers the runtime, and serves until it hangs up.
pub(super) fn run(start: Start<'_>, control: &OwnedFd, watch: Option<&OwnedFd>) -> ! {
    let mut missing = Vec::new();
    let network = start.setup.policy.network.clone();
    let ready = prepare(start, &mut missing).and_then(|keeper| Ok((listen(&network, &keeper)?, keeper)));
    let keeper = match ready {
        Ok((way_out, keeper)) => {
            let fds: Vec<BorrowedFd<'_>> = way_out.iter().map(|socket| socket.as_fd()).collect();
            reply(control.as_fd(), &SetupReply::Ready { layers: keeper.layers.clone(), missing }, &fds);
            keeper
        }
        Err(message) => {
            reply(control.as_fd(), &SetupReply::Failed { message }, &[]);
            exit_now(1)
        }
    };
    keeper.serve(control, watch);
    exit_now(0)
}

/// The socket at which the runtime's proxy listens, made in the sandbox's own network.
fn listen(network: &Network, keeper: &Keeper) -> Result<Option<TcpListener>, String> {
    match network {
        Network::Off | Network::Loopback => Ok(None),
        Network::Allow(_) if !keeper.on(Layer::NetNamespace) => {
            Err("chosen hosts need `net_namespace`: without it everything else is open too".to_owned())
        }
        Network::Allow(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, proxy::PORT))
            .map(Some)
            .map_err(|error| format!("proxy: {error}")),
    }
}

fn prepare(start: Start<'_>, missing: &mut Vec<(Layer, String)>) -> Result<Keeper, String> {
    let Start { setup, plan, identity, binds, guards, mut layers, missing: already, kills, staging } = start;
    missing.extend(already);
    let on = |layer: Layer| !setup.without.contains(&layer);
    let step = |what: &str, result: std::io::Result<()>| result.map_err(|error| format!("{what}: {error}"));

    process::set_name(c"tw-keeper");
    step("monitor", process::die_with_parent())?;
    if sys::effective_ids().0 != INSIDE {
        // Only a caller that is root may leave its groups; others were told to keep them by `setgroups`.
        let _ = process::leave_groups();
    }
    step("user", process::become_user(INSIDE, INSIDE))?;
    step("user", process::die_with_parent())?;
    if identity.uid == 0 && !missing.iter().any(|(layer, _)| *layer == Layer::OrdinaryUser) {
        missing.push((Layer::OrdinaryUser, "the caller is root".to_owned()));
    }
    if on(Layer::UtsNamespace) {
        step("host name", process::set_host_name("sandbox"))?;
    }
    if on(Layer::NetNamespace) && setup.policy.network != Network::Off {
        step("loopback", sys::raise_loopback())?;
    }
    let mut staged = None;
    let viewed = on(Layer::MountNamespace);
    let covers = viewed.then(|| Covers::new(&plan, guards, &setup.policy.protect, &setup.later));
    if viewed {
        let binds = match binds {
            Some(binds) => binds,
            None => view::detach_binds(&plan)?,
        };
        let staging = staging.map(|(path, mount)| mount.map_or_else(|| view::detach(&path), Ok));
        let staging = staging.transpose().map_err(|error| format!("{STAGING_FAILED}{error}"))?;
        let is_staged = staging.is_some();
        view::build(&plan, binds, guards, staging).map_err(|reason| format!("mount_namespace: {reason}"))?;
        if is_staged {
            let folders =
                plan.staged_folders(&setup.policy).map_err(|why| format!("{STAGING_FAILED}{why}"))?;
            folders.probe().map_err(|error| format!("{STAGING_FAILED}overlay: {error}"))?;
            staged = Some(folders);
        }
    }
    step("no_capabilities", process::bound_capabilities())?;
    step("no_new_privileges", process::no_new_privileges())?;
    step("keeper", process::hide())?;
    layers.extend([Layer::NoCapabilities, Layer::NoNewPrivileges, Layer::ProcessLimits]);

    let mut ruleset = None;
    if on(Layer::Landlock) {
        let rules = plan.rules(viewed);
        let rules = rules.iter().map(|(path, allow)| (path.as_path() as &Path, *allow));
        match landlock::ruleset(rules, &setup.policy.network) {
            Ok(fd) => {
                ruleset = Some(fd);
                layers.push(Layer::Landlock);
            }
            Err(error) => missing.push((Layer::Landlock, error.to_string())),
        }
    } else {
        missing.push((Layer::Landlock, "left out".to_owned()));
    }
    let mut filter = Vec::new();
    if on(Layer::Seccomp) {
        filter = seccomp::program(&setup.policy.network);
        layers.push(Layer::Seccomp);
    } else {
        missing.push((Layer::Seccomp, "left out".to_owned()));
    }
    layers.sort();
    for layer in &setup.policy.require {
        if !layers.contains(layer) {
            let reason = missing.iter().find(|(one, _)| one == layer).map_or("not asked for", |(_, why)| why);
            return Err(format!("the policy requires `{layer}`, which is not available: {reason}"));
        }
    }
    let memory = match layers.contains(&Layer::MemoryCgroup) {
        true => MemoryLimit::WholeSandbox,
        false => MemoryLimit::EachProcess,
    };
    let limits = setup.policy.limits.clone();
    Ok(Keeper { limits, mode: LaunchMode::Isolated, layers, memory, ruleset, filter, covers, kills, staged })
}

/// What every job of a sandbox shares.
pub(super) struct Keeper {
    pub(super) limits: SandboxLimits,
    pub(super) mode: LaunchMode,
    pub(super) layers: Vec<Layer>,
    pub(super) memory: MemoryLimit,
    pub(super) ruleset: Option<OwnedFd>,
    pub(super) filter: Vec<libc::sock_filter>,
    /// The masks and guards of the view, where there is one.
    pub(super) covers: Option<Covers>,
    /// Where a control group limits the memory.
    pub(super) kills: Option<Kills>,
    /// What jobs put overlays on, where changes are staged.
    pub(super) staged: Option<StagedFolders>,
}

impl Keeper {
    pub(super) fn on(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// Forks a job for each set of descriptors that arrives, until the runtime hangs up or is gone.
    pub(super) fn serve(&self, control: &OwnedFd, watch: Option<&OwnedFd>) {
        process::ignore_children();
        let mut flags = 0;
        for (layer, flag) in [
            (Layer::MountNamespace, libc::CLONE_NEWNS),
            (Layer::PidNamespace, libc::CLONE_NEWPID),
            (Layer::IpcNamespace, libc::CLONE_NEWIPC),
        ] {
            if self.on(layer) {
                flags |= flag;
            }
        }
        let watch = watch.unwrap_or(control);
        loop {
            let Ok([ready, gone]) =
                sys::poll([(control.as_fd(), libc::POLLIN), (watch.as_fd(), libc::POLLIN)], None)
            else {
                return;
            };
            if ready == 0 && gone != 0 {
                return;
            }
            let fds = match socket::receive(control.as_fd(), &mut [0; 8]) {
                Ok((count, fds)) if count > 0 => fds,
                _ => return,
            };
            let Ok([line, stdin, stdout, stderr]) = <[OwnedFd; 4]>::try_from(fds) else { continue };
            match fork(flags) {
                Ok(ForkSide::Child) => job::run(self, line, [stdin, stdout, stderr]),
                Ok(ForkSide::Parent(_)) => {}
                Err(error) => {
                    let event = JobEvent::Failed(Stage::Setup, sys::errno(&error));
                    let _ = socket::send(line.as_fd(), &event.encode(), &[]);
                }
            }
        }
    }
}
