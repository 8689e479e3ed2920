//! Patches: read into changes, then applied to text. Every context line and every removed line must be in the
//! file.
//!
//! Two ways of writing them are understood: unified diffs, and the `*** Begin Patch` form some models are
//! trained on.

use std::cell::Cell;

use toolwright_core::{ErrorKind, ToolError, text::clip};

use crate::text::ends_in_crlf;
use crate::unified;

/// The most lines of a file that is patched; each takes 32 bytes beside its text.
const MOST_LINES: usize = 4 << 20;
/// How many lines may be compared or moved for the hunks of one file: some seconds.
const MOST_WORK: usize = 1 << 29;

/// What a patch does to one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    Create {
        path: String,
        text: String,
        executable: bool,
    },
    /// With hunks, they must take out all there is.
    Delete {
        path: String,
        hunks: Option<Vec<Hunk>>,
    },
    Update {
        path: String,
        to: To,
        hunks: Vec<Hunk>,
        /// `None` leaves it as it is.
        executable: Option<bool>,
    },
}

/// Where a changed file goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum To {
    Stay,
    Move(String),
    Copy(String),
}

/// Lines to find, and lines to put in their place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line at which the old lines should begin, counted from 1; for a hunk without old lines, the line
    /// before.
    start: Option<usize>,
    /// A line that comes somewhere before.
    anchor: Option<String>,
    /// The old lines are the last of the file.
    at_end: bool,
    lines: Vec<(HunkSide, String)>,
    /// How many old and new lines the header promises.
    counts: Option<(usize, usize)>,
    old_open: bool,
    new_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HunkSide {
    Both,
    Old,
    New,
}

impl Hunk {
    /// How many lines it takes out or puts in.
    pub(crate) fn changed(&self) -> usize {
        self.lines.iter().filter(|(side, _)| *side != HunkSide::Both).count()
    }

    fn old(&self) -> Vec<&str> {
        self.lines.iter().filter(|(side, _)| *side != HunkSide::New).map(|(_, line)| line.as_str()).collect()
    }

    fn last_new(&self) -> Option<&(HunkSide, String)> {
        self.lines.iter().rfind(|(side, _)| *side != HunkSide::Old)
    }

    fn new_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|(side, _)| *side != HunkSide::Old).map(|(_, line)| line.as_str())
    }

    /// Empty lines at the end that the header does not count come from the end of the message, not from the
    /// file.
    fn drop_stray_ends(&mut self) {
        let Some((old, new)) = self.counts else { return };
        let extra = self.old().len().saturating_sub(old).min(self.new_lines().count().saturating_sub(new));
        for _ in 0..extra {
            match self.lines.last() {
                Some((HunkSide::Both, line)) if line.is_empty() => drop(self.lines.pop()),
                _ => break,
            }
        }
    }
}

/// Reads a patch.
pub(crate) fn parse(patch: &str) -> Result<Vec<FileChange>, ToolError> {
    let lines = lines_of(patch);
    let first = (0..lines.len()).find(|at| is_begin(&lines, *at) || unified::begins(&lines, *at));
    let changes = match first {
        Some(at) if is_begin(&lines, at) => parse_marked(&lines, at)?,
        _ => unified::parse(&lines)?,
    };
    if changes.is_empty() {
        return Err(
            bad("there is no change in it").hint("a unified diff has lines beginning with ---, +++ and @@")
        );
    }
    Ok(changes)
}

fn is_begin(lines: &[&str], at: usize) -> bool {
    lines.get(at).is_some_and(|line| line.trim() == "*** Begin Patch")
}

/// The lines of a patch. Where all of them end in CR LF, that says nothing of the files.
fn lines_of(patch: &str) -> Vec<&str> {
    let body = patch.strip_suffix('\n').unwrap_or(patch);
    if !ends_in_crlf(patch) {
        return body.split('\n').collect();
    }
    body.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect()
}

pub(crate) fn bad(what: impl std::fmt::Display) -> ToolError {
    ToolError::invalid(format!("the patch cannot be read: {what}"))
}

