//! Tool search: when there are more definitions than a model should read, most are left out of its requests.
//! It finds them with `search_tools` and calls them with `call_tool`, which is taken apart before anything
//! else looks at the call: rules, limits and records see the tool itself.

mod index;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::text::clip;
use toolwright_core::{
    Annotations, Patterns, ToolCall, ToolContext, ToolDef, ToolError, ToolOutput, ToolSpec, Toolset,
    ToolsetError,
};

use crate::run::RunFrame;

pub use index::ToolIndex;

/// The tool that finds others.
pub(crate) const SEARCH: &str = "search_tools";

/// The tool that calls what was found.
pub(crate) const CALL: &str = "call_tool";

/// The bytes of a definition that count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// The longest description in a search result, in bytes.
const MAX_DESCRIPTION: usize = 1_000;

/// The most results of one search.
const MAX_RESULTS: usize = 20;

/// When definitions are left out of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchWhen {
    /// When there are more tools, or more tokens, than the budget.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How tools are searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolSearch {
    /// When definitions are left out.
    pub when: SearchWhen,
    /// How many tools a model is given whole.
    pub tools: usize,
    /// How many tokens their definitions may have, four bytes of JSON each; a tenth of a window of 200,000
    /// unless said.
    pub tokens: usize,
    /// Patterns of tools that a model is always given. Without any, those are kept that come from no server
    /// or document, as long as they fit the budget.
    pub keep: Vec<String>,
    /// How many tools one search finds.
    pub results: usize,
}

impl Default for ToolSearch {
    fn default() -> Self {
        ToolSearch { when: SearchWhen::Auto, tools: 40, tokens: 20_000, keep: Vec::new(), results: 5 }
    }
}

/// What was found so far; it belongs to the state of the run.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FoundTools(BTreeSet<String>);

/// The tools of a run as a model gets them while some are left out.
pub(crate) struct SearchableTools {
    /// The definitions that are sent.
    pub(crate) sent: Vec<ToolSpec>,
    /// All tools that can be called, those that search and call included.
    pub(crate) all: Toolset,
}

impl ToolSearch {
    /// Why definitions of these tools are left out; `None` when all are sent.
    pub fn reason(&self, tools: &Toolset) -> Option<String> {
        let clash = [SEARCH, CALL].iter().any(|name| tools.get(name).is_some());
        if self.when == SearchWhen::Never || clash || tools.is_empty() {
            return None;
        }
        let tokens = tokens(tools);
        let over = match (tools.len() > self.tools, tokens > self.tokens) {
            (true, _) => format!("{} tools are more than {}", tools.len(), self.tools),
            (false, true) => format!("about {tokens} tokens of definitions are more than {}", self.tokens),
            (false, false) if self.when == SearchWhen::Always => "`search: {when: always}`".to_owned(),
            (false, false) => return None,
        };
        let left = tools.len() - self.kept(tools).len();
        (left > 0).then(|| format!("tool search is on: {over}; {left} are found with `{SEARCH}`"))
    }

    /// The names of the tools whose definitions are sent.
    fn kept(&self, tools: &Toolset) -> BTreeSet<Arc<str>> {
        let names = |wanted: &dyn Fn(&toolwright_core::Entry) -> bool| -> BTreeSet<Arc<str>> {
            tools.iter().filter(|entry| wanted(entry)).map(|entry| entry.tool.spec().name.clone()).collect()
        };
        if !self.keep.is_empty() {
            let patterns = Patterns::new(&self.keep);
            return names(&|entry| patterns.matches(&entry.tool.spec().name));
        }
        // What comes from a server or a document is also known by its name there.
        let own = names(&|entry| !entry.tool.policy().known_as.iter().any(|name| name.contains('/')));
        let weight: usize =
            own.iter().filter_map(|name| tools.get(name)).map(|entry| weight(entry.tool.spec())).sum();
        let fits = own.len() <= self.tools && weight / BYTES_PER_TOKEN <= self.tokens;
        if fits { own } else { BTreeSet::new() }
    }

    /// The tools as a model gets them; `None` when all definitions are sent. `found` says whether those go
    /// along that were found before.
    pub(crate) fn apply(
        &self,
        tools: &Toolset,
        found: Option<&toolwright_core::Store>,
    ) -> Result<Option<SearchableTools>, ToolsetError> {
        if self.reason(tools).is_none() {
            return Ok(None);
        }
        let mut kept = self.kept(tools);
        if let Some(store) = found {
            let found = store.of::<FoundTools>(None).read(|found| found.0.clone());
            kept.extend(found.into_iter().map(Arc::from));
        }
        let all = self.add_to(tools.clone())?;
        let sent = all.iter().map(|entry| entry.tool.spec());
        let sent = sent.filter(|spec| kept.contains(&spec.name) || [SEARCH, CALL].contains(&&*spec.name));
        Ok(Some(SearchableTools { sent: sent.cloned().collect(), all }))
    }

    /// The tools with those that search and call.
    pub(crate) fn add_to(&self, tools: Toolset) -> Result<Toolset, ToolsetError> {
        let search = search_tool(self, tools.clone());
        tools.with(search)?.with(call_tool())
    }
}

/// Whether this is the run's own search, and no tool that somebody gave it.
pub(crate) fn is_own(run: &RunFrame, name: &str) -> bool {
    name == SEARCH && run.shared.search.is_some() && run.tools.current().get(SEARCH).is_none()
}

