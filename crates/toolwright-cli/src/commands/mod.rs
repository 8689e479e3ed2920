//! One file per command.

pub mod ask;
pub mod call;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod eval;
pub mod init;
pub mod mcp;
pub mod run;
pub mod sandbox;
pub mod serve;
pub mod tools;
