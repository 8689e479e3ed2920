//! What happened: events while a run is under way, and the transcript that keeps them.

#[doc(inline)]
pub use toolwright_runtime::{
    Durability, Event, EventKind, EventSink, FORMAT_VERSION, REDACTED, Redactor, StreamRedactor, ToolStamp,
    Transcript, TranscriptError, TranscriptWriter,
};
