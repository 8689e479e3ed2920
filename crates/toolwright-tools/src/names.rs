//! From a name to a tool. One table: the tools, and what other systems call them.

use serde_json::Value;
use toolwright_core::{ToolDef, ToolError, Toolset, ToolsetError};
use toolwright_net::Proxies;

use crate::compat::{self, Make};
use crate::options::Options;
use crate::{
    apply_patch, approval_tokens, bash_session, data, edit_file, fetch, file_info, glob_files, grep_files,
    list_files, memory, people, plan, read_figure, read_file, shell, show_file, text_editor, thought,
    write_file,
};

/// The standard tools, in the order they are listed.
const STANDARD: [(&str, Make); 21] = [
    ("bash", shell::bash),
    ("bash_session", bash_session::bash_session),
    ("python", shell::python),
    ("run_process", shell::run_process),
    ("run_python_script", shell::run_python_script),
    ("read_file", read_file::read_file),
    ("read_figure", read_figure::read_figure),
    ("write_file", write_file::write_file),
    ("edit_file", edit_file::edit_file),
    ("text_editor", text_editor::text_editor),
    ("apply_patch", apply_patch::apply_patch),
    ("list_files", list_files::list_files),
    ("list_directory", list_files::list_directory),
    ("glob_files", glob_files::glob_files),
    ("grep_files", grep_files::grep_files),
    ("grep", grep_files::grep),
    ("file_info", file_info::file_info),
    ("memory", memory::memory),
    ("update_plan", plan::update_plan),
    ("todo_write", plan::todo_write),
    ("think", |_| thought::think()),
];

/// Tools that are not among the standard ones, as they need the web or a person or nothing of the run, and
/// other names of standard tools.
const MORE: [(&str, Make); 23] = [
    ("parse_csv", data::parse_csv),
    ("analyze_data", data::analyze_data),
    ("transform_json", data::transform_json),
    ("show_file", show_file::show_file),
    ("fetch_content", fetch::fetch_content),
    ("fetch_page_text", fetch::fetch_page_text),
    ("fetch_page_markdown", fetch::fetch_page_markdown),
    ("fetch_page_links", fetch::fetch_page_links),
    ("fetch_url_content", fetch::fetch_url_content),
    ("check_website_status", fetch::check_website_status),
    ("user_input", people::user_input),
    ("request_approval", approval_tokens::request_approval),
    ("validate_approval", approval_tokens::validate_approval),
    ("consume_approval", approval_tokens::consume_approval),
    ("ask_user", people::ask_user),
    ("notify_user", people::notify_user),
    ("str_replace_based_edit_tool", |options| {
        text_editor::text_editor(options).with_name("str_replace_based_edit_tool")
    }),
    ("str_replace_editor", |options| text_editor::text_editor(options).with_name("str_replace_editor")),
    ("search_and_replace", |options| edit_file::edit_file(options).with_name("search_and_replace")),
    ("list_dir", |options| list_files::list_directory(options).with_name("list_dir")),
    ("glob", |options| glob_files::glob_files(options).with_name("glob")),
    ("patch", |options| apply_patch::apply_patch(options).with_name("patch")),
    ("create_file", |options| write_file::write_file(options).with_name("create_file")),
];

/// Every standard tool, set up in the usual way.
pub fn standard() -> Result<Toolset, ToolsetError> {
    standard_with(&Options::new())
}

/// Every standard tool, set up as `options` say.
pub fn standard_with(options: &Options) -> Result<Toolset, ToolsetError> {
    let mut set = Toolset::new();
    for (_, make) in STANDARD {
        set = set.with_from(make(options), "the standard tools")?;
    }
    Ok(set)
}

/// The tool that a name stands for: one of the standard tools, or what another system calls it.
///
/// ```
/// use toolwright_tools::resolve;
///
/// assert_eq!(&*resolve("llm_workers.tools.fs.read_file").unwrap().spec().name, "read_file");
/// assert_eq!(&*resolve("str_replace_editor").unwrap().spec().name, "str_replace_editor");
/// assert!(resolve("no_such_tool").is_none());
/// ```
pub fn resolve(reference: &str) -> Option<ToolDef> {
    resolve_with(reference, &Options::new())
}

