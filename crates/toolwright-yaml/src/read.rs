//! Reading one file: events of the scanner become nodes. Input, depth, nodes and aliases are bounded before
//! anything is built.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

use crate::diag::{FileSpan, Problems, Severity};
use crate::node::{Data, Node};
use crate::scalar::{self, Scalar};
use crate::syntax_hints::advice;

/// The largest file, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// The deepest nesting.
pub const MAX_DEPTH: usize = 64;

/// The most nodes, of all included YAML files together and with aliases written out.
const MAX_NODES: usize = 50_000;

/// The most values of all included JSON files together: they are data, which is read at once and never
/// compiled as tools.
pub const MAX_DATA: usize = 200_000;

/// The most entries that `<<` takes into one map.
const MAX_MERGED: usize = 2_000;

/// The most aliases.
const MAX_ALIASES: usize = 1_000;

/// Brings in what `!include` and `!require` name.
pub trait Include {
    /// The included tree. `None` when there was a problem, which has been reported.
    fn include(
        &mut self,
        problems: &mut Problems,
        budget: &mut Budget,
        path: &str,
        required: bool,
        place: FileSpan,
    ) -> Option<Data>;
}

/// What one file may hold at most.
#[derive(Debug, Clone, Copy)]
struct FileBounds {
    bytes: usize,
    depth: usize,
    nodes: usize,
    /// Whether a text may hold NUL, which no program can be given.
    nul: bool,
    words: WordRules,
}

/// How plain words are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordRules {
    /// As PyYAML does: `yes` and `off` are booleans, as values and as keys.
    PyYaml,
    /// As PyYAML does; keys are text.
    TextKeys,
    /// Only `true` and `false` are booleans; keys are text.
    PlainBooleans,
}

/// What is left to be read.
#[derive(Debug)]
pub struct Budget {
    bounds: FileBounds,
    nodes: usize,
    /// Values of JSON files.
    pub data: usize,
    aliases: usize,
    /// How deep the file being read is included in others.
    pub level: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::of(FileBounds {
            bytes: MAX_BYTES,
            depth: MAX_DEPTH,
            nodes: MAX_NODES,
            nul: false,
            words: WordRules::PyYaml,
        })
    }
}

impl Budget {
    /// For data, such as a conversation: much larger than a file that people write, and as deep as JSON goes.
    pub(crate) fn for_data(words: WordRules) -> Self {
        Budget::of(FileBounds { bytes: 64 << 20, depth: 140, nodes: 1_000_000, nul: true, words })
    }

    /// For data that is read with the types of a program.
    pub(crate) fn for_document(words: WordRules) -> Self {
        Budget::of(FileBounds { bytes: MAX_BYTES, depth: MAX_DEPTH, nodes: MAX_NODES, nul: true, words })
    }

    fn of(bounds: FileBounds) -> Self {
        Budget { bounds, nodes: bounds.nodes, data: MAX_DATA, aliases: MAX_ALIASES, level: 0 }
    }
}

/// Reads one file. `None` when it cannot be read at all; the problem has been reported.
pub fn parse(
    problems: &mut Problems,
    budget: &mut Budget,
    include: &mut dyn Include,
    file: u16,
) -> Option<Node> {
    let text: Arc<str> = problems.sources.text(file).into();
    let FileBounds { bytes, depth, .. } = budget.bounds;
    if text.len() > bytes {
        problems.error(FileSpan::new(file, 0, 1), format!("the file is larger than {bytes} bytes"));
        return None;
    }
    let mut options = Options::default();
    options.emit_comments = false;
    options.flow_nesting_limit = depth + 2;
    options.block_nesting_limit = depth + 2;
    let parser = Parser::new_from_str_with_options(&text, options);
    let mut reader = NodeReader {
        events: parser,
        problems,
        budget,
        include,
        file,
        anchors: HashMap::new(),
        merging: HashSet::new(),
        depth: 0,
    };
    reader.document()
}

struct NodeReader<'r, E> {
    events: E,
    problems: &'r mut Problems,
    budget: &'r mut Budget,
    include: &'r mut dyn Include,
    file: u16,
    anchors: HashMap<usize, Option<Node>>,
    /// Where the maps stand that take in others.
    merging: HashSet<FileSpan>,
    depth: usize,
}

