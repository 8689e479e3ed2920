//! How much work it is to check a value, so that no schema and no value can make a call hang.
//!
//! The validator remembers what it found out at references that lead back to themselves. All others it
//! unfolds each time, and while it collects errors it remembers nothing: both can double the work with every
//! level. Most schemas stay small when they are unfolded, which is found out once, and values are then
//! checked at once. For the others the work is counted first.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::SchemaError;
use super::patterns::states;
use super::references::Places;

/// A schema that unfolds to at most this many is checked without counting, unless the value is large.
const FREE: usize = 1000;

/// The most work for one check, however small the value is: well under a second.
const MAX_WORK: usize = 1_000_000;

/// The most work for one check of a large value: about a second.
const MAX_WORK_LARGE: usize = 20_000_000;

/// How much work every part of a large value may take.
const MAX_WORK_A_PART: usize = 100;

/// The most work for telling all problems, however small the value is.
const MAX_TELLING: usize = 10_000;

/// The most work for telling all problems of a large value. Every problem takes memory.
const MAX_TELLING_LARGE: usize = 100_000;

/// How many times its own size telling the problems of a large value may take.
const MAX_TIMES: usize = 32;

/// How many schemas may apply to one value through one another. Each is a call inside a call.
const MAX_CHAIN: usize = 32;

/// What can be told about a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// Every problem.
    All,
    /// The first problem.
    First,
    /// Only that it does not fit.
    Nothing,
}

/// The schemas of a document and how they lead to one another.
pub(super) struct Cost {
    nodes: Vec<SchemaNode>,
    /// Schemas that lead back to themselves, where the validator remembers.
    cyclic: Vec<bool>,
    has_alternatives: bool,
    /// How many schemas the validator may look at for one place of a value.
    unfolded: usize,
}

/// One schema: the indices of those it applies, and to what.
#[derive(Default)]
struct SchemaNode {
    here: Vec<usize>,
    alternatives: Vec<usize>,
    references: Vec<usize>,
    fields: HashMap<String, usize>,
    patterns: Vec<usize>,
    other_fields: Vec<usize>,
    names: Vec<usize>,
    prefix: Vec<usize>,
    items: Vec<usize>,
    /// Comparisons with the value itself.
    own: usize,
    /// What the patterns for names take for each field.
    name_patterns: usize,
    /// What the pattern takes for each 64 bytes of a text.
    scan: usize,
    /// Whether all of the value is looked at, or all of a text.
    whole: bool,
}

impl SchemaNode {
    /// The schemas for the value itself.
    fn same_value(&self) -> impl Iterator<Item = usize> {
        self.here.iter().chain(&self.alternatives).chain(&self.references).copied()
    }

    /// The schemas inside this one, references left out.
    fn inside(&self) -> impl Iterator<Item = usize> {
        let fields = self.fields.values().chain(&self.patterns).chain(&self.other_fields).chain(&self.names);
        let items = self.prefix.iter().chain(&self.items);
        self.here.iter().chain(&self.alternatives).chain(fields).chain(items).copied()
    }
}

