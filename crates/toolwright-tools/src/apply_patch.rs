//! `apply_patch`: changes to several files, all of them or none.

use std::collections::HashSet;

use toolwright_core::{ErrorKind, ToolContext, ToolError, tool};

use crate::options::{Call, Options, within_time};
use crate::patch::{self, FileChange, To};
use crate::{paths, read_file};

/// The most bytes of all files of a patch, before and after: all are worked out before any is written.
const MOST_HELD: usize = 256 << 20;

/// A file as it is, or is to be.
#[derive(Clone, PartialEq, Eq)]
struct File {
    text: String,
    /// What `chmod` is to be told; `None` for the mode that a new file gets.
    mode: Option<String>,
}

/// What was at a path and what will be; `None` means nothing.
struct Write {
    path: String,
    before: Option<File>,
    after: Option<File>,
    /// The file is made by the patch, and not the one that was there.
    fresh: bool,
    /// The mode of the file that was there, whole.
    was: Option<String>,
}

impl Write {
    fn size(&self) -> usize {
        [&self.before, &self.after].into_iter().flatten().map(|file| file.text.len()).sum()
    }

    /// Whether the file is to have another mode than it has once it is written.
    fn changes_mode(&self) -> bool {
        let mode = |file: &Option<File>| file.as_ref().and_then(|file| file.mode.clone());
        mode(&self.after).is_some() && mode(&self.after) != mode(&self.before)
    }
}

async fn put(call: &Call<'_>, path: &str, file: Option<&File>) -> Result<(), ToolError> {
    match file {
        Some(file) => paths::write(call, path, file.text.as_bytes()).await,
        None => paths::remove(call, path).await,
    }
}

async fn set_mode(call: &Call<'_>, path: &str, mode: Option<&String>) -> Result<(), ToolError> {
    match mode {
        Some(mode) => paths::change_mode(call, path, mode).await,
        None => Ok(()),
    }
}

/// The tool `apply_patch`.
#[tool(
    description = "Apply a patch to files. Each context line and each removed line must be in the file as the patch has it; a \
                   hunk whose line numbers are off is placed where its lines are, when that is one place. When any part does \
                   not fit, nothing is changed and the error says what differs.",
    category = "files",
    sandboxed,
    read_only = false,
    parallel = false,
    finish = within_time
)]
pub async fn apply_patch(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// A unified diff, or `*** Begin Patch` and what follows. `a/` and `b/` in front of a path are taken off.
    #[tool(alias("input", "diff"))]
    patch: String,
    /// Only say whether it would fit.
    #[tool(default)]
    dry_run: bool,
) -> Result<String, ToolError> {
    let call = &Call::new(context, options);
    let changes = patch::parse(&patch)?;
    let mut plan = PatchPlan { call, leaving: leaving(&changes), writes: Vec::new() };
    let mut told: Vec<String> = Vec::new();
    for change in changes {
        told.push(plan.add(change).await?);
        bounded(&plan.writes, MOST_HELD)?;
    }
    if dry_run {
        return Ok(format!("the patch fits; nothing was changed:\n{}", told.join("\n")));
    }
    carry_out(call, plan.writes).await?;
    Ok(told.join("\n"))
}

/// Writes all files, then sets their modes; when anything fails, puts back what was there.
async fn carry_out(call: &Call<'_>, mut writes: Vec<Write>) -> Result<(), ToolError> {
    writes.retain(|write| write.before != write.after);
    // First what goes: a folder may come where a file was.
    writes.sort_by_key(|write| write.after.is_some());
    let (mut written, mut modes) = (0, 0);
    let mut failed = None;
    for write in &writes {
        if let Err(error) = put(call, &write.path, write.after.as_ref()).await {
            failed = Some((write, error));
            break;
        }
        written += 1;
    }
    for write in writes.iter().filter(|write| failed.is_none() && write.changes_mode()) {
        let mode = write.after.as_ref().and_then(|file| file.mode.as_ref());
        if let Err(error) = set_mode(call, &write.path, mode).await {
            failed = Some((write, error));
            break;
        }
        modes += 1;
    }
    let Some((write, error)) = failed else { return Ok(()) };
    let mut undone = true;
    for write in writes.iter().filter(|write| write.changes_mode()).take(modes) {
        undone &= set_mode(call, &write.path, write.was.as_ref()).await.is_ok();
    }
    for write in writes.iter().take(written).rev() {
        undone &= put(call, &write.path, write.before.as_ref()).await.is_ok();
        if write.after.is_none() {
            undone &= set_mode(call, &write.path, write.was.as_ref()).await.is_ok();
        }
    }
    let state = if undone { "nothing was changed" } else { "some files could not be put back as they were" };
    Err(ToolError::of(error.kind(), format!("{} could not be written: {error}; {state}", write.path)))
}

/// The paths that files are moved away from; others may be moved there.
fn leaving(changes: &[FileChange]) -> HashSet<String> {
    let moved = changes.iter().filter_map(|change| match change {
        FileChange::Update { path, to: To::Move(_), .. } => Some(path.clone()),
        _ => None,
    });
    moved.collect()
}

fn bounded(writes: &[Write], most: usize) -> Result<(), ToolError> {
    if writes.iter().map(Write::size).sum::<usize>() <= most {
        return Ok(());
    }
    let message = format!("the files of the patch are larger than {} MiB together", most >> 20);
    Err(ToolError::of(ErrorKind::OutputLimit, message).hint("nothing was changed; apply the patch in parts"))
}

