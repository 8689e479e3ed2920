//! The crate's integration tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

mod configured;
mod search;
#[cfg(feature = "sql")]
mod sql;
mod vectors;
mod web_search;
