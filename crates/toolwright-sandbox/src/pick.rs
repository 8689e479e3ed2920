//! From a name to a sandbox. An unknown name is an error; `local` is never chosen for anybody.

use std::sync::Arc;

use toolwright_core::{ErrorKind, Sandbox, ToolError, nearest};

use crate::backend::engine::EngineSandbox;
use crate::backend::local::LocalSandbox;
use crate::backend::process::ProcessSandbox;
use crate::policy::Policy;

/// The backends by name, the default first.
pub const BACKENDS: [&str; 4] = ["process", "docker", "podman", "local"];

/// Opens the backend of that name, or the default one, under a policy. `docker:IMAGE` and `podman:IMAGE` name the image too.
pub async fn open(kind: Option<&str>, mut policy: Policy) -> Result<Arc<dyn Sandbox>, ToolError> {
    let kind = kind.unwrap_or("process");
    let (name, image) = kind.split_once(':').map_or((kind, None), |(name, image)| (name, Some(image)));
    if let Some(image) = image.filter(|_| matches!(name, "docker" | "podman")) {
        policy.image = Some(image.to_owned());
        return engine(name, policy).await;
    }
    match kind {
        "docker" | "podman" => engine(name, policy).await,
        "process" => Ok(Arc::new(ProcessSandbox::open(policy).await?)),
        "local" => Ok(Arc::new(LocalSandbox::open(policy).await?)),
        other => {
            let error = ToolError::of(
                ErrorKind::SandboxUnavailable,
                format!("there is no sandbox called `{}`", other.escape_debug()),
            );
            Err(match nearest(other, BACKENDS) {
                Some(name) => error.hint(format!("did you mean `{name}`?")),
                None => error.hint(format!("the sandboxes are: {}", BACKENDS.join(", "))),
            })
        }
    }
}

async fn engine(name: &str, policy: Policy) -> Result<Arc<dyn Sandbox>, ToolError> {
    Ok(Arc::new(match name {
        "podman" => EngineSandbox::podman(policy).await?,
        _ => EngineSandbox::docker(policy).await?,
    }))
}
