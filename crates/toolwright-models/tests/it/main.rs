//! The crate's integration tests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "these are tests"
)]

mod computer;
mod content;
mod dialects;
mod faults;
mod hostile;
mod keys;
mod live;
mod loops;
mod oracle;
mod peers;
mod replies;
mod requests;
mod routes;
mod scripts;
mod streams;
mod support;
