//! The house rules, each a scan over the sources.

use std::collections::BTreeMap;

use super::place;
use crate::source::{Kind, Source, pieces};

/// What was found: for each rule, by part of the repository or by type name, where.
pub type Findings = BTreeMap<&'static str, BTreeMap<String, Vec<String>>>;

/// The rules, and what each is about.
pub const RULES: &[(&str, &str)] = &[
    ("headers", "files without a `//!` header"),
    ("names", "type names defined in more than two modules"),
    ("phrases", "constructions that docs/glossary.md lists under `Not here`, in comments, strings and pages"),
    ("width", "comment lines of more than 110 columns"),
];

/// The most columns of a comment line; code is for rustfmt.
const WIDTH: usize = 110;

/// Constructions that have an ordinary English counterpart: headless relative clauses, "is no" for "is not
/// a", speech for input and output, and paraphrases of terms.
const PHRASES: &[&str] = &[
    "whoever",
    "whomever",
    "nobody who",
    "somebody who",
    "everybody who",
    "those who",
    "he who",
    "for who",
    "to who",
    "is no",
    "is none",
    "are none",
    "that is none",
    "for ever",
    "cannot be had",
    "can be had",
    "could be had",
    "be had",
    "told of",
    "tells of",
    "tell of",
    "hears of",
    "heard of",
    "is told",
    "are told",
    "was told",
    "all the same",
    "mend",
    "mends",
    "mended",
    "nobody at hand",
    "spoken here",
    "knock",
    "wants no",
    "wants none",
    "today's",
];

/// Words before "is no" and "is none" that make it ordinary: "there is no file", "the answer is no".
const ORDINARY: &[&str] = &["there", "where", "it", "answer"];

/// Words after "is no" that make it ordinary: "is no longer".
const COMPARED: &[&str] = &["longer", "more", "less", "fewer", "better", "later", "larger", "smaller"];

/// Looks at everything.
pub fn find(rust: &[Source], pages: &[Source]) -> Findings {
    let mut findings = Findings::new();
    let mut note = |rule: &'static str, part: &str, place: String| {
        findings.entry(rule).or_default().entry(part.to_owned()).or_default().push(place);
    };
    for source in rust {
        if !has_header(&source.text) {
            note("headers", &source.part, place(&source.path, 1));
        }
        for line in wide_comments(&source.text) {
            note("width", &source.part, place(&source.path, line));
        }
        // The list itself is no offence.
        if source.path.ends_with("tidy/rules.rs") {
            continue;
        }
        for piece in pieces(&source.text) {
            let skipped = piece.text.lines().take_while(|line| line.trim().is_empty()).count();
            for phrase in phrases(&piece.text) {
                let line = if piece.kind == Kind::Text { piece.line + skipped } else { piece.line };
                note("phrases", &source.part, format!("{} `{phrase}`", place(&source.path, line)));
            }
        }
    }
    // The glossary lists the constructions.
    for page in pages.iter().filter(|page| !page.path.ends_with("glossary.md")) {
        for (line, paragraph) in paragraphs(&page.text) {
            for phrase in phrases(&paragraph) {
                note("phrases", &page.part, format!("{} `{phrase}`", place(&page.path, line)));
            }
        }
    }
    for (name, places) in names(rust) {
        if places.len() > 2 {
            places.into_iter().for_each(|place| note("names", &name, place));
        }
    }
    findings
}

/// Whether a file says what it is for before anything else; attributes may stand before.
fn has_header(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!"));
    first.is_none_or(|line| line.starts_with("//!") || line.starts_with("/*!"))
}

fn wide_comments(text: &str) -> impl Iterator<Item = usize> {
    let wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > WIDTH;
    text.lines().enumerate().filter(move |(_, line)| wide(line)).map(|(index, _)| index + 1)
}

