//! One file per command.

pub mod ask;
pub mod call;
pub mod check;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod eval;
pub mod init;
pub mod man;
pub mod mcp;
pub mod mcp_install;
pub mod models;
pub mod replay;
pub mod run;
pub mod runs;
pub mod sandbox;
pub mod serve;
pub mod step;
pub mod tools;
pub mod view;
