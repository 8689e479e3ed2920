//! Other spellings of a command, for rules that refuse: a rule about `rm -rf` also means `/bin/rm -r -f` and
//! what `rm $options` may turn out to be.

use std::borrow::Cow;

use crate::grammar::ShellPart;
use crate::words::ShellWord;

/// Long names of short options, by program.
const LONG_OPTIONS: &[(&str, char, &str)] = &[
    ("rm", 'f', "--force"),
    ("rm", 'r', "--recursive"),
    ("rm", 'R', "--recursive"),
    ("rm", 'i', "--interactive"),
    ("cp", 'f', "--force"),
    ("cp", 'r', "--recursive"),
    ("cp", 'R', "--recursive"),
    ("mv", 'f', "--force"),
    ("ln", 'f', "--force"),
    ("chmod", 'R', "--recursive"),
    ("chown", 'R', "--recursive"),
    ("chgrp", 'R', "--recursive"),
    ("git", 'f', "--force"),
    ("git", 'd', "--delete"),
    ("git", 'n', "--no-verify"),
    ("curl", 'o', "--output"),
    ("curl", 'd', "--data"),
    ("curl", 'T', "--upload-file"),
    ("kill", 's', "--signal"),
];

impl ShellPart {
    /// How the command may also be written, in the words of `pattern`: with the bare name of its program, and
    /// with the options that the pattern names where the pattern has them. The pattern is a glob or a regular
    /// expression; only its plain words count.
    pub fn spellings(&self, pattern: &str) -> Vec<String> {
        let Some(command) = CommandWords::of(&self.words) else { return Vec::new() };
        let bare = (command.name != self.words.first().map(ShellWord::shown).unwrap_or_default())
            .then(|| command.joined());
        bare.into_iter().chain(command.spelled_like(pattern, false)).collect()
    }

    /// A spelling in the words of `pattern`, for a command in which a variable, a substitution or the names
    /// of files may bring the options that it lacks.
    pub fn possible_spelling(&self, pattern: &str) -> Option<String> {
        let command = CommandWords::of(&self.words)?;
        let names = plain_words(pattern).first().is_some_and(|word| *word == command.name);
        names.then(|| command.spelled_like(pattern, self.is_computed()))?
    }

    /// Whether a word of the command depends on a variable, a substitution, or the files there are.
    pub fn is_computed(&self) -> bool {
        self.words.iter().any(|word| word.literal().is_none())
    }

    /// Whether the glob `pattern` may match the text once its computed words are known, each taken for one
    /// word without a blank. Unless the pattern names the program, something that is written in such a word
    /// must be part of the match: any `$x` could be any name of a file.
    pub fn may_match(&self, pattern: &str) -> bool {
        let name = CommandWords::of(&self.words).map(|command| command.name);
        let names = name.is_some_and(|name| plain_words(pattern).first().is_some_and(|word| *word == name));
        let mut pieces = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                pieces.push(TextPiece::Sign(' ', false));
            }
            match word {
                ShellWord::Literal(_) => {
                    pieces.extend(word.shown().chars().map(|sign| TextPiece::Sign(sign, false)));
                }
                ShellWord::Dynamic(written) => pieces.extend(computed_pieces(written)),
            }
        }
        may_match(&PatternPiece::all(pattern), &pieces, names)
    }
}

/// The words of a command, sorted into options and others.
struct CommandWords<'w> {
    name: String,
    /// Letters of its short options, in their order.
    letters: Vec<char>,
    /// Its long options, with their values.
    long: Vec<Cow<'w, str>>,
    others: Vec<String>,
    all: Vec<String>,
}

