//! A page as a tree of elements and texts. What is not for readers, such as scripts, is left out.

use html5gum::{Token, Tokenizer};
use toolwright_core::{ErrorKind, ToolError};

/// The most elements and texts of a page.
const MAX_NODES: usize = 200_000;

/// How deep elements may stand inside each other; deeper ones stand beside each other.
const MAX_DEPTH: usize = 200;

/// An element or a text.
pub(super) enum PageNode {
    Element(Element),
    Text(String),
}

pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) children: Vec<usize>,
}

/// A page. The first node is the element `html`.
pub(super) struct PageTree {
    nodes: Vec<PageNode>,
}

impl PageTree {
    /// Reads a page the way browsers do: nothing in it is an error.
    pub(super) fn parse(html: &str) -> Result<PageTree, ToolError> {
        let mut builder = TreeBuilder { nodes: Vec::new(), open: Vec::new(), body: None };
        builder.push("html", Vec::new());
        let mut inside = None::<Vec<u8>>;
        for Ok(token) in Tokenizer::new(html) {
            if builder.nodes.len() > MAX_NODES {
                let message = format!("the page has more than {MAX_NODES} elements");
                return Err(ToolError::of(ErrorKind::OutputLimit, message));
            }
            match (token, &inside) {
                (Token::EndTag(tag), Some(name)) if *name == *tag.name => inside = None,
                (_, Some(_)) => {}
                (Token::StartTag(tag), None) => {
                    let name = String::from_utf8_lossy(&tag.name).into_owned();
                    if is_dropped(&name) {
                        if !tag.self_closing && !is_void(&name) {
                            inside = Some(tag.name.to_vec());
                        }
                        continue;
                    }
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let attributes =
                        tag.attributes.iter().map(|(name, value)| (text(name), text(value))).collect();
                    builder.start(&name, attributes);
                }
                (Token::EndTag(tag), None) => builder.end(&String::from_utf8_lossy(&tag.name)),
                (Token::String(text), None) => builder.text(&String::from_utf8_lossy(&text)),
                _ => {}
            }
        }
        Ok(PageTree { nodes: builder.nodes })
    }

    pub(super) fn get(&self, at: usize) -> Option<&PageNode> {
        self.nodes.get(at)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The element at a place; `None` for texts.
    pub(super) fn element(&self, at: usize) -> Option<&Element> {
        match self.nodes.get(at)? {
            PageNode::Element(element) => Some(element),
            PageNode::Text(_) => None,
        }
    }

    pub(super) fn children(&self, at: usize) -> &[usize] {
        self.element(at).map(|element| element.children.as_slice()).unwrap_or_default()
    }

    /// All text inside an element, as it stands.
    pub(super) fn content(&self, at: usize) -> String {
        let mut out = String::new();
        let mut waiting = vec![at];
        while let Some(at) = waiting.pop() {
            match self.nodes.get(at) {
                Some(PageNode::Text(text)) => out.push_str(text),
                Some(PageNode::Element(element)) => waiting.extend(element.children.iter().rev()),
                None => {}
            }
        }
        out
    }
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

struct TreeBuilder {
    nodes: Vec<PageNode>,
    /// The elements that are not closed yet, outermost first.
    open: Vec<usize>,
    body: Option<usize>,
}

impl TreeBuilder {
    fn start(&mut self, name: &str, attributes: Vec<(String, String)>) {
        match name {
            "html" => return,
            "head" if self.body.is_none() && self.open.len() == 1 => {}
            "head" => return,
            "body" => {
                self.begin_body(attributes);
                return;
            }
            "title" if self.body.is_none() => {}
            _ => self.begin_body(Vec::new()),
        }
        while self.open.len() > 1 && self.top().is_some_and(|open| ends_with(open, name)) {
            self.open.pop();
        }
        let at = self.add(name, attributes);
        if !is_void(name) && self.open.len() < MAX_DEPTH {
            self.open.push(at);
        }
    }

    /// The first thing that is shown begins the body, whether the page says so or not.
    fn begin_body(&mut self, attributes: Vec<(String, String)>) {
        if self.body.is_none() {
            self.open.truncate(1);
            self.push("body", attributes);
            self.body = self.open.last().copied();
        }
    }

    fn end(&mut self, name: &str) {
        if matches!(name, "html" | "body") {
            return;
        }
        let floor = if self.body.is_some() { 2 } else { 1 };
        let found = self.open.iter().rposition(|at| self.name(*at) == Some(name));
        if let Some(found) = found.filter(|found| *found >= floor) {
            self.open.truncate(found);
        }
    }

    fn text(&mut self, text: &str) {
        if self.body.is_none() && self.top() != Some("title") {
            if text.trim().is_empty() {
                return;
            }
            self.begin_body(Vec::new());
        }
        let at = self.nodes.len();
        self.nodes.push(PageNode::Text(text.to_owned()));
        self.adopt(at);
    }

    fn push(&mut self, name: &str, attributes: Vec<(String, String)>) {
        let at = self.add(name, attributes);
        self.open.push(at);
    }

    fn add(&mut self, name: &str, attributes: Vec<(String, String)>) -> usize {
        let at = self.nodes.len();
        self.nodes.push(PageNode::Element(Element {
            name: name.to_owned(),
            attributes,
            children: Vec::new(),
        }));
        self.adopt(at);
        at
    }

    fn adopt(&mut self, child: usize) {
        if let Some(PageNode::Element(parent)) = self.open.last().and_then(|at| self.nodes.get_mut(*at)) {
            parent.children.push(child);
        }
    }

    fn name(&self, at: usize) -> Option<&str> {
        match self.nodes.get(at)? {
            PageNode::Element(element) => Some(&element.name),
            PageNode::Text(_) => None,
        }
    }

    fn top(&self) -> Option<&str> {
        self.open.last().and_then(|at| self.name(*at))
    }
}

/// Elements that are not shown, with all that is inside.
fn is_dropped(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "iframe"
            | "object"
            | "embed"
            | "applet"
            | "param"
            | "frame"
            | "frameset"
            | "link"
            | "meta"
    )
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Whether an open element ends where another one begins, because its end tag may be left out.
fn ends_with(open: &str, next: &str) -> bool {
    match open {
        "p" => is_block(next),
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot"),
        "tr" => matches!(next, "tr" | "tbody" | "thead" | "tfoot"),
        "thead" | "tbody" | "tfoot" => matches!(next, "tbody" | "thead" | "tfoot"),
        "option" => matches!(next, "option" | "optgroup"),
        _ => false,
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "details"
            | "div"
            | "dl"
            | "dt"
            | "dd"
            | "fieldset"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "li"
            | "main"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "table"
            | "tr"
            | "td"
            | "th"
            | "ul"
    )
}