/// Reads hunks alone, for a patch of one file that names none.
pub(crate) fn parse_bare_hunks(patch: &str) -> Result<Vec<Hunk>, ToolError> {
    let lines = lines_of(patch);
    let first = lines.iter().position(|line| line.starts_with("@@"));
    let hunks = first.map(|first| parse_hunks(&lines, first)).transpose()?.map(|(hunks, _)| hunks);
    hunks.filter(|hunks| !hunks.is_empty()).ok_or_else(|| bad("there is no hunk in it"))
}

/// The hunks from a line on, and the line after them.
pub(crate) fn parse_hunks(lines: &[&str], mut at: usize) -> Result<(Vec<Hunk>, usize), ToolError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // How many old and new lines of the last hunk are still to come, by its header.
    let mut owed = (0usize, 0usize);
    while let Some(line) = lines.get(at) {
        if line.starts_with("@@") {
            let hunk = header(line);
            let hunk = hunk.ok_or_else(|| bad(format!("line {} is not the header of a hunk", at + 1)))?;
            owed = hunk.counts.unwrap_or_default();
            hunks.push(hunk);
        } else if line.starts_with("diff ") || is_file_header(lines, at, owed) {
            break;
        } else if let Some(hunk) = hunks.last_mut() {
            // The two dashes before a mail's signature.
            if owed == (0, 0) && line.trim_end() == "--" {
                break;
            }
            match body_line(hunk, line, at)? {
                Some(HunkSide::Both) => owed = (owed.0.saturating_sub(1), owed.1.saturating_sub(1)),
                Some(HunkSide::Old) => owed.0 = owed.0.saturating_sub(1),
                Some(HunkSide::New) => owed.1 = owed.1.saturating_sub(1),
                None => {}
            }
        } else if !line.trim().is_empty() {
            return Err(bad(format!("line {} is outside any hunk", at + 1)));
        }
        at += 1;
    }
    hunks.iter_mut().for_each(Hunk::drop_stray_ends);
    if let Some(hunk) = hunks.iter().find(|hunk| hunk.lines.is_empty()) {
        return Err(bad(format!("the hunk at line {} is empty", hunk.start.unwrap_or(0))));
    }
    Ok((hunks, at))
}

/// Whether a line and the next name the files of the change that follows. They may as well take out `-- x`
/// and put in `++ y`: so they do where the hunk before still owes just that.
fn is_file_header(lines: &[&str], at: usize, owed: (usize, usize)) -> bool {
    let starts = |at: usize, mark: &str| lines.get(at).is_some_and(|line| line.starts_with(mark));
    if !starts(at, "--- ") || !starts(at + 1, "+++ ") {
        return false;
    }
    match lines.get(at + 2).map(|line| line.trim_end()) {
        Some("") => owed.0 == 0 || owed.1 == 0,
        Some(line) if !line.starts_with("@@") => false,
        _ => owed != (1, 1),
    }
}

/// `@@ -3,2 +3,4 @@ fn main`.
fn header(line: &str) -> Option<Hunk> {
    let inner = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (old, new) = inner.split_once(" +")?;
    let read = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.trim().parse().ok()?, count.trim().parse().ok()?))
    };
    let ((start, old), (_, new)) = (read(old)?, read(new)?);
    Some(Hunk { start: Some(start), counts: Some((old, new)), ..Hunk::default() })
}

/// Takes a line into the hunk, and says on which side it is.
fn body_line(hunk: &mut Hunk, line: &str, at: usize) -> Result<Option<HunkSide>, ToolError> {
    let mut chars = line.chars();
    let (side, text) = match chars.next() {
        Some(' ') => (HunkSide::Both, chars.as_str()),
        Some('-') => (HunkSide::Old, chars.as_str()),
        Some('+') => (HunkSide::New, chars.as_str()),
        // Editors and models drop the blank of an empty context line.
        None => (HunkSide::Both, ""),
        Some('\r') if line == "\r" => (HunkSide::Both, line),
        Some('\\') => {
            match hunk.lines.last().map(|(side, _)| *side) {
                Some(HunkSide::Old) => hunk.old_open = true,
                Some(HunkSide::New) => hunk.new_open = true,
                Some(HunkSide::Both) => (hunk.old_open, hunk.new_open) = (true, true),
                None => {}
            }
            return Ok(None);
        }
        Some(_) => {
            let shown = clip(line, 80);
            return Err(bad(format!("line {} begins with neither blank, - nor +: `{shown}`", at + 1)));
        }
    };
    hunk.lines.push((side, text.to_owned()));
    Ok(Some(side))
}

