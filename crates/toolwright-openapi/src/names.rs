//! Names that every vendor accepts, made from what a document says: the same ones each time.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

/// The longest name of a tool or an argument.
pub(crate) const MAX_NAME: usize = 64;

/// A legal name: each run of other characters becomes `_`, and a long one ends with a hash inside its 64
/// characters. Empty when nothing legal is left.
pub(crate) fn legal(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => name.push(c),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_matches('_');
    match name.len() > MAX_NAME {
        true => hashed(name, text),
        false => name.to_owned(),
    }
}

/// A name that is not taken yet: the legal one, or with a hash of `identity` behind it.
pub(crate) fn unique(taken: &mut HashSet<String>, name: String, identity: &str) -> String {
    let mut chosen = name;
    while !taken.insert(chosen.clone()) {
        let more = format!("{identity} {chosen}");
        chosen = hashed(&chosen, &more);
    }
    chosen
}

fn hashed(name: &str, identity: &str) -> String {
    let hash: String =
        Sha256::digest(identity.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let room = MAX_NAME - hash.len() - 1;
    let start = name.get(..name.len().min(room)).unwrap_or_default().trim_end_matches(['_', '-']);
    format!("{start}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_stable_and_unique() {
        for (text, expected) in [
            ("issues/create-comment", "issues_create-comment"),
            ("pages[size]", "pages_size"),
            ("$top", "top"),
            ("Öl  preis", "l_preis"),
            ("日本", ""),
        ] {
            assert_eq!(legal(text), expected);
        }
        let (long, other) = (legal(&"x".repeat(65)), legal(&"x".repeat(66)));
        assert!(long.len() == MAX_NAME && other.len() == MAX_NAME && long != other);
        let mut taken = HashSet::new();
        assert_eq!(unique(&mut taken, "get".into(), "GET /a"), "get");
        let second = unique(&mut taken, "get".into(), "GET /b");
        assert!(second.starts_with("get_") && second.len() == 12);
        assert_ne!(unique(&mut taken, "get".into(), "GET /b"), second);
    }
}
