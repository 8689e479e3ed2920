//! Emphasis, code, links and named characters within one line, by the rules of CommonMark. Everything
//! else stays as it was written.

use super::entities;
use crate::lines::{DIM, Style, StyledLine};

/// Longer lines, in bytes, are not parsed for inline markup.
const LONGEST: usize = 5_000;

/// How deep the names of links may hold links.
const DEEPEST: usize = 4;

/// The text in styles, behind what the line holds already.
pub fn inline(line: StyledLine, text: &str, base: Style) -> StyledLine {
    if text.len() > LONGEST {
        return line.and(base, text);
    }
    let nodes = nodes(text, base, 0);
    nodes.into_iter().fold(line, |line, node| match node {
        InlineNode::Text { text, style } => line.and(style, text),
        InlineNode::Run { sign, left, style, .. } => line.and(style, sign.to_string().repeat(left)),
    })
}

/// A piece of a line.
enum InlineNode {
    Text {
        text: String,
        style: Style,
    },
    /// Signs that may begin or end an emphasis; those that are left are text.
    Run {
        sign: char,
        count: usize,
        left: usize,
        opens: bool,
        closes: bool,
        style: Style,
    },
}

impl InlineNode {
    fn style(&mut self) -> &mut Style {
        match self {
            InlineNode::Text { style, .. } | InlineNode::Run { style, .. } => style,
        }
    }
}

fn nodes(text: &str, base: Style, depth: usize) -> Vec<InlineNode> {
    let mut nodes = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let next = after.chars().next();
        let mut found = Vec::new();
        let mut left = match c {
            '\\' if next.is_some_and(|next| next.is_ascii_punctuation()) => {
                plain.extend(next);
                after.get(1..).unwrap_or_default()
            }
            '&' => match entities::character(rest) {
                Some((found, left)) => {
                    plain.push_str(&found);
                    left
                }
                None => rest,
            },
            '`' => match code(rest) {
                Some((inner, left)) => {
                    found.push(InlineNode::Text { text: inner, style: Style { colour: Some(6), ..base } });
                    left
                }
                None => {
                    let left = rest.trim_start_matches('`');
                    plain.push_str(rest.get(..rest.len() - left.len()).unwrap_or_default());
                    left
                }
            },
            '[' if depth < DEEPEST => match link(rest) {
                Some((name, address, left)) => {
                    let bold = Style { bold: true, ..base };
                    found.extend(self::nodes(name, bold, depth + 1));
                    if name != address {
                        found.push(InlineNode::Text { text: format!(" ({address})"), style: DIM });
                    }
                    left
                }
                None => rest,
            },
            '*' | '_' => {
                let left = rest.trim_start_matches(c);
                let (opens, closes) = sides(c, before, left.chars().next());
                let count = rest.len() - left.len();
                found.push(InlineNode::Run { sign: c, count, left: count, opens, closes, style: base });
                left
            }
            _ => rest,
        };
        if left.len() == rest.len() {
            plain.push(c);
            left = after;
        }
        if !found.is_empty() {
            nodes.push(InlineNode::Text { text: std::mem::take(&mut plain), style: base });
            nodes.append(&mut found);
        }
        before = rest.get(..rest.len() - left.len()).and_then(|read| read.chars().next_back());
        rest = left;
    }
    nodes.push(InlineNode::Text { text: plain, style: base });
    emphasise(&mut nodes);
    nodes
}

/// Whether a run of signs can begin an emphasis, and whether it can end one. Inside a word `_` does neither.
fn sides(sign: char, before: Option<char>, after: Option<char>) -> (bool, bool) {
    let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let mark = |c: Option<char>| c.is_some_and(|c| !c.is_alphanumeric() && !c.is_whitespace());
    let opens = !blank(after) && (!mark(after) || blank(before) || mark(before));
    let closes = !blank(before) && (!mark(before) || blank(after) || mark(after));
    match sign {
        '_' => (opens && (!closes || mark(before)), closes && (!opens || mark(after))),
        _ => (opens, closes),
    }
}

/// Pairs the runs: each that can end an emphasis ends the nearest that can begin it.
fn emphasise(nodes: &mut [InlineNode]) {
    for end in 0..nodes.len() {
        while let Some((start, strong)) = opener(nodes, end) {
            for node in nodes.iter_mut().take(end).skip(start + 1) {
                let style = node.style();
                style.bold |= strong;
                style.italic |= !strong;
                // What stands between and found no other half is text.
                if let InlineNode::Run { opens, closes, .. } = node {
                    (*opens, *closes) = (false, false);
                }
            }
            for at in [start, end] {
                if let Some(InlineNode::Run { left, .. }) = nodes.get_mut(at) {
                    *left -= if strong { 2 } else { 1 };
                }
            }
        }
    }
}

/// The run that the one at `end` closes, and whether both are strong.
fn opener(nodes: &[InlineNode], end: usize) -> Option<(usize, bool)> {
    let Some(InlineNode::Run { sign, count, left: closing @ 1.., opens, closes: true, .. }) = nodes.get(end)
    else {
        return None;
    };
    let before = nodes.iter().enumerate().take(end).rev();
    before
        .filter_map(|(at, node)| match node {
            InlineNode::Run {
                sign: other, count: of, left: there @ 1.., opens: true, closes: both, ..
            } if other == sign => {
                // A run that can be either pairs with no run that makes three of them, unless both are
                // threes.
                let odd = (*both || *opens) && (of + count) % 3 == 0 && !(of % 3 == 0 && count % 3 == 0);
                (!odd).then_some((at, *there >= 2 && *closing >= 2))
            }
            _ => None,
        })
        .next()
}

