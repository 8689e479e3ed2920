//! Text in tokens, to cut it to a size that models count in.

/// Cuts text into tokens. Together, in order, they are the text.
pub trait Tokenizer: Send + Sync {
    /// The tokens of a text.
    fn split<'t>(&self, text: &'t str) -> Vec<&'t str>;
}

/// A rule of thumb that needs no vocabulary: a word with the space before it, a number, or a run of signs is
/// a token. Tokenizers with a vocabulary split rare words further, so they count a little more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordTokenizer;

/// The longest token, in characters: text without spaces is cut too.
const LONGEST: usize = 16;

impl Tokenizer for WordTokenizer {
    fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((token, after)) =
            rest.split_at_checked(first(rest)).filter(|(token, _)| !token.is_empty())
        {
            tokens.push(token);
            rest = after;
        }
        tokens
    }
}

/// The length of the first token in bytes.
fn first(text: &str) -> usize {
    let endings = ["'s", "'t", "'m", "'d", "'re", "'ve", "'ll"];
    if let Some(ending) = endings.iter().find(|ending| text.starts_with(**ending)) {
        return ending.len();
    }
    let spaces = text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len());
    let last = text.get(..spaces).and_then(|spaces| spaces.chars().next_back());
    match last {
        // A single space belongs to the word after it.
        Some(' ') if spaces == 1 && text.len() > 1 => 1 + run(text.get(1..).unwrap_or_default()),
        Some(_) if spaces == text.len() => spaces,
        // Of several spaces the last one belongs to the word after them.
        Some(last) if spaces > last.len_utf8() => spaces - last.len_utf8(),
        Some(last) => last.len_utf8(),
        None => run(text),
    }
}

/// The length of the run of characters of one kind at the start.
fn run(text: &str) -> usize {
    let kind = |c: char| match c {
        _ if c.is_alphabetic() => 0,
        _ if c.is_numeric() => 1,
        _ if c.is_whitespace() => 2,
        _ => 3,
    };
    let Some(wanted) = text.chars().next().map(kind) else { return 0 };
    text.chars().take(LONGEST).take_while(|c| kind(*c) == wanted).map(char::len_utf8).sum()
}

/// The first `most` tokens of a text, without space around them.
pub fn truncate<'t>(tokenizer: &dyn Tokenizer, text: &'t str, most: usize) -> &'t str {
    let length: usize = tokenizer.split(text).iter().take(most).map(|token| token.len()).sum();
    text.get(..length).unwrap_or(text).trim()
}

/// A text in chunks of `size` tokens, each beginning `stride` tokens after the one before. Nothing when
/// either is zero.
pub fn chunks(tokenizer: &dyn Tokenizer, text: &str, size: usize, stride: usize) -> Vec<String> {
    if size == 0 || stride == 0 {
        return Vec::new();
    }
    let tokens = tokenizer.split(text);
    let starts = (0..tokens.len()).step_by(stride);
    starts.map(|start| tokens.iter().skip(start).take(size).copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_take_the_space_before_them() {
        for (text, wanted) in [
            ("This is a test.", &["This", " is", " a", " test", "."][..]),
            ("  Page A", &[" ", " Page", " A"]),
            ("it's 1999!!\n\n", &["it", "'s", " 1999", "!!", "\n\n"]),
            ("a\nb ", &["a", "\n", "b", " "]),
            ("a \n b", &["a", " \n", " b"]),
            ("aaaaaaaaaaaaaaaaaaaa", &["aaaaaaaaaaaaaaaa", "aaaa"]),
            ("\u{3000}é", &["\u{3000}", "é"]),
            ("", &[]),
        ] {
            assert_eq!(WordTokenizer.split(text), wanted, "{text:?}");
            assert_eq!(WordTokenizer.split(text).concat(), text);
        }
    }

    #[test]
    fn chunks_overlap_by_the_stride() {
        let text = "This is a test.";
        assert_eq!(chunks(&WordTokenizer, text, 2, 2), ["This is", " a test", "."]);
        assert_eq!(chunks(&WordTokenizer, text, 3, 2), ["This is a", " a test.", "."]);
        assert_eq!(chunks(&WordTokenizer, text, 0, 0), Vec::<String>::new());
        assert_eq!(truncate(&WordTokenizer, text, 3), "This is a");
    }
}