impl Cost {
    /// Reads a schema. An error when it refers to itself without end, or to something that cannot be
    /// followed.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let mut reader =
            SchemaIndexer { places: Places::of(schema), found: HashMap::new(), todo: Vec::new() };
        reader.index(schema);
        let mut nodes = Vec::new();
        while let Some(next) = reader.todo.get(nodes.len()).copied() {
            nodes.push(reader.read(next)?);
        }
        let same_value: Vec<Vec<usize>> = nodes.iter().map(|node| node.same_value().collect()).collect();
        if on_cycles(&same_value).contains(&true) {
            return Err(SchemaError("it refers to itself without end".to_owned()));
        }
        let chains = sum_up(&same_value, |_, below| 1 + below.max().unwrap_or(0));
        if chains.iter().any(|chain| *chain > MAX_CHAIN) {
            let text = format!("more than {MAX_CHAIN} of its schemas apply to one value through one another");
            return Err(SchemaError(text));
        }
        let all = nodes.iter().map(|node| node.inside().chain(node.references.iter().copied()).collect());
        let cyclic = on_cycles(&all.collect::<Vec<Vec<usize>>>());
        let has_alternatives = nodes.iter().any(|node| !node.alternatives.is_empty());
        let mut cost = Cost { nodes, cyclic, has_alternatives, unfolded: 0 };
        cost.unfolded = cost.unfold(&same_value);
        Ok(cost)
    }

    /// Whether a value can be checked in bounded time.
    pub(super) fn allows(&self, value: &Value) -> bool {
        if self.unfolded <= MAX_TIMES {
            return true;
        }
        let parts = size(value, MAX_WORK_LARGE);
        if self.unfolded <= FREE && self.unfolded.saturating_mul(parts) <= MAX_WORK {
            return true;
        }
        let most = parts.saturating_mul(MAX_WORK_A_PART).clamp(MAX_WORK, MAX_WORK_LARGE);
        self.work(value, most, true).is_some()
    }

    /// What can be told about a value that does not fit, in bounded time and memory.
    pub(super) fn telling(&self, value: &Value) -> Telling {
        let most = size(value, MAX_TELLING_LARGE).saturating_mul(MAX_TIMES);
        match self.work(value, MAX_TELLING_LARGE, false) {
            Some(work) if work <= MAX_TELLING || work <= most => Telling::All,
            _ if !self.has_alternatives && self.work(value, MAX_WORK, false).is_some() => Telling::First,
            _ => Telling::Nothing,
        }
    }

    /// How many schemas the validator may look at for one place of a value. At a schema that leads back to
    /// itself it remembers objects and lists, but a text or a number goes all the way.
    fn unfold(&self, same_value: &[Vec<usize>]) -> usize {
        let for_scalars = sum_up(same_value, |_, below| below.fold(1, usize::saturating_add));
        let is_cyclic = |index: &usize| self.cyclic.get(*index).copied().unwrap_or(false);
        let unfolds = |node: &SchemaNode| {
            let references = node.references.iter().copied().filter(|target| !is_cyclic(target));
            node.inside().chain(references).collect::<Vec<_>>()
        };
        let graph: Vec<Vec<usize>> = self.nodes.iter().map(unfolds).collect();
        let sizes = sum_up(&graph, |node, below| {
            let own = self
                .nodes
                .get(node)
                .map_or(1, |node| node.own.saturating_add(node.name_patterns).saturating_add(node.scan));
            let references = self.nodes.get(node).map(|node| node.references.as_slice()).unwrap_or_default();
            let ends = references.iter().filter(|target| is_cyclic(target));
            let ends = ends.filter_map(|target| for_scalars.get(*target)).copied();
            ends.fold(below.fold(own, usize::saturating_add), usize::saturating_add)
        });
        let starts = self.nodes.iter().flat_map(|node| &node.references).copied().filter(is_cyclic);
        let starts: HashSet<usize> = starts.chain([0]).collect();
        starts.iter().filter_map(|start| sizes.get(*start)).copied().fold(0, usize::saturating_add)
    }

    /// The work of checking a value, or nothing when it is more than `most`.
    fn work(&self, value: &Value, most: usize, remembers: bool) -> Option<usize> {
        let mut count = CostCount { cost: self, left: most, remembers, seen: HashSet::new() };
        count.visit(0, value, false)?;
        Some(most - count.left)
    }
}

/// Turns the schemas of a document into nodes, each once.
struct SchemaIndexer<'a> {
    places: Places<'a>,
    found: HashMap<*const Value, usize>,
    todo: Vec<&'a Value>,
}

