//! From text to its parts: every simple command, redirection and assignment, wherever it stands.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser};

use crate::programs;
use crate::words::{self, ShellWord, shown, text};
use crate::wrappers::{self, StartedBy};

/// The longest text that is read.
pub const MOST_BYTES: usize = 16 * 1024;
/// How deeply shells may be nested in one another's arguments (`sh -c "sh -c ..."`).
const MOST_SHELLS: usize = 5;
/// How deeply the syntax tree may be nested.
const MOST_LEVELS: usize = 200;
/// How many parts a text may have.
const MOST_PARTS: usize = 1000;
/// How long parsing may take. Ordinary text of the longest size takes 15 ms; some that is made of errors
/// takes a second.
const MOST_TIME: Duration = Duration::from_millis(200);

/// Something that a shell text does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellPart {
    /// What it is.
    pub kind: ShellPartKind,
    /// In one form, however it was written: words with one space between them, quoted only where they must
    /// be. A redirection is `> file`, an assignment `NAME=value`.
    pub text: String,
    /// The commands around it that start it, from the outside in: `xargs rm` for the part `rm`.
    pub wrappers: Vec<String>,
    /// Why its text does not show what it would run, if it does not.
    pub opaque: Option<String>,
    /// Whether it runs the commands in a file, which are not seen here (`sh build.sh`, `. env`).
    pub runs_file: bool,
    /// The words of a command.
    pub(crate) words: Vec<ShellWord>,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellPartKind {
    /// A simple command.
    Command,
    /// A redirection from or to a file.
    Redirection,
    /// An assignment to a variable, alone or in front of a command.
    Assignment,
}

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    reason: String,
}

impl Unreadable {
    fn new(reason: impl Into<String>) -> Self {
        Unreadable { reason: reason.into() }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the command cannot be read: {}", self.reason)
    }
}

impl std::error::Error for Unreadable {}

/// The parts of a shell text, in its order.
pub fn parts(text: &str) -> Result<Vec<ShellPart>, Unreadable> {
    let mut found = PartsReader { parts: Vec::new(), wrappers: Vec::new() };
    found.script(text)?;
    Ok(found.parts)
}

struct PartsReader {
    parts: Vec<ShellPart>,
    wrappers: Vec<String>,
}

