//! Doc comments: what of them describes the tool, and what describes its parameters.
//!
//! Two styles of sections are read, the one of rustdoc (`# Arguments`, then a list) and the one of Python
//! (`Args:`, then indented lines). Sections about results and failures are for people; a model is not told
//! about them.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::problems::Problems;

/// A doc comment, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Docs {
    /// What a model is told about the tool. Paragraphs are kept.
    pub(crate) description: String,
    /// The entries of the section about parameters, in order.
    pub(crate) parameters: Vec<(String, String)>,
}

/// The text of the doc attributes. Text that a macro makes cannot be seen here, which is a mistake.
pub(crate) fn text(attributes: &[Attribute], problems: &mut Problems) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => lines.extend(block_lines(&text.value())),
            value => problems.at(
                value,
                "the text of this documentation is not known yet; \
                 write `description = include_str!(\"...\")` in the attribute instead",
            ),
        }
    }
    let indent = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line)).min();
    let mut out = String::new();
    for line in &lines {
        out.push_str(line.get(indent.unwrap_or(0)..).unwrap_or("").trim_end());
        out.push('\n');
    }
    out.trim().to_owned()
}

/// The lines of one doc attribute; those of a `/** ... */` block may begin with a star.
fn block_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split('\n').map(|line| line.replace('\t', "    ")).collect();
    let rest = lines.iter().skip(1).filter(|line| !line.trim().is_empty());
    if lines.len() > 1
        && rest.clone().count() > 0
        && rest.clone().all(|line| line.trim_start().starts_with('*'))
    {
        for line in lines.iter_mut().skip(1) {
            *line = line.trim_start().trim_start_matches('*').to_owned();
        }
    }
    lines
}

/// Takes a doc comment apart.
pub(crate) fn parse(text: &str) -> Docs {
    let mut reader = DocReader::default();
    for line in text.lines() {
        reader.line(line);
    }
    let parameters = reader.parameters.into_iter().map(|(name, text)| (name, text.trim().to_owned()));
    Docs { description: tidy(&reader.description), parameters: parameters.collect() }
}

/// Trims, and makes one blank line of several.
fn tidy(text: &str) -> String {
    let mut out = String::new();
    let mut blank = false;
    for line in text.trim().lines() {
        if line.trim().is_empty() {
            blank = true;
            continue;
        }
        if blank {
            out.push('\n');
        }
        blank = false;
        out.push_str(line);
        out.push('\n');
    }
    out.trim_end().to_owned()
}

