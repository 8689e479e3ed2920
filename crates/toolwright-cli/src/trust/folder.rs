//! Whether only its owner, who runs the program, can write a folder or a file.

use std::path::Path;

/// An error that says why the folder or file is not one that only the user can write.
#[cfg(unix)]
pub fn private(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let found = std::fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if found.is_symlink() {
        return Err("it is a link".to_owned());
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("others can write it (mode {mode:o}); `chmod go-w` changes that"));
    }
    Ok(())
}

/// An error that says why the folder or file is not one that only the user can write.
#[cfg(not(unix))]
pub fn private(_: &Path) -> Result<(), String> {
    Err("this system does not say who can write it".to_owned())
}