type ScannedEvent<'i> = Result<(Event<'i>, Span), serde_saphyr::granit_parser::ScanError>;

impl<'i, E: Iterator<Item = ScannedEvent<'i>>> NodeReader<'_, E> {
    /// The only document of the file; an empty file is an empty map.
    fn document(&mut self) -> Option<Node> {
        let mut root: Option<Node> = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => {
                    let empty = Node { data: Data::Null, place: FileSpan::new(self.file, 0, 0) };
                    return Some(root.unwrap_or(empty));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                _ if root.is_some() => {
                    self.problems.error_hint(
                        self.place(span),
                        "the file holds more than one document",
                        "keep one document per file, and join files with `!include`",
                    );
                    return None;
                }
                event => root = Some(self.node(event, span)?),
            }
        }
    }

    fn next(&mut self) -> Option<(Event<'i>, Span)> {
        loop {
            match self.events.next() {
                Some(Ok((Event::Anchor(..), _))) => {}
                Some(Ok(item)) => return Some(item),
                Some(Err(error)) => {
                    let at = error.marker().byte_offset().unwrap_or(0);
                    let hint = advice(self.problems.sources.text(self.file), at, &error.info());
                    let place = FileSpan::new(self.file, at, at + 1);
                    let message = format!("not YAML: {}", error.info());
                    self.problems.add(Severity::Error, place, message, hint);
                    return None;
                }
                None => {
                    self.problems.error(FileSpan::new(self.file, 0, 0), "the file ends too early");
                    return None;
                }
            }
        }
    }

    fn place(&self, span: Span) -> FileSpan {
        let range = span.byte_range().unwrap_or(0..0);
        FileSpan::new(self.file, range.start, range.end)
    }

    fn node(&mut self, event: Event<'i>, span: Span) -> Option<Node> {
        let place = self.place(span);
        self.spend(1, place)?;
        let anchor = event.anchor_id();
        if let Some(id) = anchor {
            // An alias inside its own anchor finds this and is refused.
            self.anchors.insert(id, None);
        }
        let node = match event {
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref(), place)?,
            Event::SequenceStart(_, _, tag) => {
                self.collection_tag(tag.as_deref(), "seq", place);
                self.list(place)?
            }
            Event::MappingStart(_, _, tag) => {
                self.collection_tag(tag.as_deref(), "map", place);
                self.map(place)?
            }
            Event::Alias(id) => return self.alias(id, place),
            _ => return self.give_up(place, "something else was expected here"),
        };
        if let Some(id) = anchor {
            self.anchors.insert(id, Some(node.clone()));
        }
        Some(node)
    }

    fn spend(&mut self, nodes: usize, place: FileSpan) -> Option<()> {
        match self.budget.nodes.checked_sub(nodes) {
            Some(left) => {
                self.budget.nodes = left;
                Some(())
            }
            None => {
                self.problems.error_hint(
                    place,
                    format!(
                        "the file, with what it includes and its aliases written out, has more than {} values",
                        self.budget.bounds.nodes
                    ),
                    "keep large data in a JSON file and `!include` it, or let a tool read it",
                );
                None
            }
        }
    }

    fn give_up(&mut self, place: FileSpan, message: &str) -> Option<Node> {
        self.problems.error(place, message);
        None
    }

    fn deeper(&mut self, place: FileSpan) -> Option<()> {
        self.depth += 1;
        let most = self.budget.bounds.depth;
        if self.depth > most {
            self.problems.error(place, format!("the file is nested more than {most} deep"));
            return None;
        }
        Some(())
    }

    fn list(&mut self, place: FileSpan) -> Option<Node> {
        self.deeper(place)?;
        let mut items = Vec::new();
        let mut place = place;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                place.end = place.end.max(self.place(span).end);
                break;
            }
            items.push(self.node(event, span)?);
        }
        self.depth -= 1;
        Some(Node { data: Data::List(items), place })
    }

    fn map(&mut self, place: FileSpan) -> Option<Node> {
        self.deeper(place)?;
        let mut entries: Vec<(Node, Node)> = Vec::new();
        let mut seen = HashSet::new();
        let mut merged = Vec::new();
        let mut place = place;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                place.end = place.end.max(self.place(span).end);
                break;
            }
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let written = match &event {
                Event::Scalar(text, _, _, None) if self.budget.bounds.words != WordRules::PyYaml => {
                    Some(Arc::from(&**text))
                }
                _ => None,
            };
            let mut key = self.node(event, span)?;
            if let Some(text) = written {
                key.data = Data::Text(text);
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span)?;
            if matches!(key.data, Data::List(_) | Data::Map(_)) {
                self.problems.error(key.place, "a key must be one word or text");
                continue;
            }
            if merge {
                self.merge(&key, value, &mut merged);
                continue;
            }
            if !seen.insert(key.key_text()) {
                self.problems.error_hint(
                    key.place,
                    format!("the key `{}` comes twice", key.key_text()),
                    "keep one of them",
                );
                continue;
            }
            entries.push((key, value));
        }
        if !merged.is_empty() {
            self.merging.insert(place);
        }
        self.depth -= 1;
        Some(Node { data: Data::Map(joined(merged, entries)), place })
    }

    /// `<<` takes the entries of other maps; the first of several maps counts most. Those maps may not merge
    /// again: chains are how small files grow large.
    fn merge(&mut self, key: &Node, value: Node, merged: &mut Vec<(Node, Node)>) {
        let maps = match value.data {
            Data::List(items) => items,
            _ => vec![value],
        };
        for map in maps.into_iter().rev() {
            match map.data {
                Data::Map(_) if self.merging.contains(&map.place) => {
                    self.problems.error_hint(
                        key.place,
                        "`<<` may not take in a map that has `<<` itself",
                        "list both: `<<: [*a, *b]`",
                    );
                }
                Data::Map(entries) => merged.extend(entries),
                Data::Bad => {}
                _ => self.problems.error(key.place, format!("`<<` takes a map, not {}", map.kind())),
            }
        }
        if merged.len() > MAX_MERGED {
            self.problems.error(key.place, "`<<` takes in too many entries");
            merged.clear();
        }
    }

    fn alias(&mut self, id: usize, place: FileSpan) -> Option<Node> {
        let Some(left) = self.budget.aliases.checked_sub(1) else {
            return self.give_up(place, "the file has too many aliases");
        };
        self.budget.aliases = left;
        match self.anchors.get(&id) {
            Some(Some(node)) => {
                let (size, depth) = (node.size(), node.depth());
                let copy = (size <= self.budget.nodes && self.depth + depth <= self.budget.bounds.depth)
                    .then(|| node.clone());
                self.spend(size, place)?;
                copy.or_else(|| self.give_up(place, "aliases make the file too deep"))
            }
            _ => self.give_up(place, "the alias stands inside the value it names"),
        }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, expected: &str, place: FileSpan) {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(expected)
        {
            self.unknown_tag(tag, place);
        }
    }

    fn unknown_tag(&mut self, tag: &Tag, place: FileSpan) {
        self.problems.error_hint(
            place,
            format!("the tag `{}` means nothing here", tag.original()),
            "known tags: `!include`, `!require`, `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`",
        );
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, place: FileSpan) -> Option<Node> {
        if !self.budget.bounds.nul && text.contains('\0') {
            self.problems.error(place, "text may not hold a NUL character");
            return Some(Node { data: Data::Bad, place });
        }
        let only_plain_booleans = self.budget.bounds.words == WordRules::PlainBooleans;
        let plain = || match style {
            ScalarStyle::Plain => match scalar::resolve(text) {
                Scalar::Bool(_) if only_plain_booleans && !is_plain_boolean(text) => Data::Text(text.into()),
                resolved => from_scalar(resolved, text),
            },
            _ => Data::Text(text.into()),
        };
        let data = match tag {
            None => plain(),
            Some(tag) => match (tag.core_suffix(), tag.original().as_str()) {
                (Some("str"), _) | (_, "!") => Data::Text(text.into()),
                (Some("null"), _) => Data::Null,
                (Some(kind @ ("int" | "float" | "bool")), _) => self.typed(kind, text, place),
                (_, name @ ("!include" | "!require")) => {
                    let required = name == "!require";
                    let included =
                        self.include.include(self.problems, self.budget, text.trim(), required, place);
                    included.unwrap_or(Data::Bad)
                }
                _ => {
                    self.unknown_tag(tag, place);
                    Data::Bad
                }
            },
        };
        Some(Node { data, place })
    }

    fn typed(&mut self, kind: &str, text: &str, place: FileSpan) -> Data {
        let data = from_scalar(scalar::resolve(text), text);
        match (kind, &data) {
            ("int", Data::Int(_) | Data::Large(_)) | ("float", Data::Float(_)) | ("bool", Data::Bool(_)) => {
                data
            }
            #[expect(clippy::cast_precision_loss, reason = "the file asks for a float")]
            ("float", Data::Int(number)) => Data::Float(*number as f64),
            _ => {
                self.problems.error(place, format!("`{text}` is no {kind}"));
                Data::Bad
            }
        }
    }
}

