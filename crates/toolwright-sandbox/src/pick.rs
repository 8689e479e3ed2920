//! From a name to a sandbox. An unknown name is an error; `local` is never chosen for anybody.

use std::sync::Arc;

use toolwright_core::{ErrorKind, Sandbox, ToolError, nearest};

use crate::backend::local::LocalSandbox;
use crate::backend::process::ProcessSandbox;
use crate::policy::Policy;

/// The backends by name, the default first.
pub const BACKENDS: [&str; 2] = ["process", "local"];

/// Opens the backend of that name, or the default one, under a policy.
pub async fn open(kind: Option<&str>, policy: Policy) -> Result<Arc<dyn Sandbox>, ToolError> {
    match kind.unwrap_or("process") {
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
