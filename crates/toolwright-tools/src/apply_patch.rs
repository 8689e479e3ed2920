//! `apply_patch`: changes to several files, all of them or none.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_core::{ErrorKind, ToolDef, ToolError};

use crate::options::{Call, Effect, Options, define, finish};
use crate::patch::{self, Change};
use crate::{paths, read_file};

#[derive(Deserialize, JsonSchema)]
struct ApplyPatch {
    /// A unified diff, or `*** Begin Patch` and what follows. `a/` and `b/` in front of a path are taken off.
    patch: String,
    /// Only say whether it would fit.
    #[serde(default)]
    dry_run: bool,
}

/// The most bytes of all files of a patch, before and after: all are worked out before any is written.
const MOST_HELD: usize = 256 << 20;

/// What will be at a path; `None` means nothing.
struct Write {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

impl Write {
    fn size(&self) -> usize {
        [&self.before, &self.after].into_iter().flatten().map(String::len).sum()
    }
}

/// The tool `apply_patch`. `input` and `diff` are accepted for `patch`.
pub fn apply_patch(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "apply_patch",
        "Apply a patch to files. Each context line and each removed line must be in the file as the patch has it; a hunk \
         whose line numbers are off is placed where its lines are, when that is one place. When any part does not fit, \
         nothing is changed and the error says what differs.",
        |call: Call, ApplyPatch { patch, dry_run }| async move { run(&call, &patch, dry_run).await },
    );
    finish(tool, "files", Effect::Writes, &[("input", "patch"), ("diff", "patch")])
}

async fn run(call: &Call, patch: &str, dry_run: bool) -> Result<String, ToolError> {
    let mut writes: Vec<Write> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for change in patch::parse(patch)? {
        told.push(plan(call, change, &mut writes).await?);
        bounded(&writes, MOST_HELD)?;
    }
    if dry_run {
        return Ok(format!("the patch fits; nothing was changed:\n{}", told.join("\n")));
    }
    for (done, write) in writes.iter().enumerate() {
        if let Err(error) = put(call, &write.path, write.after.as_deref()).await {
            let undone = undo(call, writes.get(..done).unwrap_or_default()).await;
            let state =
                if undone { "nothing was changed" } else { "some files could not be put back as they were" };
            return Err(ToolError::of(
                error.kind(),
                format!("{} could not be written: {error}; {state}", write.path),
            ));
        }
    }
    Ok(told.join("\n"))
}

fn bounded(writes: &[Write], most: usize) -> Result<(), ToolError> {
    if writes.iter().map(Write::size).sum::<usize>() <= most {
        return Ok(());
    }
    let message = format!("the files of the patch are larger than {} MiB together", most >> 20);
    Err(ToolError::of(ErrorKind::OutputLimit, message).hint("nothing was changed; apply the patch in parts"))
}

/// Works out one change on top of those before it.
async fn plan(call: &Call, change: Change, writes: &mut Vec<Write>) -> Result<String, ToolError> {
    match change {
        Change::Create { path, text } => {
            if current(call, &path, writes).await?.is_some() {
                return Err(ToolError::new(format!("{path} is there already, and the patch creates it")));
            }
            let told = format!("created {path}");
            writes.push(Write { path, before: None, after: Some(text) });
            Ok(told)
        }
        Change::Delete { path, hunks } => {
            let Some(before) = current(call, &path, writes).await? else {
                return Err(paths::missing(call, &path).await);
            };
            let left = patch::apply(&path, &before, &hunks)?;
            if !hunks.is_empty() && !left.is_empty() {
                return Err(ToolError::new(format!("{path} has lines that the patch does not delete")));
            }
            let told = format!("deleted {path}");
            writes.push(Write { path, before: Some(before), after: None });
            Ok(told)
        }
        Change::Update { path, to, hunks } => {
            let Some(before) = current(call, &path, writes).await? else {
                return Err(paths::missing(call, &path).await);
            };
            let after = patch::apply(&path, &before, &hunks)?;
            let Some(to) = to else {
                let told = format!("changed {path}");
                writes.push(Write { path, before: Some(before), after: Some(after) });
                return Ok(told);
            };
            if current(call, &to, writes).await?.is_some() {
                return Err(ToolError::new(format!(
                    "{to} is there already, and the patch moves {path} to it"
                )));
            }
            let told = format!("moved {path} to {to}");
            writes.push(Write { path: to, before: None, after: Some(after) });
            writes.push(Write { path, before: Some(before), after: None });
            Ok(told)
        }
    }
}

/// What is at a path, counting the changes before.
async fn current(call: &Call, path: &str, writes: &[Write]) -> Result<Option<String>, ToolError> {
    if let Some(write) = writes.iter().rev().find(|write| write.path == path) {
        return Ok(write.after.clone());
    }
    match read_file::read(call, path).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn put(call: &Call, path: &str, text: Option<&str>) -> Result<(), ToolError> {
    match text {
        Some(text) => paths::write(call, path, text.as_bytes()).await,
        None => paths::remove(call, path).await,
    }
}

/// Puts everything back, the last change first. True when that worked.
async fn undo(call: &Call, writes: &[Write]) -> bool {
    let mut all = true;
    for write in writes.iter().rev() {
        all &= put(call, &write.path, write.before.as_deref()).await.is_ok();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_patch_holds_is_bounded() {
        let write = |before: &str, after: Option<&str>| Write {
            path: "f".to_owned(),
            before: Some(before.to_owned()),
            after: after.map(str::to_owned),
        };
        let writes = [write("abc", Some("de")), write("de", None)];
        assert!(bounded(&writes, 7).is_ok());
        assert_eq!(bounded(&writes, 6).unwrap_err().kind(), ErrorKind::OutputLimit);
    }
}
