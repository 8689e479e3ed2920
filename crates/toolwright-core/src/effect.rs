//! What a call changed in the folders it may write, as data for records, people and rules.

use serde::{Deserialize, Serialize};

use crate::context::ToolContext;
use crate::tool::BoxFuture;

/// Decides about the changes of a call before they are applied, and learns what was done. A
/// [`ToolContext`] decides as the policy of its run says.
pub trait EffectJudge: Send + Sync {
    /// The call whose changes these are.
    fn call_id(&self) -> Option<&str>;

    /// Decides.
    fn judge<'a>(&'a self, staged: &'a StagedEffect) -> BoxFuture<'a, EffectVerdict>;

    /// What became of the changes.
    fn settled(&self, effect: &CallEffect);
}

impl EffectJudge for ToolContext {
    fn call_id(&self) -> Option<&str> {
        Some(ToolContext::call_id(self))
    }

    fn judge<'a>(&'a self, staged: &'a StagedEffect) -> BoxFuture<'a, EffectVerdict> {
        self.host().judge_effect(self, staged)
    }

    fn settled(&self, effect: &CallEffect) {
        self.record_effect(effect);
    }
}

/// The changes of one call to the folders that its sandbox may write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEffect {
    /// The call whose changes these are, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What became of the changes.
    #[serde(default, skip_serializing_if = "EffectOutcome::is_applied")]
    pub outcome: EffectOutcome,
    /// Why they were not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The commits that applied it, one for each folder, as `toolwright undo` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// The changes, by path; at most [`MAX_LISTED_CHANGES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// How many more changes there are than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Single changes that were not applied, and why; at most [`MAX_LISTED_CHANGES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_back: Vec<KeptBackChange>,
    /// How many more were not applied than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_kept_back: u64,
    /// What was not applied can be applied under these names, as `toolwright commit` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<String>,
}

/// What became of the changes of a call as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectOutcome {
    /// They were applied, but for what was kept back.
    #[default]
    Applied,
    /// None was applied; they can be applied later.
    SetAside,
    /// None was applied, and they are gone.
    Discarded,
}

impl EffectOutcome {
    fn is_applied(&self) -> bool {
        *self == EffectOutcome::Applied
    }
}

/// The changes of a call before they are applied, for whoever decides about them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StagedEffect {
    /// The folders that they are changes of.
    pub folders: Vec<String>,
    /// The changes; at most [`MAX_JUDGED_CHANGES`].
    pub changes: Vec<FileChange>,
    /// Changes of files that programs outside obey. They are not applied unless somebody says so.
    pub protected: Vec<FileChange>,
    /// How many more changes there are than are listed.
    pub more: u64,
    /// How many files would be removed; one that is moved is not.
    pub deletes: u64,
    /// Whether those are more than half of the files of a folder.
    pub deletes_most: bool,
    /// How many bytes the added and changed files have.
    pub bytes: u64,
    /// Whether the sandbox wants somebody asked about every change.
    pub ask: bool,
    /// The changes of text files as a unified diff, bounded.
    pub diff: String,
}

/// The most changes that a [`StagedEffect`] lists.
pub const MAX_JUDGED_CHANGES: usize = 50_000;

/// What is to become of the changes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectVerdict {
    /// Apply them.
    Commit {
        /// Those of protected files, too.
        protected: bool,
        /// All but those at and below these absolute paths, which are set aside.
        except: Vec<String>,
    },
    /// Keep them, to be applied later.
    SetAside {
        /// Why.
        reason: String,
    },
    /// Drop them.
    Discard {
        /// Why.
        reason: String,
    },
}

/// Applies all but what is protected.
impl Default for EffectVerdict {
    fn default() -> Self {
        EffectVerdict::Commit { protected: false, except: Vec::new() }
    }
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

    /// Notes that none of the changes was applied.
    pub fn decided(&mut self, outcome: EffectOutcome, reason: &str) {
        (self.outcome, self.reason) = (outcome, Some(reason.to_owned()));
    }

    /// The changes that were not applied, for a model, one line each; empty when all were.
    pub fn kept_back_text(&self) -> String {
        const MAX_NAMED: usize = 10;
        let own = self.call.as_ref().map(|own| format!(" by this one, `{}`", own.escape_debug()));
        let line = |kept: &KeptBackChange| {
            let error = kept.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let why = match &kept.by {
                Some(by) => format!(
                    "was changed by the call `{}` while it was changed{}",
                    by.escape_debug(),
                    own.as_deref().unwrap_or_default()
                ),
                None => kept.reason.as_text().to_owned(),
            };
            format!("[not changed: `{}` {why}{error}]\n", kept.path.escape_debug())
        };
        let mut text = String::new();
        let reason = self.reason.as_deref().unwrap_or_default();
        let count = self.files.len() as u64 + self.more;
        match self.outcome {
            EffectOutcome::Applied => {}
            EffectOutcome::SetAside => {
                text = format!("[nothing was changed: {count} changes were set aside: {reason}]\n");
            }
            EffectOutcome::Discarded => {
                text = format!("[nothing was changed: {count} changes were discarded: {reason}]\n");
            }
        }
        text.extend(self.kept_back.iter().take(MAX_NAMED).map(line));
        let more = self.kept_back.len().saturating_sub(MAX_NAMED) as u64 + self.more_kept_back;
        if more > 0 {
            text.push_str(&format!("[{more} more were not changed]\n"));
        }
        for id in &self.set_aside {
            text.push_str(&format!("[a person can apply this with `toolwright commit {id}`]\n"));
        }
        text
    }

    /// Adds a change that was not applied, or counts it when the list is full.
    pub fn keep_back(&mut self, kept: KeptBackChange) {
        if self.kept_back.len() < MAX_LISTED_CHANGES {
            self.kept_back.push(kept);
        } else {
            self.more_kept_back = self.more_kept_back.saturating_add(1);
        }
    }

    /// Adds the changes of another folder.
    pub fn merge(&mut self, other: CallEffect) {
        let CallEffect { call, outcome, reason, commits, files, more, kept_back, more_kept_back, set_aside } =
            other;
        self.call = self.call.take().or(call);
        if outcome != EffectOutcome::Applied {
            (self.outcome, self.reason) = (outcome, reason);
        }
        self.commits.extend(commits);
        self.set_aside.extend(set_aside);
        self.more = self.more.saturating_add(more);
        self.more_kept_back = self.more_kept_back.saturating_add(more_kept_back);
        kept_back.into_iter().for_each(|kept| self.keep_back(kept));
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

impl FileChange {
    /// A change of which nothing more is known.
    pub fn new(path: impl Into<String>, change: ChangeKind) -> Self {
        FileChange { path: path.into(), change, from: None, bytes: None, link: None, executable: false }
    }
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
    /// The call that changed the file meanwhile, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
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
    /// The person who was asked left it out.
    Declined,
}

impl KeepReason {
    /// The reason in words that follow a path.
    pub fn as_text(self) -> &'static str {
        match self {
            KeepReason::Conflict => "changed outside meanwhile",
            KeepReason::Protected => "is protected: programs outside obey it",
            KeepReason::Unsupported => "is not a file, folder or link that can be committed",
            KeepReason::Failed => "could not be written",
            KeepReason::Declined => "was left out by the person who was asked",
        }
    }
}
