//! A package of parts (a ZIP file), each decompressed within the bounds of the reading.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::xml::XmlTree;
use crate::error::DocumentError;
use crate::options::ReadingState;

/// The most parts of a package.
const MAX_PARTS: usize = 100_000;

/// The most a part may expand: XML reaches about 100, a bomb 1,000.
const MAX_RATIO: u64 = 400;

/// Parts below this size may expand as they like.
const SMALL: u64 = 8 << 20;

pub(crate) struct Package {
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// Parts by their names in lower case: some programs write them in another case than they refer to them.
    names: HashMap<String, usize>,
}

/// A part as the directory lists it.
pub(crate) struct PackageEntry {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) compressed: u64,
    pub(crate) encrypted: bool,
}

impl Package {
    pub(crate) fn open(bytes: Vec<u8>) -> Result<Self, DocumentError> {
        let damaged = || DocumentError::damaged("the package is damaged: its directory cannot be read");
        let opened = std::panic::catch_unwind(|| ZipArchive::new(Cursor::new(bytes)));
        let archive = opened.map_err(|_| damaged())?.map_err(|_| damaged())?;
        if archive.len() > MAX_PARTS {
            return Err(DocumentError::limit(format!("the package has more than {MAX_PARTS} parts")));
        }
        let names = (0..archive.len())
            .filter_map(|at| Some((archive.name_for_index(at)?.ok()?.to_lowercase(), at)))
            .collect();
        Ok(Package { archive, names })
    }

    /// What the package holds.
    pub(crate) fn entries(&mut self) -> Vec<PackageEntry> {
        (0..self.archive.len())
            .filter_map(|at| {
                let file = self.archive.by_index_raw(at).ok()?;
                Some(PackageEntry {
                    name: file.name().ok()?.into_owned(),
                    size: file.size(),
                    compressed: file.compressed_size(),
                    encrypted: file.encrypted(),
                })
            })
            .collect()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// A part; `None` when there is none of this name.
    pub(crate) fn part(
        &mut self,
        name: &str,
        reading: &mut ReadingState<'_>,
    ) -> Result<Option<Vec<u8>>, DocumentError> {
        let name = name.trim_start_matches('/').to_lowercase();
        let Some(at) = self.names.get(&name).copied() else { return Ok(None) };
        let damaged = |_| DocumentError::damaged(format!("the part `{name}` is damaged"));
        let mut file = self.archive.by_index(at).map_err(|error| match error {
            zip::result::ZipError::UnsupportedArchive(_) => DocumentError::encrypted(format!(
                "the part `{name}` is encrypted or packed in an unknown way"
            )),
            _ => DocumentError::damaged(format!("the part `{name}` is damaged")),
        })?;
        // The stated size is a claim; what counts is what comes out.
        let compressed = file.compressed_size();
        let most = SMALL.max(compressed.saturating_mul(MAX_RATIO)).min(reading.expanded_left() as u64);
        let mut data = Vec::new();
        file.by_ref().take(most + 1).read_to_end(&mut data).map_err(damaged)?;
        if data.len() as u64 > most {
            return Err(DocumentError::limit(format!(
                "the part `{name}` expands to more than {most} bytes from {compressed}"
            )));
        }
        reading.expand(data.len())?;
        Ok(Some(data))
    }

    /// A part as a tree.
    pub(crate) fn xml(
        &mut self,
        name: &str,
        reading: &mut ReadingState<'_>,
    ) -> Result<Option<XmlTree>, DocumentError> {
        match self.part(name, reading)? {
            Some(data) => XmlTree::parse(&data, reading).map(Some),
            None => Ok(None),
        }
    }

    /// The targets of a part's relationships by their ids, as paths inside the package.
    pub(crate) fn relations(
        &mut self,
        part: &str,
        reading: &mut ReadingState<'_>,
    ) -> HashMap<String, Relation> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let path = format!("{folder}/_rels/{file}.rels");
        let Ok(Some(tree)) = self.xml(&path, reading) else { return HashMap::new() };
        tree.all(tree.root(), "Relationship")
            .into_iter()
            .filter_map(|at| {
                let target = tree.attribute(at, "Target")?;
                let external = tree.attribute(at, "TargetMode") == Some("External");
                let target = if external { target.to_owned() } else { resolve(folder, target) };
                let kind = tree.attribute(at, "Type").unwrap_or_default();
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                Some((tree.attribute(at, "Id")?.to_owned(), Relation { target, kind, external }))
            })
            .collect()
    }
}

/// What a part refers to.
pub(crate) struct Relation {
    pub(crate) target: String,
    pub(crate) kind: String,
    pub(crate) external: bool,
}

/// A path seen from a folder of the package; it never leaves the package.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base = if target.starts_with('/') { "" } else { folder };
    for part in base.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn a_path_never_leaves_the_package() {
        assert_eq!(resolve("word", "media/a.png"), "word/media/a.png");
        assert_eq!(resolve("ppt/slides", "../media/a.png"), "ppt/media/a.png");
        assert_eq!(resolve("word", "/word/x.xml"), "word/x.xml");
        assert_eq!(resolve("word", "../../../../etc/passwd"), "etc/passwd");
    }
}
