//! Problems with their places: which file, which line, which column, and what to do about it.
//!
//! Everything read from a file keeps a [`FileSpan`]; [`Sources`] turns one into a line and an excerpt. The
//! texts a person sees are made here and nowhere else.

use std::fmt::Write as _;
use std::sync::Arc;

use toolwright_core::{DataError, Error, FileLocation, text};

/// The most problems that are reported at once; a file that has more is not the file that was meant.
const MAX_PROBLEMS: usize = 200;

/// The longest line that is shown whole.
const MAX_EXCERPT: usize = 160;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file works; something in it is probably not what was meant.
    Warning,
    /// The file cannot be used, or the part in question will fail.
    Error,
}

impl Severity {
    /// The word a person reads.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One problem of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, counting from 1.
    pub line: usize,
    /// The column in characters, counting from 1.
    pub column: usize,
    /// The bytes of the file that are meant: start and end.
    pub span: (usize, usize),
    /// What is wrong.
    pub message: String,
    /// What to do about it, when we know.
    pub hint: Option<String>,
    /// The line itself.
    pub excerpt: String,
    /// How many characters of the line are meant.
    pub width: usize,
}

impl Diagnostic {
    /// The problem as a person reads it: what, where, the line, the hint.
    pub fn render(&self) -> String {
        let mut out = format!("{}: {}\n  --> {}", self.severity.as_str(), self.message, self.file);
        if self.line > 0 {
            let _ = write!(out, ":{}:{}", self.line, self.column);
            let number = self.line.to_string();
            let gutter = " ".repeat(number.len());
            let shift: String = self
                .excerpt
                .chars()
                .take(self.column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let marks = "^".repeat(self.width.max(1));
            let _ = write!(out, "\n{number} | {}\n{gutter} | {shift}{marks}", self.excerpt);
        }
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\n\nhint: {hint}");
        }
        out
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render())
    }
}

impl std::error::Error for Diagnostic {}

/// The problem with its line, for data that a program reads with its own types.
impl From<Diagnostic> for DataError {
    fn from(problem: Diagnostic) -> Self {
        let Diagnostic { message, hint, line, .. } = problem;
        DataError { hint, ..DataError::new(message) }.about(format_args!("line {line}"))
    }
}

/// A file that cannot be used: all that is wrong with it, warnings included, in the order it was found.
///
/// ```
/// let error = toolwright_yaml::read_data("two.yaml", "a: !odd 1\na: 2\n").unwrap_err();
/// let lines: Vec<usize> = error.problems().iter().map(|problem| problem.line).collect();
/// assert_eq!(lines, [1, 2]);
/// assert!(error.to_string().contains("--> two.yaml:2:"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    problems: Vec<Diagnostic>,
}

impl LoadError {
    /// What is wrong. There is at least one error among them.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }
}

/// Every problem as a person reads it, with an empty line between two.
impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n\n" };
            write!(f, "{between}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// At the place of the first error.
impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let first = error.problems.iter().find(|problem| problem.severity == Severity::Error);
        let location = first.map(|first| FileLocation {
            file: first.file.clone(),
            line: first.line,
            column: first.column,
        });
        let hint = first.and_then(|first| first.hint.clone());
        let error = Error::file(error).with_hint(hint);
        match location {
            Some(location) => error.at(location),
            None => error,
        }
    }
}

impl IntoIterator for LoadError {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.problems.into_iter()
    }
}

impl<'e> IntoIterator for &'e LoadError {
    type Item = &'e Diagnostic;
    type IntoIter = std::slice::Iter<'e, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.problems.iter()
    }
}

/// Where something stands: the file by its number, and bytes of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FileSpan {
    /// The number of the file in its [`Sources`].
    pub file: u16,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl FileSpan {
    /// The bytes from `start` up to `end` of a file.
    pub fn new(file: u16, start: usize, end: usize) -> Self {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        FileSpan { file, start: clamp(start), end: clamp(end.max(start)) }
    }
}

/// The texts of all files that were read.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    files: Vec<(Arc<str>, Arc<str>)>,
    last: Position,
}

/// Where a byte of a file stands.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    file: u16,
    at: usize,
    /// Lines before it, and characters before it in its own.
    lines: usize,
    characters: usize,
}

