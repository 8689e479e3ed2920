//! The trust screen: what a found file would do, by kind, with nothing left out.

use toolwright::file::{Authority, AuthorityKind};

use super::TrustStanding;

/// What a file would do, for a person. Items that are new since the last answer are marked with `+`, those
/// that are gone with `-`.
pub fn screen(name: &str, authority: &Authority, standing: &TrustStanding) -> String {
    let before = match standing {
        TrustStanding::Changed(items) => Some(items),
        _ => None,
    };
    let mut text = match before {
        Some(_) => format!("{name} is not what you agreed to. Now it would:\n"),
        None => format!("{name} was found here. It would:\n"),
    };
    if authority.items().is_empty() {
        text.push_str("\n  run its own tools, and nothing else\n");
    }
    for kind in AuthorityKind::ALL {
        let mut items = authority.items().iter().filter(|item| item.kind == kind).peekable();
        if items.peek().is_some() {
            text.push_str(&format!("\n  {}\n", heading(kind)));
        }
        for item in items {
            let known = format!("{}: {}", kind.as_str(), item.text);
            let mark = match before {
                Some(before) if !before.contains(&known) => "+ ",
                _ => "  ",
            };
            text.push_str(&format!("  {mark}{}\n", item.text.replace('\n', "\n      ")));
        }
    }
    let now = |known: &&String| {
        let same =
            authority.items().iter().any(|item| **known == format!("{}: {}", item.kind.as_str(), item.text));
        !same
    };
    let gone: Vec<&String> = before.into_iter().flatten().filter(now).collect();
    if !gone.is_empty() {
        text.push_str("\n  and no longer\n");
        for item in gone {
            text.push_str(&format!("  - {}\n", item.replace('\n', "\n      ")));
        }
    }
    text
}

fn heading(kind: AuthorityKind) -> &'static str {
    match kind {
        AuthorityKind::Starts => "start programs",
        AuthorityKind::Reaches => "reach hosts and models",
        AuthorityKind::Reads => "read variables and secrets",
        AuthorityKind::Paths => "use databases, served files and paths outside this folder",
        AuthorityKind::Approves => "let calls run without a question",
        AuthorityKind::Sandbox => "change sandboxes, or raise limits",
        _ => "do something that this version has no words for",
    }
}
