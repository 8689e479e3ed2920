//! `toolwright check`: everything that can be known before running.

use anyhow::Context as _;
use toolwright::Policy;

use crate::args::Check;
use crate::report::Usage;
use crate::{demo, toolbox};

pub fn run(what: &Check, json: bool) -> anyhow::Result<()> {
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
        println!("{}", serde_json::json!({"tools": tools.len(), "rules": rules, "problems": problems}));
    }
    if !problems.is_empty() {
        if !json {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
        }
        let count = if problems.len() == 1 {
            "1 problem was".to_owned()
        } else {
            format!("{} problems were", problems.len())
        };
        return Err(Usage::new(format!("{count} found")).into());
    }
    if !json {
        let rules = rules.map(|count| format!(", {count} rules")).unwrap_or_default();
        println!("{} tools{rules}: no problems", tools.len());
    }
    Ok(())
}
