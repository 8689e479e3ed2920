//! The words of a command: what is known of their value, and the one form they are written in for rules.

use tree_sitter::Node;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShellWord {
    /// Its value is known.
    Literal(String),
    /// It depends on a variable, a substitution, or the files that match a pattern; here as it is written.
    Dynamic(String),
}

impl ShellWord {
    /// The value, when it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            ShellWord::Literal(value) => Some(value),
            ShellWord::Dynamic(_) => None,
        }
    }

    /// The word as rules see it: quoted only where it must be, and then with single quotes.
    pub(crate) fn shown(&self) -> String {
        match self {
            ShellWord::Dynamic(written) => written.clone(),
            ShellWord::Literal(value) => quoted(value),
        }
    }
}

/// Words as rules see them, with one space between them.
pub(crate) fn shown(words: &[ShellWord]) -> String {
    words.iter().map(ShellWord::shown).collect::<Vec<_>>().join(" ")
}

fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

/// The word that a node of the grammar stands for.
pub(crate) fn read(node: Node<'_>, source: &str) -> ShellWord {
    let written = text(node, source);
    // Shells do not agree about these quotes.
    let disputed = written.contains("$\"") || written.contains("$'");
    match literal(node, source) {
        Some(value) if !disputed => ShellWord::Literal(value),
        _ => ShellWord::Dynamic(written.to_owned()),
    }
}

/// The source text of a node.
pub(crate) fn text<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    source.get(node.byte_range()).unwrap_or_default()
}

fn literal(node: Node<'_>, source: &str) -> Option<String> {
    let written = text(node, source);
    if !node.is_named() {
        return unquoted(written);
    }
    match node.kind() {
        "word" | "number" | "variable_name" | "file_descriptor" if node.named_child_count() == 0 => {
            unquoted(written)
        }
        "raw_string" => Some(written.strip_prefix('\'')?.strip_suffix('\'')?.to_owned()),
        "string" => {
            let only_text = (0..node.named_child_count())
                .filter_map(|index| node.named_child(u32::try_from(index).ok()?))
                .all(|child| child.kind() == "string_content");
            // Expansions are children of their own; what is left has only backslashes to undo.
            let inner = written.strip_prefix('"')?.strip_suffix('"')?;
            (only_text && !inner.contains('`')).then(|| double_quoted(inner))
        }
        // The grammar takes braces apart; the word is still one.
        "concatenation" if !written.contains(['"', '\'']) => unquoted(written),
        "concatenation" => {
            let mut value = String::new();
            let mut end = node.start_byte();
            for index in 0..node.child_count() {
                let child = node.child(index)?;
                // Text between children belongs to no word that is known here.
                if child.start_byte() != end {
                    return None;
                }
                end = child.end_byte();
                value.push_str(&literal(child, source)?);
            }
            (end == node.end_byte()).then_some(value)
        }
        "command_name" if node.named_child_count() == 1 => literal(node.named_child(0)?, source),
        _ => None,
    }
}

/// The value of a word without quotes; `None` when the shell would expand it.
fn unquoted(written: &str) -> Option<String> {
    if written.starts_with('~') {
        return None;
    }
    let mut value = String::with_capacity(written.len());
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                '\n' => {}
                escaped => value.push(escaped),
            },
            // Only braces with something between them are expanded.
            '{' if chars.peek() == Some(&'}') => value.push(c),
            // Patterns, braces, expansions, and `=~`-like tildes after a colon or an equals sign.
            '*' | '?' | '[' | '{' | '$' | '`' | '"' | '\'' | '~' => return None,
            other => value.push(other),
        }
    }
    Some(value)
}

/// The value of text between double quotes that has no expansion in it.
fn double_quoted(inner: &str) -> String {
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => drop(chars.next()),
            ('\\', Some(&escaped @ ('$' | '`' | '"' | '\\'))) => {
                value.push(escaped);
                chars.next();
            }
            (other, _) => value.push(other),
        }
    }
    value
}
