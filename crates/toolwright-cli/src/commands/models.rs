//! `toolwright models`: which models there are, and what is missing for others.

use std::io::Write as _;

use serde::Serialize;

use crate::args::ModelArgs;
use crate::console::Console;
use crate::opening::ParsedFile;
use crate::prompt::printable;
use crate::{files, models};

/// A model, where it comes from, and whether it can be used.
#[derive(Serialize)]
struct ListedModel {
    name: String,
    from: String,
    usable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub async fn run(what: ModelArgs, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let file = files::choose(console, what.file.or(what.also_file));
    let named = ParsedFile::of(console, file.as_ref()).await?.models();
    let mut found = Vec::new();
    for (name, config) in named.iter() {
        let problem = models::connect(console, config).err().map(|error| format!("{error:#}"));
        let from = format!("the file: {}", config.full_name());
        found.push(ListedModel { name: name.clone(), from, usable: problem.is_none(), problem });
    }
    for (variable, name) in models::keys() {
        found.push(ListedModel { name, from: format!("{variable} is set"), usable: true, problem: None });
    }
    for local in models::locals() {
        let from = format!("{} at {}", local.what, local.address);
        for model in local.models() {
            found.push(ListedModel { name: model.model, from: from.clone(), usable: true, problem: None });
        }
    }
    let answers = match named.contains_key("default") {
        true => Some("default".to_owned()),
        false => models::wished()?.or_else(|| {
            found
                .iter()
                .find(|each| each.usable && !named.contains_key(&each.name))
                .map(|each| each.name.clone())
        }),
    };
    let mut out = console.stdout();
    if json {
        let answer = serde_json::json!({"models": found, "default": answers});
        writeln!(out, "{answer:#}")?;
        return Ok(());
    }
    let width = found.iter().map(|each| each.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for each in &found {
        let state =
            each.problem.as_deref().map_or(String::new(), |problem| format!(" (cannot be used: {problem})"));
        text.push_str(&printable(&format!("{:width$}  {}{state}", each.name, each.from)));
        text.push('\n');
    }
    write!(out, "{text}")?;
    match answers {
        Some(name) => console.say(format_args!("without --model, {} answers", printable(&name))),
        None => console.say(models::NO_MODEL),
    }
    Ok(())
}
