//! The instructions that `ask` and `chat` give a model by default.

use std::path::Path;

use anyhow::Context as _;
use toolwright::Toolset;

use crate::report::Usage;
use crate::settings::Settings;

/// How often in a row a model may make the same calls with the same results before a call is refused.
pub const REPEATS: u64 = 2;

/// For a model with tools. Without the second sentence small models repeat a call until the turn limit.
const WITH_TOOLS: &str = "You are an assistant in a terminal, and you act through the tools you are given. Call a tool when you need \
     what it gives, never the same call twice; as soon as the results hold what was asked for, answer in plain \
     words. Look things up instead of guessing. If a call fails, read its error before you try again. Be brief.";

/// For a model without tools.
const WITHOUT_TOOLS: &str = "You are an assistant in a terminal. Answer what is asked, and be brief.";

/// The usual instructions for a model with these tools: the person's own, or the program's.
pub fn usual(settings: &Settings, tools: &Toolset) -> Option<String> {
    let usual = || if tools.is_empty() { WITHOUT_TOOLS } else { WITH_TOOLS }.to_owned();
    Some(settings.system.clone().unwrap_or_else(usual)).filter(|text| !text.is_empty())
}

/// The instructions that were given: a text, or `@FILE`.
pub fn given(text: &str) -> anyhow::Result<String> {
    let Some(path) = text.strip_prefix('@').map(Path::new) else { return Ok(text.to_owned()) };
    let read = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()));
    read.map_err(|error| Usage::new(format!("{error:#}")).into())
}
