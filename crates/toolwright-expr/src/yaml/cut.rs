//! Texts are cut before they are written: to a number of lines of 80 characters, with a note of what is
//! missing.

use crate::builtins::text::{is_space, lines};
use crate::error::Error;
use crate::fuel::Fuel;

/// How many characters a line counts for.
const LINE: i128 = 80;

/// How a text is to be written.
pub(super) enum Cut {
    /// As it is.
    Whole,
    /// As a block of lines.
    Block(String),
}

/// Applies the bound on lines; none keeps all of them, without the blanks at their ends.
pub(super) fn cut(text: &str, most: Option<i64>, fuel: &mut Fuel<'_>) -> Result<Cut, Error> {
    fuel.allocate(text.len())?;
    fuel.spend(text.len() as u64 >> 5)?;
    let Some(most) = most else {
        if !text.contains('\n') {
            return Ok(Cut::Whole);
        }
        let lines: Vec<_> = lines(text).map(|(line, _)| line.trim_end_matches(is_space)).collect();
        return Ok(Cut::Block(lines.join("\n")));
    };
    let mut shown: Vec<String> = Vec::new();
    let mut cut_off = 0;
    let mut lines = lines(text).map(|(line, _)| line);
    for line in lines.by_ref() {
        // Wide enough for each bound, also the lowest.
        let room = (i128::from(most) - shown.len() as i128) * LINE;
        let length = line.chars().count() as i128;
        if length >= room {
            // Python counts a negative end from the back.
            let end = if room < 0 { (length + room).max(0) } else { room };
            shown.push(line.chars().take(usize::try_from(end).unwrap_or(0)).collect());
            cut_off = length - room;
            break;
        }
        shown.push(line.to_owned());
        if shown.len() as i64 == most {
            break;
        }
    }
    let left = lines.count();
    if left == 0 && cut_off == 0 {
        return Ok(if text.contains('\n') { Cut::Block(text.to_owned()) } else { Cut::Whole });
    }
    let message = match (cut_off, left) {
        (cut_off, 0) => format!("[{cut_off} characters trimmed]"),
        (0, left) => format!("[{left} lines trimmed]"),
        (cut_off, left) => format!("[{cut_off} characters and {left} lines trimmed]"),
    };
    match shown.last_mut() {
        Some(last) if cut_off > 0 => last.push_str(&format!("...{message}")),
        _ => shown.push(message),
    }
    Ok(Cut::Block(shown.join("\n")))
}
