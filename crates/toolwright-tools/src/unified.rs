//! Unified diffs, as `diff -u` and git write them: whatever they say of a file is read, or the whole patch is
//! refused.

use toolwright_core::{ToolError, text::clip};

use crate::patch::{FileChange, Hunk, To, bad, created, parse_hunks};

/// Whether the change of a file begins at a line.
pub(crate) fn begins(lines: &[&str], at: usize) -> bool {
    let starts = |at: usize, mark: &str| lines.get(at).is_some_and(|line| line.starts_with(mark));
    starts(at, "diff --git ")
        || (starts(at, "--- ") && starts(at + 1, "+++ "))
        || (starts(at, "rename from ") && starts(at + 1, "rename to "))
        || (starts(at, "copy from ") && starts(at + 1, "copy to "))
}

pub(crate) fn parse(lines: &[&str]) -> Result<Vec<FileChange>, ToolError> {
    let mut changes = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if begins(lines, at) {
            let (head, after) = DiffHeader::read(lines, at)?;
            let (hunks, after) = match lines.get(after) {
                Some(line) if line.starts_with("@@") || head.files.is_some() => parse_hunks(lines, after)?,
                _ => (Vec::new(), after),
            };
            changes.push(head.change(hunks, at)?);
            at = after;
            continue;
        }
        if line.starts_with("@@ ") {
            return Err(bad(format!("line {} begins a hunk before any file was named", at + 1)));
        }
        text_only(line, at)?;
        at += 1;
    }
    Ok(changes)
}

/// What is said of a file before its hunks.
#[derive(Default)]
struct DiffHeader<'a> {
    /// What follows `diff --git`.
    git: Option<&'a str>,
    /// What follows `---` and `+++`.
    files: Option<(&'a str, &'a str)>,
    renamed: (Option<&'a str>, Option<&'a str>),
    copied: (Option<&'a str>, Option<&'a str>),
    /// The mode of a new file.
    made: Option<&'a str>,
    /// The mode of a file that is deleted.
    gone: Option<&'a str>,
    /// The mode that a file gets.
    mode: Option<&'a str>,
}

