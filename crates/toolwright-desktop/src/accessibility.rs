//! The screen as text: what programs tell assistive technology about their windows, with references for
//! clicks.

use toolwright_core::text::{clip, visible};
use toolwright_core::{Content, DynProcessHandle, ToolError, ToolOutput};

use crate::dbus::{Argument, Bus, BusCall, BusError, BusValue};
use crate::desktop::{Desktop, external};
use crate::launch::{LaunchedRelay, relay};
use crate::scale::Point;

/// The most elements of one reading.
const MAX_NODES: usize = 1500;
/// How deep windows are read.
const MAX_DEPTH: usize = 40;
/// The most characters of a reading, about 2,000 tokens.
const MAX_TEXT: usize = 8000;
/// The most characters of the text of one element.
const MAX_ELEMENT: i32 = 4000;
/// The most elements that are asked at once.
const AT_ONCE: usize = 200;

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
const COMPONENT: &str = "org.a11y.atspi.Component";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const TEXT: &str = "org.a11y.atspi.Text";

// Numbers of states, as AT-SPI counts them.
const ACTIVE: u32 = 1;
const CHECKED: u32 = 4;
const FOCUSED: u32 = 12;
const SELECTED: u32 = 23;
const SENSITIVE: u32 = 24;
const SHOWING: u32 = 25;

/// Roles that are shown with their text.
const WITH_TEXT: [&str; 7] =
    ["text", "entry", "terminal", "paragraph", "password text", "document frame", "spin button"];
/// Roles that only hold others.
const HOLDERS: [&str; 13] = [
    "panel",
    "filler",
    "scroll pane",
    "viewport",
    "split pane",
    "layered pane",
    "root pane",
    "redundant object",
    "section",
    "separator",
    "scroll bar",
    "unknown",
    "application",
];

/// The connection to the bus of the programs, and what was shown of it.
pub(crate) struct Accessibility {
    bus: Bus,
    _process: Box<DynProcessHandle>,
    shown: Vec<ShownElement>,
}

/// An element that has a reference.
#[derive(Debug, Clone)]
struct ShownElement {
    node: Node,
    role: String,
    name: String,
}

/// An object of a program: the program's name on the bus, and the object's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    program: String,
    path: String,
}

/// What is known about an object.
#[derive(Debug, Default)]
struct Facts {
    name: String,
    role: String,
    states: u64,
    children: Vec<Node>,
    /// Left, top, width and height on the screen.
    extents: [i64; 4],
}

impl Facts {
    fn is(&self, state: u32) -> bool {
        self.states >> state & 1 == 1
    }
}

fn unavailable(error: BusError) -> ToolError {
    let why = match error {
        BusError::Lost(why) => why.to_owned(),
        BusError::Refused(why) => visible(&clip(&why, 200)),
    };
    let error = ToolError::new(format!("the screen cannot be read as text: {why}"));
    error.hint("use screenshots; text needs `at-spi2-core` and `dbus-daemon` in the sandbox")
}

fn node(value: &BusValue) -> Option<Node> {
    let [program, path] = value.list() else { return None };
    let node = Node { program: program.text()?.to_owned(), path: path.text()?.to_owned() };
    (node.path != "/org/a11y/atspi/null").then_some(node)
}

impl Node {
    fn call(&self, interface: &'static str, member: &'static str) -> BusCall<'_> {
        BusCall { to: &self.program, path: &self.path, interface, member, arguments: Vec::new() }
    }

    /// The calls for the facts of this object, in the order of [`facts`].
    fn questions(&self) -> [BusCall<'_>; 5] {
        let name = vec![Argument::Text(ACCESSIBLE), Argument::Text("Name")];
        let mut extents = self.call(COMPONENT, "GetExtents");
        extents.arguments = vec![Argument::Uint(0)];
        let mut property = self.call(PROPERTIES, "Get");
        property.arguments = name;
        [
            property,
            self.call(ACCESSIBLE, "GetRoleName"),
            self.call(ACCESSIBLE, "GetState"),
            self.call(ACCESSIBLE, "GetChildren"),
            extents,
        ]
    }
}