/// The listed constructions in a text, in the order of the list.
pub fn phrases(text: &str) -> Vec<&'static str> {
    let words: Vec<String> = text
        .split(|sign: char| !(sign.is_alphanumeric() || ['_', '\'', '’'].contains(&sign)))
        .filter(|word| !word.is_empty())
        .map(|word| word.replace('’', "'").to_lowercase())
        .collect();
    let mut found = Vec::new();
    for phrase in PHRASES {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        for (at, window) in words.windows(wanted.len()).enumerate() {
            let before =
                at.checked_sub(1).and_then(|at| words.get(at)).map(String::as_str).unwrap_or_default();
            let after = words.get(at + wanted.len()).map(String::as_str).unwrap_or_default();
            let negation = phrase.ends_with("is no") || phrase.ends_with(" none");
            let ordinary = negation && (ORDINARY.contains(&before) || COMPARED.contains(&after));
            // The longer phrase counts.
            let covered = *phrase == "be had" && ["cannot", "can", "could"].contains(&before)
                || *phrase == "is none" && before == "that";
            if window == wanted.as_slice() && !ordinary && !covered {
                found.push(*phrase);
            }
        }
    }
    found
}

/// The paragraphs of a page outside code, each with its first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let (mut paragraphs, mut in_code, mut open) = (Vec::<(usize, String)>::new(), false, false);
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            open = false;
        } else if line.trim().is_empty() || in_code {
            open = false;
        } else {
            // A row of a table and an item of a list stand alone.
            let alone = ["| ", "- "].iter().any(|mark| line.trim_start().starts_with(mark));
            match paragraphs.last_mut().filter(|_| open && !alone) {
                Some((_, paragraph)) => paragraph.extend([" ", line]),
                None => paragraphs.push((index + 1, line.to_owned())),
            }
            open = true;
        }
    }
    paragraphs
}

/// Where each type of the libraries and programs is defined. Types inside functions are left out.
pub fn names(rust: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::<String, Vec<String>>::new();
    for source in rust.iter().filter(|source| source.part.starts_with("toolwright") && source.is_library()) {
        for (index, line) in source.code().lines().enumerate() {
            if let Some(name) = defined_type(line) {
                names.entry(name.to_owned()).or_default().push(place(&source.path, index + 1));
            }
        }
    }
    names
}

/// The name of the type that a line without indentation defines.
fn defined_type(line: &str) -> Option<&str> {
    let mut rest = line;
    if let Some(after) = rest.strip_prefix("pub") {
        rest = after
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'))
            .map_or(after, |(_, after)| after)
            .trim_start();
    }
    let keywords = ["struct ", "enum ", "trait ", "union ", "type "];
    let rest = keywords.iter().find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_constructions_are_found() {
        for (text, wanted) in [
            ("An error that is none.", vec!["that is none"]),
            ("This is no time to run for", vec!["is no"]),
            ("Whoever waits for ever is\ntold of it", vec!["whoever", "for ever", "told of", "is told"]),
            ("the tools cannot be had", vec!["cannot be had"]),
            ("there is no file, and it is no longer here; there is none", vec![]),
            ("is nobody", vec![]),
            ("mending", vec![]),
        ] {
            let mut found = phrases(text);
            found.sort_unstable();
            let mut wanted = wanted;
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn headers_may_follow_attributes() {
        assert!(has_header("#![no_std]\n\n//! About.\nfn a() {}"));
        assert!(!has_header("use std::io;\n//! Late."));
        assert!(has_header(""));
    }

    #[test]
    fn only_comments_have_a_width() {
        let wide = "x".repeat(120);
        let text = format!("    // {wide}\nlet {wide} = 1;\n// short\n//! {wide}");
        assert_eq!(wide_comments(&text).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn types_are_named_by_their_definition() {
        for (line, wanted) in [
            ("pub(crate) struct Kept<'a> {", Some("Kept")),
            ("enum Kind {", Some("Kind")),
            ("pub trait Tool: Send {", Some("Tool")),
            ("type Key = (u8, u8);", Some("Key")),
            ("    type Output = u8;", None),
            ("pub use a::Kind;", None),
            ("impl Kind {", None),
        ] {
            assert_eq!(defined_type(line), wanted, "{line}");
        }
    }

    #[test]
    fn code_of_pages_is_left_out() {
        let page = "One\ntwo.\n\n```sh\nwhoever\n```\nThree\n| row |\n| row |";
        let wanted = [(1, "One two."), (7, "Three"), (8, "| row |"), (9, "| row |")];
        assert_eq!(paragraphs(page), wanted.map(|(line, text)| (line, text.to_owned())));
    }
}
