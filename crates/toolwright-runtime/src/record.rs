//! The record of one call: opened once, closed once, whatever happens in between.

use toolwright_core::{CallInfo, CallNote, ErrorInfo, ErrorKind, ToolCall, ToolError, ToolResult};

use crate::clock::Clock;
use crate::events::EventKind;
use crate::run::{RunEnd, RunFrame};

/// A call on record. The caller may go away at any point: the record is closed all the same.
pub(crate) struct CallRecord<'a> {
    run: &'a RunFrame,
    pub(crate) span: u64,
    /// Measures the call; `None` when no sink is attached.
    clock: Option<Clock>,
    /// Books the time in which the call waits for a person.
    person: Clock,
    open: bool,
}

/// What is known of a call before its tool runs.
pub(crate) struct CallFrame<'a> {
    pub(crate) info: CallInfo,
    /// The clock of the call; `None` when no sink is attached. Time in which somebody decides about the call,
    /// or about calls inside it, is idle.
    pub(crate) clock: Option<&'a Clock>,
    /// What books the time in which the call waits for a person.
    pub(crate) person: &'a Clock,
}

impl<'a> CallRecord<'a> {
    /// Opens the record of a call, made by the call `parent` if by one.
    pub(crate) fn open(run: &'a RunFrame, call: &ToolCall, parent: Option<u64>) -> Result<Self, ToolError> {
        let span = run.shared.events.new_span();
        let person = Clock::start(parent.and_then(|parent| run.shared.active.person_clock(parent)));
        if !run.shared.events.wanted() {
            return Ok(CallRecord { run, span, clock: None, person, open: true });
        }
        run.shared.events.emit(EventKind::CallStarted {
            span,
            parent,
            call_id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        })?;
        let around = parent.and_then(|parent| run.shared.active.clock(parent));
        Ok(CallRecord { run, span, clock: Some(Clock::start(around)), person, open: true })
    }

    /// What is known of the call before its tool runs.
    pub(crate) fn frame(&self, info: CallInfo) -> CallFrame<'_> {
        CallFrame { info, clock: self.clock.as_ref(), person: &self.person }
    }

    /// False when no sink is attached.
    pub(crate) fn is_kept(&self) -> bool {
        self.clock.is_some()
    }

    /// Records something that happened inside the call.
    pub(crate) fn note(&self, note: CallNote) -> Result<(), ToolError> {
        self.run.shared.events.emit(EventKind::CallNoted { span: self.span, note })
    }

    /// Closes the record of a call that failed or has this result.
    pub(crate) fn close(mut self, result: Option<&ToolResult>) -> Result<(), ToolError> {
        let Some(result) = result.filter(|_| self.is_kept()) else {
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
        self.run.shared.events.emit(EventKind::CallFinished { span, result, error, duration, interrupted })
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
