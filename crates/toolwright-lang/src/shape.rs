//! Maps with known keys, and whether a node is one. The shapes themselves are in `file`.

use std::time::Duration;

use toolwright_core::{CallTimeout, nearest};

use crate::diag::{Problems, Severity};
use crate::file;
use crate::input::Type;
use crate::yaml::{Data, Node};

/// A map with known keys.
#[derive(Debug)]
pub(crate) struct Shape {
    /// What it is, as messages and the reference page call it.
    pub(crate) name: &'static str,
    /// One sentence for the reference page.
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [ShapeKey],
    /// What an unknown key is.
    pub(crate) unknown: Unknown,
}

/// What an unknown key is: a mistake, or something another program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Error,
    Warning,
}

/// One key of a shape.
#[derive(Debug)]
pub(crate) struct ShapeKey {
    pub(crate) name: &'static str,
    pub(crate) kind: ShapeKind,
    pub(crate) needed: Needed,
    pub(crate) about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    Required,
    Optional,
}

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShapeKind {
    Text,
    /// Text with `${...}`.
    Template,
    Flag,
    Count,
    /// A whole number, at least this.
    Whole(i64),
    /// A number that is not negative.
    Number,
    /// Seconds, or `none`.
    Timeout,
    /// A map of such numbers.
    NumberMap,
    /// Any value, taken as it is.
    Any,
    /// A map of any values, taken as they are.
    Map,
    /// Any value; every text in it is a template.
    Document,
    /// A map of documents.
    Documents,
    /// One of these words.
    Word(&'static [&'static str]),
    Texts,
    TextOrTexts,
    Templates,
    TemplateMap,
    /// A map of texts.
    TextMap,
    /// A statement or a list of statements.
    Body,
    Inputs,
    /// Tool definitions.
    Definitions,
    /// Tool definitions, names, and `match` patterns.
    References,
    Matchers,
    /// A template, or whether to show a hint at all.
    Hint,
    /// `true`, `false` or `pretty`.
    JsonOutput,
    /// Which JSON of an answer is meant.
    ExtractJson,
    Object(&'static Shape),
    /// A map from names to this shape.
    Named(&'static Shape),
    /// A map from names to MCP servers.
    Servers,
}

/// The words of [`Kind::ExtractJson`].
pub(crate) const EXTRACTS: [&str; 4] = ["first", "last", "all", "none"];

pub(crate) const fn required(name: &'static str, kind: ShapeKind, about: &'static str) -> ShapeKey {
    ShapeKey { name, kind, needed: Needed::Required, about }
}

pub(crate) const fn optional(name: &'static str, kind: ShapeKind, about: &'static str) -> ShapeKey {
    ShapeKey { name, kind, needed: Needed::Optional, about }
}

pub(crate) const fn strict(name: &'static str, about: &'static str, keys: &'static [ShapeKey]) -> Shape {
    Shape { name, about, keys, unknown: Unknown::Error }
}

/// Checks a node against a shape: it is a map, its keys are known, the required ones are there, and simple
/// values are of the right kind. Bodies, definitions and the like are checked where they are built. False
/// when the node is not a map.
pub(crate) fn check(problems: &mut Problems, node: &Node, shape: &Shape) -> bool {
    let Data::Map(entries) = &node.data else {
        if !matches!(node.data, Data::Bad) {
            let message = format!("{} is a map, not {}", with_article(shape.name), node.kind());
            let hint = (shape.name == "file" && matches!(node.data, Data::List(_)))
                .then(|| "put the tools under the key `tools:`".to_owned());
            problems.add(Severity::Error, node.place, message, hint);
        }
        return false;
    };
    for (key, value) in entries {
        let name = key.key_text();
        match shape.keys.iter().find(|known| known.name == name) {
            Some(known) => check_kind(problems, value, known, shape),
            None => unknown_key(problems, key, &name, shape),
        }
    }
    for key in shape.keys.iter().filter(|key| key.needed == Needed::Required) {
        if node.get(key.name).is_none() {
            let message = format!("{} needs the key `{}`", with_article(shape.name), key.name);
            let hint = match key.kind {
                ShapeKind::Word(words) => {
                    let words: Vec<_> = words.iter().map(|word| format!("`{}: {word}`", key.name)).collect();
                    words.join(" or ")
                }
                _ => key.about.to_owned(),
            };
            problems.error_hint(node.place, message, hint);
        }
    }
    true
}

fn unknown_key(problems: &mut Problems, key: &Node, name: &str, shape: &Shape) {
    let message =
        format!("{} has no key `{}`", with_article(shape.name), toolwright_core::text::clip(name, 80));
    let names = shape.keys.iter().map(|key| key.name);
    if matches!(name, "mcpServers" | "mcp_servers") {
        let hint = "here it is `mcp`, with a `transport`: `mcp: {files: {transport: stdio, command: npx, args: [-y, \
                    SERVER], auto_import_scope: shared}}`";
        return problems.error_hint(key.place, message, hint.to_owned());
    }
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys are: {}", names.collect::<Vec<_>>().join(", ")),
    };
    match shape.unknown {
        Unknown::Error => problems.error_hint(key.place, message, hint),
        Unknown::Warning => problems.warn_hint(key.place, format!("{message}; it is ignored"), hint),
    }
}

