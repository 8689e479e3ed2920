//! Commands that begin with a slash, and the completion of what is typed.

use std::path::Path;

/// A command: its names, what it takes, what it does.
pub struct Word {
    pub names: &'static [&'static str],
    pub takes: &'static str,
    pub does: &'static str,
    pub command: ChatCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatCommand {
    Help,
    Rewind,
    Model,
    Display,
    Cost,
    Export,
    Clear,
    Save,
    Exit,
}

pub const WORDS: &[Word] = &[
    Word { names: &["help"], takes: "", does: "this list", command: ChatCommand::Help },
    Word {
        names: &["rewind"],
        takes: "[N]",
        does: "go back to input N and change it; -1 is the last",
        command: ChatCommand::Rewind,
    },
    Word {
        names: &["model"],
        takes: "[NAME]",
        does: "which model answers, or another one",
        command: ChatCommand::Model,
    },
    Word {
        names: &["display"],
        takes: "[SETTING [on|off]]",
        does: "what is shown",
        command: ChatCommand::Display,
    },
    Word {
        names: &["cost", "tokens", "usage"],
        takes: "",
        does: "what was spent",
        command: ChatCommand::Cost,
    },
    Word {
        names: &["export"],
        takes: "NAME",
        does: "write the conversation to NAME.md",
        command: ChatCommand::Export,
    },
    Word {
        names: &["clear", "new", "reset"],
        takes: "",
        does: "begin a new conversation",
        command: ChatCommand::Clear,
    },
    Word {
        names: &["save"],
        takes: "NAME",
        does: "write the session to NAME.chat.yaml, for --resume",
        command: ChatCommand::Save,
    },
    Word {
        names: &["exit", "quit", "bye"],
        takes: "",
        does: "saves the session and leaves",
        command: ChatCommand::Exit,
    },
];

/// The command in a line that begins with a slash, and what follows it; an error names the word.
pub fn parse(line: &str) -> Result<(ChatCommand, &str), String> {
    let line = line.trim().trim_start_matches('/');
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = WORDS.iter().find(|word| word.names.contains(&name)).ok_or_else(|| name.to_owned())?;
    Ok((word.command, rest.trim()))
}

/// What the word before the cursor may become: commands after a slash, files after an `@`.
pub fn complete(before: &str, folder: &Path, models: &[String]) -> Option<(usize, Vec<String>)> {
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        let mut found: Vec<String> = Vec::new();
        for word in WORDS {
            // An alias completes to the first name, unless it was typed.
            if let Some(name) = word.names.iter().find(|name| format!("/{name}").starts_with(before)) {
                let first = word.names.first().filter(|first| format!("/{first}").starts_with(before));
                found.push(format!("/{}", first.unwrap_or(name)));
            }
        }
        return Some((0, found));
    }
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = before.get(start..)?;
    if before.starts_with("/model ") {
        return Some((start, models.iter().filter(|name| name.starts_with(word)).cloned().collect()));
    }
    if before.starts_with("/display ") {
        let found = super::display::NAMES.iter().filter(|name| name.starts_with(word));
        return Some((start, found.map(|name| (*name).to_owned()).collect()));
    }
    let wanted = word.strip_prefix('@').filter(|text| !text.is_empty())?;
    let found = files(folder, &wanted.to_lowercase());
    (!found.is_empty()).then_some((start, found))
}

/// Files whose name, or whose path, begins with a text. A walk that takes too long ends early.
fn files(folder: &Path, wanted: &str) -> Vec<String> {
    const MOST: usize = 20;
    const LOOKED_AT: usize = 20_000;
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(here).into_iter().flatten().flatten() {
            seen += 1;
            if seen > LOOKED_AT {
                break;
            }
            let name = entry.file_name().to_string_lossy().to_lowercase();
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            let hidden = name.starts_with('.') || name == "target" || name == "node_modules";
            if kind.is_dir() && !hidden {
                open.push(path.clone());
            }
            let short = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if kind.is_file()
                && !hidden
                && (name.starts_with(wanted) || short.to_lowercase().starts_with(wanted))
            {
                let plain = short.chars().all(|c| c.is_alphanumeric() || "._-/+".contains(c));
                found.push(if plain { short } else { format!("\"{short}\"") });
            }
        }
    }
    found.sort();
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_their_other_names_are_known() {
        assert_eq!(parse("/rewind -2"), Ok((ChatCommand::Rewind, "-2")));
        assert_eq!(parse("/bye"), Ok((ChatCommand::Exit, "")));
        assert_eq!(parse("/fly high"), Err("fly".to_owned()));
    }

    #[test]
    fn commands_models_and_files_are_completed() {
        let folder = tempfile::tempdir().unwrap_or_else(|_| std::process::abort());
        let write = |name: &str| std::fs::write(folder.path().join(name), "");
        assert!(std::fs::create_dir(folder.path().join("sub")).is_ok());
        assert!(write("Notes.md").is_ok() && write("sub/not this one.txt").is_ok() && write("other").is_ok());
        let models = ["fast".to_owned(), "default".to_owned()];
        let complete = |text: &str| complete(text, folder.path(), &models);
        assert_eq!(complete("/re"), Some((0, vec!["/rewind".to_owned(), "/reset".to_owned()])));
        assert_eq!(complete("/model f"), Some((7, vec!["fast".to_owned()])));
        assert_eq!(complete("/display show_r"), Some((9, vec!["show_reasoning".to_owned()])));
        let both = vec!["\"sub/not this one.txt\"".to_owned(), "Notes.md".to_owned()];
        assert_eq!(complete("look at @not"), Some((8, both)));
        assert_eq!(complete("mail me@"), None);
    }
}
