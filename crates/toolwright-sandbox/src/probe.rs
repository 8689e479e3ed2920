//! What this machine can do, for people: `probe` tries the layers, `explain` shows what a policy would give.

use serde::Serialize;
use toolwright_core::ToolError;

use crate::backend::process::ProcessSandbox;
use crate::backend::shared::look_up;
use crate::layer::home;
use crate::layer::view::{Plan, ViewEntry};
use crate::policy::{Layer, Limits, Network, Policy};

/// Whether one layer can be had here.
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
    pub limits: Limits,
    /// Names of the caller's variables that are passed on.
    pub env: Vec<String>,
    /// Every layer and whether it would be on.
    pub layers: Vec<LayerReport>,
    /// Why the policy cannot be enforced here, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Tries every layer by opening a sandbox that requires none of them.
pub async fn probe() -> Vec<LayerReport> {
    reports(&ProcessSandbox::open(Policy { require: Vec::new(), ..Policy::private() }).await)
}

/// Shows what a policy gives, by opening a sandbox with its folders, in which nothing is run.
pub async fn explain(policy: &Policy) -> Result<Explanation, ToolError> {
    let mut refused = policy.check().err().map(|error| error.to_string());
    let view = Plan::make(&home::resolve(policy, look_up)?.policy, policy.workspace.as_deref())?.entries();
    let opened = ProcessSandbox::open(Policy { require: Vec::new(), ..policy.clone() }).await;
    if let Err(error) = &opened {
        refused.get_or_insert_with(|| error.to_string());
    }
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