fn is_number(node: &Node) -> bool {
    match &node.data {
        Data::Int(number) => *number >= 0,
        Data::Float(number) => *number >= 0.0 && number.is_finite(),
        Data::Bad => true,
        _ => false,
    }
}

fn check_kind(problems: &mut Problems, node: &Node, key: &ShapeKey, shape: &Shape) {
    if matches!(node.data, Data::Bad) {
        return;
    }
    // Null stands for a key that is not there, except where any value will do.
    if matches!(node.data, Data::Null) && key.needed == Needed::Optional {
        return;
    }
    let text = |node: &Node| matches!(node.data, Data::Text(_) | Data::Bad);
    let wanted = match key.kind {
        ShapeKind::Any | ShapeKind::Document => return,
        ShapeKind::Text | ShapeKind::Template => (!text(node)).then_some("text"),
        ShapeKind::Flag => flag(node).is_none().then_some("true or false"),
        ShapeKind::Count => count(node).is_none().then_some("an integer"),
        ShapeKind::Whole(least) => match &node.data {
            Data::Int(number) if *number >= least => None,
            _ if least > 0 => Some("a whole number, 1 or more"),
            _ => Some("a whole number, 0 or more"),
        },
        ShapeKind::Number => (!is_number(node)).then_some("a number, 0 or more"),
        ShapeKind::Timeout => timeout(node).is_none().then_some("a number of seconds above 0, or `none`"),
        ShapeKind::NumberMap => match &node.data {
            Data::Map(entries) if entries.iter().all(|(_, node)| is_number(node)) => None,
            _ => Some("a map of numbers, 0 or more"),
        },
        ShapeKind::Map | ShapeKind::Documents | ShapeKind::TemplateMap => {
            (!matches!(node.data, Data::Map(_))).then_some("a map")
        }
        ShapeKind::TextMap => match &node.data {
            Data::Map(entries) => {
                for (name, value) in entries.iter().filter(|(_, value)| !text(value)) {
                    let message =
                        format!("`{}` of `{}` is text, not {}", name.key_text(), key.name, value.kind());
                    problems.error(value.place, message);
                }
                None
            }
            _ => Some("a map"),
        },
        ShapeKind::Texts | ShapeKind::Templates => match &node.data {
            Data::List(items) if items.iter().all(text) => None,
            _ => Some("a list of texts"),
        },
        ShapeKind::TextOrTexts => match &node.data {
            Data::Text(_) => None,
            Data::List(items) if items.iter().all(text) => None,
            _ => Some("text or a list of texts"),
        },
        ShapeKind::Hint => {
            (!text(node) && !matches!(node.data, Data::Bool(_))).then_some("text, true or false")
        }
        ShapeKind::JsonOutput => match &node.data {
            Data::Text(word) if &**word == "pretty" => None,
            _ => flag(node).is_none().then_some("true, false or `pretty`"),
        },
        ShapeKind::ExtractJson => match &node.data {
            Data::Text(word) => {
                if !EXTRACTS.contains(&&**word) {
                    let message = format!("unknown value `{word}` of `{}` is read as `none`", key.name);
                    let words: Vec<_> = EXTRACTS.iter().map(|word| format!("`{word}`")).collect();
                    problems.warn_hint(node.place, message, format!("there are {}", words.join(", ")));
                }
                None
            }
            Data::Bool(_) => None,
            _ => Some("true, false, `first`, `last`, `all` or `none`"),
        },
        ShapeKind::Word(words) => {
            let known = node.text().is_some_and(|text| words.contains(&&**text));
            if !known {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                problems.error(node.place, format!("`{}` is one of {}", key.name, words.join(", ")));
            }
            return;
        }
        ShapeKind::Object(inner) => {
            check(problems, node, inner);
            return;
        }
        ShapeKind::Named(inner) => match &node.data {
            Data::Map(entries) => {
                for (_, value) in entries {
                    if !matches!(value.data, Data::Null) {
                        check(problems, value, inner);
                    }
                }
                None
            }
            _ => Some("a map"),
        },
        ShapeKind::Servers => {
            check_servers(problems, node);
            return;
        }
        ShapeKind::Body => return,
        ShapeKind::Inputs | ShapeKind::Definitions | ShapeKind::References | ShapeKind::Matchers => {
            (!matches!(node.data, Data::List(_))).then_some("a list")
        }
    };
    if let Some(wanted) = wanted {
        let given = match (key.kind, &node.data) {
            (ShapeKind::Whole(_) | ShapeKind::Number, Data::Int(_) | Data::Float(_)) => node.key_text(),
            _ => node.kind().to_owned(),
        };
        let message = format!("`{}` of {} is {wanted}, not {given}", key.name, with_article(shape.name));
        problems.add(Severity::Error, node.place, message, written(key, node));
    }
}