/// The facts of the replies to [`Node::questions`].
fn facts(replies: &[Result<Vec<BusValue>, BusError>]) -> Facts {
    let value = |at: usize| replies.get(at).and_then(|reply| reply.as_ref().ok()?.first());
    let text = |at: usize| value(at).and_then(BusValue::text).unwrap_or_default().to_owned();
    let words = value(2).map(BusValue::list).unwrap_or_default().iter().filter_map(BusValue::number);
    let states = words.take(2).enumerate().fold(0_u64, |states, (at, word)| {
        states | u64::try_from(word & 0xffff_ffff).unwrap_or_default() << (32 * at)
    });
    let mut extents = [0; 4];
    for (side, value) in extents.iter_mut().zip(value(4).map(BusValue::list).unwrap_or_default()) {
        *side = value.number().unwrap_or_default();
    }
    let children = value(3).map(BusValue::list).unwrap_or_default().iter().filter_map(node).collect();
    Facts { name: text(0), role: text(1), states, children, extents }
}

impl Accessibility {
    /// Finds the bus of the programs by the bus of the session, and signs in.
    async fn open(desktop: &Desktop) -> Result<Accessibility, ToolError> {
        let session = &desktop.session;
        if !session.is_own() {
            return Err(ToolError::new("only a display that was started for the run is read as text"));
        }
        let socket = format!("{}/bus", session.folder);
        let LaunchedRelay { reader, writer, process: _process } = relay(&*desktop.sandbox, &socket).await?;
        let mut bus = Bus::open(reader, writer, &session.user).await.map_err(unavailable)?;
        let question = BusCall {
            to: "org.a11y.Bus",
            path: "/org/a11y/bus",
            interface: "org.a11y.Bus",
            member: "GetAddress",
            arguments: Vec::new(),
        };
        let answer = bus.call(&question).await.map_err(unavailable)?;
        let address = answer.first().and_then(BusValue::text).unwrap_or_default();
        let path = socket_of(address)
            .ok_or_else(|| unavailable(BusError::Lost("its bus has an address of another kind")))?;
        let LaunchedRelay { reader, writer, process } = relay(&*desktop.sandbox, &path).await?;
        let bus = Bus::open(reader, writer, &session.user).await.map_err(unavailable)?;
        Ok(Accessibility { bus, _process: process, shown: Vec::new() })
    }

    /// The facts of several objects. An object that has gone has none.
    async fn facts_of(&mut self, nodes: &[Node]) -> Result<Vec<Facts>, BusError> {
        let mut all = Vec::new();
        for some in nodes.chunks(AT_ONCE) {
            let calls: Vec<BusCall<'_>> = some.iter().flat_map(Node::questions).collect();
            let replies = self.bus.calls(&calls).await?;
            all.extend(replies.chunks(5).map(facts));
        }
        Ok(all)
    }

    /// The windows that are on the screen, as lines.
    async fn lines(&mut self) -> Result<Vec<String>, BusError> {
        self.shown.clear();
        let root = Node {
            program: "org.a11y.atspi.Registry".to_owned(),
            path: "/org/a11y/atspi/accessible/root".to_owned(),
        };
        let programs = facts(&self.bus.calls(&root.questions()).await?).children;
        let programs: Vec<Node> = programs.into_iter().take(MAX_NODES).collect();
        let windows = self.facts_of(&programs).await?.into_iter().flat_map(|program| program.children);
        let windows: Vec<Node> = windows.take(MAX_NODES).collect();
        // Level by level, so that a reading takes as many round trips as the windows are deep.
        let mut tree: Vec<(Node, Facts, Vec<usize>)> = Vec::new();
        let mut level: Vec<(Option<usize>, Node)> =
            windows.into_iter().map(|window| (None, window)).collect();
        let mut tops = Vec::new();
        for _ in 0..MAX_DEPTH {
            level.truncate(MAX_NODES.saturating_sub(tree.len()));
            let nodes: Vec<Node> = level.iter().map(|(_, node)| node.clone()).collect();
            let all = self.facts_of(&nodes).await?;
            let mut next = Vec::new();
            for ((parent, node), facts) in std::mem::take(&mut level).into_iter().zip(all) {
                // Closed menus and hidden pages are not on the screen.
                if !facts.is(SHOWING) {
                    continue;
                }
                let index = tree.len();
                match parent.and_then(|parent| tree.get_mut(parent)) {
                    Some((_, _, children)) => children.push(index),
                    None => tops.push(index),
                }
                next.extend(facts.children.iter().map(|child| (Some(index), child.clone())));
                tree.push((node, facts, Vec::new()));
            }
            level = next;
            if level.is_empty() || tree.len() >= MAX_NODES {
                break;
            }
        }
        let mut lines = Vec::new();
        let mut size = 0;
        let mut left_out = 0;
        let mut stack: Vec<usize> = tops.into_iter().rev().collect();
        while let Some(index) = stack.pop() {
            let Some((node, facts, children)) = tree.get(index) else { continue };
            stack.extend(children.iter().rev());
            let text = self.text_of(node, facts).await?;
            let Some(line) = self.line(node, facts, &text) else { continue };
            size += line.chars().count();
            if size > MAX_TEXT {
                left_out += 1;
            } else {
                lines.push(line);
            }
        }
        if left_out > 0 {
            lines.push(format!("… {left_out} more elements are left out"));
        }
        Ok(lines)
    }

