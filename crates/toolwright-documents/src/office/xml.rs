//! XML as a tree of elements and texts, without namespaces. Entities of a document type are never expanded.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::error::DocumentError;
use crate::options::ReadingState;

/// The most elements and texts of a part.
const MAX_NODES: usize = 4_000_000;

pub(crate) enum XmlNode {
    Element { name: Box<str>, attributes: Vec<(Box<str>, Box<str>)>, children: Vec<u32> },
    Text(Box<str>),
}

pub(crate) struct XmlTree {
    nodes: Vec<XmlNode>,
}

impl XmlTree {
    pub(crate) fn parse(data: &[u8], reading: &ReadingState<'_>) -> Result<Self, DocumentError> {
        let text = crate::text::decode(data);
        let mut reader = Reader::from_str(&text);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        let root = XmlNode::Element { name: "".into(), attributes: Vec::new(), children: Vec::new() };
        let mut tree = XmlTree { nodes: vec![root] };
        let mut open: Vec<u32> = vec![0];
        let depth = reading.options.limits.depth.max(8);
        let mut count = 0u32;
        loop {
            count = count.wrapping_add(1);
            if tree.nodes.len() > MAX_NODES {
                return Err(DocumentError::limit(format!("a part has more than {MAX_NODES} elements")));
            }
            if count.is_multiple_of(65_536) && reading.is_late() {
                return Err(DocumentError::limit(reading.late()));
            }
            match reader.read_event() {
                Ok(Event::Start(start)) => {
                    // Deeper elements become texts of their ancestor: nothing recurses without end.
                    if open.len() > depth {
                        return Err(DocumentError::limit(format!("elements are nested deeper than {depth}")));
                    }
                    let at = tree.push(&open, element(&start));
                    open.push(at);
                }
                Ok(Event::Empty(start)) => {
                    tree.push(&open, element(&start));
                }
                Ok(Event::End(_)) => {
                    if open.len() > 1 {
                        open.pop();
                    }
                }
                Ok(Event::Text(text)) => {
                    tree.push_text(&open, &text.xml_content(quick_xml::XmlVersion::Implicit1_0));
                }
                Ok(Event::CData(text)) => {
                    tree.push_text(&open, &text.xml_content(quick_xml::XmlVersion::Implicit1_0));
                }
                Ok(Event::GeneralRef(reference)) => {
                    let known = match reference.resolve_char_ref() {
                        Ok(Some(ch)) => Some(ch),
                        _ => match &*reference {
                            "amp" => Some('&'),
                            "lt" => Some('<'),
                            "gt" => Some('>'),
                            "quot" => Some('"'),
                            "apos" => Some('\''),
                            "nbsp" => Some('\u{a0}'),
                            _ => None,
                        },
                    };
                    if let Some(ch) = known {
                        tree.push_text(&open, ch.encode_utf8(&mut [0; 4]));
                    }
                }
                Ok(Event::Eof) => return Ok(tree),
                Ok(_) => {}
                // What was read before the damage is worth having.
                Err(_) if tree.nodes.len() > 2 => return Ok(tree),
                Err(_) => return Err(DocumentError::damaged("a part is not well-formed XML")),
            }
        }
    }

    fn push(&mut self, open: &[u32], node: XmlNode) -> u32 {
        let at = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(node);
        let parent = open.last().copied().unwrap_or(0);
        if let Some(XmlNode::Element { children, .. }) = self.nodes.get_mut(parent as usize) {
            children.push(at);
        }
        at
    }

    fn push_text(&mut self, open: &[u32], text: &str) {
        if text.is_empty() {
            return;
        }
        let parent = open.last().copied().unwrap_or(0);
        let last = match self.nodes.get(parent as usize) {
            Some(XmlNode::Element { children, .. }) => children.last().copied(),
            _ => None,
        };
        if let Some(XmlNode::Text(before)) = last.and_then(|last| self.nodes.get_mut(last as usize)) {
            let mut joined = std::mem::take(before).into_string();
            joined.push_str(text);
            *before = joined.into_boxed_str();
            return;
        }
        self.push(open, XmlNode::Text(text.into()));
    }

    pub(crate) fn root(&self) -> u32 {
        0
    }

    pub(crate) fn name(&self, at: u32) -> &str {
        match self.nodes.get(at as usize) {
            Some(XmlNode::Element { name, .. }) => name,
            _ => "",
        }
    }

    pub(crate) fn own_text(&self, at: u32) -> Option<&str> {
        match self.nodes.get(at as usize) {
            Some(XmlNode::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn children(&self, at: u32) -> &[u32] {
        match self.nodes.get(at as usize) {
            Some(XmlNode::Element { children, .. }) => children,
            _ => &[],
        }
    }

    /// An attribute by its name without namespace.
    pub(crate) fn attribute(&self, at: u32, wanted: &str) -> Option<&str> {
        match self.nodes.get(at as usize) {
            Some(XmlNode::Element { attributes, .. }) => {
                attributes.iter().find(|(name, _)| **name == *wanted).map(|(_, value)| &**value)
            }
            _ => None,
        }
    }

    /// All attributes.
    pub(crate) fn attributes(&self, at: u32) -> impl Iterator<Item = (&str, &str)> {
        let attributes = match self.nodes.get(at as usize) {
            Some(XmlNode::Element { attributes, .. }) => attributes.as_slice(),
            _ => &[],
        };
        attributes.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The first child of a name.
    pub(crate) fn child(&self, at: u32, name: &str) -> Option<u32> {
        self.children(at).iter().copied().find(|child| self.name(*child) == name)
    }

    /// The first descendant of a name.
    pub(crate) fn find(&self, at: u32, name: &str) -> Option<u32> {
        self.walk(at).find(|node| self.name(*node) == name)
    }

    /// All descendants of a name.
    pub(crate) fn all(&self, at: u32, name: &str) -> Vec<u32> {
        self.walk(at).filter(|node| self.name(*node) == name).collect()
    }

    /// All descendants in the order of the document.
    pub(crate) fn walk(&self, at: u32) -> impl Iterator<Item = u32> {
        let mut stack: Vec<u32> = self.children(at).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let next = stack.pop()?;
            stack.extend(self.children(next).iter().rev().copied());
            Some(next)
        })
    }

    /// The texts of an element, one after the other.
    pub(crate) fn text(&self, at: u32) -> String {
        let mut text = String::new();
        text.extend(self.own_text(at));
        for node in self.walk(at) {
            text.extend(self.own_text(node));
        }
        text
    }
}

fn element(start: &BytesStart<'_>) -> XmlNode {
    let attributes = start
        .attributes()
        .with_checks(false)
        .flatten()
        .take(200)
        .map(|attribute| {
            let value = attribute
                .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                .map_or_else(|_| attribute.value.to_string(), |value| value.into_owned());
            (local(attribute.key.as_ref()), value.into_boxed_str())
        })
        .collect();
    XmlNode::Element { name: local(start.name().as_ref()), attributes, children: Vec::new() }
}

fn local(name: &str) -> Box<str> {
    name.rsplit(':').next().unwrap_or(name).into()
}
