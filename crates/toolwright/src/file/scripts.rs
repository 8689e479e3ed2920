//! The section `scripts` of a file: what the scripts that it imports see, and how long they may take.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{DataError, read_data};
use toolwright_lang::{BoundFile, ServerState, ServerTools};
use toolwright_scripts::{ScriptOptions, read_scripts};

use crate::file::Environment;

/// What a file's `scripts` section says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScriptsSection {
    env: Vec<String>,
    timeout: Option<f64>,
}

impl ScriptsSection {
    pub(super) fn read(value: &Value) -> Result<Self, DataError> {
        let section: ScriptsSection = if value.is_null() { Self::default() } else { read_data(value)? };
        if let Some(seconds) = section.timeout
            && !(seconds > 0.0 && seconds <= 86_400.0)
        {
            let message = format!("`timeout` must be seconds, more than 0 and at most 86400, got {seconds}");
            return Err(DataError::new(message).inside("timeout"));
        }
        Ok(section)
    }

    /// The tools of all scripts of a file. Nothing is started: their comments are read.
    pub(crate) fn tools(
        &self,
        bound: &BoundFile,
        folder: &Path,
        environment: &Environment,
    ) -> HashMap<String, ServerState> {
        let mut options = ScriptOptions::default();
        options.timeout = self.timeout.map(Duration::from_secs_f64);
        let set = |name: &String| Some((name.clone(), environment.get(name)?));
        options.env = self.env.iter().filter_map(set).collect();
        let state = |(name, pattern): (String, String)| {
            let state = match read_scripts(folder, &pattern, &options) {
                Ok(scripts) => {
                    let left_out =
                        scripts.left_out.into_iter().map(|script| (script.name, script.reason)).collect();
                    ServerState::Connected(ServerTools {
                        tools: scripts.tools,
                        left_out,
                        ..ServerTools::default()
                    })
                }
                Err(error) => ServerState::Failed { error, required: true },
            };
            (name, state)
        };
        bound.scripts().into_iter().map(state).collect()
    }
}
