//! Rust and Markdown files of the repository, and the parts of a Rust file that people read: comments and
//! strings.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A source file.
pub struct Source {
    /// The crate or folder it belongs to: `toolwright-core`, `xtask`, `docs`.
    pub part: String,
    /// Relative to the root of the repository.
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    /// Whether it is compiled into a library or a program, not into tests.
    pub fn is_library(&self) -> bool {
        self.path.components().any(|part| part.as_os_str() == "src")
            && !self
                .path
                .file_stem()
                .is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"))
    }

    /// The text without the module of unit tests at its end.
    pub fn code(&self) -> &str {
        self.text.split_once("#[cfg(test)]\nmod tests {").map_or(&self.text, |(code, _)| code)
    }
}

/// All Rust files of the crates and of xtask. Cases of compile errors are left out: their text is their
/// subject.
pub fn rust() -> Result<Vec<Source>> {
    let root = crate::root();
    let mut parts: Vec<(String, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        if path.join("Cargo.toml").exists() {
            let name = path.file_name().context("no name")?.to_string_lossy().into_owned();
            parts.push((name, path));
        }
    }
    parts.extend(["bench", "examples", "xtask"].map(|name| (name.to_owned(), root.join(name))));
    parts.sort();
    let mut sources = Vec::new();
    for (part, folder) in parts {
        collect(&root, &folder, &part, "rs", &mut sources)?;
    }
    sources.retain(|source| !source.path.to_string_lossy().contains("/tests/ui/"));
    Ok(sources)
}

/// The pages that people write: those in the root and in `docs`, without the generated reference.
pub fn pages() -> Result<Vec<Source>> {
    let root = crate::root();
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(&root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            add(&root, &path, "docs", &mut sources)?;
        }
    }
    collect(&root, &root.join("docs"), "docs", "md", &mut sources)?;
    sources.retain(|source| !source.path.starts_with("docs/reference"));
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

fn collect(root: &Path, folder: &Path, part: &str, ending: &str, sources: &mut Vec<Source>) -> Result<()> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(root, &path, part, ending, sources)?;
            }
        } else if path.extension().is_some_and(|found| found == ending) {
            add(root, &path, part, sources)?;
        }
    }
    Ok(())
}

fn add(root: &Path, path: &Path, part: &str, sources: &mut Vec<Source>) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let path = path.strip_prefix(root).unwrap_or(path).to_owned();
    sources.push(Source { part: part.to_owned(), path, text });
    Ok(())
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The lines of one comment, joined.
    Comment,
    /// A string literal, as it stands in the source.
    Text,
}

/// A comment or a string, and the line it starts on (from 1).
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    pub line: usize,
    pub text: String,
}

/// The comments and strings of Rust code. Comments on consecutive lines are one piece.
pub fn pieces(code: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut scan = Scan { rest: code, line: 1 };
    // The line on which the last comment ended, if nothing but space followed it.
    let mut open = None;
    while let Some(sign) = scan.rest.chars().next() {
        let line = scan.line;
        if let Some(comment) = scan.line_comment().or_else(|| scan.block_comment()) {
            let text = comment.trim_start_matches(['/', '!', '*']).trim();
            match pieces.last_mut().filter(|_| open.is_some_and(|end| end + 1 == line)) {
                Some(last) => last.text.extend([" ", text]),
                None => pieces.push(Piece { kind: Kind::Comment, line, text: text.to_owned() }),
            }
            open = Some(scan.line);
        } else if let Some(text) = scan.string() {
            pieces.push(Piece { kind: Kind::Text, line, text: text.to_owned() });
            open = None;
        } else {
            if !sign.is_whitespace() {
                open = None;
            }
            scan.code(sign);
        }
    }
    pieces
}

