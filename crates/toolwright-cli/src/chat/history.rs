//! What was typed in earlier sessions, for the editor.

use std::path::PathBuf;

/// How many inputs are kept.
const MOST: usize = 500;

/// The longest file that is read, and written: older inputs are left out.
const BYTES: usize = 1 << 20;

/// The longest input that is kept; a longer one was pasted.
const LONGEST: usize = 16 << 10;

/// Inputs of earlier sessions, oldest first.
pub fn read() -> Vec<String> {
    let Some(path) = path() else { return Vec::new() };
    let fits = std::fs::metadata(&path).is_ok_and(|found| found.len() <= BYTES as u64);
    let text = if fits { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Keeps the inputs for the next session; one that cannot be kept is only gone.
pub fn keep(inputs: &[String]) {
    let Some(path) = path() else { return };
    let lines = lines(inputs);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if let Ok(mut file) = options.open(path) {
        let _ = std::io::Write::write_all(&mut file, (lines.join("\n") + "\n").as_bytes());
    }
}

/// The newest inputs, oldest first, as many as the file may hold.
fn lines(inputs: &[String]) -> Vec<String> {
    let mut room = BYTES;
    let short = inputs.iter().rev().filter(|input| input.len() <= LONGEST).take(MOST);
    let written = short.filter_map(|input| serde_json::to_string(input).ok());
    let mut lines: Vec<String> = written
        .take_while(|line| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        })
        .collect();
    lines.reverse();
    lines
}

fn path() -> Option<PathBuf> {
    crate::runs::data().filter(|folder| folder.exists()).map(|folder| folder.join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_input_does_not_cost_the_others() {
        let large = "x".repeat(BYTES);
        let inputs = ["first", &large, "last"].map(str::to_owned);
        assert_eq!(lines(&inputs), ["\"first\"", "\"last\""]);
        let many: Vec<String> = (0..400).map(|number| format!("{number}").repeat(4000)).collect();
        let kept = lines(&many);
        assert!(kept.len() > 50 && kept.iter().map(|line| line.len() + 1).sum::<usize>() <= BYTES);
        assert!(kept.last().is_some_and(|line| line.starts_with("\"399")));
    }
}