/// What a patch comes to, one change on top of the other.
struct PatchPlan<'a> {
    call: &'a Call<'a>,
    leaving: HashSet<String>,
    writes: Vec<Write>,
}

impl PatchPlan<'_> {
    /// Works out one change, and says what it does.
    async fn add(&mut self, change: FileChange) -> Result<String, ToolError> {
        match change {
            FileChange::Create { path, text, executable } => {
                self.free(&path, "the patch creates it").await?;
                let told = format!("created {path}");
                let mode = executable.then(|| "+x".to_owned());
                self.make(&path, File { text, mode }).await?;
                Ok(told)
            }
            FileChange::Delete { path, hunks } => {
                let before = self.file(&path).await?;
                let left = patch::apply(&path, &before.text, hunks.as_deref().unwrap_or_default())?;
                if hunks.is_some() && !left.is_empty() {
                    return Err(ToolError::new(format!("{path} has lines that the patch does not delete")));
                }
                self.look(&path).await?.after = None;
                Ok(format!("deleted {path}"))
            }
            FileChange::Update { path, to, hunks, executable } => {
                let before = match &to {
                    To::Stay => self.file(&path).await?,
                    To::Move(_) | To::Copy(_) => self.source(&path).await?,
                };
                let text = patch::apply(&path, &before.text, &hunks)?;
                let mode = executable.map(|executable| if executable { "+x" } else { "a-x" }.to_owned());
                let file = File { text, mode: mode.or(before.mode) };
                match to {
                    To::Stay => {
                        self.look(&path).await?.after = Some(file);
                        Ok(match executable {
                            Some(true) if hunks.is_empty() => format!("made {path} executable"),
                            Some(false) if hunks.is_empty() => format!("made {path} no longer executable"),
                            _ => format!("changed {path}"),
                        })
                    }
                    To::Move(to) => {
                        self.free(&to, &format!("the patch moves {path} to it")).await?;
                        self.make(&to, file).await?;
                        let left = self.look(&path).await?;
                        if !left.fresh || left.before.is_none() {
                            left.after = None;
                        }
                        Ok(format!("moved {path} to {to}"))
                    }
                    To::Copy(to) => {
                        self.free(&to, &format!("the patch copies {path} to it")).await?;
                        self.make(&to, file).await?;
                        Ok(format!("copied {path} to {to}"))
                    }
                }
            }
        }
    }

    /// What is known of a path.
    async fn look(&mut self, path: &str) -> Result<&mut Write, ToolError> {
        let at = match self.writes.iter().position(|write| write.path == path) {
            Some(at) => at,
            None => {
                let (before, was) = on_disk(self.call, path).await?.unzip();
                let (after, was) = (before.clone(), was.flatten());
                self.writes.push(Write { path: path.to_owned(), before, after, fresh: false, was });
                self.writes.len() - 1
            }
        };
        self.writes.get_mut(at).ok_or_else(|| ToolError::fatal("a path of the patch was lost"))
    }

    /// The file at a path, after the changes before.
    async fn file(&mut self, path: &str) -> Result<File, ToolError> {
        match &self.look(path).await?.after {
            Some(file) => Ok(file.clone()),
            None => Err(paths::missing(self.call, path).await),
        }
    }

    /// The file that is moved or copied. Copies are of what was there before the patch, as in git; so are
    /// files that change places.
    async fn source(&mut self, path: &str) -> Result<File, ToolError> {
        let moves = self.leaving.contains(path);
        let write = self.look(path).await?;
        match &write.before {
            Some(before) if !moves || write.fresh || write.after.is_none() => Ok(before.clone()),
            _ => self.file(path).await,
        }
    }

    /// Fails when a file is at a path, unless it goes elsewhere.
    async fn free(&mut self, path: &str, why: &str) -> Result<(), ToolError> {
        let leaves = self.leaving.contains(path);
        let write = self.look(path).await?;
        if write.after.is_some() && (write.fresh || !leaves) {
            return Err(ToolError::new(format!("{path} is there already, and {why}")));
        }
        Ok(())
    }

    async fn make(&mut self, path: &str, file: File) -> Result<(), ToolError> {
        let write = self.look(path).await?;
        (write.after, write.fresh) = (Some(file), true);
        Ok(())
    }
}

/// The file that is at a path now.
async fn on_disk(call: &Call<'_>, path: &str) -> Result<Option<(File, Option<String>)>, ToolError> {
    let text = match read_file::read(call, path).await {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::FileNotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let about = paths::find(call, path).await?.about;
    // A sandbox holds the place of a protected file; writing it is refused, and says why.
    if about.as_ref().is_some_and(|about| about.is_placeholder(path)) {
        return Ok(None);
    }
    let was = about.map(|about| format!("{:o}", about.mode & 0o7777));
    // These are what a new file gets.
    let mode = was.clone().filter(|mode| mode != "644" && mode != "664");
    Ok(Some((File { text, mode }, was)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_patch_holds_is_bounded() {
        let file = |text: &str| Some(File { text: text.to_owned(), mode: None });
        let write = |before: &str, after: Option<&str>| Write {
            path: "f".to_owned(),
            before: file(before),
            after: after.and_then(file),
            fresh: false,
            was: None,
        };
        let writes = [write("abc", Some("de")), write("de", None)];
        assert!(bounded(&writes, 7).is_ok());
        assert_eq!(bounded(&writes, 6).unwrap_err().kind(), ErrorKind::OutputLimit);
    }
}
