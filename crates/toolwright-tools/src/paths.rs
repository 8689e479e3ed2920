//! The one place where a path of a model meets a sandbox.
//!
//! What a path may reach is decided by the sandbox, which opens it among the files that its commands see.
//! Here a path is only kept from being taken for something else: an option, an expression, two arguments.

use toolwright_core::{ErrorKind, PLACEHOLDER_LOGIN, PLACEHOLDER_TIME, ToolError};

use crate::options::Call;
use crate::similar_paths;

/// The longest path that is looked at.
const LONGEST: usize = 4096;

/// The same path, unless no file can have it.
pub(crate) fn check(path: &str) -> Result<&str, ToolError> {
    if path.is_empty() {
        return Err(ToolError::invalid("the path is empty"));
    }
    if path.contains('\0') {
        return Err(ToolError::invalid("the path contains a NUL byte"));
    }
    if path.len() > LONGEST {
        return Err(ToolError::invalid(format!("the path is longer than {LONGEST} bytes")));
    }
    Ok(path)
}

/// The path in a form that no program takes for an option or an expression.
pub(crate) fn operand(path: &str) -> String {
    let plain = path.starts_with('/')
        || path == "."
        || path == ".."
        || path.starts_with("./")
        || path.starts_with("../");
    if plain { path.to_owned() } else { format!("./{path}") }
}

/// `name` inside `folder`, as a person would write it.
pub(crate) fn join(folder: &str, name: &str) -> String {
    match folder {
        "." | "" | "./" => name.to_owned(),
        folder => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) kind: FileKind,
    /// The path itself is a link.
    pub(crate) is_link: bool,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Seconds since 1970.
    pub(crate) modified: i64,
    pub(crate) accessed: i64,
    /// Not known on every file system.
    pub(crate) created: Option<i64>,
    pub(crate) owner: String,
    pub(crate) group: String,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl About {
    /// Whether it is a file that a sandbox put at this path, in the place of a protected one.
    pub(crate) fn is_placeholder(&self, path: &str) -> bool {
        self.modified == PLACEHOLDER_TIME
            && self.kind == FileKind::File
            && !self.writable
            && holds_a_place(path, self.size)
    }
}

/// Whether what a sandbox puts at this path, in the place of a protected file, is of this size.
pub(crate) fn holds_a_place(path: &str, size: u64) -> bool {
    let (login, text) = PLACEHOLDER_LOGIN;
    let name = path.rsplit('/').next().unwrap_or(path);
    size == 0 || (name == login && size == text.len() as u64)
}

/// Where in a folder a sandbox put the one file that is not empty in the place of a protected one: programs
/// that look into files find it, and a model should not. Nothing when no such name is in what was `found`.
pub(crate) async fn held_login(
    call: &Call<'_>,
    folder: &str,
    found: &str,
) -> Result<Option<String>, ToolError> {
    if !found.contains(PLACEHOLDER_LOGIN.0) {
        return Ok(None);
    }
    let path = format!("{}/{}", folder.trim_end_matches('/'), PLACEHOLDER_LOGIN.0);
    let about = find(call, &path).await?.about;
    Ok(about.is_some_and(|about| about.is_placeholder(&path)).then_some(path))
}

/// What a file is, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Folder,
    Other,
}

/// A path as the sandbox sees it.
pub(crate) struct FoundPath {
    /// Without links; `None` when not even its folder exists.
    pub(crate) real: Option<String>,
    /// `None` when nothing is there.
    pub(crate) about: Option<About>,
}

const LOOK: &str = r#"
r=-; w=-; [ -r "$1" ] && r=r; [ -w "$1" ] && w=w; echo "$r$w"
stat -c %f -- "$1" 2>/dev/null || echo -
stat -L -c %f/%s/%Y/%X/%W/%U/%G -- "$1" || echo -
readlink -f -- "$1"
"#;

