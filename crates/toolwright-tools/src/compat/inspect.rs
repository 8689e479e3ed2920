//! Inspect's tools where their parameters or results are other than ours, and the names of all of them.

use toolwright_core::{ErrorKind, ToolContext, ToolError, ToolOutput, WorkspacePath, tool};

use super::Make;
use crate::options::{Call, Options, count, within_time};
use crate::read_file::{INSPECTS, show, telling};
use crate::{bash_session, grep_files, list_files, memory, paths, people, plan, shell, text_editor, thought};

/// Their names, and what makes each tool.
pub(crate) const TOOLS: [(&str, Make); 13] = [
    ("inspect_ai.tool.bash", shell::bash),
    ("inspect_ai.tool.bash_session", bash_session::bash_session),
    ("inspect_ai.tool.python", shell::python),
    ("inspect_ai.tool.text_editor", text_editor::text_editor),
    ("inspect_ai.tool.think", |_| thought::think()),
    ("inspect_ai.tool.memory", memory::memory),
    ("inspect_ai.tool.update_plan", plan::update_plan),
    ("inspect_ai.tool.todo_write", plan::todo_write),
    ("inspect_ai.tool.list_files", list_files::list_files),
    ("inspect_ai.tool.grep", grep_files::grep),
    ("inspect_ai.tool.read_file", read_file),
    ("inspect_ai.tool.ask_user", people::ask_user),
    ("inspect_ai.tool.notify_user", people::notify_user),
];

/// `read_file`: every line with its number and a tab.
#[tool(
    description = "Read a text file, or some of its lines, with line numbers.",
    category = "files",
    sandboxed,
    read_only,
    finish = within_time
)]
async fn read_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to read.
    #[tool(alias = "path")]
    file_path: WorkspacePath,
    /// How many lines to pass over first.
    #[tool(default)]
    offset: i64,
    /// How many lines; all of them when left out.
    #[tool(alias = "lines")]
    limit: Option<i64>,
) -> Result<ToolOutput, ToolError> {
    let limit = limit.map(|limit| count("limit", limit)).transpose()?;
    let call = &Call::new(context, options);
    let bytes = paths::read(call, &file_path).await.map_err(|error| match error.kind() {
        // There, a file that cannot be read is the tool's own error.
        ErrorKind::FileNotFound | ErrorKind::IsADirectory | ErrorKind::Permission => {
            error.with_kind(ErrorKind::Unknown)
        }
        _ => error,
    })?;
    // There, too, binary content is shown as such.
    let text = String::from_utf8_lossy(&bytes);
    let total = text.split_inclusive('\n').count();
    let start = usize::try_from(offset).unwrap_or(0).min(total);
    let end = limit.map_or(total, |limit| start.saturating_add(limit).min(total));
    let text = show(&file_path, &text, start..end, Some(INSPECTS))?;
    Ok(telling(text, total - end, total))
}
