//! What git on the host obeys when it is run at the top of a folder, beside the `.git` in it: the repository
//! that a `.git` file leads to, the `.git` of submodules, hooks that are kept elsewhere, settings that are
//! included, and programs that settings name.
//!
//! Submodules are those of the index, which git itself goes by and which lies in the repository, where
//! commands cannot change it; what `.gitmodules` says, they could.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::git_command;
use super::git_settings::{is_program, settings};
use crate::sys;

/// The most submodules, and the most they are nested.
const MOST_MODULES: usize = 1000;
const MOST_DEPTH: usize = 16;
/// The most files that settings name, and the most links on the way to one.
const MOST_NAMED: usize = 1000;
const MOST_LINKS: usize = 40;
/// The most bytes of an index, and of any other file of git that is read.
const MOST_INDEX: u64 = 512 << 20;
const MOST_BYTES: u64 = 1 << 20;
/// The most bytes of settings, with all they include.
const MOST_SETTINGS: usize = 4 << 20;

/// A path that git obeys, and whether it is a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Obeyed {
    pub(super) path: PathBuf,
    pub(super) folder: bool,
}

/// What is obeyed for the sake of the repository in a folder, of which `protect` says what is protected:
/// `.git/` or parts of it.
pub(super) fn obeyed(folder: &Path, protect: &[&Path]) -> io::Result<BTreeSet<Obeyed>> {
    search(folder, protect, home())
}

/// The same from inside a view, where the settings in a home folder are those of commands. What was obeyed
/// `before` is kept: it may be a link by now.
pub(super) fn obeyed_still(
    folder: &Path,
    protect: &[&Path],
    before: &[Obeyed],
) -> io::Result<BTreeSet<Obeyed>> {
    let mut found = search(folder, protect, None)?;
    for one in before {
        insert(&mut found, one.clone());
    }
    Ok(found)
}

fn search(folder: &Path, protect: &[&Path], home: Option<PathBuf>) -> io::Result<BTreeSet<Obeyed>> {
    let parts = protect.iter().filter_map(|path| {
        let folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        Some((path.strip_prefix(".git").ok()?, folder))
    });
    let mut search = GitSearch { parts: parts.collect(), home, found: BTreeSet::new(), modules: 0, named: 0 };
    if !search.parts.is_empty() {
        search.at(folder, 0)?;
    }
    Ok(search.found)
}

/// The search for files that git obeys.
struct GitSearch<'a> {
    /// Relative to a repository, and whether it is a folder.
    parts: Vec<(&'a Path, bool)>,
    home: Option<PathBuf>,
    found: BTreeSet<Obeyed>,
    /// How many there are of each.
    modules: usize,
    named: usize,
}

