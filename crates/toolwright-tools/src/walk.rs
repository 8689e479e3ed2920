//! What is in a folder of the sandbox, however deep.

use toolwright_core::{ErrorKind, PLACEHOLDER_TIME, ToolError};

use crate::options::Call;
use crate::paths;

/// The most bytes that the name of the folder may take in front of all that is in it.
const MOST_BYTES: usize = 64 << 20;

/// One file or folder below the place the walk began.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WalkEntry {
    /// From the place the walk began, without a leading slash.
    pub(crate) path: String,
    pub(crate) is_file: bool,
    pub(crate) is_folder: bool,
    pub(crate) is_link: bool,
    pub(crate) size: u64,
    /// Seconds since 1970, with fractions.
    pub(crate) modified: f64,
}

impl WalkEntry {
    fn is_placeholder(&self) -> bool {
        self.modified == PLACEHOLDER_TIME as f64
            && (self.is_folder || (self.is_file && paths::holds_a_place(&self.path, self.size)))
    }
}

/// Whether names with a leading dot, and what is below them, are walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    Shown,
    Skipped,
}

/// Everything below a folder, sorted by path. Links are listed and not followed; folders that may not be
/// read, and what a sandbox put in the place of protected files, are passed over.
pub(crate) async fn walk(
    call: &Call<'_>,
    folder: &str,
    depth: Option<usize>,
    hidden: Hidden,
) -> Result<Vec<WalkEntry>, ToolError> {
    let root = paths::operand(paths::check(folder)?);
    let depth = depth.map(|depth| depth.to_string());
    // `-H` follows the folder itself when it is a link.
    let mut command = vec!["find", "-H", &root, "-mindepth", "1"];
    if let Some(depth) = &depth {
        command.extend(["-maxdepth", depth]);
    }
    if hidden == Hidden::Skipped {
        command.extend(["-name", ".*", "-prune", "-o"]);
    }
    command.extend(["-printf", BELOW]);
    let result = call.helper(&command).await.map_err(|error| match error.kind() {
        ErrorKind::OutputLimit => too_many(folder),
        _ => error,
    })?;
    if result.stdout.is_empty() && !result.success() {
        return Err(failure(call, folder, result.stderr.trim()).await);
    }
    let mut items: Vec<WalkEntry> = result.stdout.split('\0').filter_map(read).collect();
    // Paths are returned with the folder in front, which may have a long name.
    if items.len().saturating_mul(root.len()) > MOST_BYTES {
        return Err(too_many(folder));
    }
    items.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(items)
}

fn too_many(folder: &str) -> ToolError {
    ToolError::of(ErrorKind::OutputLimit, format!("there are too many files in {folder} to list"))
        .hint("name a folder further down, or go less deep")
}

/// How `find` is to write what is below the place it began, and what it finds with its whole path.
pub(crate) const BELOW: &str = r"%y%Y/%s/%T@/%P\0";
pub(crate) const WHOLE: &str = r"%y%Y/%s/%T@/%p\0";

/// What `find` wrote; nothing for what a sandbox put in the place of a protected file.
pub(crate) fn read(line: &str) -> Option<WalkEntry> {
    parse(line).filter(|item| !item.is_placeholder())
}

fn parse(line: &str) -> Option<WalkEntry> {
    let mut fields = line.splitn(4, '/');
    let mut kinds = fields.next()?.chars();
    let (own, target) = (kinds.next()?, kinds.next()?);
    Some(WalkEntry {
        is_file: target == 'f',
        is_folder: own == 'd',
        is_link: own == 'l',
        size: fields.next()?.parse().ok()?,
        modified: fields.next()?.parse().ok()?,
        path: fields.next()?.to_owned(),
    })
}

async fn failure(call: &Call<'_>, folder: &str, message: &str) -> ToolError {
    match paths::kind_of(message) {
        ErrorKind::FileNotFound => paths::missing(call, folder).await,
        ErrorKind::Permission => ToolError::of(ErrorKind::Permission, format!("{folder} may not be read")),
        kind => ToolError::of(kind, format!("{folder} cannot be listed: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything_but_a_nul() {
        let item = read("lf/12/1700000000.5000000000/a b/\n-x").unwrap();
        assert_eq!(item.path, "a b/\n-x");
        assert!(item.is_file && item.is_link && !item.is_folder);
        assert_eq!(read(""), None);
        let (login, text) = toolwright_core::PLACEHOLDER_LOGIN;
        assert_eq!(read("ff/0/1.0000000000/.mcp.json"), None);
        assert_eq!(read(&format!("ff/{}/1.0000000000/home/{login}", text.len())), None);
        for real in
            ["ff/3/1.0000000000/.mcp.json", "ff/93/1.0000000000/x", "ff/93/1.5000000000/.bash_profile"]
        {
            assert!(read(real).is_some(), "{real}");
        }
    }
}
