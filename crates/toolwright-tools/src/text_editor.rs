//! `text_editor`: view, create, change and undo, with the history kept by the run.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ErrorKind, Stored, ToolContext, ToolDef, ToolError, WorkspacePath, tool};

use crate::options::{Call, Options, within_documented};
use crate::paths::{self, FileKind};
use crate::text::{self, Edited};
use crate::walk::{Hidden, walk};

/// How many changes of a file can be undone.
const KEPT_EDITS: usize = 10;
/// How much text the history of a run may hold.
const KEPT_BYTES: usize = 64 << 20;
/// How long an edit may take, as Inspect has it.
const EDIT_TIME: Duration = Duration::from_secs(180);

fn within_edit_time(tool: ToolDef, options: &Options) -> ToolDef {
    within_documented(tool, options, EDIT_TIME)
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum EditorCommand {
    View,
    Create,
    StrReplace,
    Insert,
    UndoEdit,
}

/// The tool `text_editor`.
#[tool(
    description = "View, create and change text files. `view` shows a file with line numbers, or a folder two levels deep; \
                   `create` makes a file that is not there yet; `str_replace` replaces a text that is in the file exactly \
                   once; `insert` adds lines after a line; `undo_edit` takes back the last change to a file. Nothing but \
                   the change itself is altered.",
    category = "files",
    sandboxed,
    read_only = false,
    parallel = false,
    finish = within_edit_time
)]
pub async fn text_editor(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What to do.
    command: EditorCommand,
    /// The file, or for `view` also a folder.
    #[tool(alias = "file_path")]
    path: WorkspacePath,
    /// For `create`: the text of the new file.
    file_text: Option<String>,
    /// For `insert`: the line after which to insert; 0 is the top.
    insert_line: Option<i64>,
    /// For `insert`: the lines to insert.
    insert_text: Option<String>,
    /// For `str_replace`: the text to put in; left out, the old text is only taken away.
    new_str: Option<String>,
    /// For `str_replace`: the text to replace. It must be in the file exactly once.
    old_str: Option<String>,
    /// For `view`: the first and the last line to show, counted from 1; -1 is the end.
    view_range: Option<Vec<i64>>,
) -> Result<String, ToolError> {
    let call = &Call::new(context, options);
    let work = async {
        let target = Target::find(call, command, &path).await?;
        match command {
            EditorCommand::View => target.view(view_range.as_deref()).await,
            EditorCommand::Create => target.create(given(file_text, "create", "file_text")?).await,
            EditorCommand::StrReplace => {
                let old = given(old_str, "str_replace", "old_str")?;
                let text = target.text().await?;
                let edited = text::replace_once(&target.path, &text, &old, &new_str.unwrap_or_default())?;
                finish_edit(call, &target.path, text, edited).await
            }
            EditorCommand::Insert => {
                let line = given(insert_line, "insert", "insert_line")?;
                let new = given(new_str.or(insert_text), "insert", "insert_text")?;
                let text = target.text().await?;
                let edited = text::insert(&text, line, &new)?;
                finish_edit(call, &target.path, text, edited).await
            }
            EditorCommand::UndoEdit => undo(call, &target.path).await,
        }
    };
    work.await.map_err(|error| match error.kind() {
        // The editor speaks of these itself, as of any other path it cannot work on.
        ErrorKind::FileNotFound | ErrorKind::IsADirectory | ErrorKind::UnicodeDecode => {
            error.with_kind(ErrorKind::Unknown)
        }
        _ => error,
    })
}

/// What a command works on, found to be fit for it.
struct Target<'a> {
    call: &'a Call<'a>,
    /// Without links.
    path: String,
    /// `None` when nothing is there.
    kind: Option<FileKind>,
    has_folder: bool,
}

impl<'a> Target<'a> {
    async fn find(
        call: &'a Call<'a>,
        command: EditorCommand,
        written: &str,
    ) -> Result<Target<'a>, ToolError> {
        let found = paths::find(call, written).await?;
        let path = found.real.clone().unwrap_or_else(|| written.to_owned());
        // Where a sandbox holds the place of a protected file, making it is refused, and says why.
        let held = |about: &paths::About| command == EditorCommand::Create && about.is_placeholder(&path);
        let kind = found.about.filter(|about| !held(about)).map(|about| about.kind);
        match (command, kind) {
            (EditorCommand::Create, Some(FileKind::File | FileKind::Other)) => {
                let message = format!("{path} is there already, and `create` does not overwrite");
                Err(ToolError::new(message).hint("change it with `str_replace`"))
            }
            (EditorCommand::View, Some(FileKind::Folder)) | (EditorCommand::Create, None) => {
                Ok(Target { call, path, kind, has_folder: found.real.is_some() })
            }
            (_, Some(FileKind::Folder)) => {
                Err(ToolError::new(format!("{path} is a folder, which can only be viewed")))
            }
            (_, None) => Err(paths::missing(call, &path).await),
            (_, Some(_)) => Ok(Target { call, path, kind, has_folder: true }),
        }
    }

    async fn text(&self) -> Result<String, ToolError> {
        let outcome = paths::read_text(self.call, &self.path).await;
        outcome.map_err(|error| match error.kind() {
            ErrorKind::UnicodeDecode => ToolError::new(format!("{} is not text: {error}", self.path)),
            _ => error,
        })
    }

    async fn view(&self, range: Option<&[i64]>) -> Result<String, ToolError> {
        let path = &self.path;
        // A folder is shown whole, whatever the range.
        if self.kind == Some(FileKind::Folder) {
            let items = walk(self.call, path, Some(2), Hidden::Skipped).await?;
            let mut lines = vec![path.clone()];
            lines.extend(items.iter().map(|item| paths::join(path, &item.path)));
            return Ok(format!("{path}, two levels deep and without hidden names:\n{}\n", lines.join("\n")));
        }
        let shown = text::view(&self.text().await?, range)?;
        Ok(format!("{path}, with line numbers:\n{shown}"))
    }

    async fn create(&self, text: String) -> Result<String, ToolError> {
        let path = &self.path;
        if !self.has_folder {
            return Err(ToolError::new(format!("the folder of {path} does not exist")));
        }
        save(self.call, path, None, text).await?;
        Ok(format!("created {path}"))
    }
}

