//! Files and what they include, from disk or from text.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolwright_expr::{EvalLimits, Value};

use crate::diag::{FileSpan, Problems, Severity};
use crate::json_nodes;
use crate::yaml::{self, Budget, Data, Include, MAX_BYTES, Node};

/// How deep files may include files.
const MAX_INCLUDE_DEPTH: usize = 16;

/// How often a file that changes while it is read is read again.
const READS: usize = 5;

/// How many files may be included in all.
const MAX_INCLUDES: usize = 64;

/// How much memory the values of one JSON file may take.
const MAX_JSON_BYTES: u64 = 48 << 20;

/// How many bytes of a file that was found, its includes among them, are read before it is trusted.
const MAX_FOUND_BYTES: usize = 1 << 20;

/// What to do about a file that is not read unless it is named.
const NAME_IT: &str = "name the file on the command line to have it read: `-f FILE`";

/// Where a file comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file on disk.
    Path(PathBuf),
    /// A text, under the name that messages use.
    Text {
        /// The name.
        name: String,
        /// The text.
        text: String,
    },
}

impl Source {
    /// A text, under the name that messages use.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source::Text { name: name.into(), text: text.into() }
    }
}

impl<P: Into<PathBuf>> From<P> for Source {
    fn from(path: P) -> Self {
        Source::Path(path.into())
    }
}

/// A file that was read: the root or one of its includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// Its path, as it was opened.
    pub path: PathBuf,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// Which files may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// All that the file names, links inside the folder included.
    Named,
    /// Nobody named the file: no links, and few bytes in all.
    Found,
}

/// Reads files, and what they include.
pub(crate) struct Loader {
    work_dir: Option<PathBuf>,
    access: Access,
    /// What was read so far, in order.
    pub(crate) read: Vec<FileDigest>,
    bytes: usize,
    /// The files being read, outermost first.
    stack: Vec<PathBuf>,
    /// The folders their includes are relative to.
    folders: Vec<PathBuf>,
    included: usize,
}

impl Loader {
    /// `work_dir` is the folder that `./` means.
    pub(crate) fn new(work_dir: Option<PathBuf>, access: Access) -> Self {
        Loader {
            work_dir,
            access,
            read: Vec::new(),
            bytes: 0,
            stack: Vec::new(),
            folders: Vec::new(),
            included: 0,
        }
    }

    /// Reads a file within the rules for found files, and notes its hash. `below` is the folder that is
    /// known to be free of links.
    fn read_text(&mut self, path: &Path, below: Option<&Path>) -> Result<String, Unreadable> {
        let most = match self.access {
            Access::Named => MAX_BYTES,
            Access::Found => {
                if let Some(link) = first_link(path, below) {
                    let problem =
                        format!("`{}` is a link, and a found file is not read through one", link.display());
                    return Err(Unreadable { hint: Some(NAME_IT), ..Unreadable::new(problem) });
                }
                // Reading from a pipe could block indefinitely.
                if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
                    return Err(Unreadable::new("it is not a file"));
                }
                MAX_FOUND_BYTES.saturating_sub(self.bytes)
            }
        };
        let text = read_text(path, most).map_err(|unreadable| match self.access {
            Access::Found if unreadable.too_large => {
                let problem =
                    format!("a found file and its includes may have {MAX_FOUND_BYTES} bytes in all");
                Unreadable { hint: Some(NAME_IT), ..Unreadable::new(problem) }
            }
            _ => unreadable,
        })?;
        self.bytes += text.len();
        let digest = Sha256::digest(text.as_bytes());
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.read.push(FileDigest { path: path.to_owned(), sha256 });
        Ok(text)
    }

    pub(crate) fn root(&mut self, problems: &mut Problems, source: Source) -> Option<Node> {
        let (name, text, folder) = match source {
            Source::Text { name, text } if text.len() > MAX_BYTES => {
                let file = problems.sources.add(&name, "");
                let message = format!("the file is larger than {MAX_BYTES} bytes");
                problems.error(FileSpan::new(file, 0, 0), message);
                return None;
            }
            Source::Text { name, text } => (name, text, None),
            Source::Path(path) => {
                let name = path.display().to_string();
                let text = match self.read_text(&path, path.parent()) {
                    Ok(text) => text,
                    Err(unreadable) => {
                        let Unreadable { problem, hint, at, text, too_large: _ } = unreadable;
                        let file = problems.sources.add(&name, &text);
                        let hint = hint.map(str::to_owned);
                        problems.add(Severity::Error, FileSpan::new(file, at, at + 1), problem, hint);
                        return None;
                    }
                };
                self.stack.push(path.canonicalize().unwrap_or_else(|_| path.clone()));
                // A pipe has no folder of its own.
                (name, text, path.parent().filter(|_| path.is_file()).map(Path::to_owned))
            }
        };
        let here = || PathBuf::from(".");
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        self.folders.push(folder.or_else(|| self.work_dir.clone()).unwrap_or_else(here));
        let file = problems.sources.add(&name, &text);
        yaml::parse(problems, &mut Budget::default(), self, file)
    }

    /// The file an include names with the folder it may not leave, or what is wrong with the name.
    fn resolve(&self, path: &str) -> Result<(PathBuf, PathBuf), String> {
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.split_once(':').is_some_and(|(prefix, _)| prefix.chars().count() > 1) {
            return Err("resources of Python packages cannot be included".to_owned());
        }
        let relative = Path::new(path);
        let escapes = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
        if relative.components().any(escapes) || path.contains('\0') {
            return Err("a path may not leave its folder: no `..`, and nothing absolute".to_owned());
        }
        let own = self.folders.last().cloned().unwrap_or_default();
        let base = if path.starts_with("./") { self.work_dir.clone().unwrap_or(own) } else { own };
        let whole = base.join(relative);
        if self.access == Access::Found {
            // Where a link leads is not looked at: reading it is refused.
            return Ok((whole, base));
        }
        // A link may lead anywhere; where it ends must still be inside.
        match (whole.canonicalize(), base.canonicalize()) {
            (Ok(real), Ok(base)) if !real.starts_with(&base) => {
                Err("the path leads out of its folder through a link".to_owned())
            }
            _ => Ok((whole, base)),
        }
    }
}