impl<'a> DiffHeader<'a> {
    /// The head that begins at a line, and the line after it.
    fn read(lines: &[&'a str], begin: usize) -> Result<(DiffHeader<'a>, usize), ToolError> {
        let mut head = DiffHeader::default();
        let mut at = begin;
        while let Some(line) = lines.get(at).map(|line| line.trim_end_matches('\r')) {
            let after = |mark: &str| line.strip_prefix(mark);
            if let Some(names) = after("diff --git ") {
                if at > begin {
                    break;
                }
                head.git = Some(names);
            } else if line.starts_with("@@") {
                break;
            } else if let (Some(old), Some(new)) =
                (after("--- "), lines.get(at + 1).and_then(|line| line.strip_prefix("+++ ")))
            {
                head.files = Some((old, new.trim_end_matches('\r')));
                return Ok((head, at + 2));
            } else if let Some(name) = after("rename from ") {
                head.renamed.0 = Some(name);
            } else if let Some(name) = after("rename to ") {
                head.renamed.1 = Some(name);
            } else if let Some(name) = after("copy from ") {
                head.copied.0 = Some(name);
            } else if let Some(name) = after("copy to ") {
                head.copied.1 = Some(name);
            } else if let Some(mode) = after("new file mode ") {
                head.made = Some(mode);
            } else if let Some(mode) = after("deleted file mode ") {
                head.gone = Some(mode);
            } else if let Some(mode) = after("old mode ") {
                is_executable(mode)?;
            } else if let Some(mode) = after("new mode ") {
                head.mode = Some(mode);
            } else if let Some(index) = after("index ") {
                index.split_once(' ').map(|(_, mode)| is_executable(mode)).transpose()?;
            } else if !line.starts_with("similarity index ") && !line.starts_with("dissimilarity index ") {
                text_only(line, at)?;
                // Words between `diff --git` and what it is about are passed over.
                if head.says_something() {
                    break;
                }
            }
            at += 1;
        }
        Ok((head, at))
    }

    fn says_something(&self) -> bool {
        let modes = [self.made, self.gone, self.mode];
        let names = [self.renamed.0, self.renamed.1, self.copied.0, self.copied.1];
        modes.iter().chain(&names).any(Option::is_some)
    }

    /// The change that the head and its hunks make.
    fn change(&self, hunks: Vec<Hunk>, at: usize) -> Result<FileChange, ToolError> {
        let at = at + 1;
        let wrong = |what: &str| bad(format!("the change that begins at line {at} {what}"));
        let (old, new) = self.names(at)?;
        if (self.made.is_some() && old.is_some() || self.gone.is_some() && new.is_some())
            && self.files.is_some()
        {
            return Err(wrong("says that a file is new or deleted, and does not name /dev/null"));
        }
        match (old, new) {
            (None, None) => Err(wrong("is from /dev/null to /dev/null")),
            (None, Some(path)) => {
                let executable = self.made.map_or(Ok(false), is_executable)?;
                Ok(FileChange::Create { path, text: created(&hunks)?, executable })
            }
            (Some(path), None) => {
                self.gone.map(is_executable).transpose()?;
                // `+++ /dev/null` alone deletes whatever is there.
                let hunks = Some(hunks).filter(|hunks| self.files.is_none() || !hunks.is_empty());
                Ok(FileChange::Delete { path, hunks })
            }
            (Some(path), Some(other)) => {
                let executable = self.mode.map(is_executable).transpose()?;
                let to = match (self.renamed.1, self.copied.1) {
                    (Some(_), None) => To::Move(other),
                    (None, Some(_)) => To::Copy(other),
                    (Some(_), Some(_)) => return Err(wrong("both renames and copies")),
                    (None, None) if path != other => {
                        return Err(bad(format!("a change goes from {path} to {other}")).hint(
                            "name the same file twice, or say `rename from` and `rename to` before it",
                        ));
                    }
                    (None, None) => To::Stay,
                };
                if hunks.is_empty() && to == To::Stay && executable.is_none() {
                    return Err(bad(format!("there is no hunk for {path}")));
                }
                Ok(FileChange::Update { path, to, hunks, executable })
            }
        }
    }

    /// The file before and after; `None` is /dev/null. All lines that name one must name the same.
    fn names(&self, at: usize) -> Result<(Option<String>, Option<String>), ToolError> {
        let files = match self.files {
            Some((old, new)) => Some((file_name(old)?, file_name(new)?)),
            None => None,
        };
        let pairs = [(self.renamed, "rename"), (self.copied, "copy")];
        let moved = pairs.iter().find(|((from, to), _)| from.is_some() || to.is_some());
        let told = match (moved, self.git) {
            (Some(((Some(from), Some(to)), _)), _) => Some((unquoted(from)?, unquoted(to)?)),
            (Some((_, what)), _) => {
                let both = format!("`{what} from` and `{what} to` belong together");
                return Err(bad(format!("the change that begins at line {at} has one of them; {both}")));
            }
            (None, Some(git)) => git_name(git)?.map(|name| (name.clone(), name)),
            (None, None) => None,
        };
        let Some((from, to)) = told else {
            let plain = |name: String| {
                let bare = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).map(str::to_owned);
                bare.unwrap_or(name)
            };
            return files.map(|(old, new)| (old.map(plain), new.map(plain))).ok_or_else(|| {
                let names = clip(self.git.unwrap_or_default(), 80);
                bad(format!("line {at} does not name one file: `diff --git {names}`"))
            });
        };
        let Some((old, new)) = files else {
            return Ok((
                Some(from).filter(|_| self.made.is_none()),
                Some(to).filter(|_| self.gone.is_none()),
            ));
        };
        for (name, told) in [(&old, &from), (&new, &to)] {
            // One folder may come first: the `a/` or `b/` of git, or the prefix of its options.
            let same =
                |name: &str| name == told || name.split_once('/').is_some_and(|(_, rest)| rest == told);
            if let Some(name) = name.as_deref().filter(|name| !same(name)) {
                return Err(bad(format!(
                    "the change that begins at line {at} is of {told}, and names {name}"
                )));
            }
        }
        Ok((old.map(|_| from), new.map(|_| to)))
    }
}

