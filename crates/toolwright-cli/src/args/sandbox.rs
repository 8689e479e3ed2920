//! Where tools work, for each command that runs some, and `sandbox explain`.

use std::path::PathBuf;

use clap::Subcommand;
use toolwright::file::{SandboxKind, SandboxSection};
use toolwright::sandbox::Network;

/// Where tools that need a sandbox work.
#[derive(clap::Args, Clone, Default)]
pub struct SandboxArgs {
    /// The kind of sandbox: process, docker:IMAGE, podman:IMAGE, local or none. `local` isolates nothing;
    /// with `none` the tools that need a sandbox are refused. Left out, what the file's `sandbox` says, or
    /// process.
    #[arg(long, value_name = "KIND")]
    pub sandbox: Option<SandboxKind>,
    /// Let tools read this file or folder, beside the current folder and the system.
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Let tools write in this folder; `.` is the current one.
    #[arg(long, value_name = "FOLDER")]
    pub write: Vec<PathBuf>,
    /// Let tools reach this host (`example.com`, `*.example.com`, `example.com:8443`) through a filtering
    /// proxy.
    #[arg(long, value_name = "HOST")]
    pub allow_net: Vec<String>,
    /// What a file says beside.
    #[arg(skip)]
    pub section: SandboxSection,
    /// The other sandboxes of a file, by name. Options are not for them.
    #[arg(skip)]
    pub named: Vec<(String, SandboxSection)>,
}

impl SandboxArgs {
    /// What the file says, with what is said on the command line on top of it.
    pub fn all(&self) -> SandboxSection {
        let mut all = self.section.clone();
        all.kind = self.sandbox.clone().or(all.kind);
        all.read.extend(self.read.iter().cloned());
        all.write.extend(self.write.iter().cloned());
        all.network = match (all.network, self.allow_net.as_slice()) {
            (network, []) => network,
            (Network::Allow(hosts), more) => Network::Allow(hosts.iter().chain(more).cloned().collect()),
            (_, hosts) => Network::Allow(hosts.to_vec()),
        };
        all
    }

    /// The kind of sandbox that is meant.
    pub fn kind(&self) -> SandboxKind {
        self.all().kind()
    }
}

#[derive(clap::Args)]
pub struct SandboxCommand {
    #[command(subcommand)]
    pub what: SandboxWhat,
}

#[derive(Subcommand)]
pub enum SandboxWhat {
    /// Print what tools would see and which protections would be on.
    Explain {
        /// Take the `sandbox` section of this file into account; of `toolwright.yaml` when there is one here.
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Explain this one of the file's `sandboxes`.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
}