/// The text of a file that hunks alone make.
pub(crate) fn created(hunks: &[Hunk]) -> Result<String, ToolError> {
    let mut text = String::new();
    for hunk in hunks {
        if !hunk.old().is_empty() {
            return Err(bad("a new file cannot have old lines"));
        }
        hunk.new_lines().for_each(|line| text.extend([line, "\n"]));
        if hunk.new_open {
            text.pop();
        }
    }
    Ok(text)
}

fn parse_marked(lines: &[&str], begin: usize) -> Result<Vec<FileChange>, ToolError> {
    let mut changes: Vec<FileChange> = Vec::new();
    let mut open = false;
    for at in begin..lines.len() {
        let line = lines.get(at).copied().unwrap_or_default();
        let path = |mark: &str| line.strip_prefix(mark).map(|path| path.trim().to_owned());
        if !open {
            open = is_begin(lines, at);
        } else if line.trim() == "*** End Patch" {
            open = false;
        } else if let Some(path) = path("*** Add File: ") {
            changes.push(FileChange::Create { path, text: String::new(), executable: false });
        } else if let Some(path) = path("*** Delete File: ") {
            changes.push(FileChange::Delete { path, hunks: None });
        } else if let Some(path) = path("*** Update File: ") {
            changes.push(FileChange::Update { path, to: To::Stay, hunks: Vec::new(), executable: None });
        } else {
            marked_line(changes.last_mut(), line, at)?;
        }
    }
    if open { Err(bad("`*** End Patch` is missing")) } else { Ok(changes) }
}

fn marked_line(change: Option<&mut FileChange>, line: &str, at: usize) -> Result<(), ToolError> {
    let outside = || bad(format!("line {} is outside any file", at + 1));
    match change.ok_or_else(outside)? {
        FileChange::Create { text, .. } => {
            let line = line.strip_prefix('+');
            let line =
                line.ok_or_else(|| bad(format!("line {} of a new file does not begin with +", at + 1)))?;
            text.extend([line, "\n"]);
        }
        FileChange::Delete { .. } if line.trim().is_empty() => {}
        FileChange::Delete { .. } => return Err(outside()),
        FileChange::Update { to, hunks, .. } => {
            if let Some(path) = line.strip_prefix("*** Move to: ") {
                *to = To::Move(path.trim().to_owned());
            } else if line.trim() == "*** End of File" {
                hunks.last_mut().ok_or_else(outside)?.at_end = true;
            } else if let Some(anchor) = line.strip_prefix("@@") {
                let anchor = Some(anchor.trim().to_owned()).filter(|anchor| !anchor.is_empty());
                hunks.push(Hunk { anchor, ..Hunk::default() });
            } else {
                if hunks.is_empty() {
                    hunks.push(Hunk::default());
                }
                body_line(hunks.last_mut().ok_or_else(outside)?, line, at)?;
            }
        }
    }
    Ok(())
}

/// The text of a file after the hunks. All of them fit, or nothing is given back.
pub(crate) fn apply(path: &str, text: &str, hunks: &[Hunk]) -> Result<String, ToolError> {
    apply_within(MOST_WORK, path, text, hunks)
}

