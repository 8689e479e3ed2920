//! Output of a command as events while it runs, so that somebody can watch.
//!
//! Whole lines are emitted, because redaction cannot recognise a secret that is cut in two. Only the
//! beginning of long output is emitted; the result has its own limits.

use std::sync::{Mutex, PoisonError};

use toolwright_core::{CallNote, OutputSink, OutputStream, ToolContext};
use toolwright_util::lock;

/// The most bytes of one call that are emitted live.
const MOST: usize = 64 * 1024;
/// A longer line is emitted in pieces.
const LONGEST_LINE: usize = 8 * 1024;

/// Tells the lines of a command as notes of its call.
pub(crate) struct LiveOutput<'a> {
    context: &'a ToolContext,
    state: Mutex<UnsentOutput>,
}

#[derive(Default)]
struct UnsentOutput {
    told: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl<'a> LiveOutput<'a> {
    pub(crate) fn new(context: &'a ToolContext) -> Self {
        LiveOutput { context, state: Mutex::default() }
    }

    /// Tells what is left of the last lines.
    pub(crate) fn finish(self) {
        let UnsentOutput { mut told, stdout, stderr } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (stream, rest) in [(OutputStream::Stdout, stdout), (OutputStream::Stderr, stderr)] {
            tell(self.context, &mut told, stream, &rest);
        }
    }
}

impl OutputSink for LiveOutput<'_> {
    fn output(&self, stream: OutputStream, bytes: &[u8]) {
        let mut state = lock(&self.state);
        let UnsentOutput { told, stdout, stderr } = &mut *state;
        if *told >= MOST {
            return;
        }
        let line = match stream {
            OutputStream::Stdout => stdout,
            OutputStream::Stderr => stderr,
        };
        for piece in bytes.chunks(LONGEST_LINE) {
            line.extend_from_slice(piece);
            let end = match line.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => end + 1,
                None if line.len() >= LONGEST_LINE => line.len(),
                None => continue,
            };
            let whole: Vec<u8> = line.drain(..end).collect();
            tell(self.context, told, stream, &whole);
            if *told >= MOST {
                line.clear();
                return;
            }
        }
    }
}

fn tell(context: &ToolContext, told: &mut usize, stream: OutputStream, bytes: &[u8]) {
    if bytes.is_empty() || *told >= MOST {
        return;
    }
    *told += bytes.len();
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if *told >= MOST {
        text.push_str("[what follows is not shown live]\n");
    }
    context.note(CallNote::Output { stream: stream.as_str().to_owned(), text });
}
