//! Sets of tools: add, combine, filter, prefix, rename, find by name.
//!
//! A set compiles each tool's schema once. Names are unique in a set; a clash is an error that names both
//! sides.

use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use indexmap::IndexMap;
use serde_json::Value;

use crate::definition::ToolDef;
use crate::erased::DynTool;
use crate::error::ToolError;
use crate::glob::Patterns;
use crate::into_toolset::IntoToolset;
use crate::nearest::nearest;
use crate::prepare::{Arguments, Prepared};
use crate::schema::{Schema, Strictness};
use crate::tool::{Fingerprint, Tool, ToolSpec};

/// Tools by name, in the order they were added. Cloning is cheap.
///
/// ```
/// use toolwright_core::{ToolDef, ToolSpec, Toolset};
/// # fn tool(name: &str) -> ToolDef { ToolDef::dynamic(ToolSpec::new(name, "d"), |_, _| async { "ok" }) }
///
/// let web = Toolset::new().with(tool("search"))?.with(tool("fetch"))?.prefixed("web_")?;
/// assert_eq!(web.names().collect::<Vec<_>>(), ["web_search", "web_fetch"]);
///
/// let clash = web.clone().combined(web).unwrap_err();
/// assert!(clash.to_string().contains("web_search"));
/// # Ok::<(), toolwright_core::ToolsetError>(())
/// ```
#[derive(Clone, Default)]
pub struct Toolset {
    entries: Arc<IndexMap<Arc<str>, Entry, foldhash::fast::RandomState>>,
}

/// One tool of a set, with what was compiled for it.
#[derive(Clone)]
pub struct Entry {
    /// The tool.
    pub tool: Arc<DynTool>,
    /// Its compiled parameter schema.
    pub schema: Arc<Schema>,
    /// Identifies its definition.
    pub fingerprint: Fingerprint,
    /// Where it comes from, for messages about clashes.
    pub origin: Arc<str>,
}

impl Entry {
    /// Gets a call of the tool ready: aliases become the parameters they stand for, and the tool
    /// [prepares](Tool::prepare) the rest.
    pub fn prepare(&self, arguments: Value, strictness: Strictness) -> Result<Prepared, ToolError> {
        let arguments = self.tool.policy().with_real_names(arguments);
        let arguments = Arguments::new(arguments, &self.schema, strictness);
        self.tool.prepare(arguments.with_paths(&self.tool.spec().paths))
    }
}

impl Toolset {
    /// An empty set.
    pub fn new() -> Self {
        Toolset::default()
    }

    /// The set of these tools: an array, a list or a tuple of tools and sets.
    pub fn of(tools: impl IntoToolset) -> Result<Self, ToolsetError> {
        tools.into_toolset()
    }

    /// The set with one more tool.
    pub fn with(self, tool: impl Tool + 'static) -> Result<Self, ToolsetError> {
        self.with_from(tool, "the program")
    }

    /// The set with one more tool that comes from `origin`, for example a file or a server.
    pub fn with_from(self, tool: impl Tool + 'static, origin: &str) -> Result<Self, ToolsetError> {
        let tool: Arc<DynTool> = Arc::new(tool);
        let name = tool.spec().name.clone();
        Self::check_name(&name)?;
        let schema = Schema::compile(&tool.spec().parameters)
            .map_err(|error| ToolsetError::Schema { name: name.to_string(), problem: error.to_string() })?;
        let fingerprint = tool.spec().fingerprint();
        self.insert(name, Entry { tool, schema: Arc::new(schema), fingerprint, origin: origin.into() })
    }

