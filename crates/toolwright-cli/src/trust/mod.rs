//! Trust in files that were found and not named: one decision for a file, before anything of it is used.
//!
//! A `toolwright.yaml` in a folder may be a stranger's. It is inert until a person has seen what it would do
//! and agreed, once or for this content. Naming a file on the command line trusts it for that command.

mod folder;
mod lock;
mod screen;
mod store;

use std::path::{Path, PathBuf};

use toolwright::file::{Authority, ToolFile};

use crate::commands;
use crate::console::Console;
use crate::opening::{FileChoice, LOCK};
use crate::prompt::{self, printable, quoted};
use crate::report::Usage;

pub use self::folder::private;
pub use self::screen::screen;
pub use self::store::{Agreement, TrustStore};

/// How a found file stands to what a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustStanding {
    /// This content was agreed to.
    Agreed,
    /// The file changed, and nothing that was agreed to did.
    Edited,
    /// The folder is trusted, and only its owner can write in it.
    FolderTrusted,
    /// What was agreed to is something else: these items.
    Changed(Vec<String>),
    /// Nobody agreed to it.
    New,
}

/// A found file with what a person decides about.
pub struct FoundFile {
    /// Its whole path.
    pub path: PathBuf,
    pub authority: Authority,
    agreement: Agreement,
    /// The file and its includes.
    files: Vec<PathBuf>,
}

impl FoundFile {
    /// What there is to decide about a file that is used in the current folder.
    pub fn new(path: &Path, file: &ToolFile) -> anyhow::Result<Self> {
        let folder = std::env::current_dir()?;
        let mut authority = file.authority(&folder);
        lock::add_findings(&path.with_file_name(LOCK), &mut authority);
        let path = whole(path)?;
        let items = authority.items().iter().map(|item| format!("{}: {}", item.kind.as_str(), item.text));
        let agreement = Agreement {
            folder: folder.to_string_lossy().into_owned(),
            content: file.content_digest(),
            authority: authority.digest(),
            items: items.collect(),
            since: store::now(),
        };
        let files = file.files().map(Path::to_owned).collect();
        Ok(FoundFile { path, authority, agreement, files })
    }

    /// How the file stands.
    pub fn standing(&self, store: &TrustStore) -> TrustStanding {
        let Some(agreed) = store.file(&self.path) else {
            let parent = self.path.parent().unwrap_or(&self.path);
            let private = || {
                let mut files = self.files.iter().map(|path| path.as_path()).chain([parent, &self.path]);
                files.all(|path| private(path).is_ok())
            };
            let trusted = store.has_folder(parent) && private();
            return if trusted { TrustStanding::FolderTrusted } else { TrustStanding::New };
        };
        let same = agreed.authority == self.agreement.authority && agreed.folder == self.agreement.folder;
        match same {
            true if agreed.content == self.agreement.content => TrustStanding::Agreed,
            true => TrustStanding::Edited,
            false => TrustStanding::Changed(agreed.items.clone()),
        }
    }

    /// Keeps the agreement to this content.
    pub fn agree(self, store: &mut TrustStore) -> anyhow::Result<()> {
        store.insert(&self.path, self.agreement);
        store.save()
    }
}

/// The whole path of a file, with the links in its folder resolved and none in its own place.
pub fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    Ok(match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path,
    })
}

/// Whether the person trusted the file as it is; nobody is asked.
pub fn is_agreed(choice: &FileChoice, file: &ToolFile) -> anyhow::Result<bool> {
    let standing = FoundFile::new(&choice.path, file)?.standing(&TrustStore::load());
    Ok(matches!(standing, TrustStanding::Agreed | TrustStanding::Edited | TrustStanding::FolderTrusted))
}

/// An error unless the person trusts the file, now or earlier.
pub async fn ask(console: &Console, choice: &FileChoice, file: &ToolFile) -> anyhow::Result<()> {
    let found = FoundFile::new(&choice.path, file)?;
    let shown = printable(&choice.path.display().to_string());
    if choice.used_before.as_ref() == Some(&found.agreement.content) {
        return Ok(());
    }
    let mut store = TrustStore::load();
    let standing = found.standing(&store);
    match &standing {
        TrustStanding::Agreed | TrustStanding::FolderTrusted => return Ok(()),
        TrustStanding::Edited => {
            console.say(format_args!("{shown} was edited within what you agreed to"));
            keep(console, found, &mut store);
            return Ok(());
        }
        TrustStanding::Changed(_) | TrustStanding::New => {}
    }
    let screen = screen(&shown, &found.authority, &standing);
    let flag = format!("-f {}", quoted(&choice.path.to_string_lossy()));
    if !console.has_person() || console.chat_reads_keys() {
        let problem =
            Usage::new(format!("{shown} was found and not named, and nobody trusted it.\n{screen}"));
        let hint = format!(
            "`{flag}` names the file, which trusts it for this command; in a terminal you are asked once"
        );
        return Err(problem.hint(hint).into());
    }
    let question = "Use it? [o]nce, [y]es for this content, [n]o: ";
    let answers = [("o", "once"), ("y", "yes"), ("n", "no")];
    let asked =
        console.ask(move |dialogue| prompt::pick(dialogue, &format!("\n{screen}\n"), question, &answers));
    let answer = tokio::select! {
        answer = asked => answer,
        _ = commands::stop_signal() => None,
    };
    match answer {
        Some(0) => Ok(()),
        Some(1) => {
            keep(console, found, &mut store);
            Ok(())
        }
        Some(_) => Err(Usage::new(format!("you did not trust {shown}")).into()),
        None => Err(Usage::new(format!("nobody answered whether to trust {shown}")).into()),
    }
}

fn keep(console: &Console, found: FoundFile, store: &mut TrustStore) {
    if let Err(error) = found.agree(store) {
        // It is asked again the next time.
        console.say(format_args!("the answer is not kept: {error:#}"));
    }
}

/// Trusts a file that the program itself has written just now.
pub fn own(console: &Console, path: &Path) {
    let agree = || {
        let file = ToolFile::parse_found(path, std::env::current_dir()?);
        match file.error() {
            Some(_) => Ok(()),
            None => FoundFile::new(path, &file)?.agree(&mut TrustStore::load()),
        }
    };
    if let Err(error) = agree() {
        console.say(format_args!("it is not trusted yet: {error:#}"));
    }
}
