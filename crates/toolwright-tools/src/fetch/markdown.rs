//! A part of a page as Markdown: headings, paragraphs, lists, quotes, code, tables, links and emphasis.

use toolwright_net::reqwest::Url;

use super::tree::{Element, PageNode, PageTree};

/// The Markdown of an element; `None` when it is longer than `most` bytes. Addresses are made whole with the
/// address of the page.
pub(super) fn markdown(tree: &PageTree, at: usize, page: &Url, most: usize) -> Option<String> {
    let (out, prefix) = (String::new(), String::new());
    let mut writer =
        MarkdownWriter { tree, page, out, prefix, lists: Vec::new(), literal: false, left: most };
    writer.node(at);
    let mut out = writer.out.trim().to_owned();
    out.push_str("\n\n");
    (writer.left > 0).then_some(out)
}

struct MarkdownWriter<'t> {
    tree: &'t PageTree,
    page: &'t Url,
    out: String,
    /// What each line begins with: the marks of quotes and the indent of lists.
    prefix: String,
    /// The lists around this place: the next number of a numbered one.
    lists: Vec<Option<u64>>,
    /// Inside `pre`, where blanks and lines stay as they are.
    literal: bool,
    /// How much more may be written. Marks and addresses are repeated on every line and at every link, so a
    /// page can ask for a thousand times its own length.
    left: usize,
}