    /// An error when no tool can have this name. Names are what vendors and MCP accept, so that a tool
    /// offered to one model can be offered to all.
    pub fn check_name(name: &str) -> Result<(), ToolsetError> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.is_empty() || name.len() > 128 || !name.chars().all(fine) {
            return Err(ToolsetError::Name { name: name.to_owned() });
        }
        Ok(())
    }

    fn insert(mut self, name: Arc<str>, entry: Entry) -> Result<Self, ToolsetError> {
        if let Some(first) = self.entries.get(&name) {
            return Err(ToolsetError::Clash {
                name: name.to_string(),
                first: first.origin.to_string(),
                second: entry.origin.to_string(),
            });
        }
        Arc::make_mut(&mut self.entries).insert(name, entry);
        Ok(self)
    }

    /// The tools of both sets. An error when a name is in both.
    pub fn combined(self, other: Toolset) -> Result<Self, ToolsetError> {
        let mut set = self;
        for (name, entry) in other.entries.iter() {
            set = set.insert(name.clone(), entry.clone())?;
        }
        Ok(set)
    }

    /// The tools whose names match; a pattern with a leading `!` takes names away.
    #[must_use]
    pub fn filtered<S: AsRef<str>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        let patterns = Patterns::new(patterns);
        self.keeping(|name, _| patterns.matches(name))
    }

    /// The tools of one category.
    #[must_use]
    pub fn in_category(self, category: &str) -> Self {
        self.keeping(|_, entry| entry.tool.policy().category.as_deref() == Some(category))
    }

    fn keeping(mut self, keep: impl Fn(&str, &Entry) -> bool) -> Self {
        Arc::make_mut(&mut self.entries).retain(|name, entry| keep(name, entry));
        self
    }

    /// The categories in use, in order of first appearance.
    pub fn categories(&self) -> Vec<Arc<str>> {
        let mut seen: Vec<Arc<str>> = Vec::new();
        for category in self.entries.values().filter_map(|entry| entry.tool.policy().category.clone()) {
            if !seen.contains(&category) {
                seen.push(category);
            }
        }
        seen
    }

    /// The same tools with `prefix` before each name.
    pub fn prefixed(self, prefix: &str) -> Result<Self, ToolsetError> {
        self.renamed(|name| format!("{prefix}{name}"))
    }

    /// The same tools under other names.
    pub fn renamed(self, new_name: impl Fn(&str) -> String) -> Result<Self, ToolsetError> {
        let mut set = Toolset::new();
        for (name, entry) in self.entries.iter() {
            let name: Arc<str> = new_name(name).into();
            Self::check_name(&name)?;
            let tool: Arc<DynTool> = Arc::new(ToolDef::of(entry.tool.clone()).with_name(name.clone()));
            let fingerprint = tool.spec().fingerprint();
            set = set.insert(name, Entry { tool, fingerprint, ..entry.clone() })?;
        }
        Ok(set)
    }

    /// The same tools, with `change` asked for another one in the place of each. What a tool tells models
    /// must stay as it is, so that nothing is compiled anew: one that tells something else is not taken.
    #[must_use]
    pub fn replaced(mut self, change: impl Fn(&Entry) -> Option<Arc<DynTool>>) -> Self {
        for entry in Arc::make_mut(&mut self.entries).values_mut() {
            if let Some(tool) = change(entry).filter(|tool| tool.spec() == entry.tool.spec()) {
                entry.tool = tool;
            }
        }
        self
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The tool of that name, or an error for the model that names the nearest one. The prefixes `functions.`
    /// and `tools.`, which some models put before every name, are taken off.
    pub fn find(&self, name: &str) -> Result<&Entry, ToolError> {
        let bare = || name.strip_prefix("functions.").or_else(|| name.strip_prefix("tools."));
        self.entries.get(name).or_else(|| self.entries.get(bare()?)).ok_or_else(|| {
            let error = ToolError::invalid(format!("there is no tool `{}`", crate::text::clip(name, 200)));
            match nearest(name, self.names()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None if self.entries.is_empty() => error.hint("no tools are available"),
                None => {
                    let names: Vec<_> = self.names().take(10).collect();
                    let more = self.entries.len().saturating_sub(names.len());
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    error.hint(format!("the tools are: {}{more}", names.join(", ")))
                }
            }
        })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    /// The tools with what was compiled for them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The definitions that models receive, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.entries.values().map(|entry| entry.tool.spec().clone()).collect()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Why a set cannot be built.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolsetError {
    /// Two tools have one name.
    Clash {
        /// The name.
        name: String,
        /// Where the tool that was there first comes from.
        first: String,
        /// Where the other comes from.
        second: String,
    },
    /// A name no model can be told.
    Name {
        /// The name.
        name: String,
    },
    /// The parameter schema is not valid JSON Schema, or not of an object.
    Schema {
        /// The tool.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for ToolsetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolsetError::Clash { name, first, second } => {
                write!(
                    f,
                    "two tools are called `{name}`: one from {first}, one from {second}; rename or prefix one of them"
                )
            }
            ToolsetError::Name { name } => write!(
                f,
                "`{name}` cannot be a tool's name: use 1 to 128 letters, digits, `_`, `-`, `.` or `/`"
            ),
            ToolsetError::Schema { name, problem } => {
                write!(f, "the parameter schema of tool `{name}` is not usable: {problem}")
            }
        }
    }
}

