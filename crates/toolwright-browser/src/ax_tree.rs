//! The visible part of a page as Inspect shows it: Chromium's accessibility tree, one line for each node.

use std::collections::HashMap;

use serde_json::Value;

/// The area of the page that counts as visible.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Viewport {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A page as lines, and the nodes that the numbers in it stand for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AxText {
    pub(crate) tree: String,
    pub(crate) main: Option<String>,
    /// DOM nodes by the number in the text.
    pub(crate) nodes: HashMap<i64, i64>,
}

type Area = [f64; 4];

struct AxNode<'a> {
    id: &'a str,
    role: &'a str,
    name: &'a str,
    value: String,
    dom: Option<i64>,
    properties: &'a [Value],
    children: Vec<&'a str>,
    ignored: bool,
}

/// Properties that are not shown.
const SILENT: [&str; 6] = ["focusable", "readonly", "level", "settable", "multiline", "invalid"];
/// Deeper trees are not followed.
const MAX_DEPTH: usize = 400;

/// Makes the text from `Accessibility.getFullAXTree` and `DOMSnapshot.captureSnapshot`.
pub(crate) fn ax_text(tree: &Value, snapshot: &Value, viewport: Viewport) -> AxText {
    let (areas, scroll) = areas(snapshot);
    let list = tree.get("nodes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let nodes: HashMap<&str, AxNode<'_>> =
        list.iter().filter_map(|node| node_of(node).map(|node| (node.id, node))).collect();
    let mut writer = AxWriter { nodes: &nodes, areas, scroll, viewport, out: AxText::default() };
    if let Some(root) = list.first().and_then(|root| root.get("nodeId")).and_then(Value::as_str) {
        writer.write(root, 0, &AxOuter::default(), 0);
        writer.out.main = writer.main_text(root);
    }
    writer.out
}

fn node_of(node: &Value) -> Option<AxNode<'_>> {
    let text = |pointer: &str| node.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let value = match node.pointer("/value/value") {
        Some(Value::String(text)) => text.clone(),
        Some(value @ Value::Number(_)) => value.to_string(),
        _ => String::new(),
    };
    let children = node.get("childIds").and_then(Value::as_array).into_iter().flatten();
    Some(AxNode {
        id: node.get("nodeId")?.as_str()?,
        role: text("/role/value"),
        name: text("/name/value"),
        value,
        dom: node.get("backendDOMNodeId").and_then(Value::as_i64),
        properties: node.get("properties").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default(),
        children: children.filter_map(Value::as_str).collect(),
        ignored: node.get("ignored").and_then(Value::as_bool).unwrap_or_default(),
    })
}

/// The areas of DOM nodes on the whole page, and how far it is scrolled.
fn areas(snapshot: &Value) -> (HashMap<i64, Area>, (f64, f64)) {
    let Some(document) = snapshot.pointer("/documents/0") else { return Default::default() };
    let number = |name: &str| document.get(name).and_then(Value::as_f64).unwrap_or_default();
    let array = |pointer: &str| document.pointer(pointer).and_then(Value::as_array);
    let ids = array("/nodes/backendNodeId");
    let placed = array("/layout/nodeIndex").zip(array("/layout/bounds"));
    let mut areas = HashMap::new();
    if let (Some(ids), Some((indices, bounds))) = (ids, placed) {
        for (index, bounds) in indices.iter().zip(bounds) {
            let id = index
                .as_u64()
                .and_then(|index| ids.get(usize::try_from(index).ok()?))
                .and_then(Value::as_i64);
            let area: Option<Vec<f64>> =
                bounds.as_array().map(|all| all.iter().filter_map(Value::as_f64).collect());
            if let (Some(id), Some([x, y, width, height])) = (id, area.as_deref()) {
                areas.entry(id).or_insert([*x, *y, *width, *height]);
            }
        }
    }
    (areas, (number("scrollOffsetX"), number("scrollOffsetY")))
}

struct AxWriter<'a> {
    nodes: &'a HashMap<&'a str, AxNode<'a>>,
    areas: HashMap<i64, Area>,
    scroll: (f64, f64),
    viewport: Viewport,
    out: AxText,
}

/// What stands around a node and decides whether it is shown.
#[derive(Clone, Default)]
struct AxOuter<'a> {
    name: &'a str,
    /// The area of a named link or button: what lies in it is part of its name.
    control: Option<Area>,
}

impl<'a> AxWriter<'a> {
    fn area(&self, node: &AxNode<'_>) -> Option<Area> {
        self.areas.get(&node.dom?).copied()
    }

    fn is_visible(&self, [x, y, width, height]: Area) -> bool {
        let (left, top) = (x - self.scroll.0, y - self.scroll.1);
        let across = left + width > 0.0 && left < self.viewport.width;
        width > 0.0 && height > 0.0 && across && top + height > 0.0 && top < self.viewport.height
    }

