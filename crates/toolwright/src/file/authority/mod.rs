//! What a file would do outside the file itself: the items a person agrees to before a found file is used.
//!
//! The items are read from the parsed file alone. No variable is read, no template evaluated, and outside the
//! folder nothing is looked at.

mod format;
mod items;
mod scripts;
#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::canonical_json;
use toolwright_core::text::visible;

use self::format::KeyMeaning;
use super::ToolFile;

/// What an item of a file's authority is about. The order is that of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AuthorityKind {
    /// Programs that are started, and scripts they name.
    Starts,
    /// Hosts that are reached.
    Reaches,
    /// Variables and secrets that are read.
    Reads,
    /// Paths outside the folder.
    Paths,
    /// What runs without a question.
    Approves,
    /// Changes of sandboxes, and limits that are raised.
    Sandbox,
    /// Anything else, such as keys that this version has no words for.
    Other,
}

impl AuthorityKind {
    /// All kinds, in the order of the screen.
    pub const ALL: [AuthorityKind; 7] = [
        AuthorityKind::Starts,
        AuthorityKind::Reaches,
        AuthorityKind::Reads,
        AuthorityKind::Paths,
        AuthorityKind::Approves,
        AuthorityKind::Sandbox,
        AuthorityKind::Other,
    ];

    /// The kind as a word of a JSON answer.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthorityKind::Starts => "starts",
            AuthorityKind::Reaches => "reaches",
            AuthorityKind::Reads => "reads",
            AuthorityKind::Paths => "paths",
            AuthorityKind::Approves => "approves",
            AuthorityKind::Sandbox => "sandbox",
            AuthorityKind::Other => "other",
        }
    }
}

/// One thing that a file would do.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorityItem {
    /// What it is about.
    pub kind: AuthorityKind,
    /// The item for a person. Nothing in it is invisible, and values with secret names are left out.
    pub text: String,
    /// All that makes it another item.
    exact: Value,
}

/// What a file would do outside the file itself.
///
/// ```
/// use std::path::Path;
/// use toolwright::file::{AuthorityKind, ToolFile};
/// use toolwright::lang::Source;
///
/// let text = "
/// env: {API_TOKEN: {secret: true}}
/// mcp: {notes: {transport: stdio, command: sh, args: [./server.sh], auto_import_scope: shared}}
/// ";
/// let file = ToolFile::parse(Source::text("t.yaml", text))?;
/// let authority = file.authority(Path::new("/srv/app"));
/// let kinds: Vec<_> = authority.items().iter().map(|item| item.kind).collect();
/// assert_eq!(kinds, [AuthorityKind::Starts, AuthorityKind::Reads]);
/// # Ok::<(), toolwright::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Authority {
    items: Vec<AuthorityItem>,
}

impl Authority {
    /// The items, by kind.
    pub fn items(&self) -> &[AuthorityItem] {
        &self.items
    }

    /// Adds an item that a program knows of.
    pub fn add(&mut self, kind: AuthorityKind, text: &str) {
        self.insert(AuthorityItem { kind, text: visible(text), exact: json!(text) });
    }

    /// The SHA-256 of all items, in hexadecimal digits. It changes when anything of them changes, including
    /// what is left out for a person.
    pub fn digest(&self) -> String {
        let items = self.items.iter().map(|item| json!([item.kind.as_str(), item.text, item.exact]));
        sha256(canonical_json(&Value::Array(items.collect())).as_bytes())
    }

    fn insert(&mut self, item: AuthorityItem) {
        if !self.items.contains(&item) {
            let at = self.items.partition_point(|known| known.kind <= item.kind);
            self.items.insert(at, item);
        }
    }
}

impl ToolFile {
    /// What the file would do outside the file itself. `folder` is the one it is used in: paths in it are
    /// its own.
    pub fn authority(&self, folder: &Path) -> Authority {
        let content = self.source().to_json();
        let mut reader = AuthorityReader { folder: folder.to_owned(), authority: Authority::default() };
        reader.shape("file", "", &content);
        #[cfg(feature = "sandbox")]
        reader.sandboxes(self);
        reader.sections(&content);
        reader.authority
    }