impl PartsReader {
    fn script(&mut self, source: &str) -> Result<(), Unreadable> {
        if source.len() > MOST_BYTES {
            return Err(Unreadable::new(format!("it has more than {MOST_BYTES} bytes")));
        }
        // The shell and the grammar do not agree about these, and nobody needs them.
        if let Some(odd) = source.chars().find(|c| is_odd(*c)) {
            return Err(Unreadable::new(format!("it contains the character U+{:04X}", odd as u32)));
        }
        // The grammar ends a word at a line that is continued; the shell does not.
        let mut lines = source.split("\\\n").peekable();
        while let (Some(line), Some(next)) = (lines.next(), lines.peek()) {
            if !line.ends_with([' ', '\t']) && !next.starts_with([' ', '\t']) {
                return Err(Unreadable::new("a word goes on in the next line"));
            }
        }
        // The grammar skips a space that is escaped where a word begins.
        let escaped_space = |at: usize| {
            let before = source.get(..at).and_then(|before| before.chars().next_back());
            before.is_none_or(|c| c.is_whitespace() || ";&|()<>".contains(c))
        };
        if ["\\ ", "\\\t"].iter().any(|space| source.match_indices(space).any(|(at, _)| escaped_space(at))) {
            return Err(Unreadable::new("a word begins with an escaped space"));
        }
        let mut parser = Parser::new();
        parser
            .set_language(&tree_sitter_bash::LANGUAGE.into())
            .map_err(|error| Unreadable::new(error.to_string()))?;
        let end = Instant::now() + MOST_TIME;
        let mut progress = |_: &tree_sitter::ParseState| {
            if Instant::now() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = source.as_bytes();
        let tree = parser
            .parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
            .ok_or_else(|| Unreadable::new("it takes too long to parse"))?;
        let root = tree.root_node();
        if root.has_error() {
            return Err(Unreadable::new("it is not valid shell syntax, as far as can be told"));
        }
        self.walk(root, source, 0)
    }

    fn walk(&mut self, node: Node<'_>, source: &str, level: usize) -> Result<(), Unreadable> {
        if level > MOST_LEVELS {
            return Err(Unreadable::new("it is nested too deeply"));
        }
        if ONE_LINE.contains(&node.kind()) && !is_in_one_line(node, source) {
            return Err(Unreadable::new("where one command ends and the next begins is not clear"));
        }
        match node.kind() {
            "comment" => return Ok(()),
            "command" => self.command(node, source)?,
            "declaration_command" | "unset_command" => {
                let words: Vec<ShellWord> =
                    all_children(node).map(|child| words::read(child, source)).collect();
                self.add_command(&words)?;
            }
            // What is declared is in the text of the declaration.
            "variable_assignment"
                if node.parent().is_some_and(|around| around.kind() == "declaration_command") => {}
            "variable_assignment" => self.add_assignment(assignment(node, source))?,
            "file_redirect" => self.redirection(node, source)?,
            // The grammar joins neighbouring backquotes, and does not undo the backslashes between them.
            "command_substitution" if misreads_backquotes(text(node, source)) => {
                return Err(Unreadable::new(
                    "it has backquotes that are hard to tell apart; `$(...)` can be read",
                ));
            }
            // Numbers in a test are computed, and a quoted subscript in one runs what it holds.
            "test_command" if computes(node, source) => {
                return Err(Unreadable::new("a test has a command inside quotes"));
            }
            kind if KNOWN.binary_search(&kind).is_err() => {
                return Err(Unreadable::new(format!("it has a construct that is not known here ({kind})")));
            }
            // The grammar is asked to find every substitution; text that still holds one is not what it
            // seems.
            "word" | "string_content" | "regex" | "extglob_pattern" | "heredoc_body" | "heredoc_content"
            | "number"
                if node.named_child_count() == 0 && expands(node, source) =>
            {
                return Err(Unreadable::new("it has a substitution that is not recognised"));
            }
            _ => {}
        }
        named_children(node).try_for_each(|child| self.walk(child, source, level + 1))
    }

    /// A simple command, and what it would start.
    fn command(&mut self, node: Node<'_>, source: &str) -> Result<(), Unreadable> {
        let mut words = Vec::new();
        for child in named_children(node) {
            match child.kind() {
                // These are parts of their own, found further down.
                "variable_assignment" | "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {}
                _ => words.push(words::read(child, source)),
            }
        }
        if words.is_empty() { Ok(()) } else { self.words(&words) }
    }

    fn words(&mut self, words: &[ShellWord]) -> Result<(), Unreadable> {
        // Where the grammar takes a word of the shell's own for a command, it has lost its way (`! ! git`).
        if words.first().and_then(ShellWord::literal).is_some_and(|name| RESERVED.contains(&name)) {
            return Err(Unreadable::new("a reserved word stands where a command is expected"));
        }
        let around = shown(words);
        match wrappers::inside(words) {
            StartedBy::Nothing => self.add_command(words),
            StartedBy::File => self.add(ShellPart { runs_file: true, ..ShellPart::command(words) }),
            StartedBy::Opaque(why) => {
                self.add(ShellPart { opaque: Some(why.to_owned()), ..ShellPart::command(words) })
            }
            StartedBy::Command { assignments, words: inner, guarded } => {
                if guarded {
                    self.add(ShellPart::command(words))?;
                }
                self.within(around, |found| {
                    assignments.into_iter().try_for_each(|set| found.add_assignment(set))?;
                    if inner.is_empty() { Ok(()) } else { found.words(inner) }
                })
            }
            StartedBy::Commands(commands) => {
                self.add_command(words)?;
                self.within(around, |found| commands.iter().try_for_each(|inner| found.words(inner)))
            }
            StartedBy::Script(script) => {
                let script = script.to_owned();
                self.within(around, |found| found.script(&script))
            }
        }
    }

    fn within(
        &mut self,
        wrapper: String,
        work: impl FnOnce(&mut Self) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        if self.wrappers.len() >= MOST_SHELLS {
            return Err(Unreadable::new("commands are nested too deeply in one another"));
        }
        self.wrappers.push(wrapper);
        let done = work(self);
        self.wrappers.pop();
        done
    }

    fn redirection(&mut self, node: Node<'_>, source: &str) -> Result<(), Unreadable> {
        let mut operator = "";
        let mut targets = Vec::new();
        for child in all_children(node) {
            match child.kind() {
                "file_descriptor" => {}
                _ if !child.is_named() => operator = text(child, source),
                _ => targets.push(words::read(child, source)),
            }
        }
        // The grammar takes the words behind a target for further targets; the shell gives them to the
        // command.
        if targets.len() > 1 {
            return Err(Unreadable::new("words of the command follow a redirection"));
        }
        let harmless = |target: &ShellWord| match target.literal() {
            Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin") => true,
            // Another name for a stream that is open already.
            Some(stream) => operator.ends_with('&') && stream.chars().all(|c| c.is_ascii_digit() || c == '-'),
            None => false,
        };
        if targets.iter().all(harmless) {
            return Ok(());
        }
        let text = format!("{operator} {}", shown(&targets));
        let words = [vec![ShellWord::Literal(operator.to_owned())], targets].concat();
        self.add(ShellPart { words, ..ShellPart::new(ShellPartKind::Redirection, text) })
    }

    fn add_command(&mut self, words: &[ShellWord]) -> Result<(), Unreadable> {
        self.add(ShellPart { opaque: programs::opaque(words), ..ShellPart::command(words) })
    }

    fn add_assignment(&mut self, text: String) -> Result<(), Unreadable> {
        let opaque = programs::steers(&text).then(|| "it decides which programs run".to_owned());
        self.add(ShellPart { opaque, ..ShellPart::new(ShellPartKind::Assignment, text) })
    }

    fn add(&mut self, part: ShellPart) -> Result<(), Unreadable> {
        if self.parts.len() >= MOST_PARTS {
            return Err(Unreadable::new(format!("it has more than {MOST_PARTS} parts")));
        }
        self.parts.push(ShellPart { wrappers: self.wrappers.clone(), ..part });
        Ok(())
    }
}

impl ShellPart {
    fn new(kind: ShellPartKind, text: String) -> Self {
        ShellPart { kind, text, wrappers: Vec::new(), opaque: None, runs_file: false, words: Vec::new() }
    }

