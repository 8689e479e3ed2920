//! What this machine can do, for people: `probe` tries the layers, `explain` shows what a policy would give.

use std::fs;
use std::path::Path;

use serde::Serialize;
use toolwright_core::ToolError;

use crate::backend::process::ProcessSandbox;
use crate::backend::shared::{look_up, private_folder};
use crate::layer::home;
use crate::layer::view::{ViewEntry, ViewPlan};
use crate::policy::{Changes, Layer, Network, SandboxLimits, SandboxPolicy};
use crate::sys;

/// Whether one layer is available on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerReport {
    /// The layer.
    pub layer: Layer,
    /// It was on when it was tried.
    pub available: bool,
    /// Why not, or what follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a policy gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The kind of sandbox.
    pub kind: String,
    /// What can be seen, by path.
    pub view: Vec<ViewEntry>,
    /// What can be reached.
    pub network: Network,
    /// How much may be used.
    pub limits: SandboxLimits,
    /// Names of the caller's variables that are passed on.
    pub env: Vec<String>,
    /// When changes become real.
    pub changes: Changes,
    /// Why changes are live, although they were to be committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_because: Option<String>,
    /// Every layer and whether it would be on.
    pub layers: Vec<LayerReport>,
    /// Why the policy cannot be enforced here, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Tries every layer by opening a sandbox that requires none of them.
pub async fn probe() -> Vec<LayerReport> {
    reports(&ProcessSandbox::open(SandboxPolicy { require: Vec::new(), ..SandboxPolicy::private() }).await)
}

/// Tries whether changes can be staged here, by opening a sandbox that may write in a new folder.
pub async fn probe_staging() -> Result<(), ToolError> {
    let folder = private_folder()?;
    let policy = SandboxPolicy { changes: Changes::Commit, ..SandboxPolicy::for_workspace(&folder) };
    let opened = ProcessSandbox::open(policy).await.map(drop);
    // It is empty; one that was not opened left nothing in it either.
    let _ = fs::remove_dir(folder);
    opened
}

/// Shows what a policy gives, by opening a sandbox with its folders, in which nothing is run.
pub async fn explain(policy: &SandboxPolicy) -> Result<Explanation, ToolError> {
    let mut refused = policy.check().err().map(|error| error.to_string());
    let view =
        ViewPlan::make(&home::resolve(policy, look_up)?.policy, policy.workspace.as_deref())?.entries();
    let wanted = SandboxPolicy { require: Vec::new(), ..policy.clone() };
    let opened = match policy.changes {
        Changes::Commit => ProcessSandbox::open_staged_if_possible(wanted).await,
        Changes::Live | Changes::Discard => ProcessSandbox::open(wanted).await,
    };
    if let Err(error) = &opened {
        refused.get_or_insert_with(|| error.to_string());
    }
    let live_because = opened.as_ref().ok().and_then(|one| one.live_because()).map(str::to_owned);
    // Where it cannot be opened at all, what this machine can do is still worth knowing.
    let layers = if opened.is_ok() { reports(&opened) } else { probe().await };
    let off = |layer: &&Layer| !layers.iter().any(|report| report.layer == **layer && report.available);
    if let Some(layer) = policy.require.iter().find(off) {
        refused.get_or_insert_with(|| format!("the policy requires `{layer}`, which is not available"));
    }
    Ok(Explanation {
        kind: "process".to_owned(),
        view,
        network: policy.network.clone(),
        limits: policy.limits.clone(),
        env: policy.env.pass.clone(),
        changes: if live_because.is_some() { Changes::Live } else { policy.changes },
        live_because,
        layers,
        refused,
    })
}

fn reports(opened: &Result<ProcessSandbox, ToolError>) -> Vec<LayerReport> {
    let report = |layer: &Layer| match opened {
        Ok(sandbox) => {
            let missing = sandbox.missing().iter().find(|(one, _)| one == layer);
            let reason = missing.map(|(_, reason)| reason.clone());
            LayerReport { layer: *layer, available: sandbox.layers().contains(layer), reason }
        }
        Err(error) => LayerReport { layer: *layer, available: false, reason: Some(error.to_string()) },
    };
    Layer::ALL.iter().map(report).collect()
}

