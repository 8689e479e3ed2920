//! One file per command.

pub mod ask;
pub mod call;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod sandbox;
pub mod tools;
