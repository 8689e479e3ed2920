//! What a person sees of a change before it is applied: a unified diff of the text files, bounded.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

use crate::folder::OpenFolder;
use crate::journal::{CommitStep, StepAction};

/// The largest diff.
const MAX_DIFF: usize = 64 * 1024;
/// The largest file whose contents are shown.
const MAX_FILE: u64 = 256 * 1024;
/// How long the comparison of one file may take; beyond that it becomes coarser.
const PATIENCE: Duration = Duration::from_millis(200);

/// Adds the changes of files to a diff.
pub(crate) fn add(diff: &mut String, folder: &Path, upper: &Path, steps: &[CommitStep]) {
    let (Ok(layer), Ok(target)) = (OpenFolder::open(upper), OpenFolder::open(folder)) else { return };
    for step in steps {
        if diff.len() >= MAX_DIFF {
            diff.push_str("... the rest is not shown\n");
            return;
        }
        let size = match &step.action {
            StepAction::PutFile { size, .. } => *size,
            StepAction::Remove => 0,
            _ => continue,
        };
        let name = step.path.display();
        let old = step.before.map(|before| if before.is_file() { text(&target, &step.path) } else { None });
        let new = match &step.action {
            StepAction::PutFile { .. } => Some(text(&layer, &step.path)),
            _ => None,
        };
        // `None` is no file; `Some(None)` is one that is not shown.
        let (Some(old), Some(new)) = (shown(old), shown(new)) else {
            let _ = writeln!(diff, "{name}: not text, or large ({size} bytes)");
            continue;
        };
        let mut config = TextDiff::configure();
        config.timeout(PATIENCE);
        let change = config.diff_lines(old.as_str(), new.as_str());
        let mut shown = change.unified_diff();
        let from = if step.before.is_some() { format!("a/{name}") } else { "/dev/null".to_owned() };
        let to = match &step.action {
            StepAction::Remove => "/dev/null".to_owned(),
            _ => format!("b/{name}"),
        };
        let text = shown.context_radius(3).header(&from, &to).to_string();
        let room = MAX_DIFF.saturating_sub(diff.len());
        let end = text.floor_char_boundary(room);
        diff.push_str(text.get(..end).unwrap_or_default());
        if end < text.len() {
            diff.push('\n');
        }
    }
}

/// The text to compare; `None` when there is a file that cannot be shown.
fn shown(side: Option<Option<String>>) -> Option<String> {
    match side {
        None => Some(String::new()),
        Some(text) => text,
    }
}

fn text(folder: &OpenFolder, path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    folder.file(path).ok()?.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (text.len() as u64 <= MAX_FILE && !text.contains('\0')).then_some(text)
}
