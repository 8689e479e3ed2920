//! Files that the program itself writes, with errors that name the file. The writing is `toolwright-util`'s:
//! whole or not at all, and never through a link.

use std::path::Path;

use anyhow::Context as _;
pub use toolwright_util::FileAccess;

/// Writes a file in the place of what is there. If that fails, the previous content stays.
pub fn replace(path: &Path, bytes: &[u8], access: FileAccess) -> anyhow::Result<()> {
    toolwright_util::replace(path, bytes, access).with_context(|| unwritable(path))
}

/// Writes a file where there is nothing yet; see [`already_exists`].
pub fn create(path: &Path, bytes: &[u8], access: FileAccess) -> anyhow::Result<()> {
    toolwright_util::create(path, bytes, access).with_context(|| unwritable(path))
}

/// Whether [`create`] failed because the name is taken.
pub fn already_exists(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::AlreadyExists)
}

fn unwritable(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}