    fn command(words: &[ShellWord]) -> Self {
        ShellPart { words: words.to_vec(), ..Self::new(ShellPartKind::Command, shown(words)) }
    }
}

/// `NAME=value`, in the one form for rules.
fn assignment(node: Node<'_>, source: &str) -> String {
    let name = node.child_by_field_name("name").map(|name| text(name, source)).unwrap_or_default();
    let value = node.child_by_field_name("value").map(|value| words::read(value, source).shown());
    format!("{name}={}", value.unwrap_or_default())
}

/// Control characters and spaces that are not bash's own.
fn is_odd(c: char) -> bool {
    let invisible =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t' | '\n') || invisible
}

/// Whether the text of a leaf holds a substitution that a shell would make.
fn expands(node: Node<'_>, source: &str) -> bool {
    if node.kind().starts_with("heredoc") && quotes_heredoc(node, source) {
        return false;
    }
    let mut before = ' ';
    let mut escaped = false;
    text(node, source).chars().any(|c| {
        let found = !escaped && (c == '`' || c == '(' && before == '$');
        (before, escaped) = if escaped { (' ', false) } else { (c, c == '\\') };
        found
    })
}

/// Whether the here-document that a piece of text belongs to has its delimiter in quotes, so that nothing in
/// it is expanded.
fn quotes_heredoc(content: Node<'_>, source: &str) -> bool {
    let redirect =
        std::iter::successors(Some(content), Node::parent).find(|node| node.kind() == "heredoc_redirect");
    let start = redirect.into_iter().flat_map(named_children).find(|child| child.kind() == "heredoc_start");
    start.is_some_and(|start| text(start, source).contains(['\'', '"', '\\']))
}

/// Whether a substitution in backquotes is anything but plain.
fn misreads_backquotes(written: &str) -> bool {
    written
        .strip_prefix('`')
        .is_some_and(|rest| rest.strip_suffix('`').is_none_or(|inner| inner.contains(['`', '\\'])))
}

/// Whether quoted text below the node holds a substitution that a computation would run.
fn computes(node: Node<'_>, source: &str) -> bool {
    let quoted = matches!(node.kind(), "raw_string" | "ansi_c_string");
    (quoted && programs::holds_substitution(text(node, source)))
        || named_children(node).any(|child| computes(child, source))
}

fn named_children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    all_children(node).filter(|child| child.is_named())
}

