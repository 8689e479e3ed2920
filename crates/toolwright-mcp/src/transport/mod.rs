//! Transports: lines over pipes, with the process at the other end, or HTTP.

pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod secret_scrubber;
pub(crate) mod stdio;
mod watchdog;
