//! Asking for the variables that a file declares and nobody has set.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use toolwright::file::Environment;
use toolwright::lang::{Variable, find_dotenv};

use crate::console::Console;
use crate::files::dotenv_of_llm_workers;
use crate::prompt::printable;
use crate::write_file::{self, FileAccess};

/// Asks the person at the terminal, if there is one, for what is needed and missing. Variables without an
/// answer stay unset, which opening the file then reports.
pub fn ask(
    console: &Console,
    declared: &[Variable],
    mut environment: Environment,
) -> anyhow::Result<Environment> {
    if !console.has_person() {
        return Ok(environment);
    }
    for variable in declared.iter().filter(|variable| variable.is_needed && !variable.is_set) {
        let kept = if variable.persistent { dotenv().map(Some) } else { Ok(None) };
        let Some(value) = answer(console, variable, &kept)? else { continue };
        if let Ok(Some(file)) = kept {
            keep(console, &file, &variable.name, &value);
        }
        environment = environment.with(variable.name.clone(), value);
    }
    Ok(environment)
}

/// The `.env` file of this folder, in which answers are kept, or why they are not: a file anywhere else, be
/// it that of a folder above or behind a link, is not this folder's to change.
fn dotenv() -> Result<PathBuf, String> {
    let folder = std::env::current_dir().map_err(|error| error.to_string())?;
    let here = folder.join(".env");
    let shown = |file: &Path| printable(&file.display().to_string());
    match std::fs::symlink_metadata(&here) {
        Ok(found) if found.is_file() => Ok(here),
        Ok(_) => Err(format!("{} is not a regular file", shown(&here))),
        Err(_) => match (find_dotenv(&folder), dotenv_of_llm_workers()) {
            (Some(above), _) => {
                Err(format!("{} is in a folder above; write it there yourself", shown(&above)))
            }
            // A file here would hide all that stands there.
            (None, Some(theirs)) => Err(format!("{} is in use; write it there yourself", shown(&theirs))),
            (None, None) => Ok(here),
        },
    }
}

fn answer(
    console: &Console,
    variable: &Variable,
    kept: &Result<Option<PathBuf>, String>,
) -> anyhow::Result<Option<String>> {
    let name = printable(&variable.name);
    let about = variable.description.as_deref().map(|text| format!(": {}", printable(text.trim())));
    console.say(format_args!("\n`{name}` is not set{}", about.unwrap_or_default()));
    match kept {
        Ok(Some(file)) => {
            console.say(format_args!("(the answer is kept in {})", printable(&file.display().to_string())))
        }
        Ok(None) => console.say("(the answer is not kept)"),
        Err(reason) => console.say(format_args!("(the answer is not kept: {reason})")),
    }
    let value =
        if variable.secret { hidden(console, "Value (not shown): ")? } else { shown(console, "Value: ")? };
    Ok(Some(value).filter(|value| !value.is_empty()))
}

fn shown(console: &Console, question: &str) -> anyhow::Result<String> {
    write!(console.stderr(), "{question}")?;
    let mut line = String::new();
    console.stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// The terminal reads keys for as long as this lives; however the question ends, it is as before.
struct Raw(Console);

impl Raw {
    fn new(console: &Console) -> std::io::Result<Raw> {
        enable_raw_mode().map(|()| Raw(console.clone()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
        let _ = writeln!(self.0.stderr());
    }
}

/// A line that nobody sees.
fn hidden(console: &Console, question: &str) -> anyhow::Result<String> {
    let _raw = Raw::new(console)?;
    write!(console.stderr(), "{question}")?;
    let mut line = String::new();
    loop {
        let Event::Key(KeyEvent { code, modifiers, kind, .. }) = read()? else { continue };
        let control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            _ if kind == KeyEventKind::Release => {}
            KeyCode::Char('c') if control => anyhow::bail!("stopped by Ctrl-C"),
            KeyCode::Char('d') if control => return Ok(line),
            KeyCode::Char('u') if control => line.clear(),
            KeyCode::Enter => return Ok(line.trim().to_owned()),
            KeyCode::Backspace => {
                line.pop();
            }
            KeyCode::Char(c) if !control => line.push(c),
            _ => {}
        }
    }
}

/// Adds a variable to the file, which only its owner may read then. The answer counts either way.
fn keep(console: &Console, file: &Path, name: &str, value: &str) {
    let shown = printable(&file.display().to_string());
    let outcome = match written(value) {
        Some(value) => add(file, &format!("{name}={value}\n")),
        None => Err(anyhow::anyhow!("`${{` in a value cannot be written there")),
    };
    match outcome {
        Ok(()) => console.say(format_args!("{} is kept in {shown}", printable(name))),
        Err(error) => {
            console.say(format_args!("{} could not be kept in {shown}: {error:#}", printable(name)))
        }
    }
}

fn add(file: &Path, line: &str) -> anyhow::Result<()> {
    let mut text = match std::fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.extend(line.as_bytes());
    write_file::replace(file, &text, FileAccess::Owner)
}

/// A value as a `.env` file has it; `None` for one that would be read as something else.
fn written(value: &str) -> Option<String> {
    if value.contains("${") {
        return None;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match value.chars().all(plain) {
        true => Some(value.to_owned()),
        false => Some(format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright::lang::parse_dotenv;

    #[test]
    fn what_is_kept_is_read_again() {
        for value in ["sk-123", "two words", "it's", r"back\slash\'", "a # b", "x=\"y\"", "é", r"end\"] {
            let text = format!("A={}\nB=1\n", written(value).unwrap());
            let read = parse_dotenv(&text, |_| None);
            assert_eq!(
                read,
                [("A".to_owned(), value.to_owned()), ("B".to_owned(), "1".to_owned())],
                "{text}"
            );
        }
        assert_eq!(written("${HOME}"), None);
    }
}
