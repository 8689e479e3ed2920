//! Where tools work, for every command that runs some, and `sandbox explain`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use serde::Deserialize;
use toolwright::sandbox::{EnvPolicy, Layer, Limits, Network};

/// Where tools that need a sandbox work.
#[derive(clap::Args, Clone, Default)]
pub struct SandboxArgs {
    /// The kind of sandbox: process, docker:IMAGE, podman:IMAGE, local or none. `local` isolates nothing; with `none` the
    /// tools that need a sandbox are refused. Left out, what the file's `sandbox` says, or process.
    #[arg(long, value_name = "KIND")]
    pub sandbox: Option<SandboxKind>,
    /// Let tools read this file or folder, beside the current folder and the system.
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Let tools write in this folder; `.` is the current one.
    #[arg(long, value_name = "FOLDER")]
    pub write: Vec<PathBuf>,
    /// Let tools reach this host (`example.com`, `*.example.com`, `example.com:8443`) through a filtering proxy.
    #[arg(long, value_name = "HOST")]
    pub allow_net: Vec<String>,
    /// What a file says beside.
    #[arg(skip)]
    pub section: SandboxSection,
}

/// The `sandbox` section of a file: what is said on the command line comes on top of it.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSection {
    kind: Option<SandboxKind>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub network: Network,
    /// Shown empty, beside what always is.
    pub mask: Vec<PathBuf>,
    pub env: EnvPolicy,
    pub limits: Limits,
    pub require: Option<Vec<Layer>>,
    /// Files that are put into the sandbox when it is opened, by path.
    pub files: BTreeMap<String, String>,
    /// A script that is run in it then.
    pub setup: Option<String>,
}

impl SandboxArgs {
    /// The kind of sandbox that is meant.
    pub fn kind(&self) -> SandboxKind {
        self.sandbox.clone().or_else(|| self.section.kind.clone()).unwrap_or(SandboxKind::Process)
    }
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum SandboxKind {
    Process,
    /// `docker` or `podman`, and the image.
    Engine(String),
    Local,
    None,
}

impl std::str::FromStr for SandboxKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "process" => Ok(SandboxKind::Process),
            "local" => Ok(SandboxKind::Local),
            "none" => Ok(SandboxKind::None),
            "docker" | "podman" => Err(format!("name the image, for example {text}:debian:12")),
            _ if text.starts_with("docker:") || text.starts_with("podman:") => {
                Ok(SandboxKind::Engine(text.to_owned()))
            }
            _ => Err("the kinds are process, docker:IMAGE, podman:IMAGE, local and none".to_owned()),
        }
    }
}

impl TryFrom<String> for SandboxKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
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
        /// Take the `sandbox` section of this file into account.
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
}