/// The tokens of all definitions, about.
fn tokens(tools: &Toolset) -> usize {
    tools.iter().map(|entry| weight(entry.tool.spec())).sum::<usize>() / BYTES_PER_TOKEN
}

fn weight(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + toolwright_core::json_size(&spec.parameters)
}

fn search_tool(settings: &ToolSearch, tools: Toolset) -> ToolDef {
    let mut spec = ToolSpec::new(
        SEARCH,
        "Finds tools by what they do. Most tools are not listed here: search for one with a few words \
         (\"create issue\") or by name (\"select:name1,name2\"), then call it with `call_tool`. An empty query \
         lists the groups of tools.",
    );
    spec.parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, or `select:` and names."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": "How many to find."},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    spec.annotations = Annotations { read_only: Some(true), ..Annotations::default() };
    let results = settings.results.clamp(1, MAX_RESULTS);
    let index = std::sync::OnceLock::new();
    let shared = Arc::new((tools, index));
    ToolDef::dynamic(spec, move |context: ToolContext, arguments: Value| {
        let shared = shared.clone();
        async move {
            let (tools, index) = &*shared;
            let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
            let limit =
                arguments.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
            if query.trim().is_empty() {
                return Ok::<_, ToolError>(ToolOutput::text(groups(tools)));
            }
            let index: &ToolIndex =
                index.get_or_init(|| ToolIndex::new(tools.iter().map(|entry| entry.tool.spec())));
            let names = index.find(query, limit.unwrap_or(results).clamp(1, MAX_RESULTS));
            if names.is_empty() {
                let text = format!(
                    "nothing fits `{}`; search again in other words.\n{}",
                    clip(query, 200),
                    groups(tools)
                );
                return Ok(ToolOutput::text(text));
            }
            context
                .store::<FoundTools>()
                .update(|found| found.0.extend(names.iter().map(ToString::to_string)));
            let found = names.iter().filter_map(|name| tools.get(name)).map(|entry| {
                let spec = entry.tool.spec();
                json!({
                    "name": spec.name,
                    "description": clip(&spec.description, MAX_DESCRIPTION),
                    "parameters": spec.parameters,
                })
            });
            Ok(ToolOutput::json(found.collect()))
        }
    })
}

/// The groups of tools, with how many each has.
fn groups(tools: &Toolset) -> String {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for entry in tools.iter() {
        let policy = entry.tool.policy();
        let server = policy
            .known_as
            .iter()
            .find_map(|name| name.rsplit_once('/'))
            .map(|(server, _)| server.to_owned());
        let name = &entry.tool.spec().name;
        let group = policy.category.as_deref().map(str::to_owned).or(server);
        let group =
            group.unwrap_or_else(|| name.split(['_', '.', '/']).next().unwrap_or_default().to_owned());
        *groups.entry(group).or_default() += 1;
    }
    let mut groups: Vec<(String, usize)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<String> =
        groups.iter().take(40).map(|(name, count)| format!("{name} ({count})")).collect();
    format!("groups of tools: {}", shown.join(", "))
}

fn call_tool() -> ToolDef {
    let mut spec = ToolSpec::new(
        CALL,
        "Calls a tool that `search_tools` found, with arguments that fit its parameters.",
    );
    spec.parameters = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool."},
            "arguments": {"type": "object", "description": "Its arguments."},
        },
        "required": ["name", "arguments"],
        "additionalProperties": false,
    });
    // A call that names a tool never comes here: it is taken apart first.
    let tool = ToolDef::dynamic(spec, |_, _: Value| async {
        Err::<ToolOutput, _>(ToolError::invalid(
            "`name` must be the name of a tool that `search_tools` found",
        ))
    });
    tool.edit(|_, policy| policy.delegates = true)
}

/// Puts the tool that is meant in the place of `call_tool`, before anything else looks at the call.
pub(crate) fn unwrap(calls: &mut [ToolCall]) {
    for call in calls {
        let bare = call.name.strip_prefix("functions.").or_else(|| call.name.strip_prefix("tools."));
        if bare.unwrap_or(&call.name) != CALL {
            continue;
        }
        let wrapped = match &call.arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            value => value.clone(),
        };
        let name = wrapped.get("name").and_then(Value::as_str).map(str::trim);
        let Some(name) = name.filter(|name| !name.is_empty() && *name != CALL) else { continue };
        call.name = name.into();
        // Models write the arguments as text now and then; the runtime reads that leniently.
        call.arguments =
            wrapped.get("arguments").filter(|value| !value.is_null()).cloned().unwrap_or_else(|| json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_call_becomes_the_call_that_is_meant() {
        let unwrapped = |arguments: Value| {
            let mut calls = [ToolCall::new("1", CALL, arguments)];
            unwrap(&mut calls);
            let [call] = calls;
            (call.name.to_string(), call.arguments)
        };
        let expected = ("a".to_owned(), json!({"x": 1}));
        assert_eq!(unwrapped(json!({"name": "a", "arguments": {"x": 1}})), expected);
        assert_eq!(unwrapped(json!(r#"{"name": "a", "arguments": {"x": 1}}"#)), expected);
        assert_eq!(unwrapped(json!({"name": "a"})), ("a".to_owned(), json!({})));
        assert_eq!(unwrapped(json!({"name": "a", "arguments": "{\"x\": 1}"})).1, json!("{\"x\": 1}"));
        for odd in [json!({}), json!({"name": CALL}), json!({"name": 7}), json!("{")] {
            assert_eq!(unwrapped(odd).0, CALL);
        }
    }
}