/// Looks a path up. A path that leads nowhere is an answer; one that may not be looked at is an error.
pub(crate) async fn find(call: &Call<'_>, path: &str) -> Result<FoundPath, ToolError> {
    check(path)?;
    let result = call.helper(&["sh", "-c", LOOK, "sh", path]).await?;
    let mut parts = result.stdout.splitn(4, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let (rights, own_mode, about, real) = (next(), next(), next(), next());
    if about == "-" && kind_of(&result.stderr) == ErrorKind::Permission {
        return Err(ToolError::of(ErrorKind::Permission, format!("permission denied: {path}")));
    }
    let real = real.strip_suffix('\n').filter(|real| !real.is_empty()).map(str::to_owned);
    let is_link = mode_of(own_mode).is_some_and(|mode| mode & 0o170_000 == 0o120_000);
    Ok(FoundPath { real, about: read_about(about, rights, is_link) })
}

fn mode_of(hex: &str) -> Option<u32> {
    u32::from_str_radix(hex, 16).ok()
}

fn read_about(line: &str, rights: &str, is_link: bool) -> Option<About> {
    let mut fields = line.split('/');
    let mode = mode_of(fields.next()?)?;
    let kind = match mode & 0o170_000 {
        0o100_000 => FileKind::File,
        0o040_000 => FileKind::Folder,
        _ => FileKind::Other,
    };
    Some(About {
        kind,
        is_link,
        mode,
        size: fields.next()?.parse().ok()?,
        modified: fields.next()?.parse().ok()?,
        accessed: fields.next()?.parse().ok()?,
        created: fields.next()?.parse().ok().filter(|seconds| *seconds > 0),
        owner: fields.next()?.to_owned(),
        group: fields.next()?.to_owned(),
        readable: rights.starts_with('r'),
        writable: rights.ends_with('w'),
    })
}

/// Reads a file, byte for byte.
pub(crate) async fn read(call: &Call<'_>, path: &str) -> Result<Vec<u8>, ToolError> {
    match call.sandbox()?.read_file(check(path)?).await {
        Err(error) => Err(similar_paths::with_hint(call, path, expected(error, path, "read")).await),
        read => read,
    }
}

/// Reads a text file, byte for byte.
pub(crate) async fn read_text(call: &Call<'_>, path: &str) -> Result<String, ToolError> {
    match call.sandbox()?.read_text(check(path)?).await {
        Err(error) => Err(similar_paths::with_hint(call, path, expected(error, path, "read")).await),
        read => read,
    }
}

/// Replaces a file as a whole, making its folder.
pub(crate) async fn write(call: &Call<'_>, path: &str, contents: &[u8]) -> Result<(), ToolError> {
    let outcome = call.sandbox()?.write_file(check(path)?, contents).await;
    outcome.map_err(|error| expected(error, path, "written"))
}

/// A model chooses paths, so nothing that the system says of one may end the run: a name that is too long, a
/// file where a folder should be, a link that leads nowhere.
fn expected(error: ToolError, path: &str, what: &str) -> ToolError {
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
    match source {
        Some(cause) if error.is_fatal() => ToolError::new(format!("{path} cannot be {what}: {cause}")),
        _ => error,
    }
}

/// The folder at `path`, or the error that says what is there instead.
pub(crate) async fn folder(call: &Call<'_>, path: &str) -> Result<(), ToolError> {
    match find(call, path).await?.about.map(|about| about.kind) {
        Some(FileKind::Folder) => Ok(()),
        Some(_) => Err(ToolError::new(format!("{path} is not a folder"))),
        None => Err(missing(call, path).await),
    }
}

/// The error for a path that leads nowhere, and where it may have been meant to lead.
pub(crate) async fn missing(call: &Call<'_>, path: &str) -> ToolError {
    let error = ToolError::of(ErrorKind::FileNotFound, format!("there is no file or folder {path}"));
    similar_paths::with_hint(call, path, error).await
}

/// Removes a file.
pub(crate) async fn remove(call: &Call<'_>, path: &str) -> Result<(), ToolError> {
    done(call, &["rm", "--", path], path, "could not be removed").await
}

/// Changes the mode of a file with `chmod`.
pub(crate) async fn change_mode(call: &Call<'_>, path: &str, mode: &str) -> Result<(), ToolError> {
    done(call, &["chmod", "--", mode, path], path, "could not get its mode").await
}

async fn done(call: &Call<'_>, command: &[&str], path: &str, failed: &str) -> Result<(), ToolError> {
    let result = call.helper(command).await?;
    if result.success() {
        return Ok(());
    }
    let kind = kind_of(&result.stderr);
    Err(ToolError::of(kind, format!("{path} {failed}: {}", result.stderr.trim())))
}

/// The kind of error that a command for files wrote about. Its reason stands at the end of a line, after the
/// path, which may hold any words.
pub(crate) fn kind_of(stderr: &str) -> ErrorKind {
    let of_reason = |line: &str| match line.rsplit(": ").next()?.trim_end() {
        "Permission denied" | "Read-only file system" | "Operation not permitted" => {
            Some(ErrorKind::Permission)
        }
        "No such file or directory" => Some(ErrorKind::FileNotFound),
        "Is a directory" => Some(ErrorKind::IsADirectory),
        _ => None,
    };
    stderr.lines().find_map(of_reason).unwrap_or(ErrorKind::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_an_error_is_not_looked_for_in_a_path() {
        for (stderr, kind) in [
            ("rm: cannot remove 'a': Permission denied\n", ErrorKind::Permission),
            ("chmod: changing permissions of 'a': Operation not permitted", ErrorKind::Permission),
            ("mkdir: cannot create directory 'a': Read-only file system", ErrorKind::Permission),
            ("find: \u{2018}a\u{2019}: No such file or directory", ErrorKind::FileNotFound),
            ("rm: cannot remove 'a': Is a directory", ErrorKind::IsADirectory),
            ("rm: cannot remove 'Permission denied': No such file or directory", ErrorKind::FileNotFound),
            ("rmdir: failed to remove 'No such file': Directory not empty", ErrorKind::Unknown),
            ("a note\nrm: cannot remove 'a': Permission denied", ErrorKind::Permission),
            ("", ErrorKind::Unknown),
        ] {
            assert_eq!(kind_of(stderr), kind, "{stderr}");
        }
    }

    #[test]
    fn impossible_paths_are_refused_with_a_kind() {
        for path in ["", "a\0b", &"x".repeat(5000)] {
            assert_eq!(check(path).unwrap_err().kind(), ErrorKind::Parsing);
        }
        assert_eq!(check("-rf").unwrap(), "-rf");
    }

    #[test]
    fn no_path_is_taken_for_an_option_or_an_expression() {
        for (path, wanted) in
            [("-rf", "./-rf"), ("!", "./!"), ("(", "./("), ("/x", "/x"), ("..", ".."), ("./a", "./a")]
        {
            assert_eq!(operand(path), wanted);
        }
        assert_eq!(
            (join(".", "a"), join("d/", "a"), join("/", "a")),
            ("a".into(), "d/a".into(), "/a".into())
        );
    }

    #[test]
    fn what_stat_says_is_understood() {
        let about = read_about("81a4/32/1700000000/1700000001/0/u/g", "r-", true).unwrap();
        assert_eq!((about.kind, about.size, about.created, about.is_link), (FileKind::File, 32, None, true));
        assert!(about.readable && !about.writable);
        assert_eq!(read_about("41ed/0/1/1/?/u/g", "rw", false).unwrap().created, None);
        assert!(read_about("-", "--", false).is_none());
    }
}