impl Include for Loader {
    fn include(
        &mut self,
        problems: &mut Problems,
        budget: &mut Budget,
        path: &str,
        required: bool,
        place: FileSpan,
    ) -> Option<Data> {
        let shown = toolwright_core::text::clip(path, 120);
        let fail = |problems: &mut Problems, problem: &str| {
            problems.error(place, format!("cannot include `{shown}`: {problem}"));
            None
        };
        let (whole, base) = match self.resolve(path) {
            Ok(resolved) => resolved,
            Err(problem) => return fail(problems, &problem),
        };
        let through_link = self.access == Access::Found && first_link(&whole, Some(&base)).is_some();
        if !through_link && !whole.exists() {
            if required {
                return fail(problems, "there is no such file");
            }
            let message = format!("there is no file `{shown}`: an empty text stands in its place");
            problems.warn_hint(place, message, "`!require` makes a missing file an error".to_owned());
            return Some(Data::Text("".into()));
        }
        // Reading from a pipe could block indefinitely.
        if !through_link && !whole.is_file() && !whole.is_dir() {
            return fail(problems, "it is not a file");
        }
        self.included += 1;
        if self.included > MAX_INCLUDES {
            return fail(problems, &format!("more than {MAX_INCLUDES} files are included"));
        }
        let real = match through_link {
            true => whole.clone(),
            false => whole.canonicalize().unwrap_or_else(|_| whole.clone()),
        };
        if self.stack.contains(&real) {
            return fail(problems, "the file includes itself");
        }
        if self.stack.len() >= MAX_INCLUDE_DEPTH {
            return fail(problems, &format!("files are included more than {MAX_INCLUDE_DEPTH} deep"));
        }
        let text = match self.read_text(&whole, Some(&base)) {
            Ok(text) => text,
            Err(Unreadable { problem, hint, .. }) => {
                let message = format!("cannot include `{shown}`: {problem}");
                problems.add(Severity::Error, place, message, hint.map(str::to_owned));
                return None;
            }
        };
        match whole.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                let file = problems.sources.add(&whole.display().to_string(), &text);
                self.stack.push(real);
                self.folders.push(whole.parent().map(Path::to_owned).unwrap_or_default());
                budget.level += 1;
                let node = yaml::parse(problems, budget, self, file);
                budget.level -= 1;
                self.folders.pop();
                self.stack.pop();
                node.map(|node| node.data)
            }
            Some("json") => {
                let limits = EvalLimits { steps: u64::MAX, bytes: MAX_JSON_BYTES, ..EvalLimits::default() };
                let value = match Value::parse_json(&text, &limits) {
                    Ok(value) => value,
                    Err(error) if error.limit().is_some() => return fail(problems, error.message()),
                    Err(error) => return fail(problems, &format!("not JSON: {}", error.message())),
                };
                match json_nodes::from_value(&value, place, budget) {
                    Some(node) if node.depth() > yaml::MAX_DEPTH => fail(problems, "it is nested too deep"),
                    Some(node) => Some(node.data),
                    None => {
                        let problem = format!("the JSON files have more than {} values", yaml::MAX_DATA);
                        let message = format!("cannot include `{shown}`: {problem}");
                        problems.error_hint(place, message, "let a tool read it");
                        None
                    }
                }
            }
            _ => Some(Data::Text(text.into())),
        }
    }
}

