//! From a name to a sandbox. An unknown name is an error; `local` is never a default.

use std::sync::Arc;

use toolwright_core::{DynSandbox, ErrorKind, ToolError, nearest};

use crate::backend::engine::EngineSandbox;
use crate::backend::local::LocalSandbox;
use crate::backend::process::ProcessSandbox;
use crate::policy::SandboxPolicy;

/// The backends by name, the default first.
pub const BACKENDS: [&str; 4] = ["process", "docker", "podman", "local"];

/// What the name of a sandbox means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend<'k> {
    /// A process with a view of its own.
    Process,
    /// A container of Docker, of this image or the policy's.
    Docker(Option<&'k str>),
    /// The same of Podman.
    Podman(Option<&'k str>),
    /// No isolation.
    Local,
}

impl<'k> Backend<'k> {
    /// The backend of that name; `docker:IMAGE` and `podman:IMAGE` name the image too. `None` when there is
    /// none.
    ///
    /// ```
    /// use toolwright_sandbox::Backend;
    ///
    /// assert_eq!(Backend::named("docker:debian:12"), Some(Backend::Docker(Some("debian:12"))));
    /// assert_eq!(Backend::named("procss"), None);
    /// ```
    pub fn named(kind: &'k str) -> Option<Self> {
        let (name, image) = kind.split_once(':').map_or((kind, None), |(name, image)| (name, Some(image)));
        match (name, image) {
            ("process", None) => Some(Backend::Process),
            ("docker", image) => Some(Backend::Docker(image)),
            ("podman", image) => Some(Backend::Podman(image)),
            ("local", None) => Some(Backend::Local),
            _ => None,
        }
    }
}

/// Opens the backend of that name, or the default one, under a policy. `docker:IMAGE` and `podman:IMAGE` name
/// the image too.
pub async fn open(kind: Option<&str>, mut policy: SandboxPolicy) -> Result<Arc<DynSandbox>, ToolError> {
    let kind = kind.unwrap_or("process");
    let backend = Backend::named(kind);
    if let Some(Backend::Docker(Some(image)) | Backend::Podman(Some(image))) = backend {
        policy.image = Some(image.to_owned());
    }
    match backend {
        Some(Backend::Process) => Ok(Arc::new(ProcessSandbox::open(policy).await?)),
        Some(Backend::Docker(_)) => Ok(Arc::new(EngineSandbox::docker(policy).await?)),
        Some(Backend::Podman(_)) => Ok(Arc::new(EngineSandbox::podman(policy).await?)),
        Some(Backend::Local) => Ok(Arc::new(LocalSandbox::open(policy).await?)),
        None => {
            let error = ToolError::of(
                ErrorKind::SandboxUnavailable,
                format!("there is no sandbox called `{}`", kind.escape_debug()),
            );
            Err(match nearest_backend(kind, []) {
                Some(name) => error.hint(format!("did you mean `{name}`?")),
                None => error.hint(format!("the sandboxes are: {}", BACKENDS.join(", "))),
            })
        }
    }
}

/// The backend whose name is most like this one, when one is like enough to be meant; or one of these other
/// words. What stands after a colon is an image.
pub fn nearest_backend<const N: usize>(kind: &str, others: [&'static str; N]) -> Option<&'static str> {
    let name = kind.split(':').next().unwrap_or(kind);
    nearest(name, BACKENDS.into_iter().chain(others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_is_told_whatever_its_image() {
        for (kind, meant) in [("procss", Some("process")), ("dockr:debian:12", Some("docker")), ("zzz", None)]
        {
            assert_eq!((Backend::named(kind), nearest_backend(kind, [])), (None, meant), "{kind}");
        }
        assert_eq!(nearest_backend("non", ["none"]), Some("none"));
        assert_eq!(Backend::named("process:x"), None);
        assert_eq!(Backend::named("podman:x:1"), Some(Backend::Podman(Some("x:1"))));
    }
}
