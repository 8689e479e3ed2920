//! Documents as blocks ([`toolwright_documents`]), and reading them in a process of its own.
//!
//! A file from elsewhere is read by a worker: this program, started again with nothing but the descriptor of
//! the file. Its memory, its time and what it returns are bounded, and with the feature `sandbox` the kernel
//! refuses it every file, socket and process. When it crashes or reaches a bound, the pages before are kept
//! and the place is named.
//!
//! A program that reads documents this way, or gives models the tools that do, calls [`main_if_worker`] first
//! thing in `main`.

pub use toolwright_documents::*;

/// Becomes a worker if this process was started as one, and never returns then. Otherwise returns at once.
pub fn main_if_worker() {
    main_if_worker_sealed_by(seal);
}

/// Takes files, sockets and processes away from this process.
fn seal() -> Containment {
    #[cfg(feature = "sandbox")]
    {
        match toolwright_sandbox::only_compute() {
            Ok(()) => Containment { sealed: true, missing: None },
            Err(error) => Containment { sealed: false, missing: Some(format!("seccomp: {error}")) },
        }
    }
    #[cfg(not(feature = "sandbox"))]
    {
        Containment { sealed: false, missing: Some("this build has no sandbox".to_owned()) }
    }
}
