//! A part of a page as plain text: blocks on lines of their own, words with single blanks between them.

use super::tree::{PageNode, PageTree};

/// What was written last.
enum Last {
    Line,
    BlankLine,
    /// Whether the words ended with a blank, and whether with an opening bracket.
    Words {
        blank: bool,
        bracket: bool,
    },
}

/// The text of an element.
pub(super) fn text(tree: &PageTree, at: usize) -> String {
    let mut out = String::new();
    let mut last = Last::BlankLine;
    let mut waiting = vec![(at, false)];
    while let Some((at, ends)) = waiting.pop() {
        match tree.get(at) {
            Some(PageNode::Element(element)) => {
                break_line(&mut out, &mut last, &element.name);
                if !ends {
                    waiting.push((at, true));
                    waiting.extend(element.children.iter().rev().map(|child| (*child, false)));
                }
            }
            Some(PageNode::Text(words)) => add(&mut out, &mut last, words),
            None => {}
        }
    }
    out.trim().to_owned()
}

fn add(out: &mut String, last: &mut Last, words: &str) {
    let mut pieces = words.split_whitespace().peekable();
    let Some(first) = pieces.peek() else { return };
    if let Last::Words { blank, bracket } = last {
        let sticks = first.starts_with([',', ':', ';', '.', '!', '?', '"', ')']) || *bracket;
        if *blank || !sticks {
            out.push(' ');
        }
    }
    for (place, piece) in pieces.enumerate() {
        if place > 0 {
            out.push(' ');
        }
        out.push_str(piece);
    }
    *last = Last::Words { blank: words.ends_with(char::is_whitespace), bracket: words.ends_with('(') };
}

fn break_line(out: &mut String, last: &mut Last, name: &str) {
    let blank = matches!(
        name,
        "blockquote"
            | "dl"
            | "figure"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "ol"
            | "p"
            | "pre"
            | "title"
            | "ul"
    );
    let line = matches!(
        name,
        "article"
            | "aside"
            | "br"
            | "dd"
            | "details"
            | "div"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "footer"
            | "form"
            | "header"
            | "hr"
            | "legend"
            | "li"
            | "main"
            | "nav"
            | "table"
            | "tr"
    );
    match last {
        Last::BlankLine => {}
        Last::Line if blank => {
            out.push('\n');
            *last = Last::BlankLine;
        }
        Last::Words { .. } if blank => {
            out.push_str("\n\n");
            *last = Last::BlankLine;
        }
        Last::Words { .. } if line => {
            out.push('\n');
            *last = Last::Line;
        }
        _ => {}
    }
}
