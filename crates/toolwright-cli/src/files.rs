//! Files of tools: which one is used, what surrounds it, and what a person is told about its content.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toolwright::file::Environment;
use toolwright::lang::{Loaded, find_dotenv, parse_dotenv};
use toolwright_core::text::clip;

use crate::console::Console;
use crate::opening::{FileChoice, ParsedFile};
use crate::report::Usage;
use crate::{prompt, report};

/// The file that is used when none is named.
pub const DEFAULT: &str = "toolwright.yaml";

/// The file that was named, or the default one.
pub fn choose(console: &Console, named: Option<PathBuf>) -> Option<FileChoice> {
    named.map(FileChoice::named).or_else(|| default(console))
}

/// The default file, when there is one here. Using it is said: it was not named.
pub fn default(console: &Console) -> Option<FileChoice> {
    let there = is_here();
    if there {
        console.say(format_args!("using {DEFAULT}, which is here"));
    }
    there.then(|| FileChoice::found(DEFAULT))
}

/// Whether there is a default file here. A link counts, and is not followed: what a found file may not be is
/// said when it is parsed.
pub fn is_here() -> bool {
    std::fs::symlink_metadata(DEFAULT).is_ok_and(|found| found.is_file() || found.is_symlink())
}

/// The given patterns; without any, `*`.
pub fn patterns(given: &[String]) -> Vec<&str> {
    if given.is_empty() { vec!["*"] } else { given.iter().map(String::as_str).collect() }
}

/// The default file, when there is one here that says something about a sandbox or limits: that holds for
/// built-in tools too, once the file is trusted. Nothing of it is started. A file that cannot be read might
/// say it: that is an error.
pub async fn around(console: &Console) -> anyhow::Result<Option<ParsedFile>> {
    if !is_here() {
        return Ok(None);
    }
    let choice = FileChoice::found(DEFAULT);
    let parsed = choice.parse_inert()?;
    if let Some(error) = parsed.file.error() {
        let refused = report::refused(error.problems());
        let hint =
            format!("the sandbox and the limits of {DEFAULT} hold for built-in tools too; mend or move it");
        return Err(refused.hint(hint).into());
    }
    let says = ["sandbox", "sandboxes", "limits"].iter().any(|section| parsed.file.has(section));
    if !says {
        return Ok(None);
    }
    console.say(format_args!("using the sandbox and the limits of {DEFAULT}, which is here"));
    choice.parse(console).await.map(Some)
}

/// An error when a file that was named is not there.
pub fn exists(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    // A pipe can be opened once: its writer may be gone after that.
    let opened = |found: std::fs::Metadata| match found.is_file() {
        true => std::fs::File::open(path).map(|_| found),
        false => Ok(found),
    };
    let error = match std::fs::metadata(path).and_then(opened) {
        Ok(found) if found.is_dir() => {
            Usage::new(format!("`{shown}` is a folder")).hint("name a file of tools in it")
        }
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Usage::new(format!("there is no file `{shown}`"))
                .hint("`toolwright init` writes one to start from")
        }
        Err(error) => Usage::new(format!("cannot read `{shown}`: {error}")),
    };
    Err(error.into())
}

/// Says which variables of a file count as empty.
pub fn tell_of_unset(console: &Console, loaded: &Loaded) {
    let unset = loaded.env().iter().filter(|variable| !variable.is_set);
    let names: Vec<String> = unset.map(|variable| format!("`{}`", variable.name)).collect();
    if !names.is_empty() {
        let verb = if names.len() == 1 { "is" } else { "are" };
        let told = format!("{} {verb} not set, and taken as empty here", names.join(", "));
        console.say(prompt::printable(&clip(&told, 200)));
    }
}