/// A span of code: as many backticks close it as opened it. Gives its text and what follows.
fn code(text: &str) -> Option<(String, &str)> {
    let inside = text.trim_start_matches('`');
    let ticks = text.len() - inside.len();
    let mut at = 0;
    while let Some(found) = inside.get(at..).and_then(|rest| rest.find('`')) {
        let start = at + found;
        let rest = inside.get(start..)?;
        let run = rest.len() - rest.trim_start_matches('`').len();
        if run == ticks {
            let inner = inside.get(..start)?;
            let bare = inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' '));
            let inner = bare.filter(|_| !inner.trim().is_empty()).unwrap_or(inner);
            return Some((inner.to_owned(), rest.get(run..)?));
        }
        at = start + run;
    }
    None
}

/// A link: its name, its address and what follows.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = bracketed(text, '[', ']')?;
    let (address, rest) = bracketed(rest, '(', ')')?;
    let (address, title) = address.trim().split_once(' ').unwrap_or((address.trim(), ""));
    let titled = title.is_empty() || title.trim().starts_with(['"', '\'', '(']);
    titled.then_some((name, address, rest))
}

/// What stands in brackets at the start, with brackets inside it, and what follows. Code hides brackets.
fn bracketed(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let inside = text.strip_prefix(open)?;
    let mut depth = 0;
    let mut rest = inside;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match c {
            '\\' => taken += rest.chars().nth(1).map_or(0, char::len_utf8),
            '`' => {
                let left = code(rest).map_or_else(|| rest.trim_start_matches('`'), |(_, left)| left);
                taken = rest.len() - left.len();
            }
            _ if c == open => depth += 1,
            _ if c == close && depth == 0 => {
                return Some((inside.get(..inside.len() - rest.len())?, rest.get(taken..)?));
            }
            _ if c == close => depth -= 1,
            _ => {}
        }
        rest = rest.get(taken..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::PLAIN;
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    /// What another reader of CommonMark sees: each text with a mark for bold, italic and code.
    fn theirs(text: &str) -> String {
        let (mut out, mut bold, mut italic) = (Vec::new(), 0, 0);
        for event in Parser::new_ext(text, Options::empty()) {
            match event {
                Event::Start(Tag::Strong) => bold += 1,
                Event::End(TagEnd::Strong) => bold -= 1,
                Event::Start(Tag::Emphasis) => italic += 1,
                Event::End(TagEnd::Emphasis) => italic -= 1,
                Event::Text(text) => out.push((bold > 0, italic > 0, false, text.to_string())),
                Event::Code(text) => out.push((bold > 0, italic > 0, true, text.to_string())),
                _ => {}
            }
        }
        joined(out)
    }

    fn ours(text: &str) -> String {
        let line = inline(StyledLine::default(), text, PLAIN);
        joined(
            line.spans()
                .map(|(style, text)| (style.bold, style.italic, style.colour.is_some(), text.to_owned())),
        )
    }

    fn joined(pieces: impl IntoIterator<Item = (bool, bool, bool, String)>) -> String {
        let mut out = String::new();
        let mut last = (false, false, false);
        for (bold, italic, code, text) in pieces.into_iter().filter(|piece| !piece.3.is_empty()) {
            let now = (bold, italic, code);
            if now != last {
                out.push_str(&format!(
                    "<{}{}{}>",
                    if bold { "b" } else { "" },
                    if italic { "i" } else { "" },
                    if code { "c" } else { "" }
                ));
                last = now;
            }
            out.push_str(&text);
        }
        out
    }

    #[test]
    fn a_line_means_what_commonmark_makes_of_it() {
        for text in [
            "Some **bold**, *soft* and `code`, 2 * 3 * 4.",
            "Call my__tool__name and snake_case_name; x*y*z",
            "if __name__ == '__main__': x = a*b*c",
            "__init__ and _soft_ and __bold__, (_x_), \"__y__\"",
            r"\*not italic\*, \_nor this\_, \`nor code\`, a\b, \\, end\",
            "`a``b`, ``x`y``, `` ` ``, ` a `, `   `, `open",
            "```let y = 2;``` and ```x",
            "**bold with `code` and *both* in it** after",
            "***all*** and **a*b**, *a**b*, ****four****",
            "*a **b* c**, **a *b** c*, a**b**c, a__b__c",
            "** not bold ** and * not soft *, *, **, _",
            "`*not*` *`is`* **`strong`**",
            "2*3*4 = 24, f(*args, **kwargs), **\"quoted\"**.",
            "日本語**太字**です and é*ü*é",
            "a_b_ _c_d _e_",
            "*foo*bar* **foo**bar**",
            "5 > 3 && a || b | c",
            "&lt;b&gt; &amp;amp; `&lt;` &#42;no&#42; **a&quot;b** R&D; &copy; &hellip; AT&T &Alpha;&alpha; &rarr;",
        ] {
            assert_eq!(ours(text), theirs(text), "{text}");
        }
    }

    #[test]
    fn links_show_their_addresses() {
        for (text, want) in [
            ("[a](http://b.c/d_(e)) f", "a (http://b.c/d_(e)) f"),
            ("[`x[0]`](u) [y]", "x[0] (u) [y]"),
            ("[http://a](http://a)", "http://a"),
            ("a[i](j k) [ ] todo", "a[i](j k) [ ] todo"),
            ("[a](u \"title\")", "a (u)"),
        ] {
            assert_eq!(inline(StyledLine::default(), text, PLAIN).text(), want);
        }
    }

    #[test]
    fn a_line_of_signs_takes_no_time_to_speak_of() {
        for text in ["*a ", "a* ", "_a", "[", "`a``", "**a*", "\\", "[`"] {
            let long = text.repeat(4_990 / text.len());
            assert!(inline(StyledLine::default(), &long, PLAIN).text().len() <= long.len());
        }
    }
}
