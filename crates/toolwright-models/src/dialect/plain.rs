//! What every vendor takes without a strict mode. Some refuse a request for a single tool whose schema is a
//! union at its root, is `true`, or refers to itself as a whole; each of these is rewritten, or described in
//! the tool's description.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{Adapted, Change, Effect, MAX_NODES};

/// Keywords that Anthropic or OpenAI refuse at the root of a tool's parameters.
const REFUSED_AT_ROOT: [&str; 6] = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// The longest schema that is quoted in a description.
const MAX_TOLD: usize = 4000;

/// The schema of a tool's parameters as every vendor takes it.
pub(crate) fn plain(schema: &Value) -> Adapted {
    let mut walk = Walk { whole: definition_name(schema), refers: false, changes: Vec::new() };
    let mut plain = walk.schema(schema, "");
    if let (true, Value::Object(root)) = (walk.refers, &mut plain) {
        // The whole schema under a name, so that it can be referred to.
        let mut whole = root.clone();
        whole.shift_remove("$defs");
        let definitions = root.entry("$defs").or_insert_with(|| json!({}));
        if let Value::Object(definitions) = definitions {
            definitions.insert(walk.whole.clone(), whole.into());
        }
    }
    let mut changes = walk.changes;
    let schema = at_root(plain, &mut changes);
    Adapted { schema, changes }
}

/// A name that no definition has yet.
fn definition_name(schema: &Value) -> String {
    let mut name = "arguments".to_owned();
    while schema.get("$defs").is_some_and(|definitions| definitions.get(&name).is_some()) {
        name.push('_');
    }
    name
}

/// Rewrites `true`, `false` and references to the whole, which grammars of local servers cannot read.
struct Walk {
    /// The definition that stands for the whole schema.
    whole: String,
    /// Whether something refers to it.
    refers: bool,
    changes: Vec<Change>,
}

impl Walk {
    fn looser(&mut self, at: &str, what: &str) {
        self.changes.push(Change { at: at.to_owned(), what: what.to_owned(), effect: Effect::Looser });
    }

    fn schema(&mut self, schema: &Value, at: &str) -> Value {
        let Some(schema) = schema.as_object() else {
            if *schema == Value::Bool(false) {
                self.looser(at, "`false` is left out");
            }
            return json!({});
        };
        let mut plain = Map::new();
        for (key, value) in schema {
            let at = format!("{at}/{key}");
            let value = match (key.as_str(), value) {
                ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(map)) => {
                    let inner = map.iter().map(|(name, inner)| {
                        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                        (name.clone(), self.schema(inner, &at))
                    });
                    inner.collect()
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
                    let inner = list.iter().enumerate();
                    inner.map(|(index, inner)| self.schema(inner, &format!("{at}/{index}"))).collect()
                }
                // No more than those that are named one by one.
                ("items", Value::Bool(false)) => {
                    let named = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                    let most = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
                    plain.insert("maxItems".to_owned(), most.min(named as u64).into());
                    continue;
                }
                ("items" | "contains", inner) => self.schema(inner, &at),
                ("additionalProperties", inner @ Value::Object(_)) => self.schema(inner, &at),
                ("maxItems", _) if plain.contains_key("maxItems") => continue,
                ("$ref", Value::String(reference)) if reference == "#" => {
                    self.refers = true;
                    format!("#/$defs/{}", self.whole).into()
                }
                (_, value) => value.clone(),
            };
            plain.insert(key.clone(), value);
        }
        Value::Object(plain)
    }
}

/// Makes the root a plain object instead of a union: what the variants have in common becomes schema, the
/// rest is described.
fn at_root(schema: Value, changes: &mut Vec<Change>) -> Value {
    let Value::Object(mut root) = schema else { return json!({"type": "object"}) };
    let definitions = Value::Object(root.clone());
    if root.get("type").is_none_or(|kind| kind != "object") {
        if root.contains_key("$ref") {
            let target = resolve(&definitions, &definitions).cloned().unwrap_or_default();
            root.shift_remove("$ref");
            if target.keys().any(|key| super::is_rule(key) && root.contains_key(key)) {
                looser(changes, "the rules beside `$ref` replace those it leads to");
            }
            for (key, value) in target {
                root.entry(key).or_insert(value);
            }
        }
        let may_be_object = |kind: &Value| {
            kind == "object" || kind.as_array().is_some_and(|list| list.contains(&"object".into()))
        };
        if root.get("type").is_some_and(|kind| !may_be_object(kind)) {
            looser(changes, "`type` becomes `object`");
        }
        // The arguments of a call are always an object.
        root.insert("type".to_owned(), "object".into());
    }
    let mut told = Map::new();
    let mut left = MAX_NODES;
    for key in REFUSED_AT_ROOT {
        let Some(value) = root.shift_remove(key) else { continue };
        let list = value.as_array().map_or(&[][..], Vec::as_slice);
        let Some(variants) = variants(list, &definitions, &mut left) else {
            looser(changes, &format!("`{key}` is too large to be joined, and is left out"));
            continue;
        };
        // What stands beside a reference is not looked at.
        let whole = list.iter().all(|schema| schema.get("$ref").is_none() || is_alone(schema));
        let exact = match key {
            "allOf" => all_of(&mut root, &variants) && whole,
            "anyOf" | "oneOf" => {
                if any_of(&mut root, &variants) {
                    let what = format!("the properties of `{key}` are joined");
                    changes.push(Change { at: String::new(), what, effect: Effect::Tighter });
                }
                false
            }
            _ => false,
        };
        if !exact {
            looser(changes, &format!("`{key}` is only described"));
            told.insert(key.to_owned(), value);
        }
    }
    if !told.is_empty() {
        let words = Value::Object(told).to_string();
        if words.len() <= MAX_TOLD {
            let words = format!("The arguments must also follow this JSON Schema: {words}");
            let said = root.get("description").and_then(Value::as_str).filter(|said| !said.is_empty());
            let said = said.map_or_else(|| words.clone(), |said| format!("{said}\n\n{words}"));
            root.insert("description".to_owned(), said.into());
        }
    }
    Value::Object(root)
}

