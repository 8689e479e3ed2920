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

/// The candidate most like `word` as a whole, for names in which a dot is a letter like any other, such as those of files.
///
/// ```
/// use toolwright_core::nearest_word;
///
/// assert_eq!(nearest_word("notes.md", ["note.md", "other.md"]), Some("note.md"));
/// assert_eq!(nearest_word("a.md", ["notes.md"]), None);
/// ```
pub fn nearest_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bare: Vec<char> = word.to_lowercase().chars().take(64).collect();
    let scored = candidates.into_iter().filter_map(|candidate| {
        let other: Vec<char> = candidate.to_lowercase().chars().take(64).collect();
        let distance = edit_distance(&bare, &other);
        let longest = bare.len().max(other.len());
        let contained =
            bare.len() > 2 && other.len() > 2 && (contains(&bare, &other) || contains(&other, &bare));
        let allowed = if contained { longest } else { longest.div_ceil(3).min(4) };
        (distance <= allowed && distance < longest).then_some((distance, candidate))
    });
    scored.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

fn contains(haystack: &[char], needle: &[char]) -> bool {
    haystack.windows(needle.len().max(1)).any(|window| window == needle)
}

/// Edits that turn one word into another; swapping two neighbours counts as one.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut best =
                (get(&last, j) + usize::from(ca != cb)).min(get(&last, j + 1) + 1).min(get(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&cb) && b.get(j - 1) == Some(&ca);
            if swapped {
                best = best.min(get(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
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
    }
}