/// What an error of a launcher begins with.
pub(crate) const SETUP_FAILED: &str = "the sandbox cannot be set up: ";

/// Settings with which the kernel refuses user namespaces, their values then, those that allow it, and
/// whether root is refused too.
const IN_THE_WAY: [(&str, &str, &str, bool); 3] = [
    ("user.max_user_namespaces", "0", "15000", true),
    ("kernel.unprivileged_userns_clone", "0", "1", false),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0", false),
];

/// The marks of containers, and how one is started that lets sandboxes be made in it.
const CONTAINERS: [(&str, &str); 2] = [
    (".dockerenv", "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined"),
    ("run/.containerenv", "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL"),
];

/// The command that lets sandboxes be made here, when the reason why one was not is that namespaces are
/// refused, and it is known what refuses them: a setting of the kernel, or the container this program runs
/// in.
pub fn remedy(reason: &str) -> Option<String> {
    are_refused(reason).then(|| remedy_in(Path::new("/"), sys::effective_ids().0 == 0)).flatten()
}

/// What the launcher could not do is said first, also in an error made of that.
fn are_refused(reason: &str) -> bool {
    let step = reason.split_once(SETUP_FAILED).map_or(reason, |(_, step)| step);
    let own = ["namespaces:", "user_namespace:", "mount_namespace: private mounts:"];
    let not_permitted = format!("(os error {})", libc::EPERM);
    own.iter().any(|own| step.starts_with(own))
        || (step.starts_with("mount_namespace:") && step.contains(&not_permitted))
}

fn remedy_in(root: &Path, is_root: bool) -> Option<String> {
    let has = |name: &str, value: &str| {
        let file = root.join("proc/sys").join(name.replace('.', "/"));
        fs::read_to_string(file).is_ok_and(|text| text.trim() == value)
    };
    let setting = IN_THE_WAY.iter().find(|(name, bad, _, all)| (*all || !is_root) && has(name, bad));
    let setting = setting.map(|(name, _, good, _)| format!("sudo sysctl -w {name}={good}"));
    let container = || CONTAINERS.iter().find(|(mark, _)| root.join(mark).exists());
    setting.or_else(|| container().map(|(_, command)| (*command).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refused_namespaces_have_a_remedy() {
        for reason in [
            "namespaces: Operation not permitted (os error 1) (are user namespaces allowed for this user?)",
            "user_namespace: Operation not permitted (os error 1)",
            "mount_namespace: private mounts: Permission denied (os error 13)",
            "the sandbox cannot be set up: mount_namespace: /proc: Operation not permitted (os error 1)",
        ] {
            assert!(are_refused(reason), "{reason}");
        }
        for reason in [
            "mount_namespace: /data: No such file or directory (os error 2)",
            "mount_namespace: /data: Permission denied (os error 13)",
            "the sandbox cannot be set up: cannot protect `namespaces:`: Operation not permitted (os error 1)",
            "the kernel has no Landlock",
        ] {
            assert!(!are_refused(reason), "{reason}");
            assert_eq!(remedy(reason), None);
        }
    }

    #[test]
    fn what_is_in_the_way_is_named_with_the_command_that_helps() {
        let root = std::env::temp_dir().join(format!("tw-remedy-{:016x}", sys::random_u64()));
        let set = |name: &str, value: &str| {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, value).unwrap();
        };
        set("proc/sys/user/max_user_namespaces", "63000\n");
        assert_eq!(remedy_in(&root, false), None);
        set(".dockerenv", "");
        assert!(remedy_in(&root, true).unwrap().starts_with("docker run --security-opt seccomp="));
        set("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
        let command = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
        assert_eq!(remedy_in(&root, false).as_deref(), Some(command));
        assert!(remedy_in(&root, true).unwrap().starts_with("docker"), "root is not restricted");
        set("proc/sys/user/max_user_namespaces", "0\n");
        assert!(remedy_in(&root, true).unwrap().contains("user.max_user_namespaces=15000"));
        fs::remove_dir_all(root).unwrap();
    }
}
