//! The steps of one commit as they are written down before the first is taken, so that another process can
//! take the rest.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolwright_core::KeepReason;

use crate::identity::FileIdentity;
use crate::path_text;

/// A commit that has been decided.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommitJournal {
    pub(crate) id: String,
    /// The call whose changes these are.
    #[serde(default)]
    pub(crate) call: Option<String>,
    /// The folder that is changed.
    #[serde(with = "path_text::one")]
    pub(crate) folder: PathBuf,
    /// The upper layer that files come from.
    #[serde(with = "path_text::maybe")]
    pub(crate) upper: Option<PathBuf>,
    /// Files are taken out of the upper layer, not copied: nothing uses it any more.
    pub(crate) take: bool,
    /// The owner of new files, for a process that may choose one.
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) steps: Vec<CommitStep>,
}

/// One change to one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommitStep {
    /// Relative to the folder.
    #[serde(with = "path_text::one")]
    pub(crate) path: PathBuf,
    pub(crate) action: StepAction,
    /// What is there when the commit is decided. Anything else is a conflict.
    pub(crate) before: Option<FileIdentity>,
    /// What undoing the step restores.
    pub(crate) past: PastVersion,
    /// Why it is not taken unless somebody says so.
    #[serde(skip)]
    pub(crate) held: Option<KeepReason>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepAction {
    MakeFolder {
        mode: u32,
    },
    PutFile {
        source: ContentSource,
        mode: u32,
        size: u64,
        modified: i64,
        /// The owner that the file had, where that is to be restored.
        owner: Option<(u32, u32)>,
    },
    PutLink {
        #[serde(with = "path_text::one")]
        to: PathBuf,
    },
    /// Anything but a folder.
    Remove,
    RemoveFolder,
    SetMode {
        mode: u32,
    },
}

/// Where the contents of a file come from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContentSource {
    /// The same path of the upper layer, in the version that was last changed at this time.
    Upper { changed: i64 },
    /// The file of that number among those that were set aside.
    Aside(u64),
    /// The hash of contents that are kept.
    Blob(String),
}

/// What was at a path before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PastVersion {
    Absent,
    /// Without a hash the contents were too large to be kept, or of a kind that is not kept.
    File {
        blob: Option<String>,
    },
    Link {
        #[serde(with = "path_text::one")]
        to: PathBuf,
    },
    Folder,
}

impl StepAction {
    /// Whether it removes a folder, which must be empty then.
    pub(crate) fn is_folder_removal(&self) -> bool {
        matches!(self, StepAction::RemoveFolder)
    }
}
