//! `cargo xtask bench NAME`: our code beside the real peer, in one run, as a ratio.

pub mod expr;
pub mod peer;
