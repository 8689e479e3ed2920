//! What the runtime and its launcher say to each other. Both ends are the same program, so the shapes may
//! change freely; sizes are still checked before anything is allocated.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolwright_core::{CallEffect, EffectVerdict, StagedEffect, TerminalSize};

use crate::policy::{Layer, SandboxPolicy};
use toolwright_effects::path_text as path;

/// The largest setup message; it must fit one packet.
pub(crate) const MAX_SETUP: usize = 128 * 1024;
/// The largest job; the kernel's own limit on arguments and environment is far lower.
pub(crate) const MAX_JOB: usize = 16 * 1024 * 1024;

/// How a sandbox keeps its programs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LaunchMode {
    /// Every layer of the policy.
    Isolated,
    /// None: only the process tree is looked after.
    Local,
}

/// The first message to a launcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) mode: LaunchMode,
    pub(crate) policy: SandboxPolicy,
    /// The workspace on the host. Without one the view has a private one, which nothing of is outside.
    #[serde(with = "path::maybe")]
    pub(crate) workspace: Option<PathBuf>,
    /// To be masked by every command that finds it there.
    #[serde(with = "path::many")]
    pub(crate) later: Vec<PathBuf>,
    /// Layers to leave out, to see what the others hold.
    pub(crate) without: Vec<Layer>,
    /// Where changes can be staged, the best first; empty when they are live.
    #[serde(with = "path::many")]
    pub(crate) staging: Vec<PathBuf>,
}

/// What is to become of the changes of a job, sent to the monitor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StageRequest {
    /// As [`Job::stage`] says.
    pub(crate) stage: u64,
    pub(crate) order: StageOrder,
}

/// What the monitor is asked to do with the changes of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum StageOrder {
    /// Settles them; where they are `judged` and there is something to decide, reports them first.
    Settle { settle: Settle, call: Option<String>, judged: bool },
    /// Does what was decided about the changes that were reported last.
    Decide(EffectVerdict),
}

/// What the reason begins with when changes cannot be staged.
pub(crate) const STAGING_FAILED: &str = "changes cannot be staged: ";

/// How changes are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Settle {
    /// The job has ended; its changes are applied, and its layer removed.
    Last,
    /// The job goes on; its changes until now are applied.
    Interim,
    /// The layer is removed with what is in it.
    Drop,
}

/// The monitor's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum StageAnswer {
    /// They are settled.
    Settled(Box<CallEffect>),
    /// Somebody is to decide about them.
    Staged(Box<StagedEffect>),
}

/// The monitor's answer, or why nothing was applied.
pub(crate) type StageReply = Result<StageAnswer, String>;

/// The largest message about changes.
pub(crate) const MAX_STAGE_MESSAGE: usize = 64 * 1024 * 1024;

/// The launcher's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum SetupReply {
    /// Commands may come.
    Ready {
        /// What is on.
        layers: Vec<Layer>,
        /// What is not, and why.
        missing: Vec<(Layer, String)>,
    },
    /// Nothing will run.
    Failed {
        /// Why.
        message: String,
    },
}

/// One command, or one file to read or write with the sandbox's own eyes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) work: Work,
    #[serde(with = "path::one")]
    pub(crate) cwd: PathBuf,
    /// `NAME=value`.
    pub(crate) env: Vec<String>,
    pub(crate) terminal: Option<TerminalSize>,
    /// Report the start. Without it only the end is reported, which spares two wake-ups.
    pub(crate) announce: bool,
    /// The layer that takes the changes of the job; without one the folders are as read-only as the view has
    /// them.
    pub(crate) stage: Option<u64>,
    /// How many milliseconds everything gets to end by itself before it is killed. Not for what is not
    /// trusted.
    pub(crate) grace: u64,
}

/// What a job does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Runs a program.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// Sends a file to standard output.
    Read {
        /// Absolute, or relative to `cwd`.
        #[serde(with = "path::one")]
        path: PathBuf,
        /// The most to send.
        limit: u64,
    },
    /// Replaces a file by standard input.
    Write {
        /// Absolute, or relative to `cwd`.
        #[serde(with = "path::one")]
        path: PathBuf,
        /// The size of the input. An input that ends before that was cut off, and replaces nothing.
        size: u64,
    },
}

/// Where a job failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Putting the layers on.
    Setup,
    /// Going to the folder.
    Cwd,
    /// Starting the program.
    Exec,
    /// Reading or writing the file.
    File,
}

/// What a job reports. Fixed in size, so that a report is never half read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobEvent {
    /// The program runs; a terminal's descriptor travels with this.
    Started,
    /// It never ran, or the file work failed.
    Failed(Stage, i32),
    /// It ended, and so did everything it started.
    Ended(i32),
}

impl JobEvent {
    pub(crate) const SIZE: usize = 6;

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let (kind, stage, code) = match self {
            JobEvent::Started => (1, 0, 0),
            JobEvent::Failed(Stage::Setup, code) => (2, 0, code),
            JobEvent::Failed(Stage::Cwd, code) => (2, 1, code),
            JobEvent::Failed(Stage::Exec, code) => (2, 2, code),
            JobEvent::Failed(Stage::File, code) => (2, 3, code),
            JobEvent::Ended(code) => (3, 0, code),
        };
        let [a, b, c, d] = code.to_le_bytes();
        [kind, stage, a, b, c, d]
    }

    pub(crate) fn decode(bytes: [u8; Self::SIZE]) -> Option<JobEvent> {
        let [kind, stage, a, b, c, d] = bytes;
        let code = i32::from_le_bytes([a, b, c, d]);
        match (kind, stage) {
            (1, 0) => Some(JobEvent::Started),
            (2, 0) => Some(JobEvent::Failed(Stage::Setup, code)),
            (2, 1) => Some(JobEvent::Failed(Stage::Cwd, code)),
            (2, 2) => Some(JobEvent::Failed(Stage::Exec, code)),
            (2, 3) => Some(JobEvent::Failed(Stage::File, code)),
            (3, 0) => Some(JobEvent::Ended(code)),
            _ => None,
        }
    }
}

/// What the runtime can ask of a running job. Hanging up asks for `Kill`, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobCommand {
    /// Stop everything and report.
    Kill,
    /// Signal the process group in the foreground.
    Signal(u8),
}

impl JobCommand {
    pub(crate) fn encode(self) -> [u8; 2] {
        match self {
            JobCommand::Kill => [b'k', 0],
            JobCommand::Signal(signal) => [b's', signal],
        }
    }

    pub(crate) fn decode(bytes: [u8; 2]) -> Option<JobCommand> {
        match bytes {
            [b'k', 0] => Some(JobCommand::Kill),
            [b's', signal] => Some(JobCommand::Signal(signal)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_commands_survive_the_way() {
        for event in [
            JobEvent::Started,
            JobEvent::Failed(Stage::Setup, 1),
            JobEvent::Failed(Stage::Cwd, 2),
            JobEvent::Failed(Stage::Exec, 13),
            JobEvent::Failed(Stage::File, 21),
            JobEvent::Ended(-9),
        ] {
            assert_eq!(JobEvent::decode(event.encode()), Some(event));
        }
        for command in [JobCommand::Kill, JobCommand::Signal(2)] {
            assert_eq!(JobCommand::decode(command.encode()), Some(command));
        }
        assert_eq!(JobEvent::decode([9; 6]), None);
        assert_eq!(JobCommand::decode([9; 2]), None);
    }
}
