//! How messages travel: lines over pipes and the processes at the other end of them, or HTTP.

pub(crate) mod hidden;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod stdio;
mod watchdog;
