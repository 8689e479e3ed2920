//! Recorded runs: where they are kept, how one is named, how long they stay.
//!
//! A run is one file, `ID.jsonl`, that only its owner can read. Ids begin with the time, so names sort by
//! age.

pub mod head;
pub mod index;
mod process;
pub mod recall;
pub mod record;
pub mod source;
pub mod story;

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::report::Usage;

/// How many runs are kept unless `TOOLWRIGHT_KEEP_RUNS` says otherwise.
const KEEP: usize = 1000;

/// The folder of the runs: `TOOLWRIGHT_RUNS`, or `toolwright/runs` in the user's data folder.
pub fn folder() -> Option<PathBuf> {
    if let Some(folder) = set("TOOLWRIGHT_RUNS") {
        return Some(folder);
    }
    Some(data()?.join("runs"))
}

/// Where the run of that id is recorded.
pub fn file(id: &str) -> anyhow::Result<PathBuf> {
    Ok(folder().context("there is no folder for runs")?.join(format!("{id}.jsonl")))
}

/// The program's folder among the user's data.
pub fn data() -> Option<PathBuf> {
    // The XDG rules say that a relative path there is to be ignored.
    let data = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("toolwright"))
}

/// The program's folder among the user's settings.
pub fn settings() -> Option<PathBuf> {
    let settings = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let settings = settings.or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("toolwright"))
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A new folder among the temporary files, for its owner only.
pub fn scratch(what: &str) -> anyhow::Result<PathBuf> {
    let mut word = [0_u8; 8];
    getrandom::fill(&mut word)
        .map_err(|error| anyhow::anyhow!("there is no randomness for a name: {error}"))?;
    let name = format!("toolwright-{what}-{:016x}", u64::from_ne_bytes(word));
    let folder = std::env::temp_dir().join(name);
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    Ok(folder)
}

/// The recorded runs, newest first.
pub fn list() -> Vec<PathBuf> {
    let Some(entries) = folder().and_then(|folder| std::fs::read_dir(folder).ok()) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    paths.sort();
    paths.reverse();
    paths
}

/// The id in a file's name.
pub fn id_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Finds a run to look at: one that was [recorded](find_recorded), or any file.
pub fn find(name: &str) -> anyhow::Result<PathBuf> {
    find_recorded(name).or_else(|error| match Path::new(name) {
        path if path.is_file() => Ok(path.to_owned()),
        _ => Err(error),
    })
}

/// Finds a run: `last`, `last~1` (the one before), a part of an id that only one has, or a path that looks
/// like one.
pub fn find_recorded(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(name);
    if (name.contains('/') || name.ends_with(".jsonl")) && path.is_file() {
        return Ok(path.to_owned());
    }
    let runs = list();
    let back = match name.strip_prefix("last") {
        Some("") => Some(0),
        Some(rest) => rest.strip_prefix('~').and_then(|count| count.parse::<usize>().ok()),
        None => None,
    };
    if let Some(back) = back {
        return runs.get(back).cloned().ok_or_else(|| {
            let have = match runs.len() {
                0 => "no run is recorded".to_owned(),
                count => format!("only {count} runs are recorded"),
            };
            Usage::new(have).hint("`toolwright ask`, `call`, `run` and `chat` record theirs").into()
        });
    }
    let mut found = runs.iter().filter(|path| id_of(path).contains(name));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path.clone()),
        (Some(_), Some(_)) => {
            Err(Usage::new(format!("`{name}` is part of more than one id")).hint("write more of it").into())
        }
        (None, _) => Err(Usage::new(format!("there is no run `{name}`"))
            .hint("`toolwright runs` lists them; `last` is the newest, and a path works too")
            .into()),
    }
}

/// Whether a file is the transcript of a run: its first line says that a run started.
pub fn is_transcript(path: &Path) -> bool {
    /// The first line of a run with thousands of tools is shorter.
    const MOST: u64 = 16 << 20;
    let mut line = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| std::io::BufReader::new(file.take(MOST)).read_until(b'\n', &mut line));
    read.is_ok() && head::LineHead::read(&line).is_some_and(|head| head.event == "run_started")
}

/// Removes a run and its index.
pub fn remove(path: &Path) -> std::io::Result<()> {
    let _ = std::fs::remove_file(index::sidecar(path));
    std::fs::remove_file(path)
}

/// How many runs are kept.
pub fn kept() -> usize {
    std::env::var("TOOLWRIGHT_KEEP_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(KEEP)
}

/// Removes the oldest runs beyond the number that is kept. Only names are looked at, so this costs one
/// listing.
pub fn prune() {
    for path in list().into_iter().skip(kept()) {
        // Somebody else may have removed it in the meantime.
        let _ = remove(&path);
    }
}