fn given<T>(value: Option<T>, command: &str, name: &str) -> Result<T, ToolError> {
    value.ok_or_else(|| ToolError::invalid(format!("`{command}` needs `{name}`")))
}

async fn finish_edit(
    call: &Call<'_>,
    path: &str,
    before: String,
    edited: Edited,
) -> Result<String, ToolError> {
    let told = format!("{path} was changed. It now reads around the change:\n{}", edited.snippet());
    save(call, path, Some(before), edited.text).await?;
    Ok(told)
}

/// Writes first, remembers then: what could not be written needs no undoing.
async fn save(call: &Call<'_>, path: &str, before: Option<String>, after: String) -> Result<(), ToolError> {
    paths::write(call, path, after.as_bytes()).await?;
    let key = key(call, path);
    history(call).update(|history| history.push(key, Edit { before, after: mark(&after) }));
    Ok(())
}

async fn undo(call: &Call<'_>, path: &str) -> Result<String, ToolError> {
    let key = key(call, path);
    let Some(edit) = history(call).update(|history| history.pop(&key)) else {
        let message = format!("no change to {path} can be undone; the last {KEPT_EDITS} of a file are kept");
        return Err(ToolError::new(message));
    };
    let outcome = put_back(call, path, &edit).await;
    if outcome.is_err() {
        history(call).update(|history| history.push(key, edit));
    }
    outcome
}

async fn put_back(call: &Call<'_>, path: &str, edit: &Edit) -> Result<String, ToolError> {
    let now = paths::read(call, path).await?;
    let touched = if mark_bytes(&now) == edit.after {
        ""
    } else {
        " The file had been changed by something else since; that is gone as well."
    };
    match &edit.before {
        None => {
            paths::remove(call, path).await?;
            Ok(format!("the creation of {path} was undone: the file is gone.{touched}"))
        }
        Some(before) => {
            paths::write(call, path, before.as_bytes()).await?;
            Ok(format!(
                "the last change to {path} was undone.{touched} It now reads:\n{}",
                text::view(before, None)?
            ))
        }
    }
}

fn key(call: &Call<'_>, path: &str) -> String {
    format!("{}:{path}", call.options.sandbox_name())
}

fn history(call: &Call<'_>) -> Stored<History> {
    call.context.store_as(call.options.instance_name())
}

/// The changes of a run that can be undone.
#[derive(Default, Serialize, Deserialize)]
struct History {
    files: BTreeMap<String, Vec<Edit>>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Edit {
    /// What was there; nothing when the file was created.
    before: Option<String>,
    /// Tells whether somebody else changed the file since.
    after: u64,
}

impl Edit {
    fn size(&self) -> usize {
        self.before.as_ref().map_or(0, String::len)
    }
}

impl History {
    fn push(&mut self, file: String, edit: Edit) {
        let edits = self.files.entry(file.clone()).or_default();
        edits.push(edit);
        if edits.len() > KEPT_EDITS {
            edits.remove(0);
        }
        // The oldest changes of the file that has the most go first.
        while self.size() > KEPT_BYTES {
            let largest =
                self.files.values_mut().max_by_key(|edits| edits.iter().map(Edit::size).sum::<usize>());
            match largest {
                Some(edits) if !edits.is_empty() => drop(edits.remove(0)),
                _ => break,
            }
        }
        self.files.retain(|_, edits| !edits.is_empty());
    }

    fn pop(&mut self, file: &str) -> Option<Edit> {
        self.files.get_mut(file).and_then(Vec::pop)
    }

    fn size(&self) -> usize {
        self.files.values().flatten().map(Edit::size).sum()
    }
}

fn mark(text: &str) -> u64 {
    mark_bytes(text.as_bytes())
}

/// FNV-1a: the same on every machine, so a run that is resumed elsewhere still knows its files.
fn mark_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_bounded_in_edits_and_in_bytes() {
        let mut history = History::default();
        for _ in 0..20 {
            history.push("small".into(), Edit { before: Some("x".into()), after: 0 });
        }
        assert_eq!(history.files["small"].len(), KEPT_EDITS);
        let large = "y".repeat(KEPT_BYTES / 4);
        for _ in 0..6 {
            history.push("large".into(), Edit { before: Some(large.clone()), after: 0 });
        }
        assert!(history.size() <= KEPT_BYTES && history.files["small"].len() == KEPT_EDITS);
    }
}
