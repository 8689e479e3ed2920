//! Asking for the variables that a file declares and nobody has set.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use toolwright::lang::{Host, Variable, declared_env, find_dotenv};

use crate::prompt::{Terminal, printable};

/// Asks the person at the terminal, if there is one, for what is missing. Variables without an answer stay unset, which
/// loading the file then tells.
pub fn ask(file: &Path, mut host: Host) -> anyhow::Result<Host> {
    if Terminal::if_there().is_none() {
        return Ok(host);
    }
    // A file with problems is told about by whoever loads it.
    let declared = declared_env(file, &host).unwrap_or_default();
    for variable in declared.iter().filter(|variable| !variable.is_set) {
        let kept = variable.persistent.then(dotenv).transpose()?;
        let Some(value) = answer(variable, kept.as_deref())? else { continue };
        if let Some(file) = kept {
            keep(&file, &variable.name, &value);
        }
        host = host.environment([(variable.name.clone(), value)]);
    }
    Ok(host)
}

/// The `.env` file that answers are kept in.
fn dotenv() -> std::io::Result<PathBuf> {
    let folder = std::env::current_dir()?;
    Ok(find_dotenv(&folder).unwrap_or_else(|| folder.join(".env")))
}

fn answer(variable: &Variable, kept: Option<&Path>) -> anyhow::Result<Option<String>> {
    let name = printable(&variable.name);
    let about = variable.description.as_deref().map(|text| format!(": {}", printable(text.trim())));
    eprintln!("\n`{name}` is not set{}", about.unwrap_or_default());
    match kept {
        Some(file) => eprintln!("(the answer is kept in {})", printable(&file.display().to_string())),
        None => eprintln!("(the answer is not kept)"),
    }
    let value = if variable.secret { hidden("Value (not shown): ")? } else { shown("Value: ")? };
    Ok(Some(value).filter(|value| !value.is_empty()))
}

fn shown(question: &str) -> anyhow::Result<String> {
    write!(std::io::stderr(), "{question}")?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// The terminal reads keys for as long as this lives; however the question ends, it is as before.
struct Raw;

impl Raw {
    fn new() -> std::io::Result<Raw> {
        enable_raw_mode().map(|()| Raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
        let _ = writeln!(std::io::stderr());
    }
}

/// A line that nobody sees.
fn hidden(question: &str) -> anyhow::Result<String> {
    let _raw = Raw::new()?;
    write!(std::io::stderr(), "{question}")?;
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

/// Appends a variable to the file, which only its owner may read when it is made here. The answer counts either way.
fn keep(file: &Path, name: &str, value: &str) {
    let shown = printable(&file.display().to_string());
    let outcome = match written(value) {
        Some(value) => append(file, &format!("{name}={value}\n")),
        None => Err(std::io::Error::other("`${` in a value cannot be written there")),
    };
    match outcome {
        Ok(()) => eprintln!("{name} is kept in {shown}"),
        Err(error) => eprintln!("{name} could not be kept in {shown}: {error}"),
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let before = std::fs::read(file).unwrap_or_default();
    let between = if before.is_empty() || before.ends_with(b"\n") { "" } else { "\n" };
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    file.write_all(format!("{between}{line}").as_bytes())
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
