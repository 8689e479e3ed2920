//! The crate's integration tests.

mod content;
mod hostile;
mod replies;
mod requests;
mod support;