/// A number of something, read as arguments are: `2`, `2.0` and `'2'` are two.
pub(crate) fn count(node: &Node) -> Option<i64> {
    match &node.data {
        Data::Int(count) => Some(*count),
        Data::Null | Data::Bad => None,
        _ => Type::Integer.read(node.to_json(), "count").ok()?.as_i64(),
    }
}

/// Seconds above 0, or `none`.
pub(crate) fn timeout(node: &Node) -> Option<CallTimeout> {
    match &node.data {
        Data::Text(word) => (&**word == "none").then_some(CallTimeout::Never),
        Data::Int(_) | Data::Float(_) => {
            let time = Duration::try_from_secs_f64(node.to_json().as_f64()?).ok()?;
            (!time.is_zero()).then_some(CallTimeout::After(time))
        }
        _ => None,
    }
}

/// Whether something is so, read as arguments are: `true`, `'yes'` and `1` are true.
pub(crate) fn flag(node: &Node) -> Option<bool> {
    match &node.data {
        Data::Bool(flag) => Some(*flag),
        Data::Null | Data::Bad => None,
        _ => Type::Boolean.read(node.to_json(), "flag").ok()?.as_bool(),
    }
}

/// How a value of that kind is written, when it was written in another way.
fn written(key: &ShapeKey, node: &Node) -> Option<String> {
    let example = match (&key.kind, &node.data) {
        (ShapeKind::Template, _) => "write it in quotes: `\"${...}\"`",
        (ShapeKind::Text, Data::Bool(_) | Data::Int(_) | Data::Float(_)) => {
            "put quotes around it to make it text"
        }
        (ShapeKind::Map | ShapeKind::Documents | ShapeKind::TemplateMap | ShapeKind::TextMap, _) => {
            "write `name: value` for each, without `-`"
        }
        (ShapeKind::Inputs, _) => "write `- {name: ..., type: ...}` for each parameter",
        (ShapeKind::Definitions | ShapeKind::References | ShapeKind::Matchers, Data::Map(_)) => {
            "begin each with `- `"
        }
        (ShapeKind::Texts | ShapeKind::Templates, Data::Text(_)) => "put it in a list: `[...]`",
        _ => return None,
    };
    Some(example.to_owned())
}

fn check_servers(problems: &mut Problems, node: &Node) {
    let Data::Map(entries) = &node.data else {
        problems.error(node.place, format!("`mcp` is a map from names to servers, not {}", node.kind()));
        return;
    };
    for (name, server) in entries {
        match server.get("transport").and_then(Node::text).map(|text| &**text) {
            Some("stdio") => {
                check(problems, server, &file::SERVER_STDIO);
            }
            Some("streamable_http" | "sse") => {
                check(problems, server, &file::SERVER_HTTP);
            }
            _ => problems.error_hint(
                server.get("transport").map_or(server.place, |node| node.place),
                format!("the MCP server `{}` has no transport we know", name.key_text()),
                "use `transport: stdio`, `transport: streamable_http` or `transport: sse`",
            ),
        }
    }
}

/// The name of a shape with an article before it, for messages.
fn with_article(name: &str) -> String {
    match name {
        "shared" | "chat" | "cli" | "if" | "call" | "eval" | "for_each" | "match" | "starlark"
        | "import_tool" | "import_tools" => format!("`{name}`"),
        "file" => "the file".to_owned(),
        "annotations" => "`annotations`".to_owned(),
        "limits" => "`limits`".to_owned(),
        "config of a model" => "the config of a model".to_owned(),
        "config of a tool" => "the config of a tool made of statements".to_owned(),
        _ if name.starts_with(['a', 'e', 'i', 'o', 'u', 'M']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
