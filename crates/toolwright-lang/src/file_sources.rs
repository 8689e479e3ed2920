//! References to files that tools are made of: `python:tools.py`, `openapi:api.yaml` and `script:bin/*.sh`.
//! One of the tools is meant with `/search` behind the first two, or with the path of one script.
//!
//! Such a file is treated like a server: which tools it has is unknown until it is opened. Its name among the
//! servers is the reference with the scheme.

use crate::yaml::{Data, Node};

const PYTHON: &str = "python:";
const OPENAPI: &str = "openapi:";
const SCRIPTS: &str = "script:";

/// Whether a reference means such a file, or a tool of one.
pub(crate) fn is_file(reference: &str) -> bool {
    [PYTHON, OPENAPI, SCRIPTS].iter().any(|scheme| reference.starts_with(scheme))
}

/// The file of a reference to one tool, and the name of the tool. A script is a file with one tool, whatever
/// its name.
pub(crate) fn halves(reference: &str) -> Option<(&str, &str)> {
    if reference.starts_with(SCRIPTS) {
        return Some((reference, "*"));
    }
    let endings: &[&str] = match reference.starts_with(PYTHON) {
        true => &[".py/"],
        false => &[".yaml/", ".yml/", ".json/"],
    };
    let end = endings.iter().filter_map(|ending| Some(reference.find(ending)? + ending.len() - 1)).min();
    let at = end.or_else(|| reference.rfind('/')).filter(|_| is_file(reference))?;
    Some((reference.get(..at)?, reference.get(at + 1..)?))
}

/// The name that a tool imported by itself has, where the reference states it.
pub(crate) fn own_name(reference: &str) -> Option<String> {
    match reference.strip_prefix(SCRIPTS) {
        Some(path) => {
            let file = path.rsplit('/').next()?;
            Some(file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned())
        }
        None => halves(reference).map(|(_, own)| own.to_owned()),
    }
}

/// The path of a file of Python functions in its name.
pub(crate) fn python_path(name: &str) -> Option<&str> {
    name.strip_prefix(PYTHON)
}

/// The path of an OpenAPI document in its name.
pub(crate) fn openapi_path(name: &str) -> Option<&str> {
    name.strip_prefix(OPENAPI)
}

/// The pattern in the name of scripts.
pub(crate) fn script_pattern(name: &str) -> Option<&str> {
    name.strip_prefix(SCRIPTS)
}

/// The names of all such files that a file imports from, each once.
pub(crate) fn files(root: &Node) -> Vec<String> {
    let mut found = Vec::new();
    visit(root, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn visit(node: &Node, found: &mut Vec<String>) {
    match &node.data {
        Data::List(items) => items.iter().for_each(|item| visit(item, found)),
        Data::Map(entries) => {
            for (key, value) in entries {
                match (&*key.key_text(), value.text()) {
                    ("import_tools", Some(reference)) if is_file(reference) => {
                        found.push(reference.to_string());
                    }
                    ("import_tool", Some(reference)) => {
                        found.extend(halves(reference).map(|(file, _)| file.to_owned()));
                    }
                    _ => visit(value, found),
                }
            }
        }
        _ => {}
    }
}

/// A server or such a file, in words.
pub(crate) fn described(name: &str) -> String {
    match (python_path(name), openapi_path(name), script_pattern(name)) {
        (Some(path), _, _) => format!("the Python file `{path}`"),
        (_, Some(path), _) => format!("the OpenAPI document `{path}`"),
        (_, _, Some(pattern)) => format!("the scripts `{pattern}`"),
        (None, None, None) => format!("the MCP server `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::halves;

    #[test]
    fn the_file_of_a_function_ends_with_its_ending_or_the_last_slash() {
        for (reference, expected) in [
            ("python:tools.py/search", Some(("python:tools.py", "search"))),
            ("python:lib/a.py/b", Some(("python:lib/a.py", "b"))),
            ("python:bin/tools/run", Some(("python:bin/tools", "run"))),
            ("python:tools.py", None),
            ("mcp:a.py/b", None),
            ("openapi:specs/pets.yaml/getPet", Some(("openapi:specs/pets.yaml", "getPet"))),
            ("openapi:pets.yaml", None),
            ("script:bin/a.sh", Some(("script:bin/a.sh", "*"))),
        ] {
            assert_eq!(halves(reference), expected, "{reference}");
        }
    }
}