impl<'w> CommandWords<'w> {
    fn of(words: &'w [ShellWord]) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        let path = first.literal()?;
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let (mut letters, mut long, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut options = true;
        for word in rest {
            match word.literal().filter(|word| options && word.len() > 1 && word.starts_with('-')) {
                Some("--") => options = false,
                Some(option) if option.starts_with("--") => long.push(Cow::Borrowed(option)),
                Some(cluster) => letters.extend(cluster.chars().skip(1)),
                None => others.push(word.shown()),
            }
        }
        let all = rest.iter().map(ShellWord::shown).collect();
        Some(CommandWords { name, letters, long, others, all })
    }

    fn joined(&self) -> String {
        std::iter::once(&self.name).chain(&self.all).cloned().collect::<Vec<_>>().join(" ")
    }

    /// The command with the options of the pattern in the pattern's words, at their place, and its other
    /// options behind them; `None` when it lacks one, unless its computed words may bring it.
    fn spelled_like(&self, pattern: &str, may_have_more: bool) -> Option<String> {
        let words = plain_words(pattern);
        let options: Vec<&str> = words.iter().filter(|word| word.starts_with('-')).copied().collect();
        let before = words.iter().position(|word| word.starts_with('-'))?;
        let (mut letters, mut long) = (self.letters.clone(), self.long.clone());
        for option in &options {
            let found = match option.starts_with("--") {
                true => self.take_long(option, &mut letters, &mut long),
                false => {
                    option.chars().skip(1).all(|letter| self.take_letter(letter, &mut letters, &mut long))
                }
            };
            if !found && !may_have_more {
                return None;
            }
        }
        let operands = before.saturating_sub(1).min(self.others.len());
        let (front, back) = self.others.split_at_checked(operands)?;
        let rest = (!letters.is_empty()).then(|| format!("-{}", letters.iter().collect::<String>()));
        let spelled = std::iter::once(self.name.clone())
            .chain(front.iter().cloned())
            .chain(options.iter().map(|option| (*option).to_owned()))
            .chain(rest)
            .chain(long.iter().map(|option| option.clone().into_owned()))
            .chain(back.iter().cloned());
        Some(spelled.collect::<Vec<_>>().join(" "))
    }

    /// Takes a long option out: itself, the beginning of its name, or its short form.
    fn take_long(&self, wanted: &str, letters: &mut Vec<char>, long: &mut Vec<Cow<'w, str>>) -> bool {
        let is_same = |option: &str| {
            let name = option.split('=').next().unwrap_or(option);
            name.len() > 2 && wanted.starts_with(name)
        };
        if let Some(at) = long.iter().position(|option| is_same(option)) {
            long.remove(at);
            return true;
        }
        let short = LONG_OPTIONS.iter().filter(|(name, _, long)| *name == self.name && *long == wanted);
        let at = short.filter_map(|(_, letter, _)| letters.iter().position(|given| given == letter)).next();
        at.map(|at| letters.remove(at)).is_some()
    }

    /// Takes a short option out: itself, or its long form.
    fn take_letter(&self, wanted: char, letters: &mut Vec<char>, long: &mut Vec<Cow<'w, str>>) -> bool {
        if let Some(at) = letters.iter().position(|letter| *letter == wanted) {
            letters.remove(at);
            return true;
        }
        let mut known =
            LONG_OPTIONS.iter().filter(|(name, letter, _)| *name == self.name && *letter == wanted);
        let same = |option: &str, full: &str| option.len() > 2 && full.starts_with(option);
        let at = known.find_map(|(_, _, full)| long.iter().position(|option| same(option, full)));
        match at {
            Some(at) => {
                long.remove(at);
                true
            }
            // `-r` and `-R` are one option of the programs that have both.
            None => {
                let other = match wanted {
                    'r' => 'R',
                    'R' => 'r',
                    _ => return false,
                };
                let both =
                    |letter| LONG_OPTIONS.iter().any(|known| known.0 == self.name && known.1 == letter);
                let at = letters.iter().position(|letter| *letter == other);
                match at.filter(|_| both('r') && both('R')) {
                    Some(at) => {
                        letters.remove(at);
                        true
                    }
                    None => false,
                }
            }
        }
    }
}

/// The words of a glob or of a regular expression, without what stands for something else.
fn plain_words(pattern: &str) -> Vec<&str> {
    let plain = |c: char| c.is_alphanumeric() || "-_/.=:@".contains(c);
    // `\s` and its like stand between words.
    let mut words = Vec::new();
    for (index, piece) in pattern.split('\\').enumerate() {
        let piece = match (index, piece.chars().next()) {
            (0, _) | (_, None) => piece,
            (_, Some(escaped)) if escaped.is_alphanumeric() => {
                piece.get(escaped.len_utf8()..).unwrap_or_default()
            }
            _ => piece,
        };
        words.extend(piece.split(|c| !plain(c)).filter(|word| !word.is_empty() && *word != "-"));
    }
    words
}

/// A piece of a text that is not known in full.
#[derive(Clone, Copy)]
enum TextPiece {
    /// A character, and whether it is written in a computed word.
    Sign(char, bool),
    /// Any number of characters that are no blanks.
    Any,
    /// One character.
    One,
}

/// What a computed word may become.
fn computed_pieces(written: &str) -> Vec<TextPiece> {
    if written.contains(['$', '`', '{', '(']) {
        // The beginning, up to what is computed, stands as it is.
        let at = written.find(['$', '`', '{', '(', '"', '\'', '\\', '*', '?', '[', '<', '>']).unwrap_or(0);
        let start = written.get(..at).unwrap_or_default();
        return start.chars().map(|sign| TextPiece::Sign(sign, true)).chain([TextPiece::Any]).collect();
    }
    let mut signs = written.chars();
    let mut pieces = Vec::new();
    while let Some(sign) = signs.next() {
        pieces.push(match sign {
            '*' => TextPiece::Any,
            '?' => TextPiece::One,
            '[' => {
                // Classes may hold anything; what follows the bracket is found by the rest.
                let _ = signs.by_ref().find(|sign| *sign == ']');
                TextPiece::One
            }
            '~' if pieces.is_empty() => TextPiece::Any,
            '"' | '\'' | '\\' => continue,
            other => TextPiece::Sign(other, true),
        });
    }
    pieces
}

/// A piece of a glob.
#[derive(Clone, Copy)]
enum PatternPiece {
    Sign(char),
    Many,
    One,
}

impl PatternPiece {
    fn all(pattern: &str) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut signs = pattern.chars().peekable();
        while let Some(sign) = signs.next() {
            pieces.push(match sign {
                '*' => PatternPiece::Many,
                '?' => PatternPiece::One,
                '[' => {
                    let rest: String = signs.clone().collect();
                    match rest.find(']').filter(|end| *end > 0) {
                        Some(end) => {
                            let _ = signs.nth(rest.get(..end).unwrap_or_default().chars().count());
                            PatternPiece::One
                        }
                        None => PatternPiece::Sign('['),
                    }
                }
                other => PatternPiece::Sign(other),
            });
        }
        pieces
    }
}

