//! `toolwright eval`: one template.

use std::io::Write as _;

use serde_json::{Map, Value as Json};
use toolwright::expr::{Limits, Template, Value, Variables};

use crate::args::Eval;
use crate::report::Usage;

pub fn run(what: &Eval, json: bool) -> anyhow::Result<()> {
    let vars: Map<String, Json> = serde_json::from_str(&what.vars)
        .map_err(|error| Usage::new(format!("--vars is not a JSON object: {error}")))
        .map_err(|error| error.hint("for example: --vars '{\"name\": \"ada\"}'"))?;
    let scope: Variables = vars.iter().map(|(name, value)| (name.clone(), Value::from_json(value))).collect();
    let refused = |error: toolwright::expr::Error| {
        let shown = error.render(&what.template);
        let shown = shown.trim_end().trim_start_matches("error: ");
        if json { anyhow::anyhow!("{}", error.message()) } else { anyhow::anyhow!("{shown}") }
    };
    let template =
        Template::compile(&what.template).map_err(|error| Usage::new(refused(error).to_string()))?;
    let value = template.evaluate(&scope, &Limits::default()).map_err(refused)?;
    let mut out = std::io::stdout().lock();
    match value.to_json() {
        Ok(Json::String(text)) if !json => writeln!(out, "{text}")?,
        Ok(value) => writeln!(out, "{value}")?,
        // What JSON cannot hold is shown as Python shows it.
        Err(_) if !json => writeln!(out, "{value}")?,
        Err(error) => return Err(refused(error)),
    }
    Ok(())
}
