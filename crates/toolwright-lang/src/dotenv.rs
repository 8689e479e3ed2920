//! `.env` files, read as python-dotenv reads them: quotes over several lines, escapes, comments,
//! `${NAME:-default}`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

/// The most bytes that values may grow to by naming one another.
const MAX_EXPANDED: usize = 1024 * 1024;

/// The `.env` file in use: in `folder` or the nearest folder above it that has one.
pub fn find_dotenv(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(".env")).find(|file| file.is_file())
}

/// The variables of a `.env` file's text. `set` tells what is set already: `${NAME}` in a value is that, else
/// what the file says above. A line that cannot be read is left out.
///
/// ```
/// let text = "# keys\nexport A=1\nB='two words' # note\nC=\"x\\ny\"\nD=${A}${E:-0}\n";
/// let variables = toolwright_lang::parse_dotenv(text, |_| None);
/// let want = [("A", "1"), ("B", "two words"), ("C", "x\ny"), ("D", "10")];
/// assert_eq!(variables, want.map(|(name, value)| (name.to_owned(), value.to_owned())));
/// ```
pub fn parse_dotenv(text: &str, set: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let mut rest = text.as_str();
    // A name without a value counts as known, and is not set.
    let mut known: IndexMap<String, Option<String>> = IndexMap::new();
    let mut room = MAX_EXPANDED;
    loop {
        rest = rest.trim_start_matches(is_blank);
        if rest.is_empty() {
            return known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        }
        if let Some((name, value)) = entry(&mut rest) {
            let value = value.map(|value| expand(&value, &set, &known, &mut room));
            known.insert(name, value);
        }
    }
}

/// Reads one line, or several when a quoted value has them. `None` for comments and for what cannot be read.
fn entry(rest: &mut &str) -> Option<(String, Option<String>)> {
    if let Some(after) = rest.strip_prefix("export")
        && after.starts_with(|c| is_blank(c) && c != '\n')
    {
        *rest = inline(after);
    }
    let name = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').filter(|(name, _)| !name.is_empty()),
        None => {
            let end = rest.find(|c| c == '=' || c == '#' || is_blank(c)).unwrap_or(rest.len());
            rest.split_at_checked(end).filter(|(name, _)| !name.is_empty())
        }
    };
    let Some((name, after)) = name else {
        skip_line(rest);
        return None;
    };
    *rest = inline(after);
    let value = match rest.strip_prefix('=') {
        Some(after) => {
            *rest = inline(after);
            let value = value(rest);
            if value.is_none() {
                skip_line(rest);
                return None;
            }
            value
        }
        None => None,
    };
    // Nothing but a comment may follow.
    let tail = inline(rest);
    let fine = tail.is_empty() || tail.starts_with(['\n', '#']);
    skip_line(rest);
    fine.then(|| (name.to_owned(), value))
}

fn value(rest: &mut &str) -> Option<String> {
    for (quote, escapes) in [('\'', "\\'"), ('"', "\\'\"abfnrtv")] {
        if let Some(inside) = rest.strip_prefix(quote) {
            let (value, after) = inside.split_at_checked(closing(inside, quote)?)?;
            *rest = after.strip_prefix(quote)?;
            return Some(unescape(value, escapes));
        }
    }
    let line = rest.split('\n').next().unwrap_or_default();
    *rest = rest.get(line.len()..).unwrap_or_default();
    // A comment has a blank before it.
    let comment = line
        .match_indices('#')
        .map(|(at, _)| at)
        .find(|at| line.get(..*at).is_some_and(|before| before.ends_with(is_blank)));
    Some(line.get(..comment.unwrap_or(line.len())).unwrap_or_default().trim_end_matches(is_blank).to_owned())
}

/// Where the closing quote stands: the first without a backslash before it, else the last.
fn closing(text: &str, quote: char) -> Option<usize> {
    let bare = |at: &usize| !text.get(..*at).is_some_and(|before| before.ends_with('\\'));
    let mut quotes = text.match_indices(quote).map(|(at, _)| at);
    quotes.clone().find(bare).or_else(|| quotes.next_back())
}

fn unescape(text: &str, escapes: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next_if(|next| escapes.contains(*next)) } else { None };
        out.push(match escaped {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(other) => other,
            None => c,
        });
    }
    out
}

/// Puts values in place of `${NAME}` and `${NAME:-default}`.
fn expand(
    value: &str,
    set: &dyn Fn(&str) -> Option<String>,
    known: &IndexMap<String, Option<String>>,
    room: &mut usize,
) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, default, behind)) = variable(after) else {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        };
        let found = set(name).or_else(|| known.get(name).map(|value| value.clone().unwrap_or_default()));
        let found = found.unwrap_or_else(|| default.to_owned());
        let Some(left) = room.checked_sub(found.len()) else { break };
        *room = left;
        out.push_str(before);
        out.push_str(&found);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The name, the default and what follows, of a variable whose `${` was read.
fn variable(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(['}', ':'])?;
    let (name, rest) = text.split_at_checked(end)?;
    match rest.strip_prefix(":-") {
        Some(rest) => rest.split_once('}').map(|(default, behind)| (name, default, behind)),
        None => rest.strip_prefix('}').map(|behind| (name, "", behind)),
    }
}

/// The text behind the blanks of this line.
fn inline(text: &str) -> &str {
    text.trim_start_matches(|c| is_blank(c) && c != '\n')
}

fn skip_line(rest: &mut &str) {
    *rest = rest.split_once('\n').map_or("", |(_, after)| after);
}

/// Python's blanks: Unicode's, and four control characters.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse_dotenv(text, |name| (name == "HOME").then(|| "/home/ann".to_owned()))
    }

    #[test]
    fn values_are_those_of_python_dotenv() {
        // Each line with what python-dotenv 1.0.1 makes of it.
        for (text, want) in [
            (
                "A=\"-----BEGIN\nKEY\n-----END\" # c\nB=1",
                &[("A", "-----BEGIN\nKEY\n-----END"), ("B", "1")][..],
            ),
            ("A='it\\'s'", &[("A", "it's")]),
            ("A=b\t# c", &[("A", "b")]),
            ("A=b#c", &[("A", "b#c")]),
            ("A=# c", &[("A", "# c")]),
            ("HOME=/x\nA=${HOME}/y", &[("HOME", "/x"), ("A", "/home/ann/y")]),
            ("A=1\nB='${A}-${C:-d}-${C}-${A:x}'", &[("A", "1"), ("B", "1-d--${A:x}")]),
            ("A\nB=${A:-x}", &[("B", "")]),
            ("A=\"unclosed\nB=1", &[("B", "1")]),
            ("A='x' y\nB=1", &[("B", "1")]),
            ("A=\"x\\\"", &[("A", "x\\")]),
            ("'a b' = c  d \r\nexport\tX-Y=\"\\t\\$\"", &[("a b", "c  d"), ("X-Y", "\t\\$")]),
        ] {
            let want: Vec<_> = want.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            assert_eq!(read(text), want, "{text:?}");
        }
    }

    #[test]
    fn values_that_double_one_another_stay_small() {
        let mut text = "A0=0123456789\n".to_owned();
        for at in 0..60 {
            text.push_str(&format!("A{}=${{A{at}}}${{A{at}}}\n", at + 1));
        }
        let total: usize = read(&text).iter().map(|(_, value)| value.len()).sum();
        assert!(total < 3 * MAX_EXPANDED, "{total}");
    }
}
