//! The crate's integration tests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "these are tests"
)]

mod content;
mod hostile;
mod live;
mod replies;
mod requests;
mod support;