impl std::error::Error for ToolsetError {}

impl From<ToolsetError> for ToolError {
    fn from(error: ToolsetError) -> Self {
        ToolError::fatal(error.to_string()).with_source(error)
    }
}

/// Tools that are found at run time, such as those of a server. Asked each time tools are prepared.
pub trait ToolSource: Send + Sync {
    /// What the source is called, for messages.
    fn name(&self) -> &str;

    /// The tools it has now. Write it as `async fn`.
    fn tools(&self) -> impl Future<Output = Result<Toolset, ToolError>> + Send;
}

impl ToolSource for Toolset {
    fn name(&self) -> &str {
        "toolset"
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        Ok(self.clone())
    }
}

static REGISTRY: LazyLock<RwLock<Toolset>> = LazyLock::new(RwLock::default);

/// Puts a tool into the process-wide registry, for programs that want one. Nothing is offered to a model from
/// there unless the program says so.
pub fn register(tool: impl Tool + 'static) -> Result<(), ToolsetError> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    let grown = registry.clone().with_from(tool, "the registry")?;
    *registry = grown;
    Ok(())
}

/// The tools of the process-wide registry.
pub fn registered() -> Toolset {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolDef {
        ToolDef::dynamic(ToolSpec::new(name, "A tool."), |_, _| async { "ok" })
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let set = Toolset::new().with(tool("add")).unwrap().with(tool("sub")).unwrap();
        let error = set.find("Add").err().unwrap();
        assert_eq!(
            (error.message(), error.hint_text()),
            ("there is no tool `Add`", Some("did you mean `add`?"))
        );
        assert!(
            set.find("functions.add").is_ok()
                && set.find("tools.sub").is_ok()
                && set.find("other.add").is_err()
        );
        let far = set.find("zzzzzzz").err().unwrap();
        assert_eq!(far.hint_text(), Some("the tools are: add, sub"));
    }

    #[test]
    fn a_clash_names_both_sides() {
        let set = Toolset::new().with_from(tool("add"), "a.yaml").unwrap();
        let error = set.with_from(tool("add"), "server `math`").unwrap_err();
        assert_eq!(
            error,
            ToolsetError::Clash {
                name: "add".into(),
                first: "a.yaml".into(),
                second: "server `math`".into()
            }
        );
    }

    #[test]
    fn filters_categories_and_prefixes_make_new_sets() {
        let set = Toolset::new()
            .with(tool("web_search").with_category("web"))
            .unwrap()
            .with(tool("web_fetch").with_category("web"))
            .unwrap()
            .with(tool("add"))
            .unwrap();
        assert_eq!(set.clone().filtered(["web_*", "!*fetch"]).names().collect::<Vec<_>>(), ["web_search"]);
        assert_eq!(set.clone().in_category("web").len(), 2);
        assert_eq!(set.categories().len(), 1);
        let renamed = set.clone().prefixed("x_").unwrap();
        assert_eq!(renamed.get("x_add").unwrap().tool.spec().name.as_ref(), "x_add");
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn names_no_model_accepts_are_refused() {
        assert!(matches!(Toolset::new().with(tool("has space!")), Err(ToolsetError::Name { .. })));
        assert!(matches!(Toolset::new().with(tool("")), Err(ToolsetError::Name { .. })));
    }

    #[test]
    fn the_registry_keeps_what_was_registered() {
        register(tool("registry_test_tool")).unwrap();
        assert!(registered().get("registry_test_tool").is_some());
        assert!(register(tool("registry_test_tool")).is_err());
    }
}
