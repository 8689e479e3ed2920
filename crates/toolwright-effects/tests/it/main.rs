//! The integration tests of commits: folders and the upper layers that a kernel would leave for them.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod commits;
mod decided;
mod killed;
mod support;
mod undone;