/// Reports how many tools only the chat has, which explains why they are missing elsewhere.
pub fn tell_of_chat(console: &Console, loaded: &Loaded) {
    let of_chat = loaded.chat().map(|chat| chat.tools.names()).into_iter().flatten();
    let alone = of_chat.filter(|name| loaded.tools().get(name).is_none()).count();
    if alone > 0 {
        let verb = if alone == 1 { "is" } else { "are" };
        let tools = report::counted(alone as u64, "tool");
        console.say(format_args!(
            "{tools} {verb} for `toolwright chat` alone (`chat.tools`, `auto_import_scope: chat`)"
        ));
    }
}

/// An error for a tool that only a section of the file has. A built-in one of the same name is another tool:
/// the file may have put its own in its place to be asked first.
pub fn not_of_a_section(loaded: &Loaded, name: &str, built_in: bool) -> Result<(), Usage> {
    let of_chat = loaded.chat().is_some_and(|chat| chat.tools.get(name).is_some());
    let of_cli = loaded.cli().is_some_and(|cli| cli.tools().get(name).is_some());
    let (section, command) = match (of_chat, of_cli) {
        _ if loaded.tools().get(name).is_some() => return Ok(()),
        (true, _) => ("chat", "chat"),
        (false, true) => ("cli", "run"),
        (false, false) => return Ok(()),
    };
    let otherwise = if built_in { "; without the file, the built-in one is called" } else { "" };
    let error =
        Usage::new(format!("`{name}` of this file is for `toolwright {command}` alone (`{section}.tools`)"));
    Err(error.hint(format!("define it under `tools` to call it from here{otherwise}")))
}

/// Says which tools of the file its chat does not have: a `chat` section has those it names.
pub fn tell_of_left_out(console: &Console, loaded: &Loaded) {
    let Some(chat) = loaded.chat() else { return };
    let left_out: Vec<&str> = loaded.tools().names().filter(|name| chat.tools.get(name).is_none()).collect();
    if left_out.is_empty() {
        return;
    }
    let has = match chat.tools.len() {
        0 => "no tools".to_owned(),
        count => report::counted(count as u64, "tool"),
    };
    let names = toolwright_core::text::clip(&left_out.join(", "), 200);
    console.say(prompt::printable(&format!(
        "the chat has {has} (`chat.tools`), and not these of the file: {names}"
    )));
}

/// The variables of the process, and those of the `.env` file in use that are not set there. Where a file of
/// tools is used, which was named or trusted, that is the nearest one; otherwise only the person's own.
pub fn environment(uses_file: bool) -> anyhow::Result<Environment> {
    let folder = std::env::current_dir()?;
    let nearest = if uses_file { find_dotenv(&folder) } else { None };
    let dotenv: HashMap<String, String> = dotenv(nearest).into_iter().collect();
    Ok(Environment::from_fn(move |name| std::env::var(name).ok().or_else(|| dotenv.get(name).cloned())))
}

/// The variables of the `.env` file in use, without proxies: the author of a folder would see every request,
/// keys included.
fn dotenv(nearest: Option<PathBuf>) -> Vec<(String, String)> {
    let file = nearest.or_else(dotenv_of_llm_workers);
    let text = file.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let mut variables = parse_dotenv(&text, |name| std::env::var(name).ok());
    variables.retain(|(name, _)| !name.to_ascii_lowercase().ends_with("_proxy"));
    variables
}

/// The `.env` file in which llm-workers keeps its answers, used where no folder on the way up has one.
pub fn dotenv_of_llm_workers() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".config/llm-workers/.env")).filter(|file| file.is_file())
}

/// Who runs the program: as the environment says, in the order in which Python looks, else as the system
/// knows the user. Containers and `cron` set neither variable.
pub fn user_name() -> String {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LOGNAME", "USER"].iter().find_map(set).or_else(known_user).unwrap_or_default()
}

/// The name of the user in the system's list.
fn known_user() -> Option<String> {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    })
}

/// The operating system by the name it gives itself, which is what files compare with.
pub fn system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    }
}

/// The date as files see it, in UTC.
pub fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    toolwright_runtime::utc_date(since)
}
