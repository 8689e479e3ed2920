//! Tables of files: found in CSV, JSON, workbooks and documents, described in one pass, asked with SQL, and
//! written.

mod describe;
mod functions;
mod load;
mod profile;
mod query;
mod save;
mod source;
mod workbook;

pub use describe::describe_data;
pub use query::query_data;
pub use save::save_table;

use std::sync::Arc;

use toolwright_core::{DynSandbox, ErrorKind, ToolContext, ToolError};

/// How these tools are set up.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    sandbox: Option<Arc<str>>,
}

impl TableOptions {
    /// The usual setup: the run's first sandbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the files in the sandbox of that name.
    #[must_use]
    pub fn in_sandbox(mut self, name: impl Into<Arc<str>>) -> Self {
        self.sandbox = Some(name.into());
        self
    }

    fn sandbox(&self, context: &ToolContext) -> Result<Arc<DynSandbox>, ToolError> {
        match &self.sandbox {
            Some(name) => context.sandbox_named(name),
            None => context.sandbox(),
        }
    }
}

/// Does the work of a call on a thread of its own: it is long and does not wait for anything.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let outcome = tokio::task::spawn_blocking(work).await;
    outcome.unwrap_or_else(|cause| Err(ToolError::new("the tables could not be read").with_source(cause)))
}

fn cancelled() -> ToolError {
    ToolError::of(ErrorKind::Cancelled, "the call was cancelled")
}

/// A cell of a table for a model: on one line, without bars, and no longer than so many characters.
fn cell_text(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    match line.char_indices().nth(most) {
        Some((at, _)) => {
            let rest = line.chars().count() - most;
            format!("{}…(+{rest})", line.get(..at).unwrap_or_default())
        }
        None => line,
    }
}

/// Rows as a table with bars; numbers stand at the right.
fn pipe_table(columns: &[String], rows: &[Vec<String>], right: &[bool]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(columns);
    let marks = (0..columns.len()).map(|at| if right.get(at) == Some(&true) { "---:" } else { "---" });
    out.push_str(&format!("| {} |\n", marks.collect::<Vec<_>>().join(" | ")));
    for row in rows {
        out.push_str(&line(row));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_in_its_place() {
        assert_eq!(cell_text("a|b\nc", 60), "a\\|b c");
        assert_eq!(cell_text("abcdef", 3), "abc…(+3)");
        let table = pipe_table(
            &["a".to_owned(), "n".to_owned()],
            &[vec!["x".to_owned(), "1".to_owned()]],
            &[false, true],
        );
        assert_eq!(table, "| a | n |\n| --- | ---: |\n| x | 1 |\n");
    }
}
