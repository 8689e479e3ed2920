//! Speed, measured beside a peer in the same run.

pub(crate) mod spawn;