    fn write(&mut self, id: &str, indent: usize, outer: &AxOuter<'a>, depth: usize) {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id).filter(|_| depth < MAX_DEPTH) else { return };
        let area = self.area(node);
        let shown = !node.ignored
            && node.role != "InlineTextBox"
            && node.role != "RootWebArea"
            && area.is_some_and(|area| self.is_visible(area))
            && !(node.name.is_empty() && matches!(node.role, "generic" | "paragraph" | "div" | "none"))
            && (node.name.is_empty() || node.name != outer.name)
            && !area.zip(outer.control).is_some_and(|(inner, outer)| is_inside(inner, outer));
        let mut inner = outer.clone();
        if shown {
            let line = line(node);
            self.out.tree.push_str(&"  ".repeat(indent));
            self.out.tree.push_str(&line);
            self.out.tree.push('\n');
            if let (Ok(number), Some(dom)) = (node.id.parse(), node.dom) {
                self.out.nodes.insert(number, dom);
            }
            inner.name = node.name;
            if matches!(node.role, "link" | "button") && !node.name.is_empty() {
                inner.control = area;
            }
        }
        for child in &node.children {
            self.write(child, indent + usize::from(shown), &inner, depth + 1);
        }
    }

    /// The text of the part with the role `main`: names in order, one paragraph after the other.
    fn main_text(&self, root: &str) -> Option<String> {
        let nodes = self.nodes;
        let mut open = vec![root];
        let mut main = None;
        while let Some(id) = open.pop() {
            let Some(node) = nodes.get(id) else { continue };
            if node.role == "main" && !node.ignored {
                main = Some(node);
                break;
            }
            open.extend(node.children.iter().rev());
        }
        let mut blocks = vec![String::new()];
        let mut rest: Vec<(&str, bool)> = main?.children.iter().rev().map(|id| (*id, true)).collect();
        while let Some((id, top)) = rest.pop() {
            let Some(node) = nodes.get(id) else { continue };
            if top && blocks.last().is_some_and(|block| !block.is_empty()) {
                blocks.push(String::new());
            }
            let text = node.name.trim();
            if node.role != "InlineTextBox"
                && !node.ignored
                && !text.is_empty()
                && let Some(block) = blocks.last_mut()
            {
                if !block.is_empty() {
                    block.push(' ');
                }
                block.push_str(text);
            }
            rest.extend(node.children.iter().rev().map(|id| (*id, false)));
        }
        let text = blocks.join("\n\n").trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

fn is_inside(inner: Area, outer: Area) -> bool {
    let [x, y, width, height] = inner;
    let [left, top, outer_width, outer_height] = outer;
    x >= left && y >= top && x + width <= left + outer_width && y + height <= top + outer_height
}

fn line(node: &AxNode<'_>) -> String {
    let mut line = format!("[{}] {}", node.id, node.role);
    if !node.name.is_empty() {
        let name = if node.role == "StaticText" { node.name } else { node.name.trim() };
        line.push_str(&format!(" \"{}\"", plain(name)));
    }
    if node.role == "image"
        && let Some(url) = property(node, "url")
    {
        line.push_str(&format!(" {}", address(url)));
    }
    if !node.value.is_empty() {
        line.push_str(&format!(" Current input: \"{}\"", plain(&node.value)));
    }
    line.push(' ');
    let properties: Vec<String> = node.properties.iter().filter_map(shown_property).collect();
    if !properties.is_empty() {
        line.push_str(&format!(" [{}]", properties.join(", ")));
    }
    line
}

fn property<'a>(node: &AxNode<'a>, name: &str) -> Option<&'a str> {
    let found =
        node.properties.iter().find(|property| property.get("name").and_then(Value::as_str) == Some(name));
    found?.pointer("/value/value").and_then(Value::as_str)
}

fn shown_property(property: &Value) -> Option<String> {
    let name = property.get("name").and_then(Value::as_str).filter(|name| !SILENT.contains(name))?;
    Some(match property.pointer("/value/value") {
        Some(Value::Bool(true)) => format!("{name}: True"),
        Some(Value::String(text)) if name == "url" => format!("{name}: {}", address(text)),
        Some(Value::String(text)) if !text.is_empty() => format!("{name}: {}", plain(text)),
        Some(Value::Number(number)) if number.as_f64() != Some(0.0) => format!("{name}: {number}"),
        _ => name.to_owned(),
    })
}

/// A text in one line, what cannot be seen in it escaped.
fn plain(text: &str) -> String {
    toolwright_core::text::visible(&text.replace(['\n', '\r', '\t'], " "))
}

/// An address without the bytes that some carry.
fn address(url: &str) -> String {
    match url.starts_with("data:") && url.contains("base64,") {
        true => "data:<base64-data-removed>".to_owned(),
        false => plain(url),
    }
}
