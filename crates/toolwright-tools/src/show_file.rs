//! `show_file`: a file is opened in the program the desktop has for it.
//!
//! The desktop's opener runs in the run's sandbox like every other command, so only a sandbox that lets it
//! reach the desktop can show anything. Files that would be run rather than shown are never opened.

use toolwright_core::{ErrorKind, ToolContext, ToolError, WorkspacePath, tool};

use crate::options::{Call, Options, within_time};
use crate::paths;
use crate::shell::ending;

/// Endings of files that a desktop would run.
const PROGRAMS: [&str; 23] = [
    "app", "bash", "bat", "cmd", "com", "desktop", "exe", "jar", "msi", "pl", "ps1", "py", "pyw", "rb",
    "scr", "sh", "shar", "shs", "swf", "vb", "wsf", "zsh", "dll",
];

/// Endings that wrap another file, whose own ending counts.
const WRAPPERS: [&str; 5] = ["gz", "bz2", "xz", "br", "z"];

/// Show a file to the user, in the program their desktop opens it with.
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub async fn show_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The path of the file.
    #[tool(alias = "path")]
    filename: WorkspacePath,
) -> Result<(), ToolError> {
    let call = &Call::new(context, options);
    if !is_safe_to_open(&filename) {
        let message = format!("`{filename}` would be run, not shown: it is not safe to open");
        return Err(ToolError::of(ErrorKind::Permission, message));
    }
    if paths::find(call, &filename).await?.about.is_none() {
        return Err(paths::missing(call, &filename).await);
    }
    // A name that looks like an option is not taken for one.
    let path = if filename.starts_with('-') { format!("./{filename}") } else { filename.into_string() };
    let result = call.run(call.request(["xdg-open", &path])).await?;
    if result.success() {
        return Ok(());
    }
    let told = format!("the desktop did not open it ({}): {}", ending(result.code), result.stderr);
    Err(ToolError::new(told.trim_end()).hint("the sandbox may not let commands reach the desktop"))
}

/// Whether opening a file shows it. Programs and scripts would run instead.
///
/// ```
/// use toolwright_tools::is_safe_to_open;
///
/// assert!(is_safe_to_open("report.pdf") && is_safe_to_open("README"));
/// assert!(!is_safe_to_open("setup.EXE") && !is_safe_to_open("run.sh.gz"));
/// ```
pub fn is_safe_to_open(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    // One dot makes a hidden file of a name; what follows another is an ending.
    let mut name = name.strip_prefix('.').unwrap_or(&name);
    while let Some((before, ending)) = name.rsplit_once('.') {
        if PROGRAMS.contains(&ending) {
            return false;
        }
        if !WRAPPERS.contains(&ending) {
            break;
        }
        name = before;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_run_is_not_opened() {
        for path in ["a.png", "noext", "x.txt", ".bashrc", "a.sh/x.md", "archive.tar.gz", "", "a."] {
            assert!(is_safe_to_open(path), "{path}");
        }
        for path in ["x.PY", "x.jar", "a.desktop", "dir/a.b.exe", "..sh.sh", "..pyw", "x.sh.GZ"] {
            assert!(!is_safe_to_open(path), "{path}");
        }
    }
}
