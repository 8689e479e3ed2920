//! `trust`: which found files may be used.

use std::path::PathBuf;

use clap::Subcommand;

pub(super) const TRUST_HELP: &str = "\
A `toolwright.yaml` that a command finds here is inert until you trust it: nothing of it is started, reached, read or \
approved. The first command that would use it shows what it would do and asks. Naming a file with -f trusts it for that \
command. The answer holds for this content and for that of the scripts it names; a change of what was shown is asked \
about again.

Trusting a folder trusts whatever `toolwright.yaml` says in it, now and later, as long as only you can write there.

Examples:
  toolwright trust show               what the file here would do
  toolwright trust .                  trust this folder, whatever its file says
  toolwright trust list
  toolwright trust revoke .";

#[derive(clap::Args)]
pub struct Trust {
    /// The folder to trust.
    #[arg(required = true)]
    pub folder: Option<PathBuf>,
    /// Ask no question.
    #[arg(long)]
    pub yes: bool,
    #[command(subcommand)]
    pub what: Option<TrustWhat>,
}

#[derive(Subcommand)]
pub enum TrustWhat {
    /// List what is trusted.
    List,
    /// Show what a file would do, and whether it is trusted.
    Show {
        /// The file, or a folder with a `toolwright.yaml`; left out, the one here.
        path: Option<PathBuf>,
    },
    /// Take trust back.
    Revoke {
        /// The file, or a folder and all files in it.
        #[arg(required_unless_present = "all")]
        path: Option<PathBuf>,
        /// Revoke everything.
        #[arg(long, conflicts_with = "path")]
        all: bool,
    },
}
