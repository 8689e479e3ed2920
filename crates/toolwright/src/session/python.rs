//! Opening the files of Python functions that a file imports.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use toolwright_core::{ToolError, ToolSource as _};
use toolwright_lang::{BoundFile, Needs, ServerState, ServerTools};

use super::open::{Connect, SessionBuilder};

impl SessionBuilder {
    /// Starts the workers of the files that are needed, one after the other.
    pub(super) async fn open_python(
        &self,
        bound: &BoundFile,
        needs: &Needs,
        states: &mut HashMap<String, ServerState>,
    ) {
        for (name, path) in bound.python_files().into_iter().filter(|(name, _)| needs.server(name)) {
            let state = match self.python_tools(&path).await {
                Ok(tools) => ServerState::Connected(tools),
                Err(error) => ServerState::Failed { error, required: self.connect == Connect::Required },
            };
            states.insert(name, state);
        }
    }

    async fn python_tools(&self, path: &str) -> Result<ServerTools, ToolError> {
        let folder = self.file.source().folder().unwrap_or(Path::new("."));
        let file = self.file.python().open(path, folder, self.known.variables()).await?;
        let left_out = file.left_out().iter().map(|function| {
            let reason = match function.line {
                Some(line) => format!("line {line}: {}", function.reason),
                None => function.reason.clone(),
            };
            (function.name.clone(), reason)
        });
        let (left_out, tools) = (left_out.collect(), file.tools().await?);
        Ok(ServerTools { tools, left_out, suspended: Vec::new(), source: Some(Arc::new(file)) })
    }
}
