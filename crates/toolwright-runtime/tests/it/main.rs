//! The runtime through its public door.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod agents;
mod batches;
mod confidence;
mod conformance;
mod foreign;
mod kill;
mod leaks;
mod loops;
mod origins;
mod path;
mod policies;
mod properties;
mod streams;
mod support;
mod timeouts;
mod tool_search;
mod transcripts;
mod vectors;