#[derive(Default)]
struct DocReader {
    description: String,
    parameters: Vec<(String, String)>,
    section: DocSection,
    /// Inside a code block nothing is a heading.
    fenced: bool,
    after_blank: bool,
    /// How far the first entry of the section about parameters is indented.
    entry_indent: Option<usize>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum DocSection {
    #[default]
    Description,
    Parameters(HeadingStyle),
    /// For people only.
    Other(HeadingStyle),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HeadingStyle {
    /// `# Arguments`: ends at the next heading.
    Heading,
    /// `Args:`: ends at the next heading, or where text is no longer indented.
    Colon,
}

impl DocReader {
    fn line(&mut self, line: &str) {
        let blank = line.trim().is_empty();
        if line.trim_start().starts_with("```") {
            self.fenced = !self.fenced;
        } else if !self.fenced
            && let Some(section) = heading(line)
        {
            self.section = section;
            self.entry_indent = None;
            self.after_blank = false;
            if section == DocSection::Description {
                self.describe(line);
            }
            return;
        }
        if self.ends_colon_section(line) {
            self.section = DocSection::Description;
            self.describe("");
        }
        match self.section {
            DocSection::Description => self.describe(line),
            DocSection::Parameters(_) => self.parameter_line(line),
            DocSection::Other(_) => {}
        }
        self.after_blank = blank;
    }

    fn describe(&mut self, line: &str) {
        self.description.push_str(line);
        self.description.push('\n');
    }

    /// A Python section is over when, after a blank line, text is not indented and is not an entry.
    fn ends_colon_section(&self, line: &str) -> bool {
        if !self.after_blank || line.trim().is_empty() || indent(line) > 0 {
            return false;
        }
        match self.section {
            DocSection::Parameters(HeadingStyle::Colon) => {
                self.entry_indent.is_some_and(|own| own > 0) || entry(line).is_none()
            }
            DocSection::Other(HeadingStyle::Colon) => true,
            _ => false,
        }
    }

    fn parameter_line(&mut self, line: &str) {
        let deeper = self.entry_indent.is_some_and(|own| indent(line) > own);
        if !deeper
            && !self.fenced
            && let Some((name, text)) = entry(line)
        {
            self.entry_indent.get_or_insert_with(|| indent(line));
            self.parameters.push((name.to_owned(), text.to_owned()));
            return;
        }
        if let Some((_, text)) = self.parameters.last_mut() {
            text.push('\n');
            text.push_str(line.trim());
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The section that a heading opens, if the line is one.
fn heading(line: &str) -> Option<DocSection> {
    let (title, style) = if line.starts_with('#') {
        let title = line.trim_start_matches('#');
        (title.strip_prefix(' ')?, HeadingStyle::Heading)
    } else if indent(line) == 0 {
        (line.trim_end().strip_suffix(':')?, HeadingStyle::Colon)
    } else {
        return None;
    };
    match title.trim().trim_end_matches(':').to_lowercase().as_str() {
        "arguments" | "args" | "parameters" | "params" => Some(DocSection::Parameters(style)),
        "returns" | "return" | "errors" | "panics" | "raises" | "yields" | "safety" => {
            Some(DocSection::Other(style))
        }
        "examples" | "example" => Some(DocSection::Description),
        _ if style == HeadingStyle::Heading => Some(DocSection::Description),
        _ => None,
    }
}

/// `x: text`, `x (int): text`, or the same, also with a dash, as an item of a list.
fn entry(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let item = ["* ", "- ", "+ "].iter().find_map(|bullet| line.strip_prefix(bullet));
    let rest = item.unwrap_or(line).trim_start();
    let quoted = rest
        .strip_prefix("**")
        .map(|rest| (rest, "**"))
        .or_else(|| rest.strip_prefix('`').map(|rest| (rest, "`")));
    let (name, rest) = match quoted {
        Some((rest, quote)) => rest.split_once(quote)?,
        None => rest.split_at_checked(rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()))?,
    };
    let name = name.trim_matches('`');
    let name = name.strip_prefix("r#").unwrap_or(name);
    if name.is_empty() || !name.chars().all(is_word) {
        return None;
    }
    let rest = rest.trim_start();
    // A type in parentheses is the author's note to people.
    let rest = match rest.strip_prefix('(') {
        Some(typed) => typed.split_once(')')?.1.trim_start(),
        None => rest,
    };
    let text = match rest.strip_prefix(':') {
        Some(text) => text,
        None if item.is_some() || quoted.is_some() => ["-", "\u{2013}", "\u{2014}"]
            .iter()
            .find_map(|dash| rest.strip_prefix(dash))?
            .trim_start_matches('-'),
        None => return None,
    };
    Some((name, text.trim()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '#'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, description: &str, parameters: &[(&str, &str)]) {
        let parameters = parameters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        assert_eq!(
            parse(text),
            Docs { description: description.to_owned(), parameters: parameters.collect() },
            "{text}"
        );
    }

    #[test]
    fn rustdoc_sections_are_read() {
        check(
            "Adds.\n\nMore\nof it.\n\n# Arguments\n\n* `x` - First.\n* `y` - Second,\n  on two lines.\n\n# Returns\n\nThe sum.\n\n# Examples\n\nadd 1 2",
            "Adds.\n\nMore\nof it.\n\n# Examples\n\nadd 1 2",
            &[("x", "First."), ("y", "Second,\non two lines.")],
        );
        check(
            "D.\n\n# Parameters\n- x: the x\n- **y**: the y\n- `z` \u{2014} the z",
            "D.",
            &[("x", "the x"), ("y", "the y"), ("z", "the z")],
        );
        check("D.\n\n# Errors\n\nNever.\n\n# Notes\n\nKept.", "D.\n\n# Notes\n\nKept.", &[]);
    }

    #[test]
    fn python_sections_are_read() {
        check(
            "Adds.\n\nArgs:\n    x (int): First.\n    y: Second,\n        note: still the second.\n\nReturns:\n    The sum.\n",
            "Adds.",
            &[("x", "First."), ("y", "Second,\nnote: still the second.")],
        );
        check("D.\n\nArguments:\nx: unindented\ny: too", "D.", &[("x", "unindented"), ("y", "too")]);
        check("D.\n\nArgs:\n  x: a\n\nMore text.\n\nRaises:\n  E: never", "D.\n\nMore text.", &[("x", "a")]);
        check("Args:\n  x: a", "", &[("x", "a")]);
    }

    #[test]
    fn headings_in_code_are_not_headings() {
        check("D.\n\n```\n# Arguments\nx: y\n```", "D.\n\n```\n# Arguments\nx: y\n```", &[]);
    }

    #[test]
    fn a_colon_in_prose_opens_no_section() {
        check("Use it so:\nwith care.", "Use it so:\nwith care.", &[]);
    }
}