impl<'a> SchemaIndexer<'a> {
    fn index(&mut self, schema: &'a Value) -> usize {
        let todo = &mut self.todo;
        *self.found.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            todo.push(schema);
            todo.len() - 1
        })
    }

    fn all(&mut self, schemas: impl Iterator<Item = &'a Value>) -> Vec<usize> {
        schemas.filter(|schema| schema.is_object()).map(|schema| self.index(schema)).collect()
    }

    fn read(&mut self, schema: &'a Value) -> Result<SchemaNode, SchemaError> {
        let mut node = SchemaNode { own: 1, ..SchemaNode::default() };
        let none = Map::new();
        let map = schema.as_object().unwrap_or(&none);
        for (keyword, part) in schema.as_object().into_iter().flatten() {
            let list = || part.as_array().into_iter().flatten();
            let entries = || part.as_object().into_iter().flatten();
            match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if let Some(name) = part.as_str() {
                        let targets = self.places.find(name)?;
                        node.references.extend(self.all(targets.into_iter()));
                        node.whole |= node.references.is_empty();
                    }
                }
                "allOf" => node.here.extend(self.all(list())),
                "anyOf" | "oneOf" => node.alternatives.extend(self.all(list())),
                "not" | "if" | "then" | "else" => node.here.extend(self.all(std::iter::once(part))),
                "required" => node.own += list().count() / 16,
                "dependentRequired" | "dependentSchemas" | "dependencies" => {
                    let named = entries().map(|(_, names)| 1 + names.as_array().map_or(0, Vec::len));
                    node.own += named.sum::<usize>() / 16;
                    node.here.extend(self.all(entries().map(|(_, schema)| schema)));
                }
                "properties" => {
                    node.own += entries().count() / 16;
                    for (name, schema) in entries().filter(|(_, schema)| schema.is_object()) {
                        node.fields.insert(name.clone(), self.index(schema));
                    }
                }
                "patternProperties" => {
                    for (pattern, _) in entries() {
                        // Finding out whether a name fits takes longer than looking at most schemas.
                        node.name_patterns = node.name_patterns.saturating_add(4 + scan(pattern));
                    }
                    node.patterns.extend(self.all(entries().map(|(_, schema)| schema)));
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    node.other_fields.extend(self.all(std::iter::once(part)));
                }
                "propertyNames" => node.names.extend(self.all(std::iter::once(part))),
                "prefixItems" => node.prefix.extend(list().map(|schema| self.index(schema))),
                "items" if part.is_array() => node.prefix.extend(list().map(|schema| self.index(schema))),
                "items" | "additionalItems" | "contains" | "unevaluatedItems" => {
                    node.items.extend(self.all(std::iter::once(part)));
                }
                "enum" | "const" => node.own += size(part, MAX_WORK) / 8,
                "pattern" => {
                    node.whole = true;
                    node.scan = part.as_str().map_or(0, scan);
                }
                "uniqueItems" | "format" | "minLength" | "maxLength" => node.whole = true,
                _ => {}
            }
        }
        // What is left over is known only after the value was looked at once more.
        if map.contains_key("unevaluatedProperties") || map.contains_key("unevaluatedItems") {
            for list in [&mut node.here, &mut node.alternatives, &mut node.references] {
                list.extend_from_within(..);
            }
            node.name_patterns = node.name_patterns.saturating_mul(2);
        }
        Ok(node)
    }
}

/// Follows a value through the schemas, as the validator does.
struct CostCount<'a> {
    cost: &'a Cost,
    left: usize,
    remembers: bool,
    seen: HashSet<(usize, *const Value)>,
}