/// Whether some text fits both; classes count as any character, so that it errs towards yes. Unless
/// `anything` counts, a sign of the pattern must be one that is written in a computed word.
fn may_match(pattern: &[PatternPiece], text: &[TextPiece], anything: bool) -> bool {
    // Where in the text the pattern so far can end, without and with such a sign; piece by piece.
    let mut reached = vec![[false; 2]; text.len() + 1];
    set(&mut reached, 0, [!anything, anything]);
    skip_any(&mut reached, text);
    for piece in pattern {
        let mut next = vec![[false; 2]; text.len() + 1];
        let mut carried = [false; 2];
        for (at, came) in reached.iter().copied().enumerate() {
            if matches!(piece, PatternPiece::Many) {
                carried = either(carried, came);
                set(&mut next, at, carried);
                continue;
            }
            match (piece, text.get(at)) {
                (PatternPiece::Sign(a), Some(TextPiece::Sign(b, computed))) if a == b => {
                    let [without, with] = came;
                    let came = if *computed { [false, without || with] } else { came };
                    set(&mut next, at + 1, came);
                }
                (PatternPiece::Sign(_), Some(TextPiece::Sign(..))) | (_, None) => {}
                (_, Some(TextPiece::One | TextPiece::Sign(..))) => set(&mut next, at + 1, came),
                (PatternPiece::Sign(' '), Some(TextPiece::Any)) => {}
                (_, Some(TextPiece::Any)) => set(&mut next, at, came),
            }
        }
        skip_any(&mut next, text);
        reached = next;
    }
    reached.last().is_some_and(|[_, with]| *with)
}

fn either([a, b]: [bool; 2], [c, d]: [bool; 2]) -> [bool; 2] {
    [a || c, b || d]
}

fn set(reached: &mut [[bool; 2]], at: usize, came: [bool; 2]) {
    if let Some(known) = reached.get_mut(at) {
        *known = either(*known, came);
    }
}

/// A computed word may also be empty.
fn skip_any(reached: &mut [[bool; 2]], text: &[TextPiece]) {
    for (at, piece) in text.iter().enumerate() {
        if matches!(piece, TextPiece::Any) {
            let came = reached.get(at).copied().unwrap_or_default();
            set(reached, at + 1, came);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts;

    fn first(text: &str) -> ShellPart {
        parts(text).unwrap().remove(0)
    }

    #[test]
    fn options_are_one_whatever_way_they_are_written() {
        for command in [
            "rm -r -f x",
            "rm -fr x",
            "/bin/rm -Rf x",
            "rm --recursive --force x",
            "rm --rec --fo x",
            "rm x -r --force",
            "rm -r --force -- x",
        ] {
            assert!(first(command).spellings("*rm -rf*").contains(&"rm -rf x".to_owned()), "{command}");
            assert!(first(command).spellings(r"^rm\s+-rf").contains(&"rm -rf x".to_owned()), "{command}");
        }
        assert!(first("rm -rvf x").spellings("rm -rf *").contains(&"rm -rf -v x".to_owned()));
        assert!(first("rm -r x").spellings("*rm -rf*").is_empty());
        assert!(
            first("git push origin -f")
                .spellings("git push --force*")
                .contains(&"git push --force origin".to_owned())
        );
        assert_eq!(first("/usr/bin/git status").spellings("git *"), ["git status"]);
    }

    #[test]
    fn computed_words_may_become_what_is_refused() {
        for (command, pattern, may) in [
            ("rm $x /", "*rm -rf*", true),
            ("cat /etc/pass*", "*passwd*", true),
            ("cat /etc/p?sswd", "*passwd*", true),
            ("cat /etc/p[a]sswd", "*passwd*", true),
            ("cat $x", "*passwd*", false),
            ("cat $x/y", "cat /home/*", true),
            ("ls $x", "*rm -rf*", false),
            ("ls *", "rm *", false),
            ("cat a/*", "*passwd*", false),
            ("cat a.$x", "cat b*", false),
            ("cat ab", "cat a[b]", true),
        ] {
            assert_eq!(first(command).may_match(pattern), may, "{command} {pattern}");
        }
        assert_eq!(first("rm $x y").possible_spelling("*rm -rf *").as_deref(), Some("rm -rf $x y"));
        assert_eq!(first("rm y").possible_spelling("*rm -rf *"), None);
    }
}
