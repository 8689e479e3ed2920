//! The record of one call: opened once, closed once, whatever happens in between.

use toolwright_core::{Asker, CancelToken, ErrorInfo, ErrorKind, ToolCall, ToolError, ToolResult};

use crate::clock::Clock;
use crate::events::EventKind;
use crate::run::{RunEnd, RunInner};

/// A call on record. The caller may go away at any point: the record is closed all the same.
pub(crate) struct CallRecord<'a> {
    run: &'a RunInner,
    pub(crate) span: u64,
    /// Measures the call; `None` when no sink is attached. Time in which somebody decides about the call, or about
    /// calls inside it, is idle.
    pub(crate) clock: Option<Clock>,
    open: bool,
}

/// Where a call stands, for whoever decides about it.
pub(crate) struct CallFrame<'a> {
    pub(crate) span: u64,
    pub(crate) depth: u32,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) asker: Asker,
    /// See [`CallRecord::clock`].
    pub(crate) clock: Option<&'a Clock>,
}

impl<'a> CallRecord<'a> {
    /// Opens the record of a call, made by the call `parent` if by one.
    pub(crate) fn open(run: &'a RunInner, call: &ToolCall, parent: Option<u64>) -> Result<Self, ToolError> {
        let span = run.events.new_span();
        if !run.events.wanted() {
            return Ok(CallRecord { run, span, clock: None, open: true });
        }
        run.events.emit(EventKind::CallStarted {
            span,
            parent,
            call_id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        })?;
        let around = parent.and_then(|parent| run.active.clock(parent));
        Ok(CallRecord { run, span, clock: Some(Clock::start(around)), open: true })
    }

    /// Closes the record of a call that failed or has this result.
    pub(crate) fn close(mut self, result: Option<&ToolResult>) -> Result<(), ToolError> {
        let Some(result) = result.filter(|_| self.clock.is_some()) else {
            return self.finish(None, None, false);
        };
        self.finish(Some(result.clone()), result.error.clone(), false)
    }

    /// Closes the record of a call that ends the run; returns the error that ends it.
    pub(crate) fn close_fatal(mut self, error: ToolError) -> ToolError {
        self.run.end(RunEnd::Failed { message: error.message().to_owned() });
        match self.finish(None, Some(error.info()), false) {
            Ok(()) => error,
            Err(unrecorded) => unrecorded,
        }
    }

    fn finish(
        &mut self,
        result: Option<ToolResult>,
        error: Option<ErrorInfo>,
        interrupted: bool,
    ) -> Result<(), ToolError> {
        self.open = false;
        let Some(clock) = &self.clock else { return Ok(()) };
        let (span, duration) = (self.span, clock.working());
        self.run.events.emit(EventKind::CallFinished { span, result, error, duration, interrupted })
    }
}

impl Drop for CallRecord<'_> {
    /// The caller went away, or a panic passed through.
    fn drop(&mut self) {
        if self.open {
            let error = ErrorInfo {
                kind: ErrorKind::Cancelled,
                message: "the caller stopped waiting for the call".to_owned(),
                hint: None,
            };
            if let Err(error) = self.finish(None, Some(error), true) {
                self.run.end(RunEnd::Failed { message: error.message().to_owned() });
            }
        }
    }
}
