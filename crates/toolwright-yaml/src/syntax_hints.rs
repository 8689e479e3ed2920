//! What a person can do about a text that is not YAML. The scanner reports what it did not expect; mostly a
//! quote, a blank or the depth of a line is wrong.

/// What to do about a problem of the scanner at a byte of the text.
pub(super) fn advice(source: &str, at: usize, problem: &str) -> Option<String> {
    let before = source.get(..at).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let begun = before.get(line_start..).unwrap_or_default();
    let has = |part: &str| problem.contains(part);
    let advice = if has("tab") {
        "indent with blanks, not with tabs"
    } else if has("mapping values are not allowed") {
        let above = before.get(..line_start.saturating_sub(1)).unwrap_or_default();
        let above = above.rsplit('\n').next().unwrap_or_default();
        let without_blank = above.contains(':') && !above.contains(": ") && !above.trim_end().ends_with(':');
        if begun.trim_start().trim_start_matches("- ").contains(": ") {
            "a text that holds `: ` needs quotes around it"
        } else if without_blank {
            "a blank is missing after the `:` of the line above"
        } else {
            "this line stands in further than the one above, which has a value already; put both at the same depth"
        }
    } else if has("expected key") || has("'-' indicator") || has("invalid indentation") && !has("quoted") {
        "this line does not stand as far in as the others of its list or map"
    } else if has("multiline quoted scalar") {
        "a quote above is not closed, or a line of a quoted text stands no further in than its key"
    } else if has("simple key expected") {
        "a key ends with `:`"
    } else if has("trailing content after") {
        "a text with quotes ends at its second quote; quote all of it, with the other kind of quotes outside"
    } else if has("unclosed quote") {
        "a quoted text ends with the quote it begins with"
    } else if has("unexpected character") {
        "a text that begins with this character needs quotes around it"
    } else if has("unknown anchor") {
        "a text that begins with `*` needs quotes around it; `*name` stands for a value marked `&name` above"
    } else if has("unknown escape") {
        "in double quotes `\\` begins an escape: write `\\\\`, or use single quotes"
    } else {
        return None;
    };
    Some(advice.to_owned())
}
