//! A file as it is written: its text with everything it includes, checked for its shape.
//!
//! Parsing is synchronous and pure. No variable is read, no template evaluated, no tool looked up and no
//! server started; that is done by [`bind`](SourceFile::bind) and [`compile`](crate::BoundFile::compile).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use toolwright_core::{DataError, PathSegment};

use crate::diag::{Diagnostic, FileSpan, LoadError, Problems, Severity};
use crate::env::{self, Variable};
use crate::file;
use crate::files::{Access, FileDigest, Loader, Source};
use crate::host::Host;
use crate::needs::{Needs, Wanted};
use crate::sections;
use crate::shape;
use crate::yaml::{Data, Node};

/// Sections that govern runs. A program that does not read them must not use the file.
const GOVERNING: [&str; 4] = ["policy", "limits", "sandbox", "sandboxes"];

/// A file as it is written.
///
/// ```
/// use toolwright_lang::{Source, SourceFile};
///
/// let mut file = SourceFile::parse(Source::text("t.yaml", "limits: {turns: 3}\ntools: []\n"));
/// let turns = file.section("limits", |value| Ok(value["turns"].as_u64())).unwrap();
/// assert_eq!((turns.value, turns.location.as_str()), (Some(3), "t.yaml:1:9"));
/// assert!(file.error().is_none());
/// ```
#[derive(Clone)]
pub struct SourceFile {
    pub(crate) root: Arc<Node>,
    pub(crate) problems: Problems,
    /// The folder of a file on disk.
    folder: Option<PathBuf>,
    /// The sections that the program has read.
    read: BTreeSet<&'static str>,
    files: Vec<FileDigest>,
}

/// A section of a file that a program has read into a type of its own.
#[derive(Debug, Clone)]
pub struct Section<T> {
    /// Its content.
    pub value: T,
    /// Where it begins, as `file:line:column`.
    pub location: String,
    node: Node,
}

impl<T> Section<T> {
    /// The location at the end of a path into the section, as far as the path exists.
    fn place(&self, path: &[PathSegment]) -> FileSpan {
        let (mut node, mut place) = (&self.node, self.node.place);
        for step in path {
            let found = match (step, &node.data) {
                (PathSegment::Key(key), Data::Map(entries)) => {
                    entries.iter().find(|(name, _)| name.is_key(key)).map(|(name, value)| (value, name.place))
                }
                (PathSegment::Index(index), Data::List(items)) => {
                    items.get(*index).map(|item| (item, item.place))
                }
                _ => None,
            };
            match found {
                Some(found) => (node, place) = found,
                None => break,
            }
        }
        place
    }
}

impl SourceFile {
    /// Parses a file with everything it includes. [`error`](Self::error) has all that is wrong with it.
    pub fn parse(source: impl Into<Source>) -> Self {
        Self::read(Loader::new(None, Access::Named), source.into())
    }

    /// Parses a file. `!include ./...` begins in this folder, and not in the file's own.
    pub fn parse_in(source: impl Into<Source>, work_dir: impl Into<PathBuf>) -> Self {
        Self::read(Loader::new(Some(work_dir.into()), Access::Named), source.into())
    }

    /// Parses a file that nobody named. It is not read through a link, nor are its includes, and all of them
    /// together may have 1 MiB. What is not read is an error.
    pub fn parse_found(path: impl Into<PathBuf>, work_dir: impl Into<PathBuf>) -> Self {
        Self::read(Loader::new(Some(work_dir.into()), Access::Found), Source::Path(path.into()))
    }

    fn read(mut loader: Loader, source: Source) -> Self {
        let mut problems = Problems::default();
        let folder = match &source {
            Source::Path(path) => path.parent().map(PathBuf::from),
            Source::Text { .. } => None,
        };
        let root = loader.root(&mut problems, source);
        let root = root.unwrap_or(Node { data: Data::Bad, place: FileSpan::default() });
        if !matches!(root.data, Data::Bad | Data::Null) {
            shape::check(&mut problems, &root, &file::FILE);
        }
        SourceFile { root: Arc::new(root), problems, folder, read: BTreeSet::new(), files: loader.read }
    }

    /// All problems so far, if one of them keeps the file from being used.
    pub fn error(&self) -> Option<LoadError> {
        self.problems.as_error()
    }

    /// The file and its includes, each with the hash of what was read, in the order of reading.
    pub fn files(&self) -> &[FileDigest] {
        &self.files
    }

    /// The file as data, with what it includes. Templates are texts.
    pub fn to_json(&self) -> Json {
        self.root.to_json()
    }

    /// Whether the file has a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.root.get(name).is_some()
    }

    /// Reads a section into a type of the program's own. What does not fit becomes problems of the file, each
    /// at its location. A file that has a `policy`, `limits`, `sandbox` or `sandboxes` which nobody has read
    /// cannot be used: its tools would run as if the section were not there.
    pub fn section<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Json) -> Result<T, Vec<DataError>>,
    ) -> Option<Section<T>> {
        self.read.insert(name);
        let node = self.root.get(name)?.clone();
        let location = self.problems.sources.locate(node.place);
        match read(node.to_json()) {
            Ok(value) => Some(Section { value, location, node }),
            Err(misfits) => {
                let section = Section { value: (), location, node };
                for misfit in misfits {
                    // The shape of the file may have been reported already.
                    if self.problems.has_error_in(section.node.place) {
                        break;
                    }
                    let named = [format!("`{name}`"), format!("`{name}.")];
                    let named = named.iter().any(|word| misfit.message.contains(word));
                    let DataError { path, message, hint } =
                        if named { misfit } else { misfit.about(format_args!("`{name}`")) };
                    self.problems.add(Severity::Error, section.place(&path), message, hint);
                }
                None
            }
        }
    }

    /// A problem in a section, at the location its path leads to.
    pub fn diagnostic<T>(&self, section: &Section<T>, severity: Severity, misfit: DataError) -> Diagnostic {
        let DataError { path, message, hint } = misfit;
        self.problems.sources.diagnostic(severity, section.place(&path), message, hint)
    }

    /// The folder of a file on disk, which its relative paths begin in.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What this use of the file needs: which servers must be connected, which variables must be set.
    pub fn needs(&self, wanted: &Wanted) -> Needs {
        Needs::of(&self.root, wanted)
    }

    /// The names of the MCP servers the file declares.
    pub fn servers(&self) -> Vec<String> {
        sections::server_names(&self.root)
    }

    /// The names of the environment variables the file declares.
    pub fn declared(&self) -> Vec<String> {
        match self.root.get("env").map(|node| &node.data) {
            Some(Data::Map(entries)) => entries.iter().map(|(name, _)| name.key_text()).collect(),
            _ => Vec::new(),
        }
    }

    /// The environment variables the file declares, so that a program can ask for those that are needed and
    /// not set.
    pub fn variables(&self, host: &Host, needs: &Needs) -> Vec<Variable> {
        env::read(&mut self.problems.clone(), &self.root, host, needs).0
    }

    /// The governing sections that nobody has read, with their locations.
    pub(crate) fn unread(&self) -> Vec<(&'static str, FileSpan)> {
        let unread = GOVERNING.into_iter().filter(|name| !self.read.contains(name));
        let there = unread.filter_map(|name| Some((name, self.root.get(name)?)));
        there
            .filter(|(_, node)| !matches!(node.data, Data::Null))
            .map(|(name, node)| (name, node.place))
            .collect()
    }
}

impl std::fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceFile").field("read", &self.read).finish_non_exhaustive()
    }
}