impl CostCount<'_> {
    /// Nothing when the work is more than is left. A problem inside alternatives holds a copy of the value.
    fn visit(&mut self, index: usize, value: &Value, copies: bool) -> Option<()> {
        let cost = self.cost;
        let node = cost.nodes.get(index)?;
        self.left = self.left.checked_sub(node.own)?;
        if node.whole || (copies && !self.remembers) {
            self.left = self.left.checked_sub(size(value, self.left.saturating_add(1)))?;
        }
        if let Value::String(text) = value {
            self.left = self.left.checked_sub(node.scan.saturating_mul(text.len() / 64))?;
        }
        for next in &node.here {
            self.visit(*next, value, copies)?;
        }
        for next in &node.alternatives {
            self.visit(*next, value, true)?;
        }
        let holds = value.is_array() || value.is_object();
        for next in &node.references {
            let remembered = self.remembers && holds && cost.cyclic.get(*next) == Some(&true);
            if !remembered || self.seen.insert((*next, std::ptr::from_ref(value))) {
                self.visit(*next, value, copies)?;
            }
        }
        match value {
            Value::Array(items) if !node.prefix.is_empty() || !node.items.is_empty() => {
                for (place, item) in items.iter().enumerate() {
                    for next in node.prefix.get(place).into_iter().chain(&node.items) {
                        self.visit(*next, item, copies)?;
                    }
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let patterns = node.name_patterns.saturating_mul(1 + name.len() / 64);
                    self.left = self.left.checked_sub(patterns.saturating_add(1))?;
                    if !node.names.is_empty() {
                        let name = Value::from(name.as_str());
                        for next in &node.names {
                            self.visit(*next, &name, copies)?;
                        }
                    }
                    let named = node.fields.get(name);
                    let others = if named.is_none() { node.other_fields.as_slice() } else { &[] };
                    for next in named.into_iter().chain(&node.patterns).chain(others) {
                        self.visit(*next, field, copies)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }
}

/// What a pattern may take for each 64 bytes of a text: at worst all of its states are tried for each of
/// them.
fn scan(pattern: &str) -> usize {
    states(pattern) / 320
}

/// How large a value is: its parts, and a part for each 64 bytes of text or of a name. Counting ends at
/// `most`.
pub(super) fn size(value: &Value, most: usize) -> usize {
    let mut sum: usize = 0;
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        sum += 1;
        match value {
            Value::String(text) => sum += text.len() / 64,
            Value::Array(items) => todo.extend(items.iter().take(most.saturating_sub(sum))),
            Value::Object(map) => {
                let fields = map.iter().take(most.saturating_sub(sum));
                todo.extend(fields.map(|(name, value)| {
                    sum += name.len() / 64;
                    value
                }));
            }
            _ => {}
        }
        if sum >= most {
            break;
        }
    }
    sum
}

/// For each node of a graph without cycles, what `add` makes of the results of those below it.
fn sum_up(graph: &[Vec<usize>], add: impl Fn(usize, &mut dyn Iterator<Item = usize>) -> usize) -> Vec<usize> {
    let mut results = vec![0; graph.len()];
    for node in post_order(graph) {
        let below = graph.get(node).into_iter().flatten();
        let result = add(node, &mut below.filter_map(|next| results.get(*next)).copied());
        if let Some(place) = results.get_mut(node) {
            *place = result;
        }
    }
    results
}

/// All nodes, each after those below it where there is no cycle. Does not recurse: references may be a long
/// chain.
fn post_order(graph: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(graph.len());
    let mut seen = vec![false; graph.len()];
    for start in 0..graph.len() {
        let mut path = vec![(start, None)];
        while let Some((node, below)) = path.pop() {
            let mut below: std::slice::Iter<'_, usize> = match below {
                Some(below) => below,
                None => {
                    let Some(seen) = seen.get_mut(node).filter(|seen| !**seen) else { continue };
                    *seen = true;
                    graph.get(node).map(Vec::as_slice).unwrap_or_default().iter()
                }
            };
            match below.next() {
                Some(next) => path.extend([(node, Some(below)), (*next, None)]),
                None => order.push(node),
            }
        }
    }
    order
}

/// Which nodes lead back to themselves.
fn on_cycles(graph: &[Vec<usize>]) -> Vec<bool> {
    let mut back = vec![Vec::new(); graph.len()];
    let mut cyclic = vec![false; graph.len()];
    for (node, below) in graph.iter().enumerate() {
        for next in below {
            if let Some(list) = back.get_mut(*next) {
                list.push(node);
            }
            if let Some(own) = cyclic.get_mut(node)
                && *next == node
            {
                *own = true;
            }
        }
    }
    // What leads to the last node that was finished, and was not yet taken, is its component.
    let mut taken = vec![false; graph.len()];
    for start in post_order(graph).into_iter().rev() {
        let mut component = Vec::new();
        let mut todo = vec![start];
        while let Some(node) = todo.pop() {
            let Some(taken) = taken.get_mut(node).filter(|taken| !**taken) else { continue };
            *taken = true;
            component.push(node);
            todo.extend(back.get(node).into_iter().flatten());
        }
        if component.len() > 1 {
            for node in component {
                if let Some(own) = cyclic.get_mut(node) {
                    *own = true;
                }
            }
        }
    }
    cyclic
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, Strictness};
    use super::*;
    use serde_json::json;

    /// A value that a schema of two alternatives with one recursive field takes twice at every level.
    fn nested(depth: usize) -> (Value, Value) {
        let schema = json!({
            "type": "object", "properties": {"q": {"$ref": "#/$defs/e"}},
            "$defs": {"e": {"anyOf": [
                {"type": "object", "properties": {"and": {"type": "string"}, "not": {"$ref": "#/$defs/e"}}},
                {"type": "object", "properties": {"or": {"type": "string"}, "not": {"$ref": "#/$defs/e"}}},
                {"type": "string"}
            ]}}
        });
        let mut value = json!(true);
        for _ in 0..depth {
            value = json!({"not": value});
        }
        (schema, json!({"q": value}))
    }

    /// Definitions that each apply the next one eight times.
    fn multiplied(levels: usize, last: Value) -> Value {
        let next = |level: usize| vec![json!({"$ref": format!("#/$defs/d{}", level + 1)}); 8];
        let mut defs: Map<String, Value> =
            (0..levels).map(|level| (format!("d{level}"), json!({"allOf": next(level)}))).collect();
        defs.insert(format!("d{levels}"), last);
        json!({"type": "object", "properties": {"q": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    }

    fn refused(schema: &Value, value: Value) -> String {
        let schema = Schema::compile(schema).unwrap();
        schema.validate(value, Strictness::Lenient).unwrap_err().message().to_owned()
    }

    #[test]
    fn a_small_value_cannot_take_forever() {
        let (schema, value) = nested(90);
        let message = refused(&schema, value.clone());
        assert!(message.contains("too many ways"), "{message}");
        assert!(Schema::compile(&schema).unwrap().problems(&value).len() == 1);
        let (schema, value) = nested(4);
        assert!(refused(&schema, value).contains("`q`"));
        let (schema, mut value) = nested(90);
        *value.pointer_mut(&format!("/q{}", "/not".repeat(90))).unwrap() = json!("x");
        Schema::compile(&schema).unwrap().validate(value, Strictness::Strict).unwrap();
    }

    #[test]
    fn a_schema_that_unfolds_without_end_is_not_unfolded() {
        for last in [json!({"type": "string"}), json!({"items": {"$ref": "#/$defs/d0"}, "type": "string"})] {
            let message = refused(&multiplied(12, last.clone()), json!({"q": "x"}));
            assert!(message.contains("too much work"), "{message}");
            let reason = Schema::compile(&multiplied(20, last)).unwrap_err().to_string();
            assert!(reason.contains("apply to one value"), "{reason}");
        }
        assert!(
            refused(&multiplied(2, json!({"type": "string"})), json!({"q": true}))
                .contains("is not a string")
        );
    }

    #[test]
    fn a_schema_that_leads_nowhere_is_refused() {
        let reason = |schema: Value| Schema::compile(&schema).unwrap_err().to_string();
        let many: Vec<Value> = (0..12).map(|_| json!({"$ref": "#"})).collect();
        assert_eq!(reason(json!({"type": "object", "allOf": many})), "it refers to itself without end");
        let next = |n: usize| json!({"$ref": format!("#/$defs/d{}", n + 1)});
        let mut chain: Map<String, Value> = (0..20_000).map(|n| (format!("d{n}"), next(n))).collect();
        chain.insert("d20000".into(), json!({}));
        let chain = json!({"properties": {"q": {"$ref": "#/$defs/d0"}}, "$defs": chain});
        assert!(reason(chain).contains("apply to one value"));
    }

    #[test]
    fn only_schemas_that_unfold_far_are_counted() {
        let free = |schema: Value| Cost::of(&schema).unwrap().unfolded <= FREE;
        assert!(free(nested(0).0));
        assert!(free(json!({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}})));
        assert!(!free(multiplied(10, json!({}))));
    }

    /// An object with that many fields.
    fn wide(fields: usize) -> Value {
        (0..fields).map(|n| (format!("x{n}"), json!(1))).collect::<Map<_, _>>().into()
    }

    #[test]
    fn what_is_tried_for_every_field_counts_whatever_it_leads_to() {
        let too_much = |schema: &Value, value: &Value| {
            let schema = Schema::compile(schema).unwrap();
            assert!(schema.problems(value).concat().contains("too much work"));
            assert!(schema.problems(&json!({"q": 1})).is_empty());
        };
        let names: Map<_, _> = (0..400).map(|n| (format!("[0-9]a{n}$"), json!(true))).collect();
        too_much(&json!({"patternProperties": names}), &wide(100_000));
        let closed =
            json!({"properties": {"q": {}}, "patternProperties": names, "additionalProperties": false});
        too_much(&closed, &wide(100_000));
        let large = r"^q|^(?:\p{L}{0,15}x)*$";
        too_much(&json!({"propertyNames": {"pattern": large}}), &json!({"y".repeat(1_000_000): 1}));
        too_much(&json!({"additionalProperties": {"pattern": large}}), &json!({"a": "y".repeat(1_000_000)}));
        let names: Vec<String> = (0..40_000).map(|n| format!("n{n}")).collect();
        let object = json!({"dependentRequired": {"a": names}});
        let list = json!({"l": vec![json!({"a": 1}); 100_000]});
        too_much(&json!({"properties": {"l": {"items": object}}}), &list);
        too_much(&json!({"properties": {"l": {"items": {"required": names}}}}), &list);
    }

    #[test]
    fn large_values_of_plain_schemas_are_checked() {
        let fits = |schema: Value, value: Value| {
            assert_eq!(Schema::compile(&schema).unwrap().problems(&value), Vec::<String>::new());
        };
        fits(json!({"properties": {"l": {"items": {"type": "integer"}}}}), json!({"l": vec![1; 500_000]}));
        let alternatives: Vec<Value> = (0..40).map(|n| json!({"const": n})).collect();
        fits(
            json!({"properties": {"l": {"items": {"anyOf": alternatives}}}}),
            json!({"l": vec![39; 60_000]}),
        );
        fits(json!({"patternProperties": {"^x": {"type": "integer"}}}), wide(50_000));
        let base64 = json!({"properties": {"a": {"pattern": "^[A-Za-z0-9+/]*={0,2}$"}}});
        fits(base64, json!({"a": "abcd".repeat(500_000)}));
    }

    #[test]
    fn large_values_are_explained_in_bounded_memory() {
        let schema = json!({"type": "object", "properties": {"l": {"items": {"type": "integer"}}}});
        let message = refused(&schema, json!({"l": vec![true; 300_000]}));
        assert_eq!(message, "the arguments do not fit:\n- `l[0]`: true is not an integer");
        let schema = json!({"type": "object", "properties": {"l": {"items": {"anyOf": [
            {"type": "integer"}, {"type": "null"}
        ]}}}});
        let mut list = vec![json!(1); 5000];
        list.push(json!([]));
        assert!(refused(&schema, json!({"l": list})).contains("`l[5000]`"));
    }
}
