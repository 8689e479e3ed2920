//! The page of `toolwright view`: a small web server for this machine alone.
//!
//! It listens on the loopback address, behind a random word in the path, answers only to its own name, and
//! gives out nothing but three embedded files and JSON. What stands in transcripts is hostile; the page shows
//! it as text.

mod api;
mod server;

pub use server::{Viewer, serve};