impl Sources {
    /// Keeps a file; its number goes into places.
    pub fn add(&mut self, name: &str, text: &str) -> u16 {
        self.files.push((name.into(), text.into()));
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// The text of a file.
    pub fn text(&self, file: u16) -> &str {
        self.files.get(usize::from(file)).map_or("", |(_, text)| text)
    }

    /// The name of a file.
    pub fn name(&self, file: u16) -> Arc<str> {
        self.files.get(usize::from(file)).map_or_else(|| "?".into(), |(name, _)| name.clone())
    }

    /// The place as `file:line:column`.
    pub fn locate(&mut self, place: FileSpan) -> String {
        let (line, column) = self.position(place);
        format!("{}:{line}:{column}", self.name(place.file))
    }

    /// The line and the column of a place, counting from 1. Places that are asked for in their order are
    /// counted once.
    pub fn position(&mut self, place: FileSpan) -> (usize, usize) {
        let start = self.text(place.file).floor_char_boundary(place.start as usize);
        if self.last.file != place.file || self.last.at > start {
            self.last = Position { file: place.file, ..Position::default() };
        }
        let mut now = self.last;
        let passed = self.text(place.file).get(now.at..start).unwrap_or_default();
        now.at = start;
        match passed.rfind('\n') {
            Some(end) => {
                now.lines += passed.bytes().filter(|byte| *byte == b'\n').count();
                now.characters = passed.get(end + 1..).unwrap_or_default().chars().count();
            }
            None => now.characters += passed.chars().count(),
        }
        self.last = now;
        (now.lines + 1, now.characters + 1)
    }

    /// The line of a place, counting from 1.
    pub fn line_of(&self, place: FileSpan) -> usize {
        self.line(place).0
    }

    fn line(&self, place: FileSpan) -> (usize, usize, &str) {
        let text = self.text(place.file);
        let start = text.floor_char_boundary(place.start as usize);
        let before = text.get(..start).unwrap_or_default();
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let rest = text.get(begin..).unwrap_or_default();
        let whole = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let column = before.get(begin..).unwrap_or_default().chars().count() + 1;
        (line, column, whole)
    }

    /// A problem at a place, with its line and an excerpt.
    pub fn diagnostic(
        &self,
        severity: Severity,
        place: FileSpan,
        message: String,
        hint: Option<String>,
    ) -> Diagnostic {
        let (line, column, excerpt) = self.line(place);
        let rest = excerpt.chars().count().saturating_sub(column - 1);
        let meant = self.text(place.file).get(place.start as usize..place.end as usize).unwrap_or_default();
        let width = meant.split('\n').next().unwrap_or_default().chars().count().clamp(1, rest.max(1));
        let column_shown = column.min(MAX_EXCERPT);
        Diagnostic {
            severity,
            file: self.name(place.file),
            line,
            column,
            span: (place.start as usize, place.end as usize),
            message: text::clip(&message, 1000),
            hint,
            excerpt: text::clip(excerpt, MAX_EXCERPT.max(column_shown)),
            width: width.min(MAX_EXCERPT),
        }
    }
}

/// Collects problems while a file is read, so that all of them are told in one run.
#[derive(Debug, Default, Clone)]
pub struct Problems {
    /// The files that are read.
    pub sources: Sources,
    /// What was found.
    pub found: ProblemList,
}

impl Problems {
    /// Adds an error.
    pub fn error(&mut self, place: FileSpan, message: impl Into<String>) {
        self.add(Severity::Error, place, message.into(), None);
    }

    /// Adds an error with what to do about it.
    pub fn error_hint(&mut self, place: FileSpan, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Error, place, message.into(), Some(hint.into()));
    }

    /// Adds a warning with what to do about it.
    pub fn warn_hint(&mut self, place: FileSpan, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Warning, place, message.into(), Some(hint.into()));
    }

    /// Adds a problem.
    pub fn add(&mut self, severity: Severity, place: FileSpan, message: String, hint: Option<String>) {
        self.found.add(severity, || self.sources.diagnostic(severity, place, message, hint));
    }

    /// Whether an error was found in this part of a file.
    pub fn has_error_in(&self, place: FileSpan) -> bool {
        let file = self.sources.name(place.file);
        let (start, end) = (place.start as usize, place.end as usize);
        let mut errors = self.found.kept.iter().filter(|problem| problem.severity == Severity::Error);
        errors.any(|problem| problem.file == file && (start..=end).contains(&problem.span.0))
    }

    /// How many problems were found so far that make the file unusable.
    pub fn errors(&self) -> usize {
        self.found.errors
    }

    /// All problems as one error, when one of them makes the file unusable.
    pub fn as_error(&self) -> Option<LoadError> {
        (self.found.errors > 0).then(|| LoadError { problems: self.found.all() })
    }
}

