//! What every vendor takes without a strict mode. Some refuse a request for a single tool whose schema is a union at its
//! root, is `true`, or refers to itself as a whole; each of these can be said in another way, or in words.

use serde_json::{Map, Value, json};

use super::{Adapted, Change, Effect};

/// Keywords that Anthropic or OpenAI refuse at the root of a tool's parameters.
const REFUSED_AT_ROOT: [&str; 6] = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// The longest schema that is told in a description.
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

/// Makes the root an object that is no union: what its variants have in common is written out, the rest is told.
fn at_root(schema: Value, changes: &mut Vec<Change>) -> Value {
    let Value::Object(mut root) = schema else { return json!({"type": "object"}) };
    let definitions = Value::Object(root.clone());
    let resolve = |schema: &Value| -> Map<String, Value> {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        let target = reference.and_then(|pointer| definitions.pointer(pointer));
        target.unwrap_or(schema).as_object().cloned().unwrap_or_default()
    };
    if root.get("type").is_none_or(|kind| kind != "object") {
        if root.contains_key("$ref") {
            let target = resolve(&definitions);
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
    for key in REFUSED_AT_ROOT {
        let Some(value) = root.shift_remove(key) else { continue };
        let list = value.as_array().map_or(&[][..], Vec::as_slice);
        let variants: Vec<_> = list.iter().map(resolve).collect();
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

/// Writes the rules that all hold into the root; false when that does not say everything.
fn all_of(root: &mut Map<String, Value>, variants: &[Map<String, Value>]) -> bool {
    let open =
        |schema: &Map<String, Value>| schema.get("additionalProperties").is_none_or(|more| *more == true);
    let mut exact = open(root);
    for variant in variants {
        let known = ["type", "properties", "required", "title", "description", "additionalProperties"];
        exact &= open(variant) && variant.keys().all(|key| known.contains(&key.as_str()));
        exact &= variant.get("type").is_none_or(|kind| kind == "object");
        for (name, schema) in properties(variant) {
            add(root, name, |known| match known {
                Some(known) if known != schema => json!({"allOf": [known, schema]}),
                _ => schema.clone(),
            });
        }
        require(root, required(variant));
    }
    exact
}

fn looser(changes: &mut Vec<Change>, what: &str) {
    changes.push(Change { at: String::new(), what: what.to_owned(), effect: Effect::Looser });
}

fn is_alone(reference: &Value) -> bool {
    reference.as_object().is_some_and(|schema| schema.len() == 1)
}

/// Writes what the variants have in common into the root: each may have any of their properties. True when a variant
/// takes values for a property of another that this one does not.
fn any_of(root: &mut Map<String, Value>, variants: &[Map<String, Value>]) -> bool {
    let own: Vec<String> = properties(root).map(|(name, _)| name.clone()).collect();
    for variant in variants {
        for (name, schema) in properties(variant).filter(|(name, _)| !own.contains(name)) {
            add(root, name, |known| match known {
                Some(known) if known != schema => json!({"anyOf": [known, schema]}),
                _ => schema.clone(),
            });
        }
    }
    let mut common: Vec<&str> = variants.first().map(required).into_iter().flatten().collect();
    common.retain(|name| variants.iter().all(|variant| required(variant).any(|other| other == *name)));
    require(root, common.into_iter());
    let names: Vec<&String> = variants.iter().flat_map(properties).map(|(name, _)| name).collect();
    let free = |variant: &Map<String, Value>| {
        let closed = variant.get("additionalProperties") == Some(&Value::Bool(false));
        !closed && names.iter().any(|name| properties(variant).all(|(own, _)| own != *name))
    };
    variants.iter().any(free)
}

fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn add(root: &mut Map<String, Value>, name: &str, schema: impl FnOnce(Option<&Value>) -> Value) {
    if let Value::Object(properties) = root.entry("properties").or_insert_with(|| json!({})) {
        let schema = schema(properties.get(name));
        properties.insert(name.to_owned(), schema);
    }
}

fn require<'a>(root: &mut Map<String, Value>, names: impl Iterator<Item = &'a str>) {
    for name in names {
        if let Value::Array(list) = root.entry("required").or_insert_with(|| json!([]))
            && !list.iter().any(|known| known == name)
        {
            list.push(name.into());
        }
    }
}
