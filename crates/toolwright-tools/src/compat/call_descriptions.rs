//! Calls in words for people, as llm-workers puts them: a line while the call runs, what it does, and whether
//! it needs a person's word.
//!
//! There a path outside the working folder is asked about, and so is every script. The sandbox decides what
//! can be reached either way; files written for that system ask here as they did there.

use serde_json::Value;
use toolwright_core::{
    Arguments, CallDescription, Prepared, Tool, ToolContext, ToolDef, ToolError, ToolOutput, ToolPolicy,
    ToolSpec,
};

/// Describes a call, from its checked arguments with the paths as they were written.
type Describe = fn(&Value) -> CallDescription;

/// A tool whose calls are described as llm-workers describes them.
struct DescribedTool {
    tool: ToolDef,
    describe: Describe,
}

impl Tool for DescribedTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn policy(&self) -> &ToolPolicy {
        self.tool.policy()
    }

    fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError> {
        // The plain form of `a/../b` is `b`; the original asks about the `..` that was written.
        let paths = self.spec().paths.names();
        let written: Vec<(String, Value)> = paths
            .filter_map(|name| Some((name.to_owned(), arguments.value().get(name)?.clone())))
            .filter(|(_, value)| value.is_string())
            .collect();
        let mut prepared = Tool::prepare(&self.tool, arguments)?;
        let mut shown = prepared.arguments.clone();
        if let Some(shown) = shown.as_object_mut() {
            shown.extend(written);
        }
        let CallDescription { hint, action, confirm, .. } = (self.describe)(&shown);
        prepared.describe(|description| {
            (description.hint, description.action, description.confirm) = (hint, action, confirm);
        });
        Ok(prepared)
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.tool.call(context, arguments).await
    }

    fn identity(&self) -> Option<u64> {
        Tool::identity(&self.tool)
    }
}

/// The tool that llm-workers knows under `reference`, with its calls described as there; any other tool as it
/// is.
pub(crate) fn described_as_there(reference: &str, tool: ToolDef) -> ToolDef {
    match of(reference) {
        Some(describe) => ToolDef::of(DescribedTool { tool, describe }),
        None => tool,
    }
}

/// How calls of the tool that llm-workers knows under `reference` are described.
fn of(reference: &str) -> Option<Describe> {
    let (module, tool) = reference.strip_prefix("llm_workers.tools.")?.split_once('.')?;
    let describe: Describe = match (module, tool) {
        ("fs", "read_file") => |call| file(call, "read file", &reading(call)),
        ("fs", "write_file") => |call| file(call, "write to the file", "Writing file"),
        ("fs", "edit_file") => |call| file(call, "edit file", "Updating file"),
        ("fs", "list_files") => |call| file(call, "list files at", "Listing files at"),
        ("fs", "glob_files") => |call| {
            let what = format!("files matching \"{}\"", text(call, "pattern", ""));
            search(text(call, "path", "."), &what, format!("Searching for {what}"))
        },
        ("fs", "grep_files") => |call| {
            let what = format!("\"{}\"", text(call, "pattern", ""));
            let place = text(call, "files_glob", "");
            search(place, &what, format!("Searching for {what} in \"{place}\""))
        },
        ("fs", "file_info") => |call| CallDescription {
            hint: Some(format!("Getting info for \"{}\"", text(call, "path", ""))),
            ..CallDescription::default()
        },
        ("unsafe", "bash") => |_| script("execute bash script", "Executing bash script".to_owned()),
        ("unsafe", "run_python_script") => {
            |_| script("run Python script", "Running generated Python script".to_owned())
        }
        ("unsafe", "run_process") => {
            |call| script("run system process", format!("Running `{}`", text(call, "command", "")))
        }
        ("unsafe", "show_file") => |call| {
            let path = text(call, "filename", "");
            let confirm = is_outside(path);
            let place = if confirm { " outside working directory" } else { "" };
            let action = format!("open the file \"{path}\"{place} in OS-default application");
            let hint = Some(format!("Opening file {path}"));
            CallDescription { hint, action: Some(action), confirm, ..CallDescription::default() }
        },
        ("fetch", "fetch_page_links") => |call| fetching("links from ", call),
        ("fetch", _) => |call| fetching("", call),
        ("misc", "user_input") => {
            |_| CallDescription { hint: Some(String::new()), ..CallDescription::default() }
        }
        _ => return None,
    };
    Some(describe)
}