    /// The SHA-256 of the file and its includes, in hexadecimal digits. Where they are read from makes no
    /// difference: the file says which includes they are.
    pub fn content_digest(&self) -> String {
        let files = self.source().files().iter();
        let files: Vec<&str> = files.map(|file| file.sha256.as_str()).collect();
        sha256(json!(files).to_string().as_bytes())
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the items of a file.
struct AuthorityReader {
    folder: PathBuf,
    authority: Authority,
}

impl AuthorityReader {
    fn item(&mut self, kind: AuthorityKind, text: String, exact: Value) {
        self.lines(kind, &[text], exact);
    }

    /// An item of several lines. A line end inside of one is shown escaped, so that no value looks like a
    /// line of its own.
    fn lines(&mut self, kind: AuthorityKind, lines: &[String], exact: Value) {
        let lines: Vec<String> = lines.iter().map(|line| visible(line)).collect();
        self.authority.insert(AuthorityItem { kind, text: lines.join("\n"), exact });
    }

    /// Reads a value of this shape. `at` is the way to it.
    fn shape(&mut self, shape: &'static str, at: &str, value: &Value) {
        if let Some(alternative) = format::alternative(shape, value) {
            return self.shape(alternative, at, value);
        }
        let items = match (shape, value) {
            ("body", Value::Array(items)) => items,
            _ => return self.object(shape, at, value),
        };
        items.iter().for_each(|item| self.shape("statement", at, item));
    }

    fn object(&mut self, shape: &'static str, at: &str, value: &Value) {
        let Value::Object(entries) = value else { return };
        self.whole(shape, at, entries);
        let keys = format::keys(shape);
        for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
            let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            match (keys.iter().find(|(known, _)| known == key).map(|(_, meaning)| meaning), value) {
                (Some(KeyMeaning::Inert), _) => {}
                (Some(KeyMeaning::Read(read)), value) => read(self, &at, value),
                (Some(KeyMeaning::Shape(shape)), value) => self.shape(shape, &at, value),
                (Some(KeyMeaning::List(shape)), Value::Array(items)) => {
                    items.iter().for_each(|item| self.shape(shape, &at, item));
                }
                (Some(KeyMeaning::Map(shape)), Value::Object(entries)) => {
                    entries
                        .iter()
                        .for_each(|(name, value)| self.shape(shape, &format!("{at}.{name}"), value));
                }
                // A key that no table opens is shown as it is, so a change of it is asked about.
                (Some(KeyMeaning::List(_) | KeyMeaning::Map(_)) | None, value) => {
                    self.item(AuthorityKind::Other, format!("{at}: {value}"), value.clone());
                }
            }
        }
    }

    /// The path as a person reads it, if it is outside the folder or goes through a link in it.
    fn outside(&self, path: &str) -> Option<String> {
        let given = Path::new(path);
        if path == "~" || path.starts_with("~/") {
            return Some(path.to_owned());
        }
        let inside = match given.strip_prefix(&self.folder) {
            Ok(inside) => inside,
            Err(_) if given.is_absolute() => return Some(path.to_owned()),
            Err(_) => given,
        };
        let mut at = PathBuf::new();
        for part in inside.components() {
            match part {
                Component::Normal(part) => at.push(part),
                Component::CurDir => {}
                Component::ParentDir if at.pop() => {}
                _ => return Some(path.to_owned()),
            }
            // A link is looked at, and not followed.
            if std::fs::symlink_metadata(self.folder.join(&at)).is_ok_and(|found| found.is_symlink()) {
                return Some(format!("{path} (through a link)"));
            }
        }
        None
    }

    fn path(&mut self, what: &str, path: &str) {
        if let Some(outside) = self.outside(path) {
            self.item(AuthorityKind::Paths, format!("{outside} ({what})"), json!([what, path]));
        }
    }

    /// Hosts and paths outside that are written out in the texts of a file: what its flows would pass on.
    /// Sections that are read as a whole are left out.
    fn sections(&mut self, content: &Value) {
        let Value::Object(sections) = content else { return };
        let whole = ["mcp", "models", "openapi", "policy", "python", "sandbox", "sandboxes", "scripts"];
        for (_, section) in sections.iter().filter(|(name, _)| !whole.contains(&name.as_str())) {
            self.words(section, TextOrigin::OfTools);
        }
    }

    fn words(&mut self, value: &Value, texts: TextOrigin) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.words(item, texts)),
            Value::Object(entries) => {
                for (key, value) in entries {
                    match (texts, key.as_str()) {
                        (_, "do" | "data" | "config") => self.words(value, TextOrigin::OfFlows),
                        (TextOrigin::OfTools, key) if format::FOR_PEOPLE.contains(&key) => {}
                        _ => self.words(value, texts),
                    }
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        for (at, _) in text.match_indices("://") {
            let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
            let scheme = before.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |end| end + 1);
            let scheme = before.get(scheme..).unwrap_or_default();
            let rest = after.trim_start_matches("://");
            let end = rest.find(|c: char| "/?#\"'<>\\ \n\t".contains(c)).unwrap_or(rest.len());
            let host = rest.get(..end).unwrap_or_default();
            if !scheme.is_empty() {
                let text = format!("{scheme}://{host} (written in a tool)");
                self.item(AuthorityKind::Reaches, text, json!([scheme, host]));
            }
        }
        let like_a_path = text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..");
        if like_a_path && text.len() > 1 && !text.contains("://") && !text.contains(['\n', '`']) {
            self.path("written in a tool", text);
        }
    }
}

/// Where texts stand: in the definitions of tools, where some are for people, or in what tools do.
#[derive(Clone, Copy)]
enum TextOrigin {
    OfTools,
    OfFlows,
}

/// A value on one line, with the values of secret names left out.
fn on_one_line(value: &Value) -> String {
    masked(value, "").to_string()
}

fn masked(value: &Value, name: &str) -> Value {
    match value {
        Value::String(text) if toolwright_runtime::is_secret_name(name) && !text.starts_with("${") => {
            json!("(hidden)")
        }
        Value::Array(items) => items.iter().map(|item| masked(item, name)).collect(),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), masked(value, key)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
