//! The crate seen from outside, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the way tests do"
)]

mod attacks;
mod differential;
mod generate;
mod properties;
mod reference;
mod scripts;
mod yaml;