/// The tool that a name stands for, set up as `options` say.
pub fn resolve_with(reference: &str, options: &Options) -> Option<ToolDef> {
    let class = class_name(reference);
    let reference = class.as_deref().unwrap_or(reference);
    let (_, make) = all().find(|(name, _)| *name == reference)?;
    Some(compat::as_there(reference, make(options)))
}

/// The tool that a name stands for, set up as a file's `config` says; see [`Options::from_config`]. `think`
/// also takes `description` and `thought_description`, and `memory` takes `initial_data` (paths and texts)
/// and `readonly`.
///
/// ```
/// use serde_json::json;
/// use toolwright_tools::configured;
///
/// let think = configured("think", &json!({"thought_description": "What you make of the rules."})).unwrap()?;
/// assert_eq!(think.spec().parameters["properties"]["thought"]["description"], "What you make of the rules.");
/// assert!(configured("bash", &json!({"thought_description": "none"})).unwrap().is_err());
/// assert!(configured("no_such_tool", &json!({})).is_none());
/// # Ok::<(), toolwright_core::ToolError>(())
/// ```
pub fn configured(reference: &str, config: &Value) -> Option<Result<ToolDef, ToolError>> {
    configured_through(reference, config, &Proxies::none())
}

/// The same, where pages are fetched through proxies.
pub fn configured_through(
    reference: &str,
    config: &Value,
    proxies: &Proxies,
) -> Option<Result<ToolDef, ToolError>> {
    let usual = resolve(reference)?;
    let mut config = config.clone();
    let tool = if *usual.spec().name == *"think" {
        thought::from_config(&mut config).and_then(|tool| Options::from_config(&config).map(|_| tool))
    } else if *usual.spec().name == *"memory" {
        memory::Memory::from_config(&mut config)
            .and_then(|memory| Ok(memory.tool(&Options::from_config(&config)?)))
    } else {
        let options = Options::from_config(&config).map(|options| options.proxies(proxies.clone()));
        options.map(|options| resolve_with(reference, &options).unwrap_or(usual))
    };
    Some(tool)
}

/// The tools that another system imports together.
///
/// ```
/// let files = toolwright_tools::toolkit("llm_workers.tools.fs.FilesystemToolkit").unwrap()?;
/// assert_eq!(files.len(), 7);
/// # Ok::<(), toolwright_core::ToolsetError>(())
/// ```
pub fn toolkit(reference: &str) -> Option<Result<Toolset, ToolsetError>> {
    Some(compat::toolkit(reference)?.filter_map(resolve).try_fold(Toolset::new(), Toolset::with))
}

/// Every name that [`resolve`] knows: the tools' own first.
pub fn references() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| *name)
}