/// What is left of a source, and where that begins.
struct Scan<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Scan<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn line_comment(&mut self) -> Option<&'a str> {
        self.rest.starts_with("//").then(|| self.take(self.rest.find('\n').unwrap_or(self.rest.len())))
    }

    fn block_comment(&mut self) -> Option<&'a str> {
        let length = || self.rest.find("*/").map_or(self.rest.len(), |end| end + 2);
        self.rest.starts_with("/*").then(length).map(|length| self.take(length).trim_end_matches("*/"))
    }

    /// A string literal of any kind, without its marks.
    fn string(&mut self) -> Option<&'a str> {
        let prefix = ["b", "c", "br", "cr", "r", ""].into_iter().find(|prefix| {
            let rest = self.rest.strip_prefix(prefix).unwrap_or_default();
            rest.starts_with('"')
                || (prefix.ends_with('r')
                    && rest.trim_start_matches('#').starts_with('"')
                    && rest.starts_with('#'))
        })?;
        let rest = self.rest.get(prefix.len()..)?;
        if prefix.ends_with('r') {
            let marks = rest.len() - rest.trim_start_matches('#').len();
            let end = format!("\"{}", "#".repeat(marks));
            let body = rest.get(marks + 1..)?;
            let length = body.find(&end).unwrap_or(body.len());
            self.take(prefix.len() + marks + 1 + length + end.len());
            return body.get(..length);
        }
        let body = rest.get(1..)?;
        let mut escaped = false;
        let length = body.find(|sign| {
            let ends = sign == '"' && !escaped;
            escaped = sign == '\\' && !escaped;
            ends
        });
        let length = length.unwrap_or(body.len());
        self.take(prefix.len() + 1 + length + 1);
        body.get(..length)
    }

    /// Passes over code: a whole name, so that the end of one is not taken for a prefix of a string; a
    /// character literal; or one sign.
    fn code(&mut self, sign: char) {
        let is_name = |sign: char| sign.is_alphanumeric() || sign == '_';
        if is_name(sign) {
            let length = self.rest.find(|sign| !is_name(sign)).unwrap_or(self.rest.len());
            self.take(length);
        } else if sign == '\'' {
            let mut signs = self.rest.chars().skip(1);
            let length = match (signs.next(), signs.next()) {
                (Some('\\'), Some(escaped)) => {
                    let start = 2 + escaped.len_utf8();
                    let rest = self.rest.get(start..).unwrap_or_default();
                    start + rest.find('\'').map_or(0, |end| end + 1)
                }
                (Some(one), Some('\'')) => 2 + one.len_utf8(),
                // A lifetime.
                _ => 1,
            };
            self.take(length);
        } else {
            self.take(sign.len_utf8());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: &str) -> Vec<(Kind, usize, String)> {
        pieces(code).into_iter().map(|piece| (piece.kind, piece.line, piece.text)).collect()
    }

    #[test]
    fn comments_on_consecutive_lines_are_one() {
        let code = "//! One\n//! two.\n\n// Three.\nlet a = 1; // four\n// five\n/* six\nseven */";
        let wanted = [(1, "One two."), (4, "Three."), (5, "four five six\nseven")];
        let wanted: Vec<_> = wanted.map(|(line, text)| (Kind::Comment, line, text.to_owned())).into();
        assert_eq!(read(code), wanted);
    }

    #[test]
    fn strings_of_every_kind_are_found() {
        let code =
            r####"f("a \" // b", b"c", r"d\", br#"e " f"#, r##"g"##, 'h', '"', '\'', '\\', &'a str, "i")"####;
        let wanted = ["a \\\" // b", "c", "d\\", "e \" f", "g", "i"];
        let texts: Vec<_> = read(code).into_iter().map(|(kind, _, text)| (kind, text)).collect();
        assert_eq!(texts, wanted.map(|text| (Kind::Text, text.to_owned())));
    }

    #[test]
    fn names_that_end_like_a_prefix_are_code() {
        assert_eq!(
            read("macro_r!(\"x\"); for\"y\""),
            [(Kind::Text, 1, "x".to_owned()), (Kind::Text, 1, "y".to_owned())]
        );
        assert_eq!(read("r#type \"x"), [(Kind::Text, 1, "x".to_owned())]);
    }
}