/// Why a file cannot be used: what is wrong, what to do about it, and at which byte of the text that could be
/// read.
struct Unreadable {
    problem: String,
    hint: Option<&'static str>,
    at: usize,
    text: String,
    too_large: bool,
}

impl Unreadable {
    fn new(problem: impl Into<String>) -> Self {
        Unreadable { problem: problem.into(), hint: None, at: 0, text: String::new(), too_large: false }
    }
}

/// The first link on the way from a folder to a file. Links are looked at and not followed.
fn first_link(path: &Path, below: Option<&Path>) -> Option<PathBuf> {
    let below = below.unwrap_or(Path::new(""));
    let relative = path.strip_prefix(below).unwrap_or(path);
    let steps = relative.components().scan(below.to_owned(), |at, part| {
        at.push(part);
        Some(at.clone())
    });
    let is_link = |at: &PathBuf| std::fs::symlink_metadata(at).is_ok_and(|found| found.is_symlink());
    steps.into_iter().find(is_link)
}

fn read_text(path: &Path, most: usize) -> Result<String, Unreadable> {
    const SAVE: Option<&str> = Some("save it as UTF-8");
    let bytes = read_whole(path, most).map_err(|problem| {
        let too_large = problem.contains("larger than");
        let hint = too_large.then_some("large data belongs into files that tools read");
        Unreadable { hint, too_large, ..Unreadable::new(problem) }
    })?;
    // A NUL stands in no text, but in every UTF-16 one; such bytes are not worth showing.
    if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] = bytes.as_slice() {
        return Err(Unreadable { hint: SAVE, ..Unreadable::new("the file is UTF-16, not UTF-8") });
    }
    if bytes.contains(&0) {
        return Err(Unreadable {
            hint: SAVE,
            ..Unreadable::new("the file is not text: it contains NUL bytes")
        });
    }
    String::from_utf8(bytes).map_err(|error| Unreadable {
        hint: SAVE,
        at: error.utf8_error().valid_up_to(),
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
        ..Unreadable::new("the file is not UTF-8 text")
    })
}

/// Reads a file that nobody wrote to meanwhile. One that is replaced as a whole is the old one or the new
/// one; one that is written in place is read again.
fn read_whole(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    for _ in 0..READS {
        let mut file = std::fs::File::open(path).map_err(|error| io_problem(&error))?;
        let before = file.metadata().map_err(|error| io_problem(&error))?;
        if before.is_dir() {
            return Err("it is a folder, not a file".to_owned());
        }
        if before.len() > most as u64 {
            return Err(format!("the file is larger than {most} bytes"));
        }
        let mut bytes = Vec::new();
        // Read no more than is allowed even when the file grows meanwhile.
        let mut bounded = std::io::Read::take(&mut file, most as u64 + 1);
        std::io::Read::read_to_end(&mut bounded, &mut bytes).map_err(|error| io_problem(&error))?;
        if bytes.len() > MAX_BYTES {
            return Err(format!("the file is larger than {MAX_BYTES} bytes"));
        }
        let after = file.metadata().map_err(|error| io_problem(&error))?;
        if !before.is_file()
            || after.modified().ok() == before.modified().ok() && after.len() == bytes.len() as u64
        {
            return Ok(bytes);
        }
    }
    Err("the file is being written to".to_owned())
}

fn io_problem(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "the file may not be read".to_owned(),
        _ => format!("the file cannot be read: {error}"),
    }
}
