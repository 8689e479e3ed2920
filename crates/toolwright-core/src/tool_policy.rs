//! How the runtime treats the calls of a tool, as plain data.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the runtime treats calls of a tool. Models do not receive any of it.
///
/// ```
/// use toolwright_core::{Tool as _, ToolDef, ToolSpec};
///
/// let tool = ToolDef::dynamic(ToolSpec::new("deploy", "Deploys."), |_, _| async { "done" });
/// let tool = tool.edit(|_, policy| policy.require_confirmation = Some(true)).with_parallel(false);
/// assert!(!tool.policy().is_parallel());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// Whether calls may run beside others of the same batch; `None` means yes.
    pub parallel: Option<bool>,
    /// The longest a call may take, less the time in which it waits for a person; `None` means no bound.
    pub timeout: Option<Duration>,
    /// The most bytes of output a model is given; 0 means no bound, `None` the run's default.
    pub max_output: Option<usize>,
    /// Which group the tool belongs to, for choosing tools.
    pub category: Option<Arc<str>>,
    /// True when the tool works inside a sandbox, so that the program's default policy need not ask.
    pub sandboxed: bool,
    /// True when the tool does nothing by itself: it computes values and calls other tools, each of which is
    /// decided about separately. The program's default policy need not ask about it.
    pub delegates: bool,
    /// The result goes to the user as it is, and the turn ends.
    pub return_direct: bool,
    /// The result is never shown to a model again.
    pub confidential: bool,
    /// Whether a person must confirm each call, even one that a policy approves; `None` leaves it to the
    /// [description](crate::CallDescription::confirm) of each call and to the policy.
    pub require_confirmation: Option<bool>,
    /// Other names for parameters: `(alias, parameter)`. A model is not told about them.
    pub aliases: Vec<(Arc<str>, Arc<str>)>,
    /// Parameters whose text is run by a shell: rules over them judge every command in it.
    pub shell: Vec<Arc<str>>,
    /// Names the tool had before it was renamed, the oldest first: rules about them hold for it.
    pub known_as: Vec<Arc<str>>,
}

pub(crate) static DEFAULT_POLICY: ToolPolicy = ToolPolicy {
    parallel: None,
    timeout: None,
    max_output: None,
    category: None,
    sandboxed: false,
    delegates: false,
    return_direct: false,
    confidential: false,
    require_confirmation: None,
    aliases: Vec::new(),
    shell: Vec::new(),
    known_as: Vec::new(),
};

impl ToolPolicy {
    /// The arguments with every alias under its parameter's own name. Where the parameter itself is given
    /// too, the alias stays, so that the schema refuses it like any name it does not know.
    pub fn with_real_names(&self, mut arguments: Value) -> Value {
        if let Some(map) = arguments.as_object_mut() {
            for (alias, parameter) in &self.aliases {
                if map.contains_key(&**alias)
                    && !map.contains_key(&**parameter)
                    && let Some(value) = map.shift_remove(&**alias)
                {
                    map.insert(parameter.to_string(), value);
                }
            }
        }
        arguments
    }

    /// Adds the name that a tool loses when it is renamed.
    pub fn was_called(&mut self, name: &Arc<str>) {
        if !self.known_as.contains(name) {
            self.known_as.push(name.clone());
        }
    }

    /// Whether calls may run beside others of the same batch.
    pub fn is_parallel(&self) -> bool {
        self.parallel.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_data_that_can_be_stored() {
        let mut policy = ToolPolicy { timeout: Some(Duration::from_millis(1500)), ..ToolPolicy::default() };
        policy.aliases.push(("cmd".into(), "command".into()));
        let stored = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<ToolPolicy>(&stored).unwrap(), policy);
        assert_eq!(serde_json::from_str::<ToolPolicy>("{}").unwrap(), DEFAULT_POLICY);
    }
}