/// The entries of merged maps and of the map itself, in PyYAML's order: what was taken in comes first, and
/// what is given again stands where it was.
fn joined(merged: Vec<(Node, Node)>, own: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
    if merged.is_empty() {
        return own;
    }
    let mut entries: IndexMap<String, (Node, Node)> = IndexMap::new();
    for entry in merged.into_iter().chain(own) {
        entries.insert(entry.0.key_text(), entry);
    }
    entries.into_values().collect()
}

/// The booleans that JSON has, and their spellings of YAML.
fn is_plain_boolean(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

fn from_scalar(scalar: Scalar, text: &str) -> Data {
    match scalar {
        Scalar::Null => Data::Null,
        Scalar::Bool(flag) => Data::Bool(flag),
        Scalar::Int(number) => Data::Int(number),
        Scalar::Large(digits) => Data::Large(digits),
        Scalar::Float(number) => Data::Float(number),
        Scalar::Text => Data::Text(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Nothing;

    fn read(text: &str) -> Result<serde_json::Value, String> {
        let mut problems = Problems::default();
        let file = problems.sources.add("t.yaml", text);
        let node = parse(&mut problems, &mut Budget::default(), &mut Nothing, file);
        match (node, problems.found.all().first()) {
            (Some(node), None) => Ok(node.to_json()),
            (_, Some(problem)) => Err(format!("{}:{} {}", problem.line, problem.column, problem.message)),
            (None, None) => Err("silent".to_owned()),
        }
    }

    #[test]
    fn trees_keep_order_and_types() {
        let json = read("b: [1, 'x', ~, yes, 1.5]\na: {c: d}\n").unwrap();
        assert_eq!(json.to_string(), r#"{"b":[1,"x",null,true,1.5],"a":{"c":"d"}}"#);
    }

    #[test]
    fn aliases_and_merges_are_written_out_once() {
        let json = read("base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: *b\n").unwrap();
        assert_eq!(json["one"].to_string(), r#"{"x":1,"y":3}"#);
        assert_eq!(json["two"].to_string(), r#"{"x":1,"y":2}"#);
    }

    #[test]
    fn merged_entries_stand_where_pyyaml_puts_them() {
        // Each as PyYAML 6 reads it.
        let maps = "a: &a {x: 1, y: 2}\nb: &b {y: 8, z: 9}\n";
        for (map, want) in [
            ("{n: 0, <<: *a, y: 3}", r#"{"x":1,"y":3,"n":0}"#),
            ("{<<: [*a, *b], n: 0}", r#"{"y":2,"z":9,"x":1,"n":0}"#),
            ("{<<: *a, <<: *b}", r#"{"x":1,"y":8,"z":9}"#),
        ] {
            assert_eq!(read(&format!("{maps}c: {map}\n")).unwrap()["c"].to_string(), want, "{map}");
        }
    }

    #[test]
    fn what_is_refused_has_a_place() {
        assert_eq!(read("a: 1\na: 2\n").unwrap_err(), "2:1 the key `a` comes twice");
        assert_eq!(read("a: &x [*x]\n").unwrap_err(), "1:8 the alias stands inside the value it names");
        assert!(read("a: !!python/object:os.system x\n").unwrap_err().contains("means nothing here"));
        assert!(read("a: 1\n---\nb: 2\n").unwrap_err().contains("more than one document"));
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&format!("{}1", "- ".repeat(10_000))).is_err());
        assert!(read(&"- 1\n".repeat(60_000)).unwrap_err().contains("more than 50000 values"));
    }
}
