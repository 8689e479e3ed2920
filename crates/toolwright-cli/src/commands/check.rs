//! `toolwright check`: everything that can be known before running.

use std::path::Path;

use anyhow::Context as _;
use toolwright::lang::Severity;
use toolwright::{Policy, Toolset};
use toolwright_core::DataError;

use crate::args::Check;
use crate::console::Console;
use crate::opening::{self, FileChoice};
use crate::prompt::printable;
use crate::report::{self, Usage, counted};
use crate::{demo, files, toolbox};

pub async fn run(what: Check, console: &Console) -> anyhow::Result<()> {
    let named = what.file.or(what.also_file).map(FileChoice::named);
    let here = || files::is_here().then(|| FileChoice::found(files::DEFAULT));
    match named.or_else(here) {
        Some(file) => check_file(console, &file, what.policy.as_deref(), what.start_servers).await,
        None => check_built_in(console, what.policy.as_deref()),
    }
}

/// All problems of the built-in tools, and of a policy for them.
fn check_built_in(console: &Console, policy: Option<&Path>) -> anyhow::Result<()> {
    let json = console.is_json();
    let tools = toolbox::all()?;
    let PolicyFindings { count, problems: in_rules, warnings } = PolicyFindings::read(policy, &tools)?;
    let mut problems: Vec<String> =
        toolbox::definitions(&tools).flat_map(|tool| demo::problems(&tool)).collect();
    problems.extend(in_rules);
    if json {
        console.line(serde_json::json!({
            "tools": tools.len(), "rules": count, "problems": problems, "warnings": warnings
        }))?;
    } else {
        tell(console, &problems, &warnings);
    }
    if !problems.is_empty() {
        return Err(report::found(problems.len()).into());
    }
    if !json {
        let tools = counted(tools.len() as u64, "tool");
        console.line(format_args!("{tools}{}: {}", and_rules(count), outcome(warnings.len())))?;
    }
    Ok(())
}

/// What there is to say about a policy in a file of its own.
#[derive(Default)]
struct PolicyFindings {
    /// How many there are, when they can be read.
    count: Option<usize>,
    problems: Vec<String>,
    /// Tools that are not there. The policy may be meant for others too.
    warnings: Vec<String>,
}

impl PolicyFindings {
    fn read(path: Option<&Path>, tools: &Toolset) -> anyhow::Result<PolicyFindings> {
        let Some(path) = path else { return Ok(PolicyFindings::default()) };
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()));
        let text = text.map_err(|error| Usage::new(format!("{error:#}")))?;
        let told = |misfits: Vec<DataError>| {
            misfits.into_iter().map(|misfit| format!("{}: {misfit}", path.display())).collect::<Vec<_>>()
        };
        Ok(match Policy::from_yaml(&text) {
            Ok(policy) => {
                let problems = told(policy.unknown_parameters(tools));
                let warnings = told(policy.unknown_tools(tools));
                PolicyFindings { count: Some(policy.rules().len()), problems, warnings }
            }
            Err(error) => {
                PolicyFindings { problems: told(error.problems().to_vec()), ..PolicyFindings::default() }
            }
        })
    }
}

/// What is wrong with a policy, for a person.
fn tell(console: &Console, problems: &[String], warnings: &[String]) {
    warnings.iter().for_each(|warning| console.say(format_args!("warning: {}", printable(warning))));
    problems.iter().for_each(|problem| console.say(format_args!("error: {}", printable(problem))));
}

fn and_rules(count: Option<usize>) -> String {
    count.map(|count| format!(", {}", counted(count as u64, "rule"))).unwrap_or_default()
}

fn outcome(warnings: usize) -> String {
    if warnings == 0 { "no problems".to_owned() } else { counted(warnings as u64, "warning") }
}

/// All problems of a file of tools, its policy, limits and sandbox included.
async fn check_file(
    console: &Console,
    choice: &FileChoice,
    policy: Option<&Path>,
    start_servers: bool,
) -> anyhow::Result<()> {
    let json = console.is_json();
    if !choice.found {
        files::exists(&choice.path)?;
    }
    let mut parsed = choice.parse_inert()?;
    // Checking a file that is not trusted reads it and nothing else; starting its servers is using it.
    if parsed.file.error().is_none() {
        parsed = match start_servers {
            true => parsed.trusted(console).await?,
            false => parsed.trusted_already()?,
        };
    }
    let known = parsed.known(parsed.environment()?)?;
    let known = known.arguments(&super::run::arguments(&choice.path, &[]));
    let loaded = match start_servers {
        true if parsed.file.is_trusted() => opening::connected(console, &parsed, known).await,
        _ => parsed.file.compile(&known),
    };
    let problems = parsed.file.check_tools(&loaded);
    // A policy beside the file is one more place for mistakes.
    let beside = PolicyFindings::read(policy, &with_built_in(loaded.tools())?)?;
    let warnings = parsed.file.check_policy(&loaded).len() + beside.warnings.len();
    let in_file = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let errors = in_file + beside.problems.len();
    if json {
        let of = |severity: &'static str, texts: &[String]| {
            let told =
                texts.iter().map(|message| serde_json::json!({"severity": severity, "message": message}));
            told.collect::<Vec<_>>()
        };
        let mut shown: Vec<_> = problems.iter().map(report::problem).collect();
        shown.extend(of("error", &beside.problems));
        shown.extend(of("warning", &beside.warnings));
        console.line(serde_json::json!({
            "tools": loaded.tools().len(), "rules": beside.count, "problems": shown
        }))?;
    } else {
        tell(console, &beside.problems, &beside.warnings);
    }
    if errors > 0 {
        let found = report::found(errors);
        return Err(if json { found } else { found.showing(&problems) }.into());
    }
    if !json {
        problems.iter().for_each(|warning| console.say(format_args!("{}\n", printable(&warning.render()))));
        files::tell_of_chat(console, &loaded);
        files::tell_of_left_out(console, &loaded);
        let tools = counted(loaded.tools().len() as u64, "tool");
        let rules = and_rules(beside.count);
        console.line(format_args!("{}: {tools}{rules}: {}", choice.path.display(), outcome(warnings)))?;
    }
    Ok(())
}

/// The tools of a file and the built-in ones: a policy of its own also holds where the file is not used.
fn with_built_in(own: &Toolset) -> anyhow::Result<Toolset> {
    let all = toolbox::all()?;
    let mut others = toolbox::definitions(&all).filter(|tool| own.get(&tool.spec().name).is_none());
    Ok(others.try_fold(own.clone(), |tools, tool| tools.with(tool))?)
}