fn apply_within(work: usize, path: &str, text: &str, hunks: &[Hunk]) -> Result<String, ToolError> {
    let windows = ends_in_crlf(text);
    let newline = if windows { "\r\n" } else { "\n" };
    if text.split_inclusive('\n').count() > MOST_LINES {
        let message = format!("{path} has more than {MOST_LINES} lines, which is too many to patch");
        return Err(ToolError::of(ErrorKind::OutputLimit, message));
    }
    let mut lines: Vec<PatchLine<'_>> = text.split_inclusive('\n').map(PatchLine::read).collect();
    let exact = names_endings(hunks, &lines);
    let mut from = 0;
    let mut shift = 0i64;
    let work = Cell::new(work);
    for (index, hunk) in hunks.iter().enumerate() {
        let old = hunk.old();
        let placed = place(&lines, hunk, &old, exact, from, shift, &work);
        // To look for an anchor, blanks at the ends of lines are passed over.
        let cost = lines.len() + hunk.anchor.as_ref().map_or(0, |_| text.len() / 16);
        if work.get() < cost {
            let message = format!("{path} and the {} hunks for it are too long to compare", hunks.len());
            return Err(ToolError::of(ErrorKind::OutputLimit, message)
                .hint("nothing was changed; apply the patch in parts, with line numbers"));
        }
        work.set(work.get() - cost);
        let at = placed.map_err(|why| {
            ToolError::new(format!("hunk {} does not fit {path}: {why}", index + 1))
                .hint("nothing was changed; look at the file and write the hunk anew")
        })?;
        if let Some(start) = hunk.start.filter(|_| !old.is_empty()) {
            shift = signed(at) - (signed(start) - 1);
        }
        let end = at + old.len();
        let reaches_end = end == lines.len();
        let was_open = lines.last().is_some_and(|line| line.end.is_empty());
        let mut fresh: Vec<PatchLine<'_>> = Vec::new();
        let mut kept = at;
        for (side, line) in &hunk.lines {
            match side {
                // A line that stays keeps its own bytes.
                HunkSide::Both => {
                    fresh.extend(lines.get(kept).copied());
                    kept += 1;
                }
                HunkSide::Old => kept += 1,
                HunkSide::New if exact => fresh.push(PatchLine::of_hunk(line)),
                HunkSide::New => {
                    fresh.push(PatchLine { text: line.strip_suffix('\r').unwrap_or(line), end: newline })
                }
            }
        }
        if let (true, Some(last), Some((HunkSide::New, line))) =
            (exact && hunk.new_open, fresh.last_mut(), hunk.last_new())
        {
            *last = PatchLine { text: line, end: "" };
        }
        shift += signed(fresh.len()) - signed(old.len());
        from = at + fresh.len();
        lines.splice(at..end, fresh);
        if reaches_end {
            let open = hunk.new_open || (was_open && !hunk.old_open);
            close(&mut lines, newline, open);
        }
    }
    Ok(lines.into_iter().flat_map(|line| [line.text, line.end]).collect())
}

/// Whether hunks say which lines end in CR LF. Where none has them, they are fitted to the file; so they are
/// where all have them and the file has none.
fn names_endings(hunks: &[Hunk], file: &[PatchLine<'_>]) -> bool {
    let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let ends = |(_, line): &(HunkSide, String)| line.ends_with('\r');
    lines().any(ends)
        && (!lines().all(ends)
            || lines().all(|(side, _)| *side == HunkSide::New)
            || file.iter().any(|line| line.end == "\r\n" || line.text.ends_with('\r')))
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Every line but the last ends in a newline, and the last does unless the file is to stay open.
fn close<'a>(lines: &mut [PatchLine<'a>], newline: &'a str, open: bool) {
    let total = lines.len();
    for (index, line) in lines.iter_mut().enumerate() {
        if index + 1 == total && open {
            line.end = "";
        } else if line.end.is_empty() {
            line.end = newline;
        }
    }
}

#[derive(Clone, Copy)]
struct PatchLine<'a> {
    text: &'a str,
    end: &'a str,
}

