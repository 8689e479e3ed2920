//! What was typed in earlier sessions, for the editor.

use std::path::PathBuf;

/// How many inputs are kept.
const MOST: usize = 500;

/// The longest file that is read.
const BYTES: u64 = 1 << 20;

/// Inputs of earlier sessions, oldest first.
pub fn read() -> Vec<String> {
    let Some(path) = path() else { return Vec::new() };
    let fits = std::fs::metadata(&path).is_ok_and(|found| found.len() <= BYTES);
    let text = if fits { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Keeps the inputs for the next session; one that cannot be kept is only gone.
pub fn keep(inputs: &[String]) {
    let Some(path) = path() else { return };
    let lines: Vec<String> =
        inputs.iter().rev().take(MOST).rev().filter_map(|input| serde_json::to_string(input).ok()).collect();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if let Ok(mut file) = options.open(path) {
        let _ = std::io::Write::write_all(&mut file, (lines.join("\n") + "\n").as_bytes());
    }
}

fn path() -> Option<PathBuf> {
    crate::runs::data().filter(|folder| folder.exists()).map(|folder| folder.join("history"))
}
