//! `edit_file`: a unified diff, or one text for another.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_core::{RootedPath, Structured, ToolContext, ToolError, tool};

use super::place;
use crate::edit_file::{self, Changed, Changes, Extent};
use crate::options::{Call, Options, within_time};

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[serde(alias = "diff")]
    UnifiedDiff,
    SearchReplace,
    LineBased,
}

/// Change a file by a unified diff, or by replacing a text. A diff must fit line by line.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = within_time)]
pub(crate) async fn edit_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to change.
    #[tool(alias = "file_path")]
    path: RootedPath,
    /// A unified diff, or the text to look for and the text to put in its place.
    #[tool(alias = "diff")]
    changes: Changes,
    /// What the changes are, when it is to be checked: their form shows it anyway.
    edit_format: Option<Format>,
    /// Only say whether it would fit.
    #[tool(default)]
    dry_run: bool,
    /// Replace the text wherever it is; otherwise the first is replaced.
    #[tool(default)]
    replace_all: bool,
) -> Result<Structured<Changed>, ToolError> {
    let path = place(&path)?;
    if edit_format == Some(Format::UnifiedDiff) && matches!(changes, Changes::Replace(_)) {
        return Err(ToolError::invalid("`edit_format` says unified_diff, and `changes` is not a text"));
    }
    let extent = if replace_all { Extent::All } else { Extent::First };
    edit_file::change(&Call::new(context, options), &path, changes, extent, dry_run).await.map(Structured)
}