/// Refuses a line that stands for bytes that are not text.
fn text_only(line: &str, at: usize) -> Result<(), ToolError> {
    let line = line.trim_end();
    if line == "GIT binary patch" || (line.starts_with("Binary files ") && line.ends_with(" differ")) {
        return Err(bad(format!("line {} changes a binary file, and only text can be patched", at + 1))
            .hint("nothing was changed; leave that file out of the patch"));
    }
    Ok(())
}

/// Whether a file of this mode is a program. Links and submodules are refused.
fn is_executable(mode: &str) -> Result<bool, ToolError> {
    let mode = mode.trim();
    let number = u32::from_str_radix(mode, 8).ok();
    match number.map(|number| (number & 0o170_000, number & 0o100)) {
        Some((0 | 0o100_000, owner)) => Ok(owner != 0),
        Some((0o120_000, _)) => Err(bad("it makes, changes or deletes a symbolic link (mode 120000)")
            .hint("nothing was changed; leave the link out of the patch")),
        _ => Err(bad(format!("the mode `{}` is not that of a file", clip(mode, 20)))),
    }
}

/// The name in a header line, without the time after a tab. `None` is /dev/null.
fn file_name(text: &str) -> Result<Option<String>, ToolError> {
    let name = match text.split_once('\t') {
        _ if text.starts_with('"') => quoted(text)?.0,
        Some((name, _)) => name.to_owned(),
        None => text.trim().to_owned(),
    };
    Ok(Some(name).filter(|name| name != "/dev/null"))
}

fn unquoted(text: &str) -> Result<String, ToolError> {
    if text.starts_with('"') { Ok(quoted(text)?.0) } else { Ok(text.to_owned()) }
}

/// The one file that `diff --git` names twice: `a/f b/f`, or `f f`.
fn git_name(names: &str) -> Result<Option<String>, ToolError> {
    let (left, right) = if names.starts_with('"') {
        let (left, rest) = quoted(names)?;
        (left, unquoted(rest.trim_start())?)
    } else {
        // Both are as long as each other, and may have blanks in them.
        let names = names.trim_end();
        match (
            names.get(..names.len() / 2),
            names.get(names.len() / 2..).and_then(|rest| rest.strip_prefix(' ')),
        ) {
            (Some(left), Some(right)) => (left.to_owned(), right.to_owned()),
            _ => return Ok(None),
        }
    };
    if left == right {
        let bare = left.strip_prefix("a/").or_else(|| left.strip_prefix("b/"));
        return Ok(Some(bare.unwrap_or(&left).to_owned()));
    }
    Ok(match (left.split_once('/'), right.split_once('/')) {
        (Some((_, left)), Some((_, right))) if left == right => Some(left.to_owned()),
        _ => None,
    })
}

/// A name as git quotes it, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), ToolError> {
    let wrong = || bad(format!("a name is not quoted as git does it: {}", clip(text, 80)));
    let mut name = Vec::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => {
                let name = String::from_utf8(name);
                let name = name.map_err(|_| bad(format!("a name is not UTF-8: {}", clip(text, 80))))?;
                return Ok((name, text.get(at + 1..).unwrap_or_default()));
            }
            '\\' => {
                let (_, escape) = chars.next().ok_or_else(wrong)?;
                name.push(match escape {
                    'a' => 7,
                    'b' => 8,
                    't' => b'\t',
                    'n' => b'\n',
                    'v' => 11,
                    'f' => 12,
                    'r' => b'\r',
                    '"' | '\\' => u8::try_from(escape).map_err(|_| wrong())?,
                    '0'..='3' => {
                        let octal: String = std::iter::once(escape)
                            .chain(chars.by_ref().take(2).map(|(_, digit)| digit))
                            .collect();
                        u8::from_str_radix(&octal, 8).map_err(|_| wrong())?
                    }
                    _ => return Err(wrong()),
                });
            }
            char => name.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Err(wrong())
}
