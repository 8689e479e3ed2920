//! Where tools work, for every command that runs some, and `sandbox explain`.

use std::path::PathBuf;

use clap::Subcommand;

/// Where tools that need a sandbox work.
#[derive(clap::Args)]
pub struct SandboxArgs {
    /// The kind of sandbox: process, docker:IMAGE, podman:IMAGE, local or none. `local` isolates nothing; with `none` the
    /// tools that need a sandbox are refused.
    #[arg(long, value_name = "KIND", default_value = "process")]
    pub sandbox: SandboxKind,
    /// Let tools read this file or folder, beside the current folder and the system.
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Let tools write in this folder; `.` is the current one.
    #[arg(long, value_name = "FOLDER")]
    pub write: Vec<PathBuf>,
    /// Let tools reach this host (`example.com`, `*.example.com`, `example.com:8443`) through a filtering proxy.
    #[arg(long, value_name = "HOST")]
    pub allow_net: Vec<String>,
}

#[derive(Clone, PartialEq, Eq)]
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

#[derive(clap::Args)]
pub struct SandboxCommand {
    #[command(subcommand)]
    pub what: SandboxWhat,
}

#[derive(Subcommand)]
pub enum SandboxWhat {
    /// Print what tools would see and which protections would be on.
    Explain {
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
}
