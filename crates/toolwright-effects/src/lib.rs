//! What a call changes in a folder: computed from the upper layer of an overlay, committed into the folder
//! from a journal, and undone.
//!
//! A sandboxed call writes to the upper layer of an overlay. [`commit`] compares that layer with the folder,
//! and applies the difference: nothing that changed outside meanwhile is overwritten, nothing that
//! [`CommitRequest::protect`] names is touched, and no symbolic link is followed. Both are set aside, and
//! [`commit_set_aside`] applies them when a person says so; with [`PendingCommit`] the caller decides about
//! the rest too. What was replaced is kept in a [`CommitStore`], so that [`undo`] can restore it. A commit
//! that was killed is finished by [`CommitStore::recover`].
//!
//! The promise covers processes that are killed, not a loss of power: nothing is synced.

mod apply;
mod aside;
mod blobs;
mod commit;
mod compare;
mod diff;
#[doc(hidden)]
pub mod failpoint;
mod folder;
mod identity;
mod journal;
mod moves;
pub mod path_text;
mod store;
mod undo;

pub use apply::RESERVED_PREFIX;
pub use aside::{SetAside, commit_set_aside, drop_set_aside};
pub use commit::{CommitRequest, PendingCommit, SourceUse, commit};
pub use compare::OverlayBaseline;
pub use identity::FileIdentity;
pub use store::{CommitStore, CommitSummary, RecoveredCommit};
pub use undo::undo;
