//! The crate's one integration binary: whole files through the runtime.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "these are tests"
)]

mod attacks;
mod checks;
mod dotenv;
mod examples;
mod flows;
mod generated;
mod imports;
mod properties;
mod support;
