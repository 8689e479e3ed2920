//! The crate's integration tests.

mod content;
mod hostile;
mod live;
mod replies;
mod requests;
mod support;
