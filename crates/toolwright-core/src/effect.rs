//! What a call changed in the folders it may write, as data for records, people and rules.

use serde::{Deserialize, Serialize};

/// The changes of one call to the folders that its sandbox may write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEffect {
    /// The commits that applied it, one for each folder, as `toolwright undo` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// The changes, by path; at most [`MAX_LISTED_CHANGES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// How many more changes there are than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Changes that were not applied, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_back: Vec<KeptBackChange>,
}

/// The name under which a call's [`CallEffect`] is on record, in a [`CallNote::Data`](crate::CallNote::Data).
pub const EFFECT_NOTE: &str = "effect";

/// The most changes that an [`CallEffect`] lists.
pub const MAX_LISTED_CHANGES: usize = 1_000;

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl CallEffect {
    /// Whether nothing was changed, and nothing kept back.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.kept_back.is_empty()
    }

    /// The changes that were not applied, for a model, one line each; empty when all were.
    pub fn kept_back_text(&self) -> String {
        const MAX_NAMED: usize = 10;
        let line = |kept: &KeptBackChange| {
            let error = kept.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("[not changed: `{}` {}{error}]\n", kept.path.escape_debug(), kept.reason.as_text())
        };
        let mut text: String = self.kept_back.iter().take(MAX_NAMED).map(line).collect();
        let more = self.kept_back.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            text.push_str(&format!("[{more} more were not changed]\n"));
        }
        text
    }

    /// Adds the changes of another folder.
    pub fn merge(&mut self, other: CallEffect) {
        let CallEffect { commits, files, more, kept_back } = other;
        self.commits.extend(commits);
        self.more += more;
        self.kept_back.extend(kept_back);
        for change in files {
            self.list(change);
        }
    }

    /// Adds a change, or counts it when the list is full.
    pub fn list(&mut self, change: FileChange) {
        if self.files.len() < MAX_LISTED_CHANGES {
            self.files.push(change);
        } else {
            self.more += 1;
        }
    }
}

/// One path that a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The absolute path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What happened to it.
    pub change: ChangeKind,
    /// Where it was before, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The size of the file afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Where the symbolic link leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Whether a file can be executed that could not, or was not there, before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// Its contents, or where it leads, are different.
    Changed,
    /// It is no longer there.
    Removed,
    /// It is the file that was at another path.
    Moved,
    /// Only its permissions are different.
    Mode,
}

impl ChangeKind {
    /// The wire name, for example `added`.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::Added => "added",
            ChangeKind::Changed => "changed",
            ChangeKind::Removed => "removed",
            ChangeKind::Moved => "moved",
            ChangeKind::Mode => "mode",
        }
    }
}

/// A change that was not applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBackChange {
    /// The absolute path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Why.
    pub reason: KeepReason,
    /// The error of the system, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a change was not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// The file changed outside while the call ran.
    Conflict,
    /// Programs outside obey the file.
    Protected,
    /// It is a socket, a pipe or a device, has a reserved name, or lies too deep.
    Unsupported,
    /// The system refused it.
    Failed,
    /// The policy discards all changes.
    Discarded,
}

impl KeepReason {
    /// The reason in words that follow a path.
    pub fn as_text(self) -> &'static str {
        match self {
            KeepReason::Conflict => "changed outside meanwhile",
            KeepReason::Protected => "is protected: programs outside obey it",
            KeepReason::Unsupported => "is not a file, folder or link that can be committed",
            KeepReason::Failed => "could not be written",
            KeepReason::Discarded => "was discarded, as the sandbox's `changes` says",
        }
    }
}
