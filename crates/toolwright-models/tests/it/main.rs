//! The crate's integration tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod content;
mod hostile;
mod live;
mod replies;
mod requests;
mod support;
