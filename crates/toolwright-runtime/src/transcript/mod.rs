//! The record of a run: one JSON object per line, only ever appended to.
//!
//! Each event is one write of one whole line, made before the event is reported, so a killed process
//! loses nothing that was reported. Opening a transcript again mends a torn last line and closes the calls
//! that were cut off.

mod read;
mod write;

pub use read::{Transcript, TranscriptError};
pub use write::{Durability, TranscriptWriter};