impl MarkdownWriter<'_> {
    fn node(&mut self, at: usize) {
        match self.tree.get(at) {
            _ if self.left == 0 => {}
            Some(PageNode::Text(text)) => self.text(text),
            Some(PageNode::Element(element)) => self.element(element),
            None => {}
        }
    }

    /// Writes what is longer than a mark; nothing when it does not fit.
    fn write(&mut self, text: &str) {
        self.left = self.left.saturating_sub(text.len());
        if self.left > 0 {
            self.out.push_str(text);
        }
    }

    fn write_prefix(&mut self) {
        let prefix = std::mem::take(&mut self.prefix);
        self.write(&prefix);
        self.prefix = prefix;
    }

    fn inside(&mut self, element: &Element) {
        for child in &element.children {
            self.node(*child);
        }
    }

    fn element(&mut self, element: &Element) {
        match element.name.as_str() {
            "head" => {}
            name @ ("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                let level = name.trim_start_matches('h').parse().unwrap_or(1);
                self.block(|writer| {
                    writer.word(&"#".repeat(level));
                    writer.out.push(' ');
                    writer.inside(element);
                });
            }
            "p" | "div" | "section" | "article" | "main" | "header" | "footer" | "nav" | "aside"
            | "figure" | "figcaption" | "form" | "fieldset" | "details" | "dl" => {
                self.block(|writer| writer.inside(element))
            }
            "dt" | "dd" => {
                self.line();
                self.inside(element);
                self.line();
            }
            "br" => {
                self.out.push_str("  ");
                self.line();
            }
            "hr" => self.block(|writer| writer.word("* * *")),
            "ul" => self.list(element, None),
            "ol" => {
                self.list(element, Some(element.attribute("start").and_then(|n| n.parse().ok()).unwrap_or(1)))
            }
            "li" => self.item(element),
            "blockquote" => self.quote(element),
            "pre" => self.code_block(element),
            "code" | "kbd" | "samp" | "tt" if !self.literal => self.between("`", "`", element),
            "em" | "i" | "u" if !self.literal => self.between("_", "_", element),
            "strong" | "b" if !self.literal => self.between("**", "**", element),
            "del" | "s" | "strike" if !self.literal => self.between("~~", "~~", element),
            "a" => self.link(element),
            "img" => self.image(element),
            "table" => self.table(element),
            _ => self.inside(element),
        }
    }

    fn text(&mut self, text: &str) {
        if self.literal {
            for (place, line) in text.split('\n').enumerate() {
                if place > 0 {
                    self.write("\n");
                    self.write_prefix();
                }
                self.write(line);
            }
            return;
        }
        if text.starts_with(char::is_whitespace) && !self.at_start() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return;
        }
        self.word(&words.join(" "));
        if text.ends_with(char::is_whitespace) {
            self.out.push(' ');
        }
    }

    /// Writes something, after what the line begins with.
    fn word(&mut self, text: &str) {
        if self.out.is_empty() || self.out.ends_with('\n') {
            self.write_prefix();
        }
        self.write(text);
    }

    fn at_start(&self) -> bool {
        self.out.is_empty() || self.out.ends_with('\n') || self.out.ends_with(&format!("\n{}", self.prefix))
    }

    /// Ends the line, if it has begun.
    fn line(&mut self) {
        let kept = self.out.trim_end_matches(' ').len();
        if !self.out.ends_with("  ") {
            self.out.truncate(kept);
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn blank_line(&mut self) {
        self.line();
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn block(&mut self, write: impl FnOnce(&mut Self)) {
        // The first block of an item stands on the item's line.
        if !self.item_begins() {
            self.blank_line();
        }
        write(self);
        self.blank_line();
    }

    fn item_begins(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default().trim();
        !self.lists.is_empty()
            && (line == "*" || line.strip_suffix('.').is_some_and(|n| n.parse::<u64>().is_ok()))
    }

    fn between(&mut self, before: &str, after: &str, element: &Element) {
        let start = self.out.len();
        self.inside(element);
        let written = self.out.split_off(start);
        let trimmed = written.trim();
        if trimmed.is_empty() {
            self.out.push_str(&written);
            return;
        }
        let (lead, rest) = written.split_at(written.len() - written.trim_start().len());
        self.out.push_str(lead);
        self.out.push_str(before);
        self.out.push_str(rest.trim_end());
        self.write(after);
        self.out.push_str(rest.get(rest.trim_end().len()..).unwrap_or_default());
    }

    fn link(&mut self, element: &Element) {
        match element.attribute("href").and_then(|address| self.whole(address)) {
            Some(address) if !self.literal => {
                let end = format!("]({address})");
                self.between("[", &end, element);
            }
            _ => self.inside(element),
        }
    }

    fn image(&mut self, element: &Element) {
        if let Some(address) = element.attribute("src").and_then(|address| self.whole(address)) {
            let words = element.attribute("alt").unwrap_or_default().replace(['[', ']', '\n'], " ");
            self.word(&format!("![{words}]({address})"));
        }
    }

    /// An address made whole; none for scripts in addresses.
    fn whole(&self, address: &str) -> Option<String> {
        let address = self.page.join(address.trim()).ok()?;
        (!matches!(address.scheme(), "javascript" | "data")).then(|| address.to_string().replace(')', "%29"))
    }

    fn list(&mut self, element: &Element, first: Option<u64>) {
        if self.lists.is_empty() {
            self.blank_line();
        } else {
            self.line();
        }
        self.lists.push(first);
        self.inside(element);
        self.lists.pop();
        if self.lists.is_empty() {
            self.blank_line();
        } else {
            self.line();
        }
    }

    fn item(&mut self, element: &Element) {
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "* ".to_owned(),
        };
        self.line();
        self.word(&format!("  {mark}"));
        let outer = self.prefix.clone();
        self.prefix.push_str(&" ".repeat(mark.len() + 2));
        self.inside(element);
        self.prefix = outer;
        self.line();
    }

    fn quote(&mut self, element: &Element) {
        self.blank_line();
        let outer = self.prefix.clone();
        self.prefix.push_str("> ");
        self.inside(element);
        self.prefix = outer;
        self.blank_line();
    }

    fn code_block(&mut self, element: &Element) {
        self.blank_line();
        let outer = self.prefix.clone();
        self.prefix.push_str("    ");
        self.word("");
        self.literal = true;
        self.inside(element);
        self.literal = false;
        self.prefix = outer;
        self.blank_line();
    }

    fn table(&mut self, element: &Element) {
        self.blank_line();
        let mut rows = Vec::new();
        collect(self.tree, element, "tr", &mut rows);
        for (place, row) in rows.into_iter().enumerate() {
            let mut cells = Vec::new();
            for child in &row.children {
                if let Some(cell) =
                    self.tree.element(*child).filter(|cell| matches!(cell.name.as_str(), "td" | "th"))
                {
                    let start = self.out.len();
                    self.inside(cell);
                    let text = self.out.split_off(start);
                    cells.push(text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"));
                }
            }
            if cells.is_empty() {
                continue;
            }
            self.word(&cells.join(" | "));
            self.line();
            if place == 0 {
                self.word(&vec!["---"; cells.len()].join("|"));
                self.line();
            }
        }
        self.blank_line();
    }
}

/// The elements of a name inside another, without looking into them. The depth of the tree is bounded.
fn collect<'t>(tree: &'t PageTree, element: &Element, name: &str, into: &mut Vec<&'t Element>) {
    for child in &element.children {
        match tree.element(*child) {
            Some(found) if found.name == name => into.push(found),
            Some(other) => collect(tree, other, name, into),
            None => {}
        }
    }
}
