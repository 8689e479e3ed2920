//! A Python file with a function `run`: its parameters from hints, its texts from the docstring. The file is
//! read, not run.

use serde_json::json;

use crate::definition::{ScriptDefinition, ScriptParameter, ScriptRunner};
use crate::parameters::{literal, schema_of, split};

/// Reads `def run(...)`; `None` when the file has no such function.
pub(crate) fn read(name: &str, text: &str) -> Option<Result<ScriptDefinition, String>> {
    let start = ["\ndef run(", "\nasync def run("].into_iter().find_map(|head| {
        let at = match text.strip_prefix(head.trim_start()) {
            Some(_) => Some(0),
            None => text.find(head).map(|at| at + 1),
        };
        at.map(|at| at + head.len() - 1)
    })?;
    let rest = text.get(start..)?;
    let Some((signature, body)) = closed(rest) else {
        return Some(Err("the parameters of `run` do not end".to_owned()));
    };
    let mut definition = ScriptDefinition::new(name);
    definition.runner = ScriptRunner::PythonRun;
    let docstring = docstring(body).unwrap_or_default();
    let (description, texts) = sections(&docstring);
    definition.description = description;
    for parameter in split(&without_comments(signature), ',') {
        let parameter = parameter.trim();
        if parameter.is_empty() || parameter == "*" || parameter == "/" {
            continue;
        }
        if parameter.starts_with('*') {
            return Some(Err(format!(
                "`run` has the parameter `{parameter}`; only named ones can be described"
            )));
        }
        definition.parameters.push(match one(parameter, &texts) {
            Ok(parameter) => parameter,
            Err(error) => return Some(Err(error)),
        });
    }
    Some(Ok(definition))
}

fn one(text: &str, texts: &[(String, String)]) -> Result<ScriptParameter, String> {
    let mut halves = split(text, '=').into_iter();
    let (head, default) = (halves.next().unwrap_or_default(), halves.next().map(str::trim));
    let (name, hint) = match head.split_once(':') {
        Some((name, hint)) => (name.trim(), hint.trim()),
        None => (head.trim(), ""),
    };
    let mut schema = match hint {
        "" => json!({}),
        hint => schema_of(hint.trim_matches(['"', '\'']))
            .ok_or_else(|| format!("the type `{hint}` of `{name}` is not known here"))?,
    };
    if let (Some(members), Some((_, text))) =
        (schema.as_object_mut(), texts.iter().find(|(known, text)| known == name && !text.is_empty()))
    {
        members.insert("description".to_owned(), text.as_str().into());
    }
    let optional = hint.starts_with("Optional[") || hint.contains("None");
    let mut parameter = ScriptParameter::new(name, schema);
    parameter.required = default.is_none() && !optional;
    parameter.default = default.map(literal).filter(|value| !value.is_null());
    Ok(parameter)
}

/// What stands before the bracket that closes, and what behind it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (1usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
    }
    None
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split(" #").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The docstring behind a signature.
fn docstring(body: &str) -> Option<String> {
    let body = body.split_once(':')?.1;
    let body = body.split_once('\n').map_or(body, |(_, body)| body).trim_start();
    let body = body.strip_prefix(['r', 'R']).unwrap_or(body);
    ["\"\"\"", "'''", "\"", "'"].into_iter().find_map(|quote| {
        let (text, _) = body.strip_prefix(quote)?.split_once(quote)?;
        Some(text.to_owned())
    })
}

/// The description, and the texts of `Args:`.
fn sections(docstring: &str) -> (String, Vec<(String, String)>) {
    let (mut description, mut texts): (Vec<&str>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let (mut section, mut item_indent) = (None, None);
    for line in docstring.lines() {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        if let Some(title) = trimmed.strip_suffix(':')
            && ["Args", "Arguments", "Parameters", "Returns", "Raises", "Yields"].contains(&title)
        {
            section = Some(matches!(title, "Args" | "Arguments" | "Parameters"));
            item_indent = None;
            continue;
        }
        match section {
            None => description.push(trimmed),
            Some(true) if !trimmed.is_empty() => {
                let first = *item_indent.get_or_insert(indent);
                let (head, text) = trimmed.split_once(':').unwrap_or((trimmed, ""));
                if indent <= first {
                    let name = head.split(['(', ' ']).next().unwrap_or_default();
                    texts.push((name.to_owned(), text.trim().to_owned()));
                } else if let Some((_, text)) = texts.last_mut() {
                    text.push(' ');
                    text.push_str(trimmed);
                }
            }
            Some(_) => {}
        }
    }
    (description.join("\n").trim().to_owned(), texts)
}

/// Calls `run` of the file with the arguments on stdin, and prints what it returns.
pub(crate) const RUNNER: &str = "\
import importlib.util, inspect, json, os, sys
path = sys.argv[1]
sys.path.insert(0, os.path.dirname(path))
spec = importlib.util.spec_from_file_location('toolwright_script', path)
module = importlib.util.module_from_spec(spec)
sys.modules['toolwright_script'] = module
spec.loader.exec_module(module)
value = module.run(**json.load(sys.stdin))
if inspect.isawaitable(value):
    import asyncio
    async def wait(): return await value
    value = asyncio.run(wait())
if value is not None:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    out = os.environ.get('LLM_OUTPUT')
    if out:
        with open(out, 'a') as file: file.write(text)
    else: sys.stdout.write(text)
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_function_is_read_with_hints_and_docstring() {
        let text = "import os\nfrom typing import Literal, Optional\n\ndef run(\n    city: str,  # where\n    unit: Literal[\"c\", \"f\"] = \"c\",\n    days: Optional[int] = None,\n    tags: list[str] = [],\n):\n    \"\"\"Gets the weather.\n\n    For days.\n\n    Args:\n        city: The city,\n            or town\n        unit (str): The unit\n    Returns:\n        The weather\n    \"\"\"\n    return 1\n";
        let found = read("w", text).unwrap().unwrap();
        assert_eq!(found.description, "Gets the weather.\n\nFor days.");
        let expected = json!({
            "type": "object", "additionalProperties": false, "required": ["city"],
            "properties": {
                "city": {"type": "string", "description": "The city, or town"},
                "unit": {"type": "string", "enum": ["c", "f"], "description": "The unit", "default": "c"},
                "days": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            },
        });
        assert_eq!(found.spec().parameters, expected);
        assert!(read("w", "def other(): pass\n").is_none());
        assert!(read("w", "def run(x: Thing): pass\n").unwrap().unwrap_err().contains("`Thing`"));
        assert!(read("w", "def run(x").unwrap().is_err());
        assert!(read("w", "def run(**more): pass\n").unwrap().is_err());
    }

    #[test]
    fn defaults_are_values() {
        assert_eq!((literal("3"), literal("'a'"), literal("True")), (json!(3), json!("a"), json!(true)));
    }
}
