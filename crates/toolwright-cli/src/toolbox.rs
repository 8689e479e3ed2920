//! The tools the program has, and the profiles that models are offered.

use clap::ValueEnum;
use toolwright::Toolset;
use toolwright::browser::BrowserOptions;
use toolwright::data::DataTools;
use toolwright::desktop::DesktopOptions;
use toolwright::model::Proxies;
use toolwright::tool::{ToolDef, ToolsetError};
use toolwright::tools::Options;

use crate::report::Usage;
use crate::settings::Settings;
use crate::{commands, demo};

/// The built-in tools that a model is offered where no file is used. Every definition takes room in each
/// request, and small models choose worse among many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// A shell, files, search, pages of the web, a plan, questions.
    #[default]
    Default,
    /// For work on programs: also a shell that stays open, patches, listings, Python.
    Code,
    /// For looking things up: pages, a browser, web search where it is set up, notes.
    Research,
    /// For tables and data: Python, CSV, JSON, statistics.
    Data,
    /// Every built-in tool.
    All,
    /// The standard tools, and those of the demo.
    #[value(hide = true)]
    Demo,
}

/// The variable that names a profile.
pub const PROFILE_VARIABLE: &str = "TOOLWRIGHT_TOOL_PROFILE";

const DEFAULT: &[&str] = &[
    "bash",
    "read_file",
    "write_file",
    "edit_file",
    "grep_files",
    "fetch_url_content",
    "update_plan",
    "user_input",
];

const CODE: &[&str] = &[
    "bash",
    "bash_session",
    "python",
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "list_files",
    "glob_files",
    "grep_files",
    "fetch_page_markdown",
    "update_plan",
    "ask_user",
];

const RESEARCH: &[&str] = &[
    "web_search",
    "fetch_page_markdown",
    "fetch_page_links",
    "fetch_content",
    "browser_open",
    "browser_read",
    "browser_find",
    "browser_act",
    "browser_look",
    "browser_tabs",
    "read_file",
    "write_file",
    "grep_files",
    "memory",
    "update_plan",
    "ask_user",
];

const DATA: &[&str] = &[
    "bash",
    "python",
    "read_file",
    "write_file",
    "glob_files",
    "grep_files",
    "parse_csv",
    "analyze_data",
    "transform_json",
    "fetch_content",
    "update_plan",
    "ask_user",
];

impl Profile {
    /// The profile that is named: by an option, by the environment, in the person's settings; or the default.
    pub fn chosen(option: Option<Profile>) -> anyhow::Result<Profile> {
        if let Some(profile) = option {
            return Ok(profile);
        }
        match std::env::var(PROFILE_VARIABLE).ok().filter(|name| !name.is_empty()) {
            Some(name) => Profile::from_str(&name, false)
                .map_err(|_| Usage::new(format!("unknown profile `{name}` in {PROFILE_VARIABLE}")).into()),
            None => Ok(Settings::read()?.profile.unwrap_or_default()),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Its tools. One that is not set up here, such as a web search without a key, is left out.
    pub fn tools(self) -> Result<Toolset, ToolsetError> {
        let names = match self {
            Profile::Default => DEFAULT,
            Profile::Code => CODE,
            Profile::Research => RESEARCH,
            Profile::Data => DATA,
            Profile::Demo => return all(),
            Profile::All => {
                return [DEFAULT, CODE, RESEARCH, DATA].concat().iter().try_fold(standard()?, with_named);
            }
        };
        names.iter().try_fold(Toolset::new(), with_named)
    }
}

/// The tools that a model is offered: those of the profile, and those that patterns name among all there are.
pub fn offered(profile: Profile, patterns: &[String]) -> anyhow::Result<Toolset> {
    let takes_away = |pattern: &String| pattern.starts_with('!') || pattern == crate::files::NO_TOOLS;
    let tools = match patterns.iter().all(takes_away) {
        true => profile.tools()?,
        false => {
            let all = if profile == Profile::Demo { all()? } else { Profile::All.tools()? };
            patterns.iter().map(String::as_str).try_fold(all, |tools, name| with_named(tools, &name))?
        }
    };
    commands::tools::chosen(tools, patterns)
}

/// The set with the tool of that name, if there is one.
fn with_named(tools: Toolset, name: &&str) -> Result<Toolset, ToolsetError> {
    match named(name).filter(|tool| tools.get(&tool.spec().name).is_none()) {
        Some(tool) => tools.with_from(tool, "the program"),
        None => Ok(tools),
    }
}

/// Every tool that needs no setting up, the demo's own included.
pub fn all() -> Result<Toolset, ToolsetError> {
    demo::tools()?.combined(standard()?)
}

fn standard() -> Result<Toolset, ToolsetError> {
    toolwright::tools::standard_with(&options())
}

/// The tool of that name, or the one that another system calls so.
pub fn named(name: &str) -> Option<ToolDef> {
    let of_demo = || Some(ToolDef::of(demo::tools().ok()?.get(name)?.tool.clone()));
    toolwright::tools::resolve_with(name, &options())
        .or_else(|| search(name))
        .or_else(|| toolwright::browser::browser_tool(name, &browser_options()))
        .or_else(|| toolwright::desktop::desktop_tool(name, &DesktopOptions::new()))
        .or_else(of_demo)
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
        && let Some(tool) = named(name)
    {
        let own = tool.spec().name.to_string();
        return Ok((Toolset::new().with(tool)?, own));
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

#[cfg(test)]
mod tests {
    use toolwright::model::tokens::estimate_tool;

    use super::*;

    fn tokens(tools: &Toolset) -> u64 {
        tools.specs().iter().map(estimate_tool).sum()
    }

    /// A context of 4,096 tokens, which is what many local servers have, holds them with room for work.
    #[test]
    fn the_default_tools_take_little_room_in_a_request() {
        let tools = Profile::Default.tools().unwrap();
        let each: Vec<(String, u64)> =
            tools.specs().iter().map(|spec| (spec.name.to_string(), estimate_tool(spec))).collect();
        assert_eq!(tools.len(), DEFAULT.len());
        assert!(tokens(&tools) < 1500, "{} tokens: {each:?}", tokens(&tools));
    }

    #[test]
    fn every_tool_of_a_profile_is_there_but_those_that_need_a_key() {
        for (profile, names) in [(Profile::Code, CODE), (Profile::Research, RESEARCH), (Profile::Data, DATA)]
        {
            let tools = profile.tools().unwrap();
            let missing: Vec<&&str> = names.iter().filter(|name| tools.get(name).is_none()).collect();
            assert!(missing.iter().all(|name| **name == "web_search"), "{profile:?}: {missing:?}");
        }
    }

    #[test]
    fn names_reach_tools_outside_the_profile_and_the_demo_tools_are_in_none() {
        let names = |profile, patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|name| (*name).to_owned()).collect();
            let tools = offered(profile, &patterns).unwrap();
            tools.names().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(Profile::Default, &["add", "fetch_content"]), ["fetch_content", "add"]);
        assert_eq!(names(Profile::Default, &["none"]), Vec::<String>::new());
        assert_eq!(names(Profile::Default, &["!bash"]).len(), DEFAULT.len() - 1);
        assert!(!names(Profile::All, &[]).iter().any(|name| name == "add" || name == "countdown"));
        let error = offered(Profile::Default, &["read_fil".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("`read_fil`"));
    }
}
