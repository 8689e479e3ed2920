//! Files as resources: those that were named, below one folder, and nothing else.
//!
//! A client sees the folder as the root: `file:///docs/a.md`. What is offered is decided by name, and a file
//! is opened step by step without following links, so neither `..` nor a link that appears in between leads
//! anywhere else.

use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolwright_core::{BoxFuture, ErrorKind, ToolError, glob_match};

use super::{Peer, Resources, Watching};
use crate::protocol::{Resource, ResourceBody, ResourceContents};

/// How many files are listed, how many entries are looked at for them, and how deep.
const MAX_FILES: usize = 1000;
const MAX_LOOKED_AT: usize = 20_000;
const MAX_DEPTH: usize = 32;

/// The largest file that is read. In Base64, and in a message, it still is one of bounded length.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

const SCHEME: &str = "file:///";

/// Lets clients read files below a folder.
///
/// An entry is a path: a file, or a folder with everything in it; or a pattern in which `*` stands for any
/// characters. Hidden files and folders are left out unless an entry names them.
///
/// ```
/// # let folder = std::env::temp_dir();
/// let resources = toolwright_mcp::FileResources::new(folder, ["README.md", "docs", "notes/*.txt"])?;
/// assert!(toolwright_mcp::FileResources::new("/srv/app", ["../secrets"]).is_err());
/// # let _ = resources;
/// # Ok::<(), toolwright_core::ToolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileResources {
    folder: PathBuf,
    entries: Vec<PathPattern>,
}

#[derive(Debug, Clone)]
struct PathPattern {
    /// With `/` between the parts.
    text: String,
    is_pattern: bool,
}

impl FileResources {
    /// The files below this folder that the entries name.
    pub fn new<S: Into<String>>(
        folder: impl Into<PathBuf>,
        entries: impl IntoIterator<Item = S>,
    ) -> Result<Self, ToolError> {
        let entries = entries.into_iter().map(|entry| {
            let entry: String = entry.into();
            let parts: Option<Vec<&str>> = Path::new(&entry)
                .components()
                .filter(|part| !matches!(part, Component::CurDir))
                .map(|part| match part {
                    Component::Normal(part) => part.to_str(),
                    _ => None,
                })
                .collect();
            let Some(parts) = parts else {
                let error = ToolError::invalid(format!("`{entry}` leads out of the folder"));
                return Err(
                    error.hint("name files and folders below it, without `..` and without a leading `/`")
                );
            };
            Ok(PathPattern { text: parts.join("/"), is_pattern: entry.contains(['*', '?', '[']) })
        });
        Ok(FileResources { folder: folder.into(), entries: entries.collect::<Result<_, _>>()? })
    }

    /// Whether a file of this path is offered.
    fn offers(&self, path: &str) -> bool {
        self.entries.iter().any(|entry| entry.offers(path))
    }

    fn find(&self) -> Vec<Resource> {
        let mut found = Vec::new();
        let mut looked_at = 0;
        let mut folders = vec![(String::new(), 0)];
        // The order is that of names, whatever order the file system has.
        while let Some((folder, depth)) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(self.folder.join(&folder)) else { continue };
            let mut entries: Vec<_> = entries.flatten().take(MAX_LOOKED_AT).collect();
            entries.sort_by_key(std::fs::DirEntry::file_name);
            let mut below = Vec::new();
            for entry in entries {
                looked_at += 1;
                if looked_at > MAX_LOOKED_AT || found.len() >= MAX_FILES {
                    return found;
                }
                let (Ok(kind), Some(name)) =
                    (entry.file_type(), entry.file_name().to_str().map(str::to_owned))
                else {
                    continue;
                };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if kind.is_dir() && depth < MAX_DEPTH && self.entries.iter().any(|entry| entry.enters(&path))
                {
                    below.push((path, depth + 1));
                } else if kind.is_file() && self.offers(&path) {
                    found.push(Resource {
                        uri: format!("{SCHEME}{}", encode(&path)),
                        mime_type: Some(mime_type(&path).to_owned()),
                        size: entry.metadata().ok().map(|about| about.len()),
                        name: path,
                        ..Resource::default()
                    });
                }
            }
            folders.extend(below.into_iter().rev());
        }
        found
    }

    /// Opens a file that is offered, and reads it; `None` when there is none.
    fn load(&self, path: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let Some(file) = open_below(&self.folder, path) else { return Ok(None) };
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            let problem = format!("`{path}` is larger than {} MiB", MAX_BYTES / 1024 / 1024);
            return Err(ToolError::of(ErrorKind::OutputLimit, problem));
        }
        Ok(Some(bytes))
    }
}

impl PathPattern {
    fn offers(&self, path: &str) -> bool {
        if !self.is_pattern {
            let rest = path.strip_prefix(self.text.as_str());
            let below = if self.text.is_empty() { Some(path) } else { rest };
            // What lies below a folder that was named, but not what hides there.
            return rest == Some("")
                || below.is_some_and(|rest| (self.text.is_empty() || rest.starts_with('/')) && !hides(rest));
        }
        glob_match(&self.text, path) && (!hides(path) || hides(&self.text))
    }

    /// Whether something in this folder may be offered.
    fn enters(&self, folder: &str) -> bool {
        if self.is_pattern {
            return !hides(folder) || hides(&self.text);
        }
        let leads_to = |from: &str, to: &str| to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
        self.offers(folder) || leads_to(folder, &self.text)
    }
}

/// Whether a part of the path is hidden.
fn hides(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.'))
}

impl Resources for FileResources {
    fn list(&self) -> Vec<Resource> {
        self.find()
    }

    fn watching(&self) -> Watching {
        Watching::Polled
    }

