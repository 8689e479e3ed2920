//! The tools the program has: the standard ones, and the demo ones that need nothing.

use toolwright::Toolset;
use toolwright::browser::BrowserOptions;
use toolwright::data::DataTools;
use toolwright::model::Proxies;
use toolwright::tool::{ToolDef, ToolsetError};
use toolwright::tools::Options;

use crate::demo;

/// Every tool.
pub fn all() -> Result<Toolset, ToolsetError> {
    demo::tools()?.combined(toolwright::tools::standard_with(&options())?)
}

/// How they are set up: pages are fetched through the proxies of the environment.
fn options() -> Options {
    Options::new().proxies(proxies())
}

/// How the browser is set up: the environment may name its program.
pub fn browser_options() -> BrowserOptions {
    match std::env::var("TOOLWRIGHT_BROWSER") {
        Ok(program) if !program.is_empty() => BrowserOptions::new().program(program),
        _ => BrowserOptions::new(),
    }
}

/// The proxies that the environment names.
pub fn proxies() -> Proxies {
    Proxies::from_environment_when_dialled(|name| std::env::var(name).ok())
}

/// The tools to call `name` among, and the name it has there: another system's name for a tool stands for it
/// too.
pub fn for_call(name: &str) -> Result<(Toolset, String), ToolsetError> {
    let tools = all()?;
    if tools.get(name).is_none()
        && let Some(tool) = toolwright::tools::resolve_with(name, &options()).or_else(|| search(name))
    {
        let own = tool.spec().name.to_string();
        return Ok((Toolset::new().with(tool)?, own));
    }
    if tools.get(name).is_none()
        && let Some(tool) = toolwright::browser::browser_tool(name, &browser_options())
    {
        return Ok((Toolset::new().with(tool)?, name.to_owned()));
    }
    Ok((tools, name.to_owned()))
}

/// A tool that searches the web with what the variables of the process set up. A `.env` file cannot send
/// queries and keys elsewhere.
fn search(name: &str) -> Option<ToolDef> {
    if !["web_search", "search_web"].contains(&name) {
        return None;
    }
    let data = DataTools::new(".", |name| std::env::var(name).ok());
    data.tool(name, &serde_json::Value::Null)?.ok()
}

/// True when a tool works in a sandbox.
pub fn needs_sandbox(tools: &Toolset, name: &str) -> bool {
    tools.get(name).is_some_and(|entry| entry.tool.policy().sandboxed)
}

/// The tools as definitions.
pub fn definitions(tools: &Toolset) -> impl Iterator<Item = ToolDef> {
    tools.iter().map(|entry| ToolDef::of(entry.tool.clone()))
}
