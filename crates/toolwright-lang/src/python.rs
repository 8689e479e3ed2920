//! References to files of Python functions: `python:tools.py`, and `python:tools.py/search` for one of them.
//!
//! Such a file is treated like a server: which tools it has is unknown until its worker has imported it. Its
//! name among the servers is the reference with the scheme.

use crate::yaml::{Data, Node};

const SCHEME: &str = "python:";
const ENDING: &str = ".py";

/// Whether a reference means a file of Python functions, or one of them.
pub(crate) fn is_python(reference: &str) -> bool {
    reference.starts_with(SCHEME)
}

/// The file of a reference to one function, and the name of the function.
pub(crate) fn halves(reference: &str) -> Option<(&str, &str)> {
    let end = reference.find(&format!("{ENDING}/")).map(|at| at + ENDING.len());
    let at = end.or_else(|| reference.rfind('/')).filter(|_| is_python(reference))?;
    Some((reference.get(..at)?, reference.get(at + 1..)?))
}

/// The path in the name of such a file.
pub(crate) fn path(name: &str) -> Option<&str> {
    name.strip_prefix(SCHEME)
}

/// The names of all files of Python functions that a file imports from, each once.
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
                    ("import_tools", Some(reference)) if is_python(reference) => {
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

/// A server or file of functions, in words.
pub(crate) fn described(name: &str) -> String {
    match path(name) {
        Some(path) => format!("the Python file `{path}`"),
        None => format!("the MCP server `{name}`"),
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
        ] {
            assert_eq!(halves(reference), expected, "{reference}");
        }
    }
}