    async fn text_of(&mut self, node: &Node, facts: &Facts) -> Result<String, BusError> {
        if !WITH_TEXT.contains(&facts.role.as_str()) {
            return Ok(String::new());
        }
        let mut question = node.call(TEXT, "GetText");
        question.arguments = vec![Argument::Int(0), Argument::Int(MAX_ELEMENT)];
        let mut count = node.call(PROPERTIES, "Get");
        count.arguments = vec![Argument::Text(TEXT), Argument::Text("CharacterCount")];
        let length = match self.bus.call(&count).await {
            Ok(values) => values.first().and_then(BusValue::number).unwrap_or_default(),
            Err(BusError::Refused(_)) => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        // Some programs refuse an end behind the text.
        let end = i32::try_from(length).unwrap_or(MAX_ELEMENT).min(MAX_ELEMENT);
        question.arguments = vec![Argument::Int(0), Argument::Int(end)];
        match self.bus.call(&question).await {
            Ok(values) => {
                let text = values.first().and_then(BusValue::text).unwrap_or_default();
                let cut = if length > i64::from(end) { "…" } else { "" };
                Ok(format!("{text}{cut}"))
            }
            Err(BusError::Refused(_)) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// The line of an element; none for one that only holds others.
    fn line(&mut self, node: &Node, facts: &Facts, text: &str) -> Option<String> {
        let [_, _, width, height] = facts.extents;
        let holder = HOLDERS.contains(&facts.role.as_str());
        if width <= 0
            || height <= 0
            || holder
            || (facts.name.trim().is_empty() && !WITH_TEXT.contains(&facts.role.as_str()))
        {
            return None;
        }
        let name = visible(&clip(facts.name.trim(), 200));
        let role = visible(&clip(&facts.role, 40));
        if matches!(role.as_str(), "frame" | "dialog" | "alert" | "window") {
            let active = if facts.is(ACTIVE) { ", active" } else { "" };
            return Some(format!("{role} \"{name}\"{active}"));
        }
        self.shown.push(ShownElement {
            node: node.clone(),
            role: facts.role.clone(),
            name: facts.name.clone(),
        });
        let mut line = format!("[e{} {role}", self.shown.len());
        if !name.is_empty() {
            line.push_str(&format!(" \"{name}\""));
        }
        for (state, word) in [(CHECKED, "checked"), (SELECTED, "selected"), (FOCUSED, "focused")] {
            if facts.is(state) {
                line.push_str(&format!(", {word}"));
            }
        }
        if !facts.is(SENSITIVE) {
            line.push_str(", disabled");
        }
        line.push(']');
        if facts.role == "password text" {
            line.push_str(" •••");
        } else if !text.is_empty() {
            let text: Vec<String> = text.split('\n').map(visible).collect();
            line.push(' ');
            line.push_str(&text.join("\n"));
        }
        Some(line)
    }
}

impl Desktop {
    async fn accessibility(&mut self) -> Result<&mut Accessibility, ToolError> {
        if self.accessibility.is_none() {
            self.accessibility = Some(Accessibility::open(self).await?);
        }
        self.accessibility.as_mut().ok_or_else(|| unavailable(BusError::Lost("it is gone")))
    }

    /// What is on the screen, as text in one block that says where it is from.
    pub(crate) async fn read(&mut self) -> Result<ToolOutput, ToolError> {
        let read = self.accessibility().await?.lines().await;
        let lines = match read {
            Ok(lines) => lines,
            Err(error) => {
                // The next reading opens the bus again.
                self.accessibility = None;
                return Err(unavailable(error));
            }
        };
        if lines.is_empty() {
            return Ok(ToolOutput::text(
                "(no program on the screen describes itself; use screenshots, and start programs with `desktop_start`)",
            ));
        }
        let mut id = [0; 4];
        // Without randomness the mark can be guessed, but look-alikes are broken anyway.
        let _ = getrandom::fill(&mut id);
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = lines
            .join("\n")
            .replace("<screen-content", "<\\screen-content")
            .replace("</screen-content", "<\\/screen-content");
        let text = format!("<screen-content id=\"{id}\">\n{body}\n</screen-content id=\"{id}\">");
        Ok(external(ToolOutput::block(Content::text(text))))
    }

    /// Where an element of the last reading is now. Another element is never used in its place.
    pub(crate) async fn place_of(&mut self, reference: &str) -> Result<Point, ToolError> {
        let quoted = clip(reference, 40).escape_debug().to_string();
        let accessibility = self.accessibility().await?;
        let number = reference.strip_prefix('e').and_then(|number| number.parse::<usize>().ok());
        let shown = number.and_then(|number| accessibility.shown.get(number.checked_sub(1)?).cloned());
        let shown = shown.ok_or_else(|| {
            ToolError::invalid(format!("no element `{quoted}` was shown")).hint("references come from `read`")
        })?;
        let gone = || {
            let name = visible(&clip(&shown.name, 100));
            ToolError::new(format!("{quoted} was {} \"{name}\"; it is gone or has changed", shown.role))
                .hint("`read` the screen again")
        };
        let all = accessibility.facts_of(std::slice::from_ref(&shown.node)).await.map_err(unavailable)?;
        let facts = all.into_iter().next().ok_or_else(gone)?;
        if !facts.is(SHOWING) || facts.role != shown.role || facts.name != shown.name {
            return Err(gone());
        }
        if !facts.is(SENSITIVE) {
            return Err(ToolError::new(format!("{quoted} is disabled")));
        }
        let [left, top, width, height] = facts.extents;
        let middle =
            |start: i64, length: i64| start.checked_add(length / 2).and_then(|at| i32::try_from(at).ok());
        let place = middle(left, width).zip(middle(top, height)).map(|(x, y)| Point { x, y });
        let size = self.display.size().await?;
        let inside = |at: i32, side: u32| u32::try_from(at).is_ok_and(|at| at < side);
        place.filter(|place| inside(place.x, size.width) && inside(place.y, size.height)).ok_or_else(|| {
            ToolError::new(format!("{quoted} is outside of the screen"))
                .hint("scroll to it, or move its window")
        })
    }
}

/// The socket of an address such as `unix:path=/run/bus,guid=1`.
fn socket_of(address: &str) -> Option<String> {
    let first = address.split(';').next()?.strip_prefix("unix:")?;
    let path = first.split(',').find_map(|pair| pair.strip_prefix("path="))?;
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_bus_are_read() {
        assert_eq!(socket_of("unix:path=/run/a%20b,guid=1;tcp:x").unwrap(), "/run/a b");
        for wrong in ["unix:abstract=/a,guid=1", "tcp:host=a", "unix:path=a", "unix:path=/%z", "unix:path=/%"]
        {
            assert_eq!(socket_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn facts_of_an_object_that_has_gone_are_none() {
        let gone = || Err(BusError::Refused("gone".to_owned()));
        let facts = facts(&[gone(), gone(), gone(), gone(), gone()]);
        assert!(!facts.is(SHOWING) && facts.children.is_empty() && facts.extents == [0; 4]);
    }
}
