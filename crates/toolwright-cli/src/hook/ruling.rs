//! What our rules say about a call of another agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolwright::Policy;
use toolwright::approval::{RuleDecision, Ruling, strictest_ruling_about};
use toolwright::content::ToolCall;

use crate::commands::ask;
use crate::hook::agent_tools::{AgentTool, PATCH, PathFrom};
use crate::hook::contract::{HookInput, Verdict};
use crate::policies;

/// The rules that hold for every call of an agent.
pub struct Rules {
    policies: Vec<Arc<Policy>>,
    managed: Option<Arc<Policy>>,
    /// The file of the command line.
    named: Option<PathBuf>,
}

/// Where agents keep their hooks, in the home folder and in the project.
const HOOK_SETTINGS: [&str; 4] =
    [".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml"];

impl Rules {
    /// The rules of the command line, of the person and of the machine; without any, the program's own
    /// default.
    pub fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        let of_line = named.map(|path| ask::policy(Some(path))).transpose()?;
        let mut policies: Vec<_> = of_line.into_iter().chain(policies::user()?).map(Arc::new).collect();
        if policies.is_empty() {
            policies.push(Arc::new(Policy::cautious()));
        }
        let named = named.map(std::path::absolute).transpose()?;
        Ok(Rules { policies, managed: policies::managed()?.map(Arc::new), named })
    }

    /// What the rules come to for a call. One that would change the rules themselves is never allowed by
    /// them.
    pub fn judge(&self, input: &HookInput) -> anyhow::Result<Verdict> {
        match self.by_rules(input)? {
            Verdict::Allow { changed } if self.changes_the_rules(input) => {
                let reason = "it would change the rules about this agent, or its hooks".to_owned();
                Ok(Verdict::Ask { reason, changed })
            }
            verdict => Ok(verdict),
        }
    }

    /// Whether a call writes a file of rules, or the settings that have the agent ask for them. What a
    /// command would write is not known.
    fn changes_the_rules(&self, input: &HookInput) -> bool {
        let tool = AgentTool::of(&input.tool_name, &input.tool_input);
        if tool.spec.annotations.read_only == Some(true) {
            return false;
        }
        let folders = std::env::home_dir().into_iter().chain(input.cwd.as_deref().map(PathBuf::from));
        let settings = folders.flat_map(|folder| HOOK_SETTINGS.map(|name| folder.join(name)));
        let mut guarded = settings.chain(self.named.clone()).chain(policies::user_file());
        match tool.path_of(&input.tool_input, input.cwd.as_deref()) {
            Some(path) => {
                let real = std::fs::canonicalize(&path).ok();
                guarded
                    .any(|file| path == file || real.is_some() && std::fs::canonicalize(&file).ok() == real)
            }
            // A patch names its files somewhere in its text.
            None if input.tool_name == PATCH => {
                let patch = input.tool_input.to_string();
                let named = |file: &Path| {
                    file.file_name().is_some_and(|name| patch.contains(&*name.to_string_lossy()))
                };
                guarded.any(|file| named(&file))
            }
            None => false,
        }
    }

    fn by_rules(&self, input: &HookInput) -> anyhow::Result<Verdict> {
        let tool = AgentTool::of(&input.tool_name, &input.tool_input);
        let mut ruling = self.ruling(&tool, input)?;
        let changed = match (ruling.set.is_empty(), &input.tool_input) {
            (true, _) => None,
            (false, Value::Object(given)) => {
                let mut given = given.clone();
                given.append(&mut ruling.set);
                Some(Value::Object(given))
            }
            (false, _) => {
                let reason = "the policy changes arguments of this call by name, and it has none".to_owned();
                return Ok(Verdict::Deny { reason, end: false });
            }
        };
        let because = |otherwise: &str| ruling.reason.clone().unwrap_or_else(|| otherwise.to_owned());
        Ok(match ruling.decision {
            RuleDecision::Approve | RuleDecision::Modify => Verdict::Allow { changed },
            RuleDecision::Ask => Verdict::Ask { reason: because("the policy asks about this call"), changed },
            // No model is asked here: the person decides, as about anything a model does not approve.
            RuleDecision::Review => {
                Verdict::Ask { reason: because("the policy wants this call reviewed"), changed }
            }
            RuleDecision::Reject => {
                Verdict::Deny { reason: because("the policy does not allow this call"), end: false }
            }
            RuleDecision::Terminate => {
                Verdict::Deny { reason: because("the policy ends the session"), end: true }
            }
        })
    }

    /// A path is judged as it stands from the folder of the session, where most rules name it. Rules that
    /// name it from the root can only tighten that.
    fn ruling(&self, tool: &AgentTool, input: &HookInput) -> anyhow::Result<Ruling> {
        let with = |arguments: Value, more: Option<Arc<Policy>>| {
            let id = input.tool_use_id.as_deref().unwrap_or_default();
            let call = ToolCall::new(id, input.tool_name.as_str(), arguments);
            let policies = self.policies.iter().cloned().chain(more);
            strictest_ruling_about(policies, self.managed.as_deref(), &call, &tool.spec, &tool.policy)
                .ok_or_else(|| anyhow::anyhow!("there are no rules"))
        };
        let path = |from| tool.with_path(&input.tool_input, input.cwd.as_deref(), from);
        // Where the first match of an `approvers:` list decides, a path has one form.
        let in_order = self.policies.iter().any(|policy| policy.takes_first());
        let (Some(from_folder), Some(from_root), false) =
            (path(PathFrom::Folder), path(PathFrom::Root), in_order)
        else {
            return with(input.tool_input.clone(), None);
        };
        let ruling = with(from_folder, None)?;
        let about_root = with(from_root, Some(Arc::new(Policy::approve_all())))?;
        Ok(if about_root.decision > ruling.decision { about_root } else { ruling })
    }
}