/// Problems, of which only so many are kept; all are counted.
#[derive(Debug, Default, Clone)]
pub struct ProblemList {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    untold: usize,
}

impl ProblemList {
    /// Adds a problem, which is made only when it is kept.
    pub fn add(&mut self, severity: Severity, problem: impl FnOnce() -> Diagnostic) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        // Each kind has its own room, so that many warnings do not hide an error.
        if *count <= MAX_PROBLEMS {
            self.kept.push(problem());
        } else {
            self.untold += 1;
        }
    }

    /// Whether another error would be kept. Where one stands, and what was meant, need not be found out for
    /// the others.
    pub fn has_room(&self) -> bool {
        self.errors < MAX_PROBLEMS
    }

    /// Puts what was kept into the order of the files, without what was found twice.
    pub fn sort(&mut self) {
        self.kept.sort_by_key(|problem| (problem.file.clone(), problem.span.0));
        self.kept.dedup();
    }

    /// What was kept, and a last one that says how many were not.
    pub fn all(&self) -> Vec<Diagnostic> {
        let mut all = self.kept.clone();
        if let (1.., Some(last)) = (self.untold, all.last()) {
            let message = format!("there are {} more problems like these", self.untold);
            all.push(Diagnostic { message, hint: None, ..last.clone() });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_line_and_a_way_out() {
        let mut problems = Problems::default();
        let file = problems.sources.add("tools/deploy.yaml", "a: 1\nwhen: env = \"prod\"\n");
        problems.error_hint(
            FileSpan::new(file, 15, 16),
            "expected an operator, found `=`",
            "compare with `==`",
        );
        assert_eq!(
            problems.found.kept[0].render(),
            "error: expected an operator, found `=`\n  --> tools/deploy.yaml:2:11\n2 | when: env = \"prod\"\n  \
             |           ^\n\nhint: compare with `==`"
        );
    }

    #[test]
    fn columns_count_characters_and_places_past_the_end_are_harmless() {
        let mut problems = Problems::default();
        let file = problems.sources.add("x", "é: é\n");
        problems.error(FileSpan::new(file, 4, 6), "here");
        problems.error(FileSpan::new(file, 900, 901), "nowhere");
        assert_eq!((problems.found.kept[0].line, problems.found.kept[0].column), (1, 4));
        assert_eq!(problems.found.kept[1].line, 2);
    }

    #[test]
    fn positions_are_the_same_in_any_order() {
        let mut sources = Sources::default();
        let text = "é: é\n\nb: [1, 2]\n  ü";
        let file = sources.add("x", text);
        let other = sources.add("y", "z\nz");
        let at = |sources: &mut Sources, start: usize| sources.position(FileSpan::new(file, start, start));
        let forward: Vec<_> = (0..=text.len()).map(|start| at(&mut sources, start)).collect();
        sources.position(FileSpan::new(other, 3, 3));
        let back: Vec<_> = (0..=text.len()).rev().map(|start| at(&mut sources, start)).collect();
        assert!(forward.iter().eq(back.iter().rev()));
        for (start, (line, column)) in forward.into_iter().enumerate() {
            let shown =
                sources.diagnostic(Severity::Error, FileSpan::new(file, start, start), String::new(), None);
            assert_eq!((shown.line, shown.column), (line, column), "byte {start}");
        }
    }

    #[test]
    fn many_warnings_hide_no_error_and_what_is_left_out_is_counted() {
        let mut problems = Problems::default();
        let file = problems.sources.add("x", "a\n");
        (0..MAX_PROBLEMS + 3).for_each(|_| problems.warn_hint(FileSpan::new(file, 0, 1), "odd", "mend it"));
        problems.error(FileSpan::new(file, 0, 1), "wrong");
        let told = problems.as_error().unwrap();
        let messages: Vec<_> = told.problems().iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages[MAX_PROBLEMS..], ["wrong", "there are 3 more problems like these"]);
    }
}