/// What the class of a tool of llm-workers makes: `fs.ReadFileTool` makes `fs.read_file`.
fn class_name(reference: &str) -> Option<String> {
    let (module, class) = reference.strip_prefix("llm_workers.tools.")?.rsplit_once('.')?;
    let class =
        class.strip_suffix("Tool").filter(|class| class.starts_with(|c: char| c.is_ascii_uppercase()))?;
    let mut name = format!("llm_workers.tools.{module}.");
    for (at, c) in class.char_indices() {
        if at > 0 && c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    Some(name)
}

fn all() -> impl Iterator<Item = &'static (&'static str, Make)> {
    STANDARD.iter().chain(&MORE).chain(compat::all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::Tool as _;

    #[test]
    fn every_alias_leads_to_a_parameter() {
        for reference in references() {
            let tool = resolve(reference).unwrap();
            let names: Vec<&str> = tool.spec().parameter_names().collect();
            for (alias, parameter) in &tool.policy().aliases {
                assert!(names.contains(&&**parameter), "{reference}: {parameter}");
                assert!(!names.contains(&&**alias), "{reference}: {alias} is a parameter");
            }
        }
    }

    #[test]
    fn every_tool_of_llm_workers_is_there() {
        for (module, names) in [
            (
                "fs",
                &[
                    "read_file",
                    "write_file",
                    "edit_file",
                    "glob_files",
                    "grep_files",
                    "file_info",
                    "list_files",
                ][..],
            ),
            ("unsafe", &["run_python_script", "bash", "run_process", "show_file"]),
            ("fetch", &["fetch_content", "fetch_page_text", "fetch_page_markdown", "fetch_page_links"]),
            ("misc", &["user_input", "request_approval", "validate_approval", "consume_approval"]),
        ] {
            for name in names {
                let tool = resolve(&format!("llm_workers.tools.{module}.{name}"));
                assert_eq!(tool.as_ref().map(|tool| &*tool.spec().name), Some(*name), "{module}");
            }
        }
    }

    #[test]
    fn an_approval_is_asked_for_under_every_name() {
        for reference in ["request_approval", "llm_workers.tools.misc.request_approval"] {
            let tool = resolve(reference).unwrap();
            let prepared = tool.prepared(serde_json::json!({"prompt": "all of it"})).unwrap();
            assert!(prepared.wants_confirmation(), "{reference}");
        }
    }

    #[test]
    fn classes_make_the_tools_they_are_named_after() {
        for (class, name) in [
            ("llm_workers.tools.fs.ReadFileTool", "read_file"),
            ("llm_workers.tools.unsafe.BashTool", "bash"),
            ("llm_workers.tools.fetch.FetchPageMarkdownTool", "fetch_page_markdown"),
            ("llm_workers.tools.misc.UserInputTool", "user_input"),
            ("llm_workers.tools.unsafe.RunPythonScriptTool", "run_python_script"),
        ] {
            assert_eq!(resolve(class).map(|tool| tool.spec().name.to_string()).as_deref(), Some(name));
        }
        assert!(resolve("llm_workers.tools.fs.Tool").is_none() && resolve("ReadFileTool").is_none());
    }

    #[test]
    fn a_tool_is_called_what_it_is_referred_to_by() {
        for reference in references() {
            let tool = resolve(reference).unwrap();
            assert_eq!(reference.rsplit('.').next(), Some(&*tool.spec().name));
        }
        assert_eq!(standard().unwrap().len(), STANDARD.len());
    }

    #[test]
    fn tools_that_change_files_run_one_at_a_time() {
        for (name, make) in STANDARD {
            let tool = make(&Options::new());
            let reads = tool.spec().annotations.read_only == Some(true);
            let writes =
                ["write_file", "edit_file", "text_editor", "apply_patch", "bash_session"].contains(&name);
            assert_eq!(tool.policy().is_parallel(), !writes, "{name}");
            assert!(!(reads && writes), "{name}");
        }
    }

    /// F12: commands and pages are bounded; questions to a person are not.
    #[test]
    fn every_tool_takes_no_longer_than_it_documents() {
        let seconds = |name: &str, options: &Options| {
            let (_, make) = STANDARD.iter().chain(MORE.iter()).find(|(known, _)| *known == name).unwrap();
            make(options).policy().timeout.map(|time| time.as_secs())
        };
        let usual = Options::new();
        for (name, time) in [
            ("bash", Some(600)),
            ("python", Some(600)),
            ("text_editor", Some(180)),
            ("read_file", Some(600)),
            ("bash_session", Some(210)),
            ("fetch_content", Some(60)),
            ("fetch_page_text", Some(60)),
            ("fetch_url_content", Some(60)),
            ("check_website_status", Some(60)),
            ("ask_user", None),
            ("user_input", None),
        ] {
            assert_eq!(seconds(name, &usual), time, "{name}");
        }
        let config =
            |timeout: serde_json::Value| Options::from_config(&serde_json::json!({"timeout": timeout}));
        assert_eq!(seconds("bash", &config("none".into()).unwrap()), None);
        assert_eq!(seconds("text_editor", &config(900.into()).unwrap()), Some(900));
        for wrong in
            [serde_json::json!("never"), serde_json::json!(0), serde_json::json!(-1), serde_json::json!(true)]
        {
            assert!(config(wrong.clone()).is_err(), "{wrong}");
        }
        let mut wait = Options::new().wait_for_output(std::time::Duration::from_secs(5));
        assert_eq!(seconds("bash_session", &wait), Some(185));
        wait = wait.without_timeout();
        assert_eq!(seconds("bash_session", &wait), None);
    }

    #[test]
    fn tools_of_a_shell_say_which_parameter_it_runs() {
        for name in [
            "bash",
            "bash_session",
            "inspect_ai.tool.bash",
            "inspect_ai.tool.bash_session",
            "llm_workers.tools.unsafe.bash",
            "shell_execute",
            "shell_execute_streaming",
        ] {
            let tool = resolve(name).unwrap();
            assert_eq!(tool.policy().shell.len(), 1, "{name}");
        }
    }
}