impl PatchLine<'_> {
    fn read(line: &str) -> PatchLine<'_> {
        let text = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        PatchLine { text, end: line.strip_prefix(text).unwrap_or_default() }
    }

    /// A line that a hunk puts in, with the ending that it has there.
    fn of_hunk(line: &str) -> PatchLine<'_> {
        match line.strip_suffix('\r') {
            Some(text) => PatchLine { text, end: "\r\n" },
            None => PatchLine { text: line, end: "\n" },
        }
    }

    /// Whether this is the old line of a hunk; a carriage return counts where the hunk names the endings.
    fn is(&self, old: &str, exact: bool) -> bool {
        let bare = old.strip_suffix('\r');
        if exact && self.end == "\r\n" {
            return bare == Some(self.text);
        }
        self.text == if exact { old } else { bare.unwrap_or(old) }
    }
}

/// Where the old lines are: at the line the header names, or else at the only place they are found.
fn place(
    lines: &[PatchLine<'_>],
    hunk: &Hunk,
    old: &[&str],
    exact: bool,
    from: usize,
    shift: i64,
    work: &Cell<usize>,
) -> Result<usize, String> {
    let same = |line: &PatchLine<'_>, old: &str| {
        work.set(work.get().saturating_sub(1));
        work.get() > 0 && line.is(old, exact)
    };
    // A line without a newline can only be the last one.
    let at_end = hunk.at_end || hunk.old_open || hunk.new_open;
    let fits = |at: usize| {
        let here = lines.get(at..at + old.len());
        here.is_some_and(|here| here.iter().zip(old).all(|(line, old)| same(line, old)))
            && (!at_end || at + old.len() == lines.len())
    };
    if old.is_empty() {
        return match hunk.start {
            Some(start) => usize::try_from(signed(start) + shift)
                .ok()
                .filter(|at| (from..=lines.len()).contains(at))
                .ok_or_else(|| format!("the file has {} lines, and it adds after line {start}", lines.len())),
            None if hunk.anchor.is_none() => Ok(lines.len()),
            None => after_anchor(lines, hunk, from),
        };
    }
    let named = hunk.start.and_then(|start| usize::try_from(signed(start) - 1 + shift).ok());
    if let Some(at) = named.filter(|at| *at >= from && fits(*at)) {
        return Ok(at);
    }
    let first = if hunk.anchor.is_some() { after_anchor(lines, hunk, from)? } else { from };
    let places: Vec<usize> = (first..=lines.len().saturating_sub(old.len())).filter(|at| fits(*at)).collect();
    match places.as_slice() {
        [at] => Ok(*at),
        [] => Err(difference(lines, old, exact, named.unwrap_or(first))),
        many => {
            let numbers: Vec<String> = many.iter().take(10).map(|at| (at + 1).to_string()).collect();
            Err(format!("its lines are found in several places, at lines {}", numbers.join(", ")))
        }
    }
}

fn after_anchor(lines: &[PatchLine<'_>], hunk: &Hunk, from: usize) -> Result<usize, String> {
    let anchor = hunk.anchor.as_deref().unwrap_or_default();
    let found = lines.iter().enumerate().skip(from).find(|(_, line)| line.text.trim() == anchor.trim());
    found.map(|(at, _)| at + 1).ok_or_else(|| format!("the line `{}` is not found", clip(anchor, 80)))
}

/// The first line that is not as the hunk says.
fn difference(lines: &[PatchLine<'_>], old: &[&str], exact: bool, at: usize) -> String {
    for (index, wanted) in old.iter().enumerate() {
        let number = at + index + 1;
        match lines.get(at + index) {
            Some(line) if line.is(wanted, exact) => {}
            Some(line) if line.text == wanted.trim_end_matches('\r') => {
                let (is, wanted) = if wanted.ends_with('\r') { ("LF", "CR LF") } else { ("CR LF", "LF") };
                return format!("line {number} ends in {is}, and in the hunk in {wanted}");
            }
            Some(line) => {
                let (is, wanted) = (clip(line.text, 80), clip(wanted, 80));
                return format!("line {number} is `{is}`, and the hunk has `{wanted}`");
            }
            None => return format!("the hunk has `{}` where the file has ended", clip(wanted, 80)),
        }
    }
    "its lines are not found after those of the hunk before, or not at the end of the file".to_owned()
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
