//! A JavaScript file with `exports.run`: its parameters from JSDoc. The file is read, not run.

use crate::definition::{ScriptDefinition, ScriptParameter, ScriptRunner};
use crate::parameters::{literal, schema_of};

/// Reads the JSDoc of a file with `exports.run`; `None` when it has neither.
pub(crate) fn read(name: &str, text: &str) -> Option<Result<ScriptDefinition, String>> {
    let run = ["exports.run", "export function run", "export async function run"];
    let at = run.into_iter().filter_map(|head| text.find(head)).min()?;
    let mut definition = ScriptDefinition::new(name);
    definition.runner = ScriptRunner::NodeRun;
    let blocks = blocks(text);
    // The last block before the function describes it; a type has a block of its own.
    let own = blocks.iter().rev().find(|block| block.end <= at).map(|block| block.lines.as_slice());
    let own = own.unwrap_or_default();
    let described = own.iter().take_while(|line| !line.starts_with('@')).cloned().collect::<Vec<_>>();
    definition.description = described.join("\n").trim().to_owned();
    let mut problem = None;
    for block in &blocks {
        let is_type = block.lines.iter().any(|line| line.starts_with("@typedef"));
        for line in &block.lines {
            let tag = line.strip_prefix("@property ").or_else(|| line.strip_prefix("@prop "));
            let Some(tag) = tag.filter(|_| is_type) else { continue };
            match property(tag) {
                Ok(parameter) if definition.parameters.iter().all(|one| one.name != parameter.name) => {
                    definition.parameters.push(parameter);
                }
                Ok(_) => {}
                Err(error) => {
                    problem.get_or_insert(error);
                }
            }
        }
    }
    if definition.description.is_empty() && definition.parameters.is_empty() {
        return None;
    }
    Some(problem.map_or(Ok(definition), Err))
}

struct DocBlock {
    lines: Vec<String>,
    end: usize,
}

fn blocks(text: &str) -> Vec<DocBlock> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some((start, rest)) = text
        .get(from..)
        .and_then(|rest| rest.find("/**").map(|at| (from + at, rest.get(at + 3..).unwrap_or_default())))
    {
        let Some(length) = rest.find("*/") else { break };
        let inside = rest.get(..length).unwrap_or_default();
        let lines = inside.lines().map(|line| line.trim().trim_start_matches('*').trim().to_owned());
        let end = start + 3 + length + 2;
        found.push(DocBlock { lines: lines.skip_while(String::is_empty).collect(), end });
        from = end;
    }
    found
}

/// `{string} [name=default] - Text`.
fn property(tag: &str) -> Result<ScriptParameter, String> {
    let (kind, rest) =
        tag.trim().strip_prefix('{').and_then(|rest| rest.split_once('}')).unwrap_or(("*", tag.trim()));
    let (mut name, text) = match rest.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, text)) => (name, text),
        None => rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), "")),
    };
    let (optional, mut default) = (rest.trim().starts_with('[') || kind.ends_with('='), None);
    if let Some((before, value)) = name.split_once('=') {
        (name, default) = (before, Some(literal(value.trim())));
    }
    let kind = kind.trim_end_matches('=');
    let literals: Vec<&str> = kind.split('|').map(str::trim).collect();
    let mut schema = match literals.iter().all(|one| one.starts_with(['\'', '"'])) {
        true => {
            serde_json::json!({"type": "string", "enum": literals.iter().map(|one| literal(one)).collect::<Vec<_>>()})
        }
        false => schema_of(kind).ok_or_else(|| format!("the type `{kind}` of `{name}` is not known here"))?,
    };
    let text = text.trim().trim_start_matches('-').trim();
    if let (Some(members), false) = (schema.as_object_mut(), text.is_empty()) {
        members.insert("description".to_owned(), text.into());
    }
    let mut parameter = ScriptParameter::new(name.trim(), schema);
    parameter.required = !optional;
    parameter.default = default;
    Ok(parameter)
}

/// Calls `run` of the file with the arguments on stdin, and prints what it returns.
pub(crate) const RUNNER: &str = "\
const fs = require('fs'), path = require('path'), url = require('url');
(async () => {
  const file = path.resolve(process.argv[1]);
  let found;
  try { found = require(file); } catch (error) {
    if (error.code !== 'ERR_REQUIRE_ESM') throw error;
    found = await import(url.pathToFileURL(file));
  }
  const value = await found.run(JSON.parse(fs.readFileSync(0, 'utf8')));
  if (value === undefined || value === null) return;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (process.env.LLM_OUTPUT) fs.appendFileSync(process.env.LLM_OUTPUT, text);
  else fs.writeSync(1, text);
})().catch(error => { console.error(error && error.stack || error); process.exitCode = 1; });
";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_typedef_and_the_block_before_run_are_read() {
        let text = "/**\n * @typedef {Object} Args\n * @property {string} city - The city\n * @property {'c'|'f'} [unit='c'] - The unit\n * @property {number[]} [days] Days\n * @param {Args} args\n */\n\n/**\n * Gets the weather.\n * @param {Args} args\n */\nexports.run = async function ({ city }) {};\n";
        let found = read("w", text).unwrap().unwrap();
        assert_eq!(found.description, "Gets the weather.");
        let expected = json!({
            "type": "object", "additionalProperties": false, "required": ["city"],
            "properties": {
                "city": {"type": "string", "description": "The city"},
                "unit": {"type": "string", "enum": ["c", "f"], "description": "The unit", "default": "c"},
                "days": {"type": "array", "items": {"type": "number"}, "description": "Days"},
            },
        });
        assert_eq!(found.spec().parameters, expected);
        assert!(read("w", "exports.run = () => 1;\n").is_none());
        assert!(read("w", "/** A. */ function x() {}\n").is_none());
    }

    #[test]
    fn the_common_form_has_description_and_properties_in_one_block() {
        let text = "/**\n * Adds.\n * @typedef {Object} Args\n * @property {integer} x - X\n * @param {Args} args\n */\nexports.run = function run({ x }) {};\n";
        let found = read("w", text).unwrap().unwrap();
        assert_eq!((found.description.as_str(), found.parameters.len()), ("Adds.", 1));
        assert!(read("w", &text.replace("integer", "Thing")).unwrap().is_err());
    }
}
