//! References to elements as a model sees them: one number space for an instance, never used twice.

use std::collections::HashMap;

/// What a reference stands for: an element of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ElementKey {
    pub(crate) world: u32,
    pub(crate) number: u64,
}

/// The references that were shown.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    shown: Vec<ElementKey>,
    numbers: HashMap<ElementKey, usize>,
}

const START: char = '\u{1}';
const END: char = '\u{2}';

impl Refs {
    /// The element of a reference such as `a12`, `[a12]` or `12`.
    pub(crate) fn find(&self, reference: &str) -> Option<ElementKey> {
        let plain = reference.trim().trim_matches(['[', ']', '@', '"', '`']);
        let plain = plain.split_whitespace().next().unwrap_or_default();
        let digits = plain.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        if plain.len() - digits.len() > 1 {
            return None;
        }
        self.shown.get(digits.parse::<usize>().ok()?.checked_sub(1)?).copied()
    }

    /// The number that a model sees for an element; made on first use.
    pub(crate) fn number(&mut self, key: ElementKey) -> usize {
        let shown = &mut self.shown;
        *self.numbers.entry(key).or_insert_with(|| {
            shown.push(key);
            shown.len()
        })
    }

    /// A line of a page with its references as a model sees them; those shown are added to `committed`.
    pub(crate) fn render(&mut self, world: u32, line: &str, committed: &mut Vec<ElementKey>) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some((before, after)) = rest.split_once(START) {
            out.push_str(before);
            let Some((reference, tail)) = after.split_once(END) else { break };
            let mut letters = reference.chars();
            let kind = letters.next();
            if let (Some(kind), Ok(number)) = (kind, letters.as_str().parse()) {
                let key = ElementKey { world, number };
                committed.push(key);
                out.push(kind);
                out.push_str(&self.number(key).to_string());
            }
            rest = tail;
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_when_shown_and_never_change() {
        let mut refs = Refs::default();
        let mut shown = Vec::new();
        let line = "[\u{1}a70\u{2} Home] and [\u{1}b3\u{2} Go]";
        assert_eq!(refs.render(1, line, &mut shown), "[a1 Home] and [b2 Go]");
        assert_eq!(refs.render(2, line, &mut shown), "[a3 Home] and [b4 Go]", "another document");
        assert_eq!(refs.render(1, line, &mut shown), "[a1 Home] and [b2 Go]");
        for spelling in ["b2", "[b2]", "2", "@b2", "[b2 Go]"] {
            assert_eq!(refs.find(spelling), Some(ElementKey { world: 1, number: 3 }), "{spelling}");
        }
        for wrong in ["b9", "0", "", "abc2", "b", "-1"] {
            assert_eq!(refs.find(wrong), None, "{wrong}");
        }
        assert_eq!(shown.len(), 6);
    }
}