/// What a schema stands for: itself, or what it refers to.
fn resolve<'a>(schema: &'a Value, definitions: &'a Value) -> Option<&'a Map<String, Value>> {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
    let target = reference.and_then(|pointer| definitions.pointer(pointer));
    target.unwrap_or(schema).as_object()
}

/// The variants of a union, each once. `None` when there is more in them than is looked at for a request.
fn variants<'a>(
    list: &'a [Value],
    definitions: &'a Value,
    left: &mut usize,
) -> Option<Vec<&'a Map<String, Value>>> {
    let mut seen = HashSet::new();
    let mut variants = Vec::new();
    for schema in list {
        *left = left.checked_sub(1)?;
        let Some(variant) = resolve(schema, definitions) else { continue };
        if seen.insert(std::ptr::from_ref(variant)) {
            let mut open: Vec<&Value> = variant.values().collect();
            while let Some(next) = open.pop() {
                *left = left.checked_sub(1)?;
                match next {
                    Value::Object(map) => open.extend(map.values()),
                    Value::Array(list) => open.extend(list),
                    _ => {}
                }
            }
            variants.push(variant);
        }
    }
    Some(variants)
}

/// Writes the rules that all hold into the root; false when that does not say everything.
fn all_of(root: &mut Map<String, Value>, variants: &[&Map<String, Value>]) -> bool {
    let open =
        |schema: &Map<String, Value>| schema.get("additionalProperties").is_none_or(|more| *more == true);
    let mut exact = open(root);
    for variant in variants {
        let known = ["type", "properties", "required", "title", "description", "additionalProperties"];
        exact &= open(variant) && variant.keys().all(|key| known.contains(&key.as_str()));
        exact &= variant.get("type").is_none_or(|kind| kind == "object");
    }
    join(root, "allOf", variants.iter().copied().flat_map(properties));
    require(root, variants.iter().copied().flat_map(required));
    exact
}

fn looser(changes: &mut Vec<Change>, what: &str) {
    changes.push(Change { at: String::new(), what: what.to_owned(), effect: Effect::Looser });
}

fn is_alone(reference: &Value) -> bool {
    reference.as_object().is_some_and(|schema| schema.len() == 1)
}

/// Writes what the variants have in common into the root: each may have any of their properties. True when a
/// variant takes values for a property of another that this one does not.
fn any_of(root: &mut Map<String, Value>, variants: &[&Map<String, Value>]) -> bool {
    let own: HashSet<String> = properties(root).map(|(name, _)| name.clone()).collect();
    let all = || variants.iter().copied().flat_map(properties);
    join(root, "anyOf", all().filter(|(name, _)| !own.contains(*name)));
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for variant in variants {
        let names: HashSet<&str> = required(variant).collect();
        names.into_iter().for_each(|name| *wanted.entry(name).or_default() += 1);
    }
    let common = variants.first().copied().map(required).into_iter().flatten();
    require(root, common.filter(|name| wanted.get(name) == Some(&variants.len())));
    let names: HashSet<&String> = all().map(|(name, _)| name).collect();
    let free = |variant: &&Map<String, Value>| {
        let closed = variant.get("additionalProperties") == Some(&Value::Bool(false));
        !closed && properties(variant).count() < names.len()
    };
    variants.iter().any(free)
}

fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Writes properties into the root; different schemas for one of them are put under the keyword.
fn join<'a>(
    root: &mut Map<String, Value>,
    keyword: &str,
    more: impl Iterator<Item = (&'a String, &'a Value)>,
) {
    let mut lists: IndexMap<&String, Vec<&Value>> = IndexMap::new();
    for (name, schema) in more {
        let list = lists.entry(name).or_default();
        if !list.contains(&schema) {
            list.push(schema);
        }
    }
    if lists.is_empty() {
        return;
    }
    let Value::Object(properties) = root.entry("properties").or_insert_with(|| json!({})) else { return };
    for (name, list) in lists {
        let known = properties.get(name);
        let fresh = list.into_iter().filter(|schema| known != Some(schema));
        let mut all: Vec<Value> = known.into_iter().chain(fresh).cloned().collect();
        let schema = match all.len() {
            0 | 1 => all.pop().unwrap_or_default(),
            _ => Value::Object(Map::from_iter([(keyword.to_owned(), Value::Array(all))])),
        };
        properties.insert(name.clone(), schema);
    }
}

fn require<'a>(root: &mut Map<String, Value>, names: impl Iterator<Item = &'a str>) {
    let mut known: HashSet<String> = required(root).map(str::to_owned).collect();
    let fresh: Vec<Value> = names.filter(|name| known.insert((*name).to_owned())).map(Value::from).collect();
    if fresh.is_empty() {
        return;
    }
    if let Value::Array(list) = root.entry("required").or_insert_with(|| json!([])) {
        list.extend(fresh);
    }
}