fn all_children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    (0..node.child_count()).filter_map(move |index| node.child(index))
}

/// Words that are not command names. `time` and `coproc` are read as wrappers.
const RESERVED: &[&str] = &[
    "!", "{", "}", "[[", "]]", "((", "if", "then", "elif", "else", "fi", "for", "select", "while", "until",
    "do", "done", "case", "esac", "in", "function",
];

/// Nodes whose children stand in one line. In rare text the grammar joins two lines to one command
/// (`a |& b # note`, then `! c <<E`).
const ONE_LINE: &[&str] = &[
    "command",
    "declaration_command",
    "file_redirect",
    "herestring_redirect",
    "negated_command",
    "redirected_statement",
    "unset_command",
    "variable_assignments",
];

/// Whether nothing but blanks and continued lines is between the children of a node, and no comment.
fn is_in_one_line(node: Node<'_>, source: &str) -> bool {
    let mut end = node.start_byte();
    all_children(node).all(|child| {
        let gap = source.get(end..child.start_byte()).unwrap_or_default().replace("\\\n", " ");
        end = child.end_byte();
        child.kind() != "comment" && gap.chars().all(|c| matches!(c, ' ' | '\t'))
    })
}

/// The kinds of nodes whose parts are found by looking at their children; in alphabetical order.
const KNOWN: &[&str] = &[
    "ansi_c_string",
    "arithmetic_expansion",
    "array",
    "binary_expression",
    "brace_expression",
    "c_style_for_statement",
    "case_item",
    "case_statement",
    "command",
    "command_name",
    "command_substitution",
    "compound_statement",
    "concatenation",
    "declaration_command",
    "do_group",
    "elif_clause",
    "else_clause",
    "expansion",
    "extglob_pattern",
    "file_descriptor",
    "file_redirect",
    "for_statement",
    "function_definition",
    "heredoc_body",
    "heredoc_content",
    "heredoc_end",
    "heredoc_redirect",
    "heredoc_start",
    "herestring_redirect",
    "if_statement",
    "list",
    "negated_command",
    "number",
    "parenthesized_expression",
    "pipeline",
    "postfix_expression",
    "process_substitution",
    "program",
    "raw_string",
    "redirected_statement",
    "regex",
    "simple_expansion",
    "special_variable_name",
    "string",
    "string_content",
    "subscript",
    "subshell",
    "ternary_expression",
    "test_command",
    "test_operator",
    "translated_string",
    "unary_expression",
    "unset_command",
    "variable_assignment",
    "variable_assignments",
    "variable_name",
    "while_statement",
    "word",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_kinds_are_sorted_and_are_all_that_the_grammar_has() {
        assert!(KNOWN.is_sorted());
        let grammar: tree_sitter::Language = tree_sitter_bash::LANGUAGE.into();
        let kinds = (0..u16::try_from(grammar.node_kind_count()).unwrap())
            .filter(|id| grammar.node_kind_is_named(*id) && grammar.node_kind_is_visible(*id))
            .filter_map(|id| grammar.node_kind_for_id(id));
        let new: Vec<&str> = kinds.filter(|kind| KNOWN.binary_search(kind).is_err()).collect();
        assert_eq!(new, ["comment"], "decide what these kinds mean before they are read");
    }
}
