//! The closed lists of words and operators.

/// The language's own words, as the one static text each is known by.
pub(super) fn word(text: &str) -> Option<&'static str> {
    if !(2..=8).contains(&text.len()) {
        return None;
    }
    Some(match text {
        "and" => "and",
        "as" => "as",
        "assert" => "assert",
        "async" => "async",
        "await" => "await",
        "break" => "break",
        "class" => "class",
        "continue" => "continue",
        "def" => "def",
        "del" => "del",
        "elif" => "elif",
        "else" => "else",
        "except" => "except",
        "finally" => "finally",
        "for" => "for",
        "from" => "from",
        "global" => "global",
        "if" => "if",
        "import" => "import",
        "in" => "in",
        "is" => "is",
        "lambda" => "lambda",
        "nonlocal" => "nonlocal",
        "not" => "not",
        "or" => "or",
        "pass" => "pass",
        "raise" => "raise",
        "return" => "return",
        "try" => "try",
        "while" => "while",
        "with" => "with",
        "yield" => "yield",
        "None" => "None",
        "True" => "True",
        "False" => "False",
        _ => return None,
    })
}

/// The longest operator these bytes begin with.
pub(super) fn operator(first: u8, second: u8, third: u8) -> Option<&'static str> {
    Some(match (first, second, third) {
        (b'*', b'*', b'=') => "**=",
        (b'/', b'/', b'=') => "//=",
        (b'<', b'<', b'=') => "<<=",
        (b'>', b'>', b'=') => ">>=",
        (b'.', b'.', b'.') => "...",
        (b'*', b'*', _) => "**",
        (b'/', b'/', _) => "//",
        (b'<', b'<', _) => "<<",
        (b'>', b'>', _) => ">>",
        (b'<', b'=', _) => "<=",
        (b'>', b'=', _) => ">=",
        (b'=', b'=', _) => "==",
        (b'!', b'=', _) => "!=",
        (b'-', b'>', _) => "->",
        (b':', b'=', _) => ":=",
        (b'+', b'=', _) => "+=",
        (b'-', b'=', _) => "-=",
        (b'*', b'=', _) => "*=",
        (b'/', b'=', _) => "/=",
        (b'%', b'=', _) => "%=",
        (b'@', b'=', _) => "@=",
        (b'&', b'=', _) => "&=",
        (b'|', b'=', _) => "|=",
        (b'^', b'=', _) => "^=",
        (b'+', ..) => "+",
        (b'-', ..) => "-",
        (b'*', ..) => "*",
        (b'/', ..) => "/",
        (b'%', ..) => "%",
        (b'@', ..) => "@",
        (b'&', ..) => "&",
        (b'|', ..) => "|",
        (b'^', ..) => "^",
        (b'~', ..) => "~",
        (b'<', ..) => "<",
        (b'>', ..) => ">",
        (b'(', ..) => "(",
        (b')', ..) => ")",
        (b'[', ..) => "[",
        (b']', ..) => "]",
        (b'{', ..) => "{",
        (b'}', ..) => "}",
        (b',', ..) => ",",
        (b':', ..) => ":",
        (b'.', ..) => ".",
        (b';', ..) => ";",
        (b'=', ..) => "=",
        (b'!', ..) => "!",
        _ => return None,
    })
}

/// Whether the text is one of the language's own words.
pub(crate) fn is_word(text: &str) -> bool {
    word(text).is_some()
}
