//! `toolwright check`: everything that can be known before running.

use std::path::Path;

use anyhow::Context as _;
use toolwright::lang::{Diagnostic, Loaded, MissingEnv, Severity};
use toolwright::{Policy, Toolset};

use crate::answers::Later;
use crate::args::{Check, SandboxArgs};
use crate::prompt::printable;
use crate::report::{self, Usage, counted};
use crate::{demo, files, sandboxes, toolbox};

pub fn run(what: &Check, json: bool) -> anyhow::Result<()> {
    let default = Path::new(files::DEFAULT);
    let file = what
        .file
        .as_deref()
        .or(what.also_file.as_deref())
        .or_else(|| (what.policy.is_none() && default.exists()).then_some(default));
    if let Some(file) = file {
        return check_file(file, what.policy.as_deref(), what.start_servers, json);
    }
    let tools = toolbox::all()?;
    let mut problems: Vec<String> =
        toolbox::definitions(&tools).flat_map(|tool| demo::problems(&tool)).collect();
    let (mut rules, mut warnings) = (None, Vec::new());
    if let Some(path) = &what.policy {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()));
        match Policy::from_yaml(&text.map_err(|error| Usage::new(format!("{error:#}")))?) {
            Ok(policy) => {
                rules = Some(policy.rules().len());
                warnings = unknown(&policy, &tools, path);
            }
            Err(error) => {
                problems
                    .extend(error.problems().iter().map(|problem| format!("{}: {problem}", path.display())));
            }
        }
    }
    if json {
        report::line(serde_json::json!({
            "tools": tools.len(), "rules": rules, "problems": problems, "warnings": warnings
        }))?;
    }
    if !json {
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    if !problems.is_empty() {
        if !json {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
        }
        return Err(report::found(problems.len()).into());
    }
    if !json {
        let rules = rules.map(|count| format!(", {}", counted(count as u64, "rule"))).unwrap_or_default();
        let tools = counted(tools.len() as u64, "tool");
        report::line(format_args!("{tools}{rules}: {}", outcome(warnings.len())))?;
    }
    Ok(())
}

fn outcome(warnings: usize) -> String {
    if warnings == 0 { "no problems".to_owned() } else { counted(warnings as u64, "warning") }
}

/// What a policy says about tools and parameters that are not there. It may be meant for others too.
fn unknown(policy: &Policy, tools: &Toolset, path: &Path) -> Vec<String> {
    let told = policy.unknown_tools(tools).into_iter().chain(policy.unknown_parameters(tools));
    told.map(|text| format!("{}: {text}", path.display())).collect()
}

/// All problems of a file of tools, its policy, limits and sandbox included.
fn check_file(path: &Path, policy: Option<&Path>, start_servers: bool, json: bool) -> anyhow::Result<()> {
    files::exists(path)?;
    let host = files::host(MissingEnv::Empty, Later::default())?;
    let host = if start_servers { host } else { host.offline() };
    let loaded = toolwright::lang::load_all(path, &host);
    let mut problems = loaded.check();
    problems.extend(section_problems(&loaded));
    let own = own_rules(&loaded);
    // A policy beside the file is one more place for mistakes.
    let beside = match policy {
        Some(path) => unknown(&crate::commands::ask::policy(Some(path))?, loaded.tools(), path),
        None => Vec::new(),
    };
    let warnings = own.len() + beside.len();
    problems.extend(own);
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if json {
        let beside =
            beside.iter().map(|message| serde_json::json!({"severity": "warning", "message": message}));
        let shown: Vec<_> = problems
            .iter()
            .map(|problem| {
                serde_json::json!({
                    "severity": problem.severity.as_str(), "file": problem.file, "line": problem.line,
                    "column": problem.column, "message": problem.message, "hint": problem.hint
                })
            })
            .chain(beside)
            .collect();
        report::line(serde_json::json!({"tools": loaded.tools().len(), "problems": shown}))?;
    }
    if !json {
        beside.iter().for_each(|warning| eprintln!("warning: {}\n", printable(warning)));
    }
    if errors > 0 {
        let refused = if json { report::found(errors) } else { files::refused(&problems) };
        return Err(refused.into());
    }
    if !json {
        problems.iter().for_each(|warning| eprintln!("{}\n", printable(&warning.render())));
        let tools = counted(loaded.tools().len() as u64, "tool");
        report::line(format_args!("{}: {tools}: {}", path.display(), outcome(warnings)))?;
    }
    Ok(())
}

/// What is wrong with the sections that are the program's business; `limits` is checked with the file.
fn section_problems(loaded: &Loaded) -> Vec<Diagnostic> {
    let sandbox = || {
        let asked = sandboxes::of(&SandboxArgs::default(), Some(loaded))?;
        sandboxes::check(&asked)
    };
    let found = [
        ("policy", files::policy(loaded).map(drop)),
        ("models", crate::models::named(Some(loaded)).map(drop)),
        ("sandbox", sandbox()),
    ];
    let told = found.into_iter().filter_map(|(name, found)| {
        let (section, error) = (loaded.section(name)?, found.err()?);
        // The place is told beside the message.
        let message = format!("{error:#}");
        let message = message.strip_prefix(&format!("{}: ", section.place)).unwrap_or(&message);
        let named =
            if message.contains(&format!("`{name}`")) { String::new() } else { format!("`{name}`: ") };
        Some(loaded.problem_in(section, format!("{named}{message}")))
    });
    told.collect()
}

/// What the rules of a file say about tools and parameters that are not there. A parameter that a tool of the file does
/// not have is a mistake; a tool may come from elsewhere.
fn own_rules(loaded: &Loaded) -> Vec<Diagnostic> {
    let Some(section) = loaded.section("policy") else { return Vec::new() };
    // What is wrong with the rules themselves is told with the section.
    let Ok(policy) = Policy::from_value(section.value.clone()) else { return Vec::new() };
    let told = |severity: Severity, texts: Vec<String>| {
        let told = texts.into_iter().map(move |text| {
            let mut problem = loaded.problem_in(section, text);
            problem.severity = severity;
            problem
        });
        told.collect::<Vec<_>>()
    };
    let mut found = told(Severity::Warning, policy.unknown_tools(loaded.tools()));
    found.extend(told(Severity::Error, policy.unknown_parameters(loaded.tools())));
    found
}
