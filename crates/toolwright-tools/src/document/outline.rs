//! What a long document holds, before any of it is read.

use toolwright_documents::{Document, Unit};

/// The first lines about a document: what it is, and its outline as far as it fits.
pub(crate) fn overview(document: &Document, path: &str, budget: usize) -> String {
    let info = &document.info;
    let mut about = vec![info.kind.clone()];
    if info.total > 1 || info.unit != Unit::Page {
        about.push(counted(info.unit, info.total));
    }
    about.extend(info.title.iter().map(|title| format!("\"{}\"", short(title))));
    about.extend(info.author.iter().map(|author| short(author)));
    let mut text = format!("[{path}: {}]\n", about.join(", "));
    if document.outline.is_empty() {
        return text;
    }
    text.push_str("[outline]\n");
    let deepest = document.outline.iter().map(|entry| entry.level).max().unwrap_or(1);
    // Where not all of it fits, the upper levels say more than the first pages of all of them.
    let depth = (1..=deepest)
        .rev()
        .find(|depth| lines(document, *depth).map(|l| l.len() + 1).sum::<usize>() <= budget);
    let depth = depth.unwrap_or(1);
    let mut left = budget;
    let mut shown = 0;
    for line in lines(document, depth) {
        let Some(rest) = left.checked_sub(line.len() + 1) else { break };
        left = rest;
        shown += 1;
        text.push_str(&line);
        text.push('\n');
    }
    match document.outline.len() - shown {
        0 => text.push_str("[end of the outline]\n"),
        more => text.push_str(&format!("[end of the outline; {more} more entries]\n")),
    }
    text
}

fn lines(document: &Document, depth: u8) -> impl Iterator<Item = String> {
    let unit = document.info.unit.name();
    let several = document.info.total > 1;
    document.outline.iter().filter(move |entry| entry.level <= depth).map(move |entry| {
        let indent = "  ".repeat(usize::from(entry.level).saturating_sub(1).min(8));
        let page = match entry.page {
            page if page > 0 && several => format!("  ({unit} {page})"),
            _ => String::new(),
        };
        format!("{indent}{}{page}", short(&entry.title))
    })
}

/// `212 pages`.
pub(crate) fn counted(unit: Unit, total: u32) -> String {
    format!("{total} {}{}", unit.name(), if total == 1 { "" } else { "s" })
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(150) {
        Some((at, _)) => format!("{}...", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use toolwright_documents::OutlineEntry;

    use super::*;

    #[test]
    fn an_outline_that_does_not_fit_shows_its_upper_levels() {
        let entry = |level: u8, title: &str, page: u32| OutlineEntry { level, title: title.to_owned(), page };
        let mut document = Document::default();
        document.info.kind = "pdf".to_owned();
        document.info.total = 9;
        document.outline = vec![entry(1, "One", 1), entry(2, "Deep", 2), entry(1, "Two", 5)];
        let whole = overview(&document, "a.pdf", 1000);
        assert_eq!(
            whole,
            "[a.pdf: pdf, 9 pages]\n[outline]\nOne  (page 1)\n  Deep  (page 2)\nTwo  (page 5)\n[end of the outline]\n"
        );
        let upper = overview(&document, "a.pdf", 30);
        assert!(upper.ends_with("Two  (page 5)\n[end of the outline; 1 more entries]\n"), "{upper}");
        assert!(!upper.contains("Deep"));
    }
}
