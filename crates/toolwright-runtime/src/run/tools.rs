//! The tools of a run: those it was given, and those of its sources as they were last listed.

use std::sync::{Arc, PoisonError, RwLock};

use toolwright_core::{CancelToken, DynToolSource, ToolError, Toolset};

use super::RunFrame;
use crate::guard;

pub(crate) struct RunTools {
    /// What the run has whatever its sources say.
    own: Toolset,
    sources: Vec<Arc<DynToolSource>>,
    current: RwLock<Toolset>,
}

impl RunTools {
    pub(crate) fn new(own: Toolset, sources: Vec<Arc<DynToolSource>>) -> Self {
        RunTools { current: RwLock::new(own.clone()), own, sources }
    }

    /// Tools that the first list of the sources replaces.
    pub(crate) fn replaced(first: Toolset, sources: Vec<Arc<DynToolSource>>) -> Self {
        RunTools { current: RwLock::new(first), own: Toolset::new(), sources }
    }

    /// The tools as they were last listed.
    pub(crate) fn current(&self) -> Toolset {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RunFrame {
    /// Asks the sources for their tools, until the run ends or `cancel` fires: then the tools are those there
    /// were, and no call of them is made any more. Without sources this is only a look at the set.
    pub(crate) async fn refresh_tools(&self, cancel: &CancelToken) -> Result<Toolset, ToolError> {
        if self.tools.sources.is_empty() {
            return Ok(self.tools.current());
        }
        let mut tools = self.tools.own.clone();
        for source in &self.tools.sources {
            let whose = format!("the source of tools `{}`", source.name());
            let asking = guard::caught(&whose, async { source.tools().await });
            let deadline = match self.limits.deadline(None) {
                Ok(deadline) => deadline,
                Err(limit) => {
                    if self.ended().is_none() {
                        self.limit_reached(limit)?;
                    }
                    return Ok(self.tools.current());
                }
            };
            let Ok(found) = guard::unless_stopped(self, cancel, deadline, asking).await else {
                return Ok(self.tools.current());
            };
            tools = tools.combined(found??)?;
        }
        *self.tools.current.write().unwrap_or_else(PoisonError::into_inner) = tools.clone();
        Ok(tools)
    }
}
