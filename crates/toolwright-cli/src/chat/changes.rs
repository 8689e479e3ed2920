//! Which files of the current folder came, changed or went while the model worked. Folders inside it are not
//! looked at.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use crate::prompt::printable;

/// How many files are looked at; in a folder with more, nothing is said.
const MOST: usize = 10_000;

/// How many names are said.
const NAMES: usize = 10;

/// The files of a folder: when each was written, and how long it is.
#[derive(Debug, Default, PartialEq)]
pub struct Files(BTreeMap<String, (SystemTime, u64)>);

impl Files {
    /// Hidden files and logs are left out.
    pub fn of(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name.ends_with(".log") {
                continue;
            }
            let Some(found) = entry.metadata().ok().filter(std::fs::Metadata::is_file) else { continue };
            files.insert(name, (found.modified().unwrap_or(SystemTime::UNIX_EPOCH), found.len()));
            if files.len() > MOST {
                return Files::default();
            }
        }
        Files(files)
    }

    /// What happened since `before`, in words.
    pub fn since(&self, before: &Files) -> Vec<String> {
        let new = self.0.keys().filter(|name| !before.0.contains_key(*name));
        let other = self.0.iter().filter(|(name, now)| before.0.get(*name).is_some_and(|then| then != *now));
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        let told = [
            told("created", &new.collect::<Vec<_>>()),
            told("updated", &other.map(|(name, _)| name).collect::<Vec<_>>()),
            told("deleted", &gone.collect::<Vec<_>>()),
        ];
        told.into_iter().flatten().collect()
    }
}

fn told(what: &str, names: &[&String]) -> Option<String> {
    let shown: Vec<String> =
        names.iter().take(NAMES).map(|name| printable(name).replace('\n', " ")).collect();
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("Files {what}: {}{more}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_changed_and_went_is_said() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("a.txt", "1")?;
        write("b.txt", "1")?;
        write("same.txt", "1")?;
        let before = Files::of(folder.path());
        assert!(Files::of(folder.path()).since(&before).is_empty());
        write("a.txt", "12")?;
        std::fs::remove_file(folder.path().join("b.txt"))?;
        write("c.png", "")?;
        write("noise.log", "")?;
        write(".hidden", "")?;
        let said = ["Files created: c.png", "Files updated: a.txt", "Files deleted: b.txt"];
        assert_eq!(Files::of(folder.path()).since(&before), said);
        for number in 0..12 {
            write(&format!("n{number:02}"), "")?;
        }
        let said = Files::of(folder.path()).since(&before);
        assert!(said.first().is_some_and(|line| line.ends_with("n08 and 3 more")), "{said:?}");
        Ok(())
    }
}
