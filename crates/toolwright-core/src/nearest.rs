//! The nearest of several names, for "did you mean" hints.

/// The candidate most like `name`, when one is like enough to be meant.
///
/// ```
/// use toolwright_core::nearest;
///
/// assert_eq!(nearest("serach", ["search", "fetch"]), Some("search"));
/// assert_eq!(nearest("functions.search", ["search", "fetch"]), Some("search"));
/// assert_eq!(nearest("zzz", ["search", "fetch"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Models put namespaces before names: the part after the last dot or slash is what they mean.
    nearest_word(name.rsplit(['.', '/', ':']).next().unwrap_or(name), candidates)
}

/// The candidate most like `word` as a whole, for names in which a dot is a letter like any other, such as
/// those of files.
///
/// ```
/// use toolwright_core::nearest_word;
///
/// assert_eq!(nearest_word("notes.md", ["note.md", "other.md"]), Some("note.md"));
/// assert_eq!(nearest_word("a.md", ["notes.md"]), None);
/// ```
pub fn nearest_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bare = beginning(word);
    let scored = candidates.into_iter().filter_map(|candidate| {
        let other = beginning(candidate);
        // A swap of two neighbours counts as one edit.
        let distance = strsim::osa_distance(&bare, &other);
        let (own, others) = (bare.chars().count(), other.chars().count());
        let longest = own.max(others);
        let contained = own > 3 && others > 3 && (bare.contains(&other) || other.contains(&bare));
        // Of a short word, half would be another one.
        let allowed = if contained { longest } else { (longest / 3).clamp(1, 4) };
        (distance <= allowed && distance < longest).then_some((distance, candidate))
    });
    scored.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// As much of a name as is compared.
fn beginning(name: &str) -> String {
    name.to_lowercase().chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("Add", ["add", "sub"]), Some("add"));
        assert_eq!(nearest("web-search", ["web_search", "web_fetch"]), Some("web_search"));
        assert_eq!(nearest("read", ["read_file", "write_file"]), Some("read_file"));
        assert_eq!(nearest("x", ["read_file"]), None);
        assert_eq!(nearest("", ["a"]), None);
        for (word, other) in [("input", "int"), ("key", "KeyError"), ("nope", "type"), ("bad", "rand")] {
            assert_eq!(nearest(word, [other]), None, "{word}");
        }
    }
}
