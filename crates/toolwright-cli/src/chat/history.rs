//! What was typed in earlier sessions, for the editor.

use std::fs::File;
use std::path::{Path, PathBuf};

use toolwright::events::Redactor;

use crate::write_file::{self, FileAccess};

/// The file among the user's data.
const NAME: &str = "history";

/// How many inputs are kept.
const MOST: usize = 500;

/// The longest file that is read, and written: older inputs are left out.
const BYTES: usize = 1 << 20;

/// The longest input that is kept; a longer one was pasted.
const LONGEST: usize = 16 << 10;

/// Inputs of earlier sessions, oldest first.
pub fn read() -> Vec<String> {
    folder().map(|folder| read_from(&folder)).unwrap_or_default()
}

/// Adds the inputs of this session for the next ones, without secrets; what cannot be kept is only gone.
pub fn add(inputs: &[String], redactor: &Redactor) {
    if let Some(folder) = folder().filter(|_| !inputs.is_empty()) {
        let _ = add_to(&folder, &without_secrets(inputs, redactor));
    }
}

fn without_secrets(inputs: &[String], redactor: &Redactor) -> Vec<String> {
    inputs.iter().map(|input| redactor.redact_text(input)).collect()
}

fn folder() -> Option<PathBuf> {
    crate::runs::data().filter(|folder| folder.exists())
}

fn read_from(folder: &Path) -> Vec<String> {
    let path = folder.join(NAME);
    let fits = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= BYTES as u64);
    let text = if fits { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Other chats add theirs too: what is there now is what is added to, by one at a time.
fn add_to(folder: &Path, inputs: &[String]) -> anyhow::Result<()> {
    let turn = File::open(folder)?;
    // Not every file system has locks; then nobody can tell.
    let _ = turn.lock();
    let mut all = read_from(folder);
    all.extend_from_slice(inputs);
    write_file::replace(&folder.join(NAME), (lines(&all).join("\n") + "\n").as_bytes(), FileAccess::Owner)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_at_the_same_time_lose_none_of_their_inputs() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let folder = folder.path();
        let chat = |chat: usize| (0..10).try_for_each(|input| add_to(folder, &[format!("{chat}: {input}")]));
        std::thread::scope(|scope| {
            let chats: Vec<_> = (0..4).map(|number| scope.spawn(move || chat(number))).collect();
            chats
                .into_iter()
                .try_for_each(|chat| chat.join().unwrap_or_else(|_| anyhow::bail!("it panicked")))
        })?;
        let kept = read_from(folder);
        assert_eq!(kept.len(), 40, "{kept:?}");
        for number in 0..4 {
            let own: Vec<&String> =
                kept.iter().filter(|input| input.starts_with(&format!("{number}:"))).collect();
            assert!(own.is_sorted(), "{own:?}");
        }
        let many: Vec<String> = (0..2 * MOST).map(|number| number.to_string()).collect();
        add_to(folder, &many)?;
        assert_eq!(read_from(folder).len(), MOST);
        Ok(())
    }

    /// F24.
    #[test]
    fn a_secret_is_not_kept() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let redactor = Redactor::new([toolwright::tool::Secret::new("hunter2-hunter2")]);
        let inputs = ["log in with hunter2-hunter2".to_owned()];
        add_to(folder.path(), &without_secrets(&inputs, &redactor))?;
        assert_eq!(read_from(folder.path()), ["log in with [redacted]"]);
        Ok(())
    }

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
