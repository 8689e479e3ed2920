//! Tests of the facade: what it offers, and what it reads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]

mod api;
#[cfg(all(feature = "lang", feature = "models", feature = "mcp", feature = "tools", feature = "sandbox"))]
mod environment;
