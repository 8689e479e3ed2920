//! References to files of Python functions, `python:tools.py` and `python:tools.py/search` for one of them,
//! and to scripts, `script:bin/*.sh` and `script:bin/search.sh` for one of them.
//!
//! Such a file is treated like a server: which tools it has is unknown until its worker has imported it, or
//! until its comments are read. Its name among the servers is the reference with the scheme.

use crate::yaml::{Data, Node};

const SCHEME: &str = "python:";
const SCRIPTS: &str = "script:";
const ENDING: &str = ".py";

/// Whether a reference means a file of Python functions, one of them, or scripts.
pub(crate) fn is_local(reference: &str) -> bool {
    reference.starts_with(SCHEME) || reference.starts_with(SCRIPTS)
}

/// The source of a reference to one tool, and the name or pattern of the tool there. A script is a source of
/// its own with one tool.
pub(crate) fn halves(reference: &str) -> Option<(&str, &str)> {
    if reference.starts_with(SCRIPTS) {
        return Some((reference, "*"));
    }
    let end = reference.find(&format!("{ENDING}/")).map(|at| at + ENDING.len());
    let at = end.or_else(|| reference.rfind('/')).filter(|_| is_local(reference))?;
    Some((reference.get(..at)?, reference.get(at + 1..)?))
}

/// The name that a tool imported by itself has, where the reference says it.
pub(crate) fn own_name(reference: &str) -> Option<String> {
    match reference.strip_prefix(SCRIPTS) {
        Some(path) => {
            let file = path.rsplit('/').next()?;
            Some(file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned())
        }
        None => halves(reference).map(|(_, own)| own.to_owned()),
    }
}

/// The path in the name of a file of Python functions.
pub(crate) fn path(name: &str) -> Option<&str> {
    name.strip_prefix(SCHEME)
}

/// The pattern in the name of scripts.
pub(crate) fn pattern(name: &str) -> Option<&str> {
    name.strip_prefix(SCRIPTS)
}

/// The names of all files of Python functions and scripts that a file imports from, each once.
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
                    ("import_tools", Some(reference)) if is_local(reference) => {
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

/// A server, file of functions or pattern of scripts, in words.
pub(crate) fn described(name: &str) -> String {
    match (path(name), pattern(name)) {
        (Some(path), _) => format!("the Python file `{path}`"),
        (_, Some(pattern)) => format!("the scripts `{pattern}`"),
        _ => format!("the MCP server `{name}`"),
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
            ("script:bin/a.sh", Some(("script:bin/a.sh", "*"))),
        ] {
            assert_eq!(halves(reference), expected, "{reference}");
        }
    }
}
