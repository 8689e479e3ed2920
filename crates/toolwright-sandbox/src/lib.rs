//! Containment for tools: run what a model asks for without trusting it.
//!
//! A [`SandboxPolicy`] says what is open; a backend enforces it and implements [`toolwright_core::Sandbox`].
//! [`ProcessSandbox`] needs nothing but a Linux kernel; [`LocalSandbox`] isolates nothing and has to be asked
//! for by name. Whatever a backend cannot give is `sandbox_unavailable`, never a quiet run without it, and
//! every result lists the layers that were on.
//!
//! ```no_run
//! use toolwright_core::{ExecRequest, Sandbox};
//! use toolwright_sandbox::{SandboxPolicy, ProcessSandbox, launcher};
//!
//! fn main() {
//!     launcher::main_if_launcher();
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//!     let result = runtime.block_on(async {
//!         let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await?;
//!         sandbox.exec(ExecRequest::new(["uname", "-n"])).await
//!     });
//!     assert_eq!(result.unwrap().stdout, "sandbox\n");
//! }
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!("toolwright-sandbox knows only Linux so far");

mod backend;
mod capture;
#[cfg(feature = "conformance")]
pub mod conformance;
mod env;
mod files;
pub mod launcher;
mod layer;
mod pick;
mod policy;
mod probe;
mod proxy;
mod remove;
mod rlimit;
mod sys;

pub use backend::engine::EngineSandbox;
pub use backend::local::LocalSandbox;
pub use backend::process::ProcessSandbox;
pub use launcher::client::sandboxes_ended;
pub use layer::compute::only_compute;
pub use layer::seccomp;
pub use layer::view::{Access, ViewEntry};
pub use pick::{BACKENDS, Backend, nearest_backend, open};
pub use policy::{
    Changes, EnvPolicy, Layer, MASKED, Network, PROTECTED, SYSTEM, SandboxLimits, SandboxPolicy,
};
pub use probe::{Explanation, LayerReport, explain, probe, probe_staging, remedy};
pub use proxy::NetworkEvent;
pub use sys::pages::release_program_pages;
