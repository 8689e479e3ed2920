//! `toolwright eval`: one template.

use toolwright::lang::expr::{Error, EvalLimits, Program, Template, Value, Variables};

use crate::args::Eval;
use crate::console::Console;
use crate::report::{Unevaluated, Usage};

pub fn run(what: &Eval, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let limits = EvalLimits::default();
    let scope = variables(&what.vars, &limits)?;
    let refused = |error: Error| Unevaluated::new(&error, Some(&what.template));
    let template = Template::compile(&what.template).map_err(refused)?;
    let value = template.evaluate(&scope, &limits).map_err(refused)?;
    let text = match (&value, value.json_text()) {
        (Value::Str(text), _) if !json => text.to_string(),
        (_, Ok(text)) => text,
        // What JSON cannot hold is shown as Python shows it.
        (_, Err(_)) if !json => python_text(value, &limits)?,
        (_, Err(error)) => return Err(Unevaluated::new(&error, None).into()),
    };
    Ok(console.line(text)?)
}

/// The variables of `--vars`. Numbers keep all their digits.
fn variables(json: &str, limits: &EvalLimits) -> Result<Variables, Usage> {
    const EXAMPLE: &str = "for example: --vars '{\"name\": \"ada\"}'";
    let refused = |problem: &str| Usage::new(format!("--vars is not a JSON object: {problem}")).hint(EXAMPLE);
    match Value::parse_json(json, limits) {
        Ok(Value::Dict(dict)) => {
            Ok(dict.entries().into_iter().map(|(name, value)| (name.to_string(), value)).collect())
        }
        Ok(other) => Err(refused(&format!("it is of the type `{}`", other.type_name()))),
        Err(error) => Err(refused(error.message())),
    }
}

fn python_text(value: Value, limits: &EvalLimits) -> anyhow::Result<String> {
    let text = Program::compile("str(x)").and_then(|program| program.evaluate(&[("x", value)], limits));
    Ok(text.map_err(|error| Unevaluated::new(&error, None))?.to_string())
}
