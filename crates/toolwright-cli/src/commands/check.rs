//! `toolwright check`: everything that can be known before running.

use std::path::Path;

use anyhow::Context as _;
use toolwright::Policy;
use toolwright::lang::{Diagnostic, Loaded, MissingEnv, Severity};

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
        // A policy beside the file is one more place for mistakes.
        crate::commands::ask::policy(what.policy.as_deref())?;
        return check_file(file, what.start_servers, json);
    }
    let tools = toolbox::all()?;
    let mut problems: Vec<String> =
        toolbox::definitions(&tools).flat_map(|tool| demo::problems(&tool)).collect();
    let mut rules = None;
    if let Some(path) = &what.policy {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()));
        match Policy::from_yaml(&text.map_err(|error| Usage::new(format!("{error:#}")))?) {
            Ok(policy) => rules = Some(policy.rules().len()),
            Err(error) => {
                problems
                    .extend(error.problems().iter().map(|problem| format!("{}: {problem}", path.display())));
            }
        }
    }
    if json {
        report::line(serde_json::json!({"tools": tools.len(), "rules": rules, "problems": problems}))?;
    }
    if !problems.is_empty() {
        if !json {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
        }
        return Err(report::found(problems.len()).into());
    }
    if !json {
        let rules = rules.map(|count| format!(", {}", counted(count as u64, "rule"))).unwrap_or_default();
        report::line(format_args!("{}{rules}: no problems", counted(tools.len() as u64, "tool")))?;
    }
    Ok(())
}

/// All problems of a file of tools, its policy, limits and sandbox included.
fn check_file(path: &Path, start_servers: bool, json: bool) -> anyhow::Result<()> {
    files::exists(path)?;
    let host = files::host(MissingEnv::Empty, Later::default())?;
    let host = if start_servers { host } else { host.offline() };
    let loaded = toolwright::lang::load_all(path, &host);
    let mut problems = loaded.check();
    problems.extend(section_problems(&loaded));
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if json {
        let shown: Vec<_> = problems
            .iter()
            .map(|problem| {
                serde_json::json!({
                    "severity": problem.severity.as_str(), "file": problem.file, "line": problem.line,
                    "column": problem.column, "message": problem.message, "hint": problem.hint
                })
            })
            .collect();
        report::line(serde_json::json!({"tools": loaded.tools().len(), "problems": shown}))?;
    }
    if errors > 0 {
        let refused = if json { report::found(errors) } else { files::refused(&problems) };
        return Err(refused.into());
    }
    if !json {
        problems.iter().for_each(|warning| eprintln!("{}\n", printable(&warning.render())));
        let tools = counted(loaded.tools().len() as u64, "tool");
        report::line(format_args!("{}: {tools}: no problems", path.display()))?;
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