    fn mark(&self, uri: &str) -> Option<u64> {
        let path = uri.strip_prefix(SCHEME).and_then(decode).filter(|path| self.offers(path))?;
        let about = open_below(&self.folder, &path)?.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let mut mark = std::hash::DefaultHasher::new();
        (about.len(), about.modified().ok()).hash(&mut mark);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            (about.ino(), about.ctime(), about.ctime_nsec()).hash(&mut mark);
        }
        Some(mark.finish())
    }

    fn read<'a>(
        &'a self,
        _peer: &'a Peer,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<ResourceContents>>, ToolError>> {
        Box::pin(async move {
            let path = uri.strip_prefix(SCHEME).and_then(decode).filter(|path| self.offers(path));
            let Some(path) = path else { return Ok(None) };
            let files = self.clone();
            let mime_type = Some(mime_type(&path).to_owned());
            let loaded = tokio::task::spawn_blocking(move || files.load(&path)).await;
            let Some(bytes) = loaded.map_err(|error| ToolError::fatal(error.to_string()))?? else {
                return Ok(None);
            };
            let body = match String::from_utf8(bytes) {
                Ok(text) => ResourceBody::Text(text),
                Err(other) => ResourceBody::Blob(STANDARD.encode(other.as_bytes())),
            };
            Ok(Some(vec![ResourceContents { uri: uri.to_owned(), mime_type, body }]))
        })
    }
}

/// Opens a file without following a link in any part of its path. Never blocks on a pipe.
#[cfg(unix)]
fn open_below(folder: &Path, path: &str) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open, openat};
    let in_between = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let mut at = open(folder, in_between, Mode::empty()).ok()?;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        if matches!(part, "" | "." | "..") {
            return None;
        }
        let flags = match parts.peek() {
            Some(_) => in_between,
            None => OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
        };
        at = openat(&at, part, flags | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    }
    Some(at.into())
}

#[cfg(not(unix))]
fn open_below(folder: &Path, path: &str) -> Option<File> {
    let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let folder = folder.canonicalize().ok()?;
    let file = folder.join(path).canonicalize().ok()?;
    (plain && file == folder.join(path)).then(|| File::open(file).ok()).flatten()
}

/// A path as part of an address: everything but letters, digits and a few signs is written as `%XX`.
fn encode(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes().fold(String::with_capacity(path.len()), |mut out, byte| {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

/// The path an address stands for; `None` for an address in a form that we would not write.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

fn mime_type(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "zip" | "gz" | "bin" | "exe" | "so" | "wasm" => "application/octet-stream",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("README.md", "hello");
        write("docs/b.md", "b");
        write("docs/a b/c.txt", "c");
        write("docs/.draft.md", "draft");
        write("docs/.git/config", "git");
        write(".env", "KEY=secret");
        write("private/key.pem", "key");
        folder
    }

    fn names(folder: &Path, entries: &[&str]) -> Vec<String> {
        let resources = FileResources::new(folder, entries.to_vec()).unwrap();
        resources.list().into_iter().map(|resource| resource.uri.replace(SCHEME, "")).collect()
    }

    #[test]
    fn only_what_is_named_is_listed_and_what_hides_stays_hidden() {
        let folder = folder();
        let names = |entries: &[&str]| names(folder.path(), entries);
        assert_eq!(names(&["README.md", "docs"]), ["README.md", "docs/b.md", "docs/a%20b/c.txt"]);
        assert_eq!(names(&["docs/*.md"]), ["docs/b.md"]);
        assert_eq!(names(&["./docs/a b/"]), ["docs/a%20b/c.txt"]);
        assert_eq!(names(&["doc"]), [""; 0]);
        assert_eq!(names(&["*"]), ["README.md", "docs/b.md", "docs/a%20b/c.txt", "private/key.pem"]);
        assert_eq!(names(&["."]), ["README.md", "docs/b.md", "docs/a%20b/c.txt", "private/key.pem"]);
        assert_eq!(names(&[".env", "docs/.draft.md"]), [".env", "docs/.draft.md"]);
    }

    #[test]
    fn entries_that_lead_out_are_refused() {
        for entry in ["..", "../x", "docs/../../x", "/etc/passwd"] {
            assert!(FileResources::new("/srv", [entry]).is_err(), "{entry}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_else_can_be_read_whatever_the_address() {
        let folder = folder();
        std::os::unix::fs::symlink("/etc", folder.path().join("docs/etc")).unwrap();
        std::os::unix::fs::symlink(folder.path().join(".env"), folder.path().join("docs/env.md")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("docs/pipe"), 0o600.into()).unwrap();
        let resources = FileResources::new(folder.path(), ["docs"]).unwrap();
        let read = |uri: &str| -> Option<Vec<u8>> {
            let path = uri.strip_prefix(SCHEME).and_then(decode).filter(|path| resources.offers(path))?;
            resources.load(&path).unwrap()
        };
        assert_eq!(read("file:///docs/b.md").as_deref(), Some(&b"b"[..]));
        assert_eq!(read("file:///docs/a%20b/c.txt").as_deref(), Some(&b"c"[..]));
        for uri in [
            "file:///README.md",
            "file:///docs/../.env",
            "file:///docs/%2e%2e/.env",
            "file:///docs/..%2f.env",
            "file:///docs/a%20b/../../README.md",
            "file:///docs//b.md",
            "file:////etc/passwd",
            "file:///docs/etc/passwd",
            "file:///docs/env.md",
            "file:///docs/.draft.md",
            "file:///docs/.git/config",
            "file:///docs/pipe",
            "file:///docs",
            "file:///docs/b.md%00",
            "file:///docs/b.md%",
            "file://localhost/docs/b.md",
            "docs/b.md",
        ] {
            assert_eq!(read(uri), None, "{uri}");
        }
    }
}
