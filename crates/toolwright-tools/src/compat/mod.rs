//! The tools of other systems, under their names and with the parameters and results they have there: thin
//! adapters over the tools and engines of this crate, with one table for each system.

mod call_descriptions;
mod inspect;
mod llm_workers;
mod marsys;

use toolwright_core::ToolDef;

use crate::options::Options;

/// Makes a tool.
pub(crate) type Make = fn(&Options) -> ToolDef;

/// Every name of another system, and what makes the tool.
pub(crate) fn all() -> impl Iterator<Item = &'static (&'static str, Make)> {
    llm_workers::TOOLS.iter().chain(&inspect::TOOLS).chain(&marsys::TOOLS)
}

/// The tool that another system has under `reference`, with what all its tools have there.
pub(crate) fn as_there(reference: &str, tool: ToolDef) -> ToolDef {
    let tool = if marsys::takes_reasoning(reference) { marsys::with_reasoning(tool) } else { tool };
    call_descriptions::described_as_there(reference, tool)
}

/// The names of the tools that llm-workers imports together.
pub(crate) fn toolkit(reference: &str) -> Option<impl Iterator<Item = &'static str>> {
    let module = reference.strip_suffix("FilesystemToolkit")?;
    let is_one = module == "llm_workers.tools.fs.";
    let names = llm_workers::TOOLS.iter().map(|(name, _)| *name);
    is_one.then(|| names.filter(|name| name.starts_with("llm_workers.tools.fs.")))
}
