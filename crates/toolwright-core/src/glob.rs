//! Shell patterns over names: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`; case matters.

/// True when `pattern` matches the whole of `text`. Linear in practice, quadratic at worst; never
/// exponential.
///
/// ```
/// use toolwright_core::glob_match;
///
/// assert!(glob_match("web_*", "web_search"));
/// assert!(glob_match("[a-c]?", "b1"));
/// assert!(!glob_match("add", "add2"));
/// ```
pub fn glob_match(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to go back to: just after the last `*`, and the text position it has swallowed up to.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&c) = text.get(t) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('?') => {
                p += 1;
                t += 1;
                continue;
            }
            Some('[') => {
                if let Some((matches, next)) = class(&pattern, p, c)
                    && matches
                {
                    p = next;
                    t += 1;
                    continue;
                }
                if class(&pattern, p, c).is_none() && c == '[' {
                    p += 1;
                    t += 1;
                    continue;
                }
            }
            Some(&literal) if literal == c => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        match star {
            Some((after, swallowed)) => {
                star = Some((after, swallowed + 1));
                p = after;
                t = swallowed + 1;
            }
            None => return false,
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&c| c == '*'))
}

/// Reads the character class at `start`; `None` when it is not closed, so that `[` stands for itself.
fn class(pattern: &[char], start: usize, c: char) -> Option<(bool, usize)> {
    let mut at = start + 1;
    let negated = pattern.get(at) == Some(&'!');
    if negated {
        at += 1;
    }
    let first = at;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((found != negated, at + 1));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                found |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                found |= low == c;
                at += 1;
            }
        }
    }
}

/// A list of patterns; a leading `!` takes names away. Only such patterns means "all but these".
///
/// ```
/// use toolwright_core::Patterns;
///
/// let patterns = Patterns::new(["web_*", "!web_admin"]);
/// assert!(patterns.matches("web_search") && !patterns.matches("web_admin"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns {
    wanted: Vec<String>,
    unwanted: Vec<String>,
}

impl Patterns {
    /// Patterns from texts. An empty list matches nothing.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for pattern in patterns {
            match pattern.as_ref().strip_prefix('!') {
                Some(rest) => unwanted.push(rest.to_owned()),
                None => wanted.push(pattern.as_ref().to_owned()),
            }
        }
        if wanted.is_empty() && !unwanted.is_empty() {
            wanted.push("*".to_owned());
        }
        Patterns { wanted, unwanted }
    }

    /// True when some pattern wants the name and none takes it away.
    pub fn matches(&self, name: &str) -> bool {
        self.wanted.iter().any(|pattern| glob_match(pattern, name))
            && !self.unwanted.iter().any(|pattern| glob_match(pattern, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_a_shell_does() {
        for (pattern, text, want) in [
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--b--", false),
            ("[!a]x", "bx", true),
            ("[!a]x", "ax", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("a?", "a", false),
            ("**", "anything", true),
            ("é*", "éclair", true),
        ] {
            assert_eq!(glob_match(pattern, text), want, "{pattern} on {text}");
        }
    }

    #[test]
    fn an_empty_list_matches_nothing_and_only_negatives_all_but_those() {
        assert!(!Patterns::new::<&str>([]).matches("a"));
        let but = Patterns::new(["!b*"]);
        assert!(but.matches("a") && !but.matches("bee"));
    }

    #[test]
    fn many_stars_stay_fast() {
        let pattern = "*a".repeat(200);
        assert!(!glob_match(&pattern, &"a".repeat(10_000).replace('a', "b")));
    }
}
