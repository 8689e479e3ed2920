//! The file, shell and code tools with the parameters and results they have in MARSYS.
//!
//! There the root of all paths is the folder of the run: `/a` and `a` are the same file, and `..` does not
//! lead out of it. What is behind a path is still decided by the sandbox, and nothing here reads or writes in
//! another way than the other tools do.

mod bounded_output;
mod edit;
mod execute;
mod files;
mod lists;
mod operations;
mod outline;
mod picture;
mod plan;
mod python;
mod read;
mod search;
mod shell;
mod tokens;

use serde_json::{Value, json};
use toolwright_core::{
    Arguments, Prepared, Tool, ToolContext, ToolDef, ToolError, ToolOutput, ToolPolicy, ToolSpec,
};

use super::Make;
use crate::paths;

/// The references and what they stand for.
pub(crate) const TOOLS: [(&str, Make); 34] = [
    ("marsys.read_file", read::read_file),
    ("marsys.write_file", files::write_file),
    ("marsys.edit_file", edit::edit_file),
    ("marsys.list_files", lists::list_files),
    ("marsys.search_files", search::search_files),
    ("marsys.create_directory", files::create_directory),
    ("marsys.get_file_structure", outline::get_file_structure),
    ("marsys.read_section", outline::read_section),
    ("marsys.file_operations", operations::file_operations),
    ("file_operations", operations::file_operations),
    ("search_files", search::search_files),
    ("create_directory", files::create_directory),
    ("get_file_structure", outline::get_file_structure),
    ("read_section", outline::read_section),
    ("python_execute", execute::python_execute),
    ("shell_execute", execute::shell_execute),
    ("shell_execute_streaming", execute::shell_execute_streaming),
    ("shell_grep", shell::shell_grep),
    ("shell_find", shell::shell_find),
    ("shell_wc", shell::shell_wc),
    ("shell_sed", shell::shell_sed),
    ("shell_awk", shell::shell_awk),
    ("shell_head", shell::shell_head),
    ("shell_tail", shell::shell_tail),
    ("shell_diff", shell::shell_diff),
    ("marsys.parse_csv", crate::data::parse_csv),
    ("marsys.analyze_data", crate::data::analyze_data),
    ("marsys.transform_json", crate::data::transform_json),
    ("plan_create", plan::plan_create),
    ("plan_read", plan::plan_read),
    ("plan_update", plan::plan_update),
    ("plan_add_item", plan::plan_add_item),
    ("plan_remove_item", plan::plan_remove_item),
    ("plan_clear", plan::plan_clear),
];

/// Whether a name is one of the tools that take `reasoning`. Those for plans and data do not.
pub(crate) fn takes_reasoning(reference: &str) -> bool {
    let without = ["plan_", "marsys.parse_csv", "marsys.analyze_data", "marsys.transform_json"];
    !without.iter().any(|start| reference.starts_with(start))
        && TOOLS.iter().any(|(name, _)| *name == reference)
}

/// A tool whose calls may say why they are made.
struct ReasoningTool(ToolDef);

/// The parameter that says so.
const REASONING: &str = "reasoning";

pub(crate) fn with_reasoning(tool: ToolDef) -> ToolDef {
    let tool = tool.edit(|spec, _| {
        let properties = spec.parameters.get_mut("properties").and_then(Value::as_object_mut);
        if let Some(properties) = properties {
            let reasoning = json!({"type": ["string", "null"], "description": "Why; nothing depends on it."});
            properties.insert(REASONING.to_owned(), reasoning);
        }
    });
    ToolDef::of(ReasoningTool(tool))
}

impl Tool for ReasoningTool {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn policy(&self) -> &ToolPolicy {
        self.0.policy()
    }

    fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError> {
        Tool::prepare(&self.0, arguments)
    }

    /// People and the record see the reason; the tool itself has no such parameter.
    async fn call(&self, context: &ToolContext, mut arguments: Value) -> Result<ToolOutput, ToolError> {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.shift_remove(REASONING);
        }
        self.0.call(context, arguments).await
    }

    fn identity(&self) -> Option<u64> {
        Tool::identity(&self.0)
    }
}

/// A path from the root of the run: without `.` and `..`, and `.` for the root itself.
pub(crate) fn place(path: &str) -> Result<String, ToolError> {
    if !path.is_empty() {
        paths::check(path)?;
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or_else(|| {
                    ToolError::new(format!("`{}` leads out of the folder of the run", path.escape_debug()))
                })?;
            }
            name => names.push(name),
        }
    }
    Ok(if names.is_empty() { ".".to_owned() } else { names.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_root_of_the_run_and_stay_there() {
        for (path, wanted) in [
            ("a.txt", "a.txt"),
            ("./a.txt", "a.txt"),
            ("/a.txt", "a.txt"),
            ("/data/../a", "a"),
            ("", "."),
            ("/", "."),
            ("~/x", "~/x"),
            ("C:\\x", "C:\\x"),
            ("/./sub/./f", "sub/f"),
        ] {
            assert_eq!(place(path).unwrap(), wanted, "{path}");
        }
        for path in ["..", "../x", "/..", "a/../../b"] {
            assert!(place(path).is_err(), "{path}");
        }
    }
}
