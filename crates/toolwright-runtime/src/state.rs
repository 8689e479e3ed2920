//! The state of a run as one value, so that another process can take it up.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwright_core::{Message, ToolCall};

use crate::limits::Spent;

/// The version of [`RunState`] this code writes.
pub const STATE_VERSION: u32 = 1;

/// A run between two steps: what was said, what is still to be done, what was spent.
///
/// ```
/// use toolwright_runtime::RunState;
///
/// let state = RunState::new("run-1");
/// let text = serde_json::to_string(&state)?;
/// assert_eq!(serde_json::from_str::<RunState>(&text)?, state);
/// assert!(serde_json::from_str::<RunState>(&text.replace("\"version\":1", "\"version\":99")).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The version of this format; a later one is refused rather than misread.
    #[serde(deserialize_with = "known_version")]
    pub version: u32,
    /// The run.
    pub run_id: String,
    /// The conversation.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// Calls the model asked for that have no result yet.
    #[serde(default)]
    pub pending: Vec<ToolCall>,
    /// What was spent.
    #[serde(default)]
    pub spent: Spent,
    /// The tools' own state.
    #[serde(default)]
    pub store: Map<String, Value>,
}

impl RunState {
    /// The state of a run that has not begun.
    pub fn new(run_id: impl Into<String>) -> Self {
        RunState {
            version: STATE_VERSION,
            run_id: run_id.into(),
            messages: Vec::new(),
            pending: Vec::new(),
            spent: Spent::default(),
            store: Map::new(),
        }
    }
}

fn known_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version > STATE_VERSION {
        let text = format!(
            "the run's state has version {version}, and this program knows versions up to {STATE_VERSION}"
        );
        return Err(serde::de::Error::custom(text));
    }
    Ok(version)
}