impl GitSearch<'_> {
    fn at(&mut self, tree: &Path, depth: usize) -> io::Result<()> {
        let dot = tree.join(".git");
        let Ok(about) = fs::symlink_metadata(&dot) else { return Ok(()) };
        let mut repository = dot.clone();
        if about.is_file() {
            let Some(to) = led_to(&dot, b"gitdir:") else { return Ok(()) };
            repository = plain(&tree.join(to));
            self.repository(&repository);
        }
        let mut common = repository.clone();
        if let Some(to) = led_to(&repository.join("commondir"), b"") {
            common = plain(&repository.join(to));
            self.repository(&common);
        }
        let mut files = vec![common.join("config"), repository.join("config.worktree")];
        files.push(PathBuf::from("/etc/gitconfig"));
        files.extend(
            self.home.iter().flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]),
        );
        self.settings(tree, files)?;
        let modules = modules(&repository)?;
        self.modules += modules.len();
        if self.modules > MOST_MODULES || (depth == MOST_DEPTH && !modules.is_empty()) {
            return Err(io::Error::other("too many submodules"));
        }
        for module in modules {
            let module = tree.join(module);
            self.repository(&module.join(".git"));
            self.at(&module, depth + 1)?;
        }
        Ok(())
    }

    fn repository(&mut self, at: &Path) {
        for (part, folder) in self.parts.clone() {
            // Joined with nothing it would end in a slash.
            let path = if part.as_os_str().is_empty() { at.to_owned() } else { at.join(part) };
            self.add(path, folder);
        }
    }

    /// Hooks that are kept elsewhere, programs, and other settings that files of settings name.
    fn settings(&mut self, tree: &Path, mut files: Vec<PathBuf>) -> io::Result<()> {
        let mut seen = HashSet::new();
        let mut bytes = 0;
        while let Some(file) = files.pop() {
            let Some(text) = read(&file, MOST_BYTES) else { continue };
            bytes += text.len();
            if bytes > MOST_SETTINGS {
                return Err(io::Error::other("its settings are too long"));
            }
            for (section, key, value) in settings(&String::from_utf8_lossy(&text)) {
                match (section.as_str(), key.as_str()) {
                    ("core", "hookspath") if self.protects("hooks") => self.hooks(tree, &value),
                    ("include" | "includeif", "path") if self.protects("config") => {
                        let more = plain(&file.parent().unwrap_or(tree).join(self.in_home(&value)));
                        if !seen.insert(more.clone()) {
                            continue;
                        }
                        if seen.len() > MOST_NAMED {
                            return Err(io::Error::other("its settings include too many files"));
                        }
                        self.add(more.clone(), false);
                        files.push(more);
                    }
                    (section, key) if is_program(section, key, &value) && self.protects("config") => {
                        self.named(tree, &value)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn hooks(&mut self, tree: &Path, value: &str) {
        let mut hooks = plain(&tree.join(self.in_home(value)));
        // Husky keeps its own part there; that runs what lies beside it.
        if hooks.file_name() == Some(OsStr::new("_")) {
            hooks.pop();
        }
        self.add(hooks, true);
    }

    /// The files that a command runs at the top of a folder.
    fn named(&mut self, tree: &Path, command: &str) -> io::Result<()> {
        for path in git_command::files(command, |word| plain(&tree.join(self.in_home(word)))) {
            // Every submodule has the settings of a home folder, too.
            self.named += usize::from(insert(&mut self.found, Obeyed { path, folder: false }));
            if self.named > MOST_NAMED {
                return Err(io::Error::other("its settings name too many files"));
            }
        }
        Ok(())
    }

    fn in_home(&self, value: &str) -> PathBuf {
        match (value.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            // From a view it is not known where that is, and what it named is kept as it was. There is no
            // folder called `~`.
            (Some(rest), None) => Path::new("/dev/null").join(rest),
            _ => PathBuf::from(value),
        }
    }

    fn protects(&self, name: &str) -> bool {
        self.parts.iter().any(|(part, _)| part.as_os_str().is_empty() || part.starts_with(name))
    }

    /// As it is said, and where it really is.
    fn add(&mut self, path: PathBuf, folder: bool) {
        let real = fs::canonicalize(&path).ok().filter(|real| *real != path);
        for path in [Some(path), real].into_iter().flatten() {
            self.found.insert(Obeyed { path, folder });
        }
    }
}

/// A link cannot be protected, so the folder that holds it is, and what it leads to. Whether that was not
/// known yet.
fn insert(found: &mut BTreeSet<Obeyed>, Obeyed { mut path, folder }: Obeyed) -> bool {
    for _ in 0..MOST_LINKS {
        let Some((holder, to)) = first_link(&path) else { break };
        found.insert(Obeyed { path: holder, folder: true });
        path = to;
    }
    found.insert(Obeyed { path, folder })
}

/// A file of at most so many bytes. What cannot be read is not obeyed by a git of the same user.
fn read(file: &Path, most: u64) -> Option<Vec<u8>> {
    let about = fs::metadata(file).ok()?;
    let mut bytes = Vec::new();
    if !about.is_file() || about.len() > most {
        return None;
    }
    fs::File::open(file).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The path in a small file, behind a word.
fn led_to(file: &Path, word: &[u8]) -> Option<PathBuf> {
    let text = read(file, MOST_BYTES)?;
    let path = text.strip_prefix(word)?.trim_ascii();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// The folder of the first link on the way to a path, and the path without that link.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut so_far = PathBuf::new();
    for part in path.components() {
        let folder = so_far.clone();
        so_far.push(part);
        match fs::read_link(&so_far) {
            Ok(to) => {
                let rest = path.strip_prefix(&so_far).ok()?;
                return Some((folder.clone(), plain(&folder.join(to).join(rest))));
            }
            // It exists and is not a link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(_) => return None,
        }
    }
    None
}

/// The home folder of this user. The environment of a launcher is empty.
fn home() -> Option<PathBuf> {
    let own = sys::effective_ids().0.to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = users.find(|user| user.get(2) == Some(&own.as_str()))?;
    user.get(5).filter(|home| home.starts_with('/')).map(PathBuf::from)
}

/// The submodules of a repository, as its index has them.
fn modules(repository: &Path) -> io::Result<Vec<PathBuf>> {
    let unknown = || io::Error::other("its index has an unknown format");
    let file = repository.join("index");
    let about = match fs::metadata(&file) {
        Ok(about) if about.len() > 0 => about,
        _ => return Ok(Vec::new()),
    };
    if about.len() > MOST_INDEX {
        return Err(io::Error::other("its index is too large"));
    }
    let Some(bytes) = read(&file, MOST_INDEX) else { return Ok(Vec::new()) };
    let (mut found, base) = entries(&bytes).ok_or_else(unknown)?;
    if let Some(bytes) = base.and_then(|name| read(&repository.join(name), MOST_INDEX)) {
        found.extend(entries(&bytes).ok_or_else(unknown)?.0);
    }
    found.retain(|path| path.components().all(|part| matches!(part, Component::Normal(_))));
    found.sort();
    found.dedup();
    Ok(found)
}

/// The submodules among the entries of an index, and the name of the index it adds to, if there is one.
type Entries = (Vec<PathBuf>, Option<String>);

/// An index does not say how long its hashes are.
fn entries(index: &[u8]) -> Option<Entries> {
    [20, 32].into_iter().find_map(|hash| entries_with(index, hash))
}

fn entries_with(index: &[u8], hash: usize) -> Option<Entries> {
    let word = |at: usize| index.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let version = word(4).filter(|version| index.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let (mut found, mut name, mut at) = (Vec::new(), Vec::new(), 12);
    for _ in 0..word(8)? {
        let start = at;
        let mode = word(start + 24)?;
        if ![0o04, 0o10, 0o12, 0o16].contains(&(mode >> 12)) {
            return None;
        }
        let more = index.get(start + 40 + hash)? & 0x40 != 0;
        at += 42 + hash + if more && version > 2 { 2 } else { 0 };
        if version == 4 {
            let mut byte = *index.get(at)?;
            let mut cut = usize::from(byte & 0x7f);
            at += 1;
            while byte & 0x80 != 0 {
                byte = *index.get(at)?;
                cut = cut.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
                at += 1;
            }
            name.truncate(name.len().checked_sub(cut)?);
        } else {
            name.clear();
        }
        let rest = index.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(rest.get(..end)?);
        at += end + 1;
        if version < 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        if mode >> 12 == 0o16 && !name.is_empty() {
            found.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    let mut base = None;
    while at + hash < index.len() {
        if index.get(at..)?.starts_with(b"link") {
            let id = index.get(at + 8..at + 8 + hash)?;
            base = Some(format!(
                "sharedindex.{}",
                id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
            ));
        }
        at = at.checked_add(8)?.checked_add(word(at + 4)? as usize)?;
    }
    (at + hash == index.len()).then_some((found, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_links_to_a_program_are_found() {
        let tree = std::env::temp_dir().join(format!("toolwright-git-{:x}", sys::random_u64()));
        for folder in [".git", "venv/bin", "lib/run"] {
            fs::create_dir_all(tree.join(folder)).unwrap();
        }
        for (at, to) in
            [("venv/bin/python", "python3"), ("venv/bin/python3", "../../lib/now/x"), ("lib/now", "run")]
        {
            std::os::unix::fs::symlink(to, tree.join(at)).unwrap();
        }
        fs::write(tree.join("lib/run/x"), "").unwrap();
        fs::write(tree.join(".git/config"), "[filter.f]\nclean = \"\\\"venv/bin/python\\\" -m x\"\n")
            .unwrap();
        let found = obeyed(&tree, &[Path::new(".git/")]).unwrap();
        let want = [("lib", true), ("lib/run/x", false), ("venv/bin", true)];
        let want = want.map(|(path, folder)| Obeyed { path: tree.join(path), folder });
        let inside: Vec<Obeyed> = found.into_iter().filter(|one| one.path.starts_with(&tree)).collect();
        assert_eq!(inside, want);
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn what_is_at_home_is_not_looked_for_in_the_tree() {
        let tree = std::env::temp_dir().join(format!("toolwright-git-{:x}", sys::random_u64()));
        fs::create_dir_all(tree.join(".git")).unwrap();
        let config = "[core]\nhooksPath = ~/hooks\n[alias]\nx = !~/bin/x\n[include]\npath = ~/more\n";
        fs::write(tree.join(".git/config"), config).unwrap();
        for found in [obeyed(&tree, &[Path::new(".git/")]), obeyed_still(&tree, &[Path::new(".git/")], &[])] {
            let named: Vec<PathBuf> = found.unwrap().into_iter().map(|one| one.path).collect();
            assert!(
                !named.iter().any(|path| path.starts_with(&tree) && path.ends_with("hooks")),
                "{named:?}"
            );
            assert!(!named.iter().any(|path| path.to_string_lossy().contains('~')), "{named:?}");
        }
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn settings_without_end_are_refused() {
        let tree = std::env::temp_dir().join(format!("toolwright-git-{:x}", sys::random_u64()));
        fs::create_dir_all(tree.join(".git")).unwrap();
        let config = |text: String| fs::write(tree.join(".git/config"), text).unwrap();
        config("[include]\n".to_owned() + &"path = config\n".repeat(10_000));
        let inside = || {
            let found = obeyed(&tree, &[Path::new(".git/")]).unwrap();
            found.into_iter().filter(|one| one.path.starts_with(&tree)).count()
        };
        assert_eq!(inside(), 1, "itself");
        config("[alias]\n".to_owned() + &"again = !./same\n".repeat(MOST_NAMED + 1));
        assert_eq!(inside(), 1, "the same program each time");
        let words: String = (0..=MOST_NAMED).map(|at| format!(" ./{at} &")).collect();
        config(format!("[alias]\n\tmany = !{words}\n"));
        let error = obeyed(&tree, &[Path::new(".git/")]).unwrap_err();
        assert_eq!(error.to_string(), "its settings name too many files");
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn an_index_that_is_none_is_refused() {
        for bytes in
            [&b"DIRC"[..], b"DIRC\0\0\0\x02\0\0\0\x01", b"no index at all, but long enough to hold a head"]
        {
            assert_eq!(entries(bytes), None);
        }
        let mut empty = b"DIRC\0\0\0\x02\0\0\0\0".to_vec();
        empty.extend([0; 20]);
        assert_eq!(entries(&empty), Some((Vec::new(), None)));
    }
}
