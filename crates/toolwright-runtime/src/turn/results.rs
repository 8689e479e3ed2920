//! The results of calls on their way into the conversation.

use std::sync::Arc;

use toolwright_core::{Message, ToolError, ToolResult, Toolset};

use super::refusals::Refusals;
use crate::agent::Handoff;
use crate::conversation::MessageLog;
use crate::run::Run;
use crate::{batch, direct};

/// The results of calls on their way into the conversation. They get there also when a call breaks the run,
/// or when nobody waits any more: what was done is not done again.
pub(super) struct PendingResults<'a> {
    pub(super) log: &'a mut MessageLog,
    pub(super) run: &'a Run,
    pub(super) tools: &'a Toolset,
    pub(super) results: batch::Results,
    /// Calls that were not made, with their places.
    pub(super) refused: Refusals,
}

impl PendingResults<'_> {
    /// Adds the results there are. Says whether one of them is the answer, and who goes on with the
    /// conversation.
    pub(super) fn add(&mut self) -> Result<(bool, Vec<Arc<Handoff>>), ToolError> {
        self.results.insert(std::mem::take(&mut self.refused));
        let mut results = self.results.take();
        let answer = direct::answer(self.tools, &mut results);
        let entry = |result: &ToolResult| self.tools.get(&result.name);
        let handoffs = results
            .iter()
            .filter(|result| !result.is_error())
            .filter_map(|result| entry(result).and_then(|entry| Handoff::of(entry.tool.settings())))
            .collect();
        let answered = answer.is_some();
        for message in results.into_iter().map(Message::Tool).chain(answer) {
            self.log.add(self.run, message)?;
        }
        Ok((answered, handoffs))
    }
}

impl Drop for PendingResults<'_> {
    fn drop(&mut self) {
        // A record that cannot be written has ended the run already.
        let _ = self.add();
    }
}
