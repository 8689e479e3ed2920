//! `toolwright trust`: trust a folder; list, show and revoke trust.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright::file::ToolFile;

use crate::args::{Trust, TrustWhat};
use crate::console::Console;
use crate::prompt::{self, printable};
use crate::report::{self, Usage, counted};
use crate::trust::{self, FoundFile, TrustStanding, TrustStore};
use crate::{commands, files};

pub async fn run(what: Trust, console: &Console) -> anyhow::Result<()> {
    match (what.what, what.folder) {
        (Some(TrustWhat::List), _) => list(console),
        (Some(TrustWhat::Show { path }), _) => show(console, path.as_deref()),
        (Some(TrustWhat::Revoke { path, .. }), _) => revoke(console, path.as_deref()),
        (None, Some(folder)) => trust_folder(console, &folder, what.yes).await,
        (None, None) => Err(Usage::new("name the folder to trust").into()),
    }
}

/// The file that a path means: a folder stands for the default file in it.
fn file_of(path: Option<&Path>) -> PathBuf {
    match path {
        None => files::DEFAULT.into(),
        Some(path) if path.is_dir() => path.join(files::DEFAULT),
        Some(path) => path.to_owned(),
    }
}

/// A file as it is found, inert.
fn found(path: &Path) -> anyhow::Result<FoundFile> {
    let file = ToolFile::parse_found(path, std::env::current_dir()?);
    match file.error() {
        Some(error) => Err(report::refused(error.problems()).into()),
        None => FoundFile::new(path, &file),
    }
}

fn word(standing: &TrustStanding) -> &'static str {
    match standing {
        TrustStanding::Agreed => "trusted",
        TrustStanding::Edited => "trusted, edited since",
        TrustStanding::FolderTrusted => "trusted with its folder",
        TrustStanding::Changed(_) => "changed since, not trusted",
        TrustStanding::New => "not trusted",
    }
}

fn list(console: &Console) -> anyhow::Result<()> {
    let store = TrustStore::load();
    if console.is_json() {
        let entry =
            |path: &String, kind: &str, since: &str| json!({"path": path, "kind": kind, "since": since});
        let files = store.files.iter().map(|(path, agreed)| entry(path, "file", &agreed.since));
        let folders = store.folders.iter().map(|(path, agreed)| entry(path, "folder", &agreed.since));
        let all: Vec<Value> = folders.chain(files).collect();
        return Ok(console.line(json!({"trusted": all}))?);
    }
    for (path, agreed) in &store.folders {
        console.line(printable(&format!("{}  folder  {path}", agreed.since)))?;
    }
    for (path, agreed) in &store.files {
        console.line(printable(&format!("{}  file    {path}", agreed.since)))?;
    }
    if store.files.is_empty() && store.folders.is_empty() {
        console.say("nothing is trusted; the first command that would use a file asks");
    }
    Ok(())
}

fn show(console: &Console, path: Option<&Path>) -> anyhow::Result<()> {
    let path = file_of(path);
    let found = found(&path)?;
    let standing = found.standing(&TrustStore::load());
    if console.is_json() {
        let items = found.authority.items().iter();
        let items: Vec<Value> =
            items.map(|item| json!({"kind": item.kind.as_str(), "text": item.text})).collect();
        let trusted = !matches!(standing, TrustStanding::New | TrustStanding::Changed(_));
        return Ok(console.line(json!({
            "file": found.path, "trusted": trusted, "standing": word(&standing), "items": items
        }))?);
    }
    let name = printable(&path.display().to_string());
    console.line(format_args!(
        "{}\n{name}: {}",
        trust::screen(&name, &found.authority, &standing),
        word(&standing)
    ))?;
    Ok(())
}

fn revoke(console: &Console, path: Option<&Path>) -> anyhow::Result<()> {
    let mut store = TrustStore::load();
    let count = match path {
        None => {
            let count = store.files.len() + store.folders.len();
            store = TrustStore::default();
            count
        }
        // What is gone can be revoked too.
        Some(path) => store.revoke(&path.canonicalize().map_or_else(|_| trust::whole(path), Ok)?),
    };
    if let (0, Some(path)) = (count, path) {
        let problem = Usage::new(format!("`{}` is not trusted", printable(&path.display().to_string())));
        return Err(problem.hint("`toolwright trust list` shows what is").into());
    }
    store.save()?;
    if console.is_json() {
        return Ok(console.line(json!({"revoked": count}))?);
    }
    console.say(format_args!("revoked {}", counted(count as u64, "agreement")));
    Ok(())
}

async fn trust_folder(console: &Console, folder: &Path, yes: bool) -> anyhow::Result<()> {
    let shown = printable(&folder.display().to_string());
    let real = folder.canonicalize();
    let real = real.map_err(|error| Usage::new(format!("cannot trust `{shown}`: {error}")))?;
    if !real.is_dir() {
        let problem = Usage::new(format!("`{shown}` is not a folder"));
        return Err(problem.hint("a command that finds a file asks about it; `-f FILE` names it").into());
    }
    let refused = |why: String| Usage::new(format!("cannot trust `{shown}`: {why}"));
    trust::private(&real).map_err(refused)?;
    let file = real.join(files::DEFAULT);
    let mut screen = format!(
        "Trusting {} means: whatever {} or another file that is found says there, now or after any change, is used without a question. It may \
         start programs, reach hosts, read your variables and secrets, and approve calls. This holds as long as \
         only you can write the folder and the file. A program that runs as you, outside a sandbox, can change \
         what is used.\n",
        printable(&real.display().to_string()),
        files::DEFAULT
    );
    if file.symlink_metadata().is_ok() {
        let found = found(&file)?;
        screen
            .push_str(&format!("\n{}", trust::screen(files::DEFAULT, &found.authority, &TrustStanding::New)));
    }
    if !yes {
        if !console.has_person() {
            let problem = Usage::new(format!("nobody is here to agree.\n{screen}"));
            return Err(problem
                .hint(format!(
                    "`toolwright trust {} --yes` agrees",
                    prompt::quoted(&folder.to_string_lossy())
                ))
                .into());
        }
        let answers = [("y", "yes"), ("n", "no")];
        let asked = console.ask(move |dialogue| {
            prompt::pick(dialogue, &format!("\n{screen}\n"), "Trust the folder? [y]es, [n]o: ", &answers)
        });
        let answer = tokio::select! {
            answer = asked => answer,
            _ = commands::stop_signal() => None,
        };
        if answer != Some(0) {
            return Err(Usage::new(format!("you did not trust `{shown}`")).into());
        }
    }
    let mut store = TrustStore::load();
    store.insert_folder(&real);
    store.save()?;
    if console.is_json() {
        return Ok(console.line(json!({"trusted": real}))?);
    }
    console.say(format_args!("trusted {}", printable(&real.display().to_string())));
    Ok(())
}