fn file(call: &Value, action: &str, hint: &str) -> CallDescription {
    let path = text(call, "path", ".");
    let confirm = is_outside(path);
    let hint = match hint.split_once("{}") {
        Some((before, after)) => format!("{before}\"{path}\"{after}"),
        None => format!("{hint} \"{path}\""),
    };
    let place = if confirm { " outside working directory" } else { "" };
    let action = Some(format!("{action} \"{path}\"{place}"));
    CallDescription { hint: Some(hint), action, confirm, ..CallDescription::default() }
}

fn search(place: &str, what: &str, hint: String) -> CallDescription {
    let confirm = is_outside(place);
    let place = if confirm { format!(" at \"{place}\" outside working directory") } else { String::new() };
    let action = Some(format!("search for {what}{place}"));
    CallDescription { hint: Some(hint), action, confirm, ..CallDescription::default() }
}

fn fetching(what: &str, call: &Value) -> CallDescription {
    CallDescription {
        hint: Some(format!("Fetching {what}{}", text(call, "url", ""))),
        ..CallDescription::default()
    }
}

fn script(action: &str, hint: String) -> CallDescription {
    let action = Some(action.to_owned());
    CallDescription { hint: Some(hint), action, confirm: true, ..CallDescription::default() }
}

/// Which lines are read; `{}` stands for the path.
fn reading(call: &Value) -> String {
    let number = |name: &str| call.get(name).and_then(Value::as_i64).unwrap_or(0);
    let (lines, offset) = (number("lines"), number("offset"));
    if call.get("lines").is_none_or(Value::is_null) {
        return "Reading file".to_owned();
    }
    match offset {
        0.. => {
            format!("Reading file {{}} (lines {}-{})", offset.saturating_add(1), offset.saturating_add(lines))
        }
        _ if offset.saturating_neg() == lines => format!("Reading last {lines} lines of file {{}}"),
        _ => format!(
            "Reading {lines} lines starting {} lines from the end of file {{}}",
            offset.saturating_neg()
        ),
    }
}

fn text<'c>(call: &'c Value, name: &str, default: &'c str) -> &'c str {
    call.get(name).and_then(Value::as_str).unwrap_or(default)
}

fn is_outside(path: &str) -> bool {
    path.starts_with('/') || path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reading_from_the_end_is_told() {
        let words = of("llm_workers.tools.fs.read_file").unwrap();
        let hint = |offset: i64| words(&json!({"path": "a", "lines": 5, "offset": offset})).hint.unwrap();
        assert_eq!(hint(0), r#"Reading file "a" (lines 1-5)"#);
        assert_eq!(hint(10), r#"Reading file "a" (lines 11-15)"#);
        assert_eq!(hint(-5), r#"Reading last 5 lines of file "a""#);
        assert_eq!(hint(-9), r#"Reading 5 lines starting 9 lines from the end of file "a""#);
    }

    #[test]
    fn a_path_is_described_as_it_was_written_and_used_in_its_plain_form() {
        let reference = "llm_workers.tools.fs.write_file";
        let tool = crate::resolve(reference).unwrap();
        let prepared = tool.prepared(json!({"path": "a/../b", "content": "x"})).unwrap();
        assert_eq!(prepared.arguments["path"], "b");
        assert!(prepared.wants_confirmation());
        assert_eq!(prepared.hint(), Some("Writing file \"a/../b\""));
    }

    #[test]
    fn paths_outside_and_scripts_need_a_word() {
        for (path, asks) in [("a..b", false), ("~/.x", false), ("a/../b", true), ("..", true), ("/", true)] {
            let words = of("llm_workers.tools.fs.write_file").unwrap();
            assert_eq!(words(&json!({"path": path})).confirm, asks, "{path}");
        }
        assert!(of("llm_workers.tools.unsafe.bash").unwrap()(&json!({})).confirm);
        assert!(of("bash").is_none() && of("llm_workers.tools.fs.no_such").is_none());
    }
}
