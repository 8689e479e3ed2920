//! `toolwright diff`: two recorded runs beside each other.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use similar::{ChangeTag, TextDiff};
use toolwright::Transcript;

use crate::args::DiffRuns;
use crate::commands::runs::{span, summary};
use crate::prompt::printable;
use crate::report;
use crate::runs::index::Index;
use crate::runs::{self, story};

/// What is different, for exit code 1.
#[derive(Debug)]
struct Differ(usize);

impl std::fmt::Display for Differ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines =
            if self.0 == 1 { "1 line differs".to_owned() } else { format!("{} lines differ", self.0) };
        f.write_str(&lines)
    }
}

impl std::error::Error for Differ {}

pub fn run(what: &DiffRuns, json: bool) -> anyhow::Result<()> {
    let (a, b) = (runs::find(&what.a)?, runs::find(&what.b)?);
    let (index_a, index_b) = (Index::open(&a)?, Index::open(&b)?);
    let changes = compare(&told(&a)?, &told(&b)?);
    if json {
        report::line(json!({"a": summary(&a, &index_a), "b": summary(&b, &index_b), "changes": changes}))?;
    } else {
        let mut out = std::io::stdout().lock();
        for (mark, path, index) in [("-", &a, &index_a), ("+", &b, &index_b)] {
            let took = span(index.last.saturating_sub(index.started));
            writeln!(
                out,
                "{mark} {}  {}, {} turns, {} calls, {} tokens, {took}",
                runs::id_of(path),
                index.state(),
                index.replies.len(),
                index.calls,
                index.usage.total()
            )?;
        }
        drop(out);
        print(&changes)?;
    }
    outcome(&changes)
}

/// A run as lines, from the whole transcript.
fn told(path: &Path) -> anyhow::Result<Vec<String>> {
    Ok(story::lines(&Transcript::load(path).map_err(report::unusable)?.events))
}

/// The lines of two stories: `-` only in the first, `+` only in the second, ` ` around them.
pub fn compare(a: &[String], b: &[String]) -> Vec<String> {
    let a: Vec<&str> = a.iter().map(String::as_str).collect();
    let b: Vec<&str> = b.iter().map(String::as_str).collect();
    let diff = TextDiff::configure().diff_slices(&a, &b);
    let mut lines = Vec::new();
    for (number, group) in diff.grouped_ops(2).iter().enumerate() {
        if number > 0 {
            lines.push("  ...".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("{mark} {}", change.value()));
        }
    }
    lines
}

pub fn print(changes: &[String]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if changes.is_empty() {
        return writeln!(out, "no difference");
    }
    changes.iter().try_for_each(|line| writeln!(out, "{}", printable(line)))
}

/// An error when something differs.
pub fn outcome(changes: &[String]) -> anyhow::Result<()> {
    let differ = changes.iter().filter(|line| line.starts_with(['-', '+'])).count();
    if differ == 0 { Ok(()) } else { Err(Differ(differ).into()) }
}
