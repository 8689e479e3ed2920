//! What a person agreed to, in `trust.json` of the user's data folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::runs;
use crate::write_file::{self, FileAccess};

const FILE: &str = "trust.json";

/// What was agreed to about one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Agreement {
    /// The folder it was used in: relative paths begin there.
    pub folder: String,
    /// The SHA-256 of the file and its includes.
    pub content: String,
    /// The SHA-256 of what it would do, scripts among it.
    pub authority: String,
    /// What it would do, as it was shown.
    pub items: Vec<String>,
    /// When.
    pub since: String,
}

/// A folder that is trusted with whatever its owner writes there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FolderTrust {
    pub since: String,
}

/// All agreements, by path.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TrustStore {
    #[serde(default)]
    pub files: BTreeMap<String, Agreement>,
    #[serde(default)]
    pub folders: BTreeMap<String, FolderTrust>,
}

impl TrustStore {
    /// The agreements there are; none, when there is no such file or it is not one of ours.
    pub fn load() -> Self {
        let text = place().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes them, for their owner only.
    pub fn save(&self) -> anyhow::Result<()> {
        let path = place().context("there is no folder for it: HOME is not set")?;
        let folder = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        write_file::replace(&path, text.as_bytes(), FileAccess::Owner)
    }

    pub fn file(&self, path: &Path) -> Option<&Agreement> {
        self.files.get(&*path.to_string_lossy())
    }

    pub fn insert(&mut self, path: &Path, agreement: Agreement) {
        self.files.insert(path.to_string_lossy().into_owned(), agreement);
    }

    pub fn has_folder(&self, folder: &Path) -> bool {
        self.folders.contains_key(&*folder.to_string_lossy())
    }

    pub fn insert_folder(&mut self, folder: &Path) {
        self.folders.insert(folder.to_string_lossy().into_owned(), FolderTrust { since: now() });
    }

    /// Takes back what was agreed to about a file, or a folder and the files in it; how much that was.
    pub fn revoke(&mut self, path: &Path) -> usize {
        let before = self.files.len() + self.folders.len();
        self.files.retain(|file, _| !Path::new(file).starts_with(path));
        self.folders.retain(|folder, _| Path::new(folder) != path);
        before - self.files.len() - self.folders.len()
    }
}

/// The time, as records write it.
pub fn now() -> String {
    toolwright_runtime::format_time(std::time::SystemTime::now())
}

fn place() -> Option<PathBuf> {
    Some(runs::data()?.join(FILE))
}
