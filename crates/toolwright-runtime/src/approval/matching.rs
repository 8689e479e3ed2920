//! Patterns over one argument, and where an argument is found: what a call leaves out is what the schema
//! names as its default. A number is the same number however it is written: 5 is 5.0; the fields of an object
//! are written in the order of their names, whatever order a model chose.

use std::sync::Arc;

use serde_json::{Map, Number, Value};
use toolwright_core::glob_match;

/// A pattern over one argument.
#[derive(Debug, Clone)]
pub enum ArgumentMatch {
    /// A shell pattern over the text (or the JSON) of the value; any of several.
    Glob(Vec<String>),
    /// Exactly this value.
    Equals(Value),
    /// A regular expression found somewhere in the text (or the JSON) of the value.
    Regex(Box<regex::Regex>),
    /// None of these patterns.
    Not(Box<ArgumentMatch>),
    /// A number above this one.
    Above(f64),
    /// A number below this one.
    Below(f64),
    /// A pattern over the commands of a shell's text, for a tool that does not say that a shell runs it.
    Shell(Box<ArgumentMatch>),
}

impl ArgumentMatch {
    /// A pattern from its form in a file: text or a list (globs), a scalar (equals), or a map with one of
    /// `equals`, `regex`, `not`, `above`, `below`, `shell`.
    pub fn new(pattern: &Value) -> Result<Self, String> {
        match pattern {
            Value::String(text) => Ok(ArgumentMatch::Glob(vec![text.clone()])),
            Value::Array(list) => list
                .iter()
                .map(|item| {
                    item.as_str().map(str::to_owned).ok_or_else(|| format!("{item} is not a pattern"))
                })
                .collect::<Result<_, _>>()
                .map(ArgumentMatch::Glob),
            Value::Object(map) => {
                let mut entries = map.iter();
                let (Some((key, value)), None) = (entries.next(), entries.next()) else {
                    return Err(
                        "a pattern map has one of `equals`, `regex`, `not`, `above`, `below`, `shell`"
                            .to_owned(),
                    );
                };
                match (key.as_str(), value) {
                    ("equals", value) => Ok(ArgumentMatch::Equals(plain(value))),
                    ("not", value) => Ok(ArgumentMatch::Not(Box::new(ArgumentMatch::new(value)?))),
                    ("shell", value) => Ok(ArgumentMatch::Shell(Box::new(ArgumentMatch::new(value)?))),
                    ("regex", Value::String(text)) => regex::RegexBuilder::new(text)
                        .size_limit(1 << 20)
                        .build()
                        .map(|regex| ArgumentMatch::Regex(Box::new(regex)))
                        .map_err(|error| error.to_string()),
                    ("above", Value::Number(number)) => {
                        Ok(ArgumentMatch::Above(number.as_f64().unwrap_or(f64::INFINITY)))
                    }
                    ("below", Value::Number(number)) => {
                        Ok(ArgumentMatch::Below(number.as_f64().unwrap_or(f64::NEG_INFINITY)))
                    }
                    _ => Err(format!(
                        "`{key}: {value}` is not a pattern; a map has one of `equals`, `regex`, `not`, `above`, \
                         `below`, `shell`"
                    )),
                }
            }
            scalar => Ok(ArgumentMatch::Equals(plain(scalar))),
        }
    }

    /// True when the value fits the pattern.
    pub fn matches(&self, value: &Value) -> bool {
        match self {
            ArgumentMatch::Glob(patterns) => {
                texts(value).iter().any(|text| patterns.iter().any(|pattern| glob_match(pattern, text)))
            }
            ArgumentMatch::Equals(wanted) => plain(value) == plain(wanted),
            ArgumentMatch::Regex(regex) => texts(value).iter().any(|text| regex.is_match(text)),
            ArgumentMatch::Not(inner) => !inner.matches(value),
            ArgumentMatch::Above(limit) => value.as_f64().is_some_and(|number| number > *limit),
            ArgumentMatch::Below(limit) => value.as_f64().is_some_and(|number| number < *limit),
            ArgumentMatch::Shell(inner) => inner.matches(value),
        }
    }

    /// Whether it matches every text, so that the text does not matter.
    pub(super) fn is_any(&self) -> bool {
        let any = |pattern: &String| !pattern.is_empty() && pattern.chars().all(|c| c == '*');
        match self {
            ArgumentMatch::Glob(patterns) => patterns.iter().any(any),
            ArgumentMatch::Shell(inner) => inner.is_any(),
            _ => false,
        }
    }

    /// Whether it names this very text, and not others that begin like it.
    pub(super) fn names_exactly(&self, text: &str) -> bool {
        match self {
            ArgumentMatch::Glob(patterns) => {
                patterns.iter().any(|pattern| pattern == text && !pattern.contains(['*', '?', '[']))
            }
            ArgumentMatch::Equals(wanted) => wanted.as_str() == Some(text),
            ArgumentMatch::Shell(inner) => inner.names_exactly(text),
            _ => false,
        }
    }

    /// The globs and regular expressions it is made of, each with whether it is a glob; none of those that it
    /// turns round.
    pub(super) fn sources(&self) -> Vec<(&str, bool)> {
        match self {
            ArgumentMatch::Glob(patterns) => {
                patterns.iter().map(|pattern| (pattern.as_str(), true)).collect()
            }
            ArgumentMatch::Equals(Value::String(text)) => vec![(text, false)],
            ArgumentMatch::Regex(regex) => vec![(regex.as_str(), false)],
            ArgumentMatch::Shell(inner) => inner.sources(),
            _ => Vec::new(),
        }
    }
}

/// The ways a value is written: with its numbers as they came, and with whole numbers written as such.
fn texts(value: &Value) -> Vec<String> {
    if let Value::String(text) = value {
        return vec![text.clone()];
    }
    let mut texts = vec![ordered(value).to_string(), plain(value).to_string()];
    texts.dedup();
    texts
}

/// The value with the fields of its objects in the order of their names.
pub(super) fn ordered(value: &Value) -> Value {
    with_numbers(value, &Value::from)
}

/// The same, with `5.0` written as `5`.
pub(super) fn plain(value: &Value) -> Value {
    with_numbers(value, &|number| whole(&number).map_or_else(|| Value::Number(number), Value::from))
}

fn with_numbers(value: &Value, write: &dyn Fn(Number) -> Value) -> Value {
    match value {
        Value::Number(number) => write(number.clone()),
        Value::Array(items) => items.iter().map(|item| with_numbers(item, write)).collect(),
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.into_iter().map(|(name, value)| (name.clone(), with_numbers(value, write)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Other names of parameters, as a tool's settings hold them.
pub(super) type Aliases = [(Arc<str>, Arc<str>)];

/// The name a tool knows a parameter by.
pub(super) fn real_name<'a>(name: &'a str, schema: &Value, aliases: &'a Aliases) -> &'a str {
    let real = aliases.iter().find(|(alias, _)| **alias == *name && !declares(schema, name));
    real.map_or(name, |(_, parameter)| parameter)
}

fn declares(schema: &Value, name: &str) -> bool {
    schema.get("properties").is_some_and(|all| all.get(name).is_some())
}

/// The arguments that a name in a rule may mean. A declared parameter is meant by its whole name; else each
/// dot may be part of a name, or lead inside.
pub(super) fn meant<'a>(
    arguments: &'a Value,
    schema: &'a Value,
    aliases: &Aliases,
    name: &str,
) -> Vec<&'a Value> {
    let whole = real_name(name, schema, aliases);
    let found = argument(arguments, schema, &[whole]);
    if !whole.contains('.') || declares(schema, whole) {
        return found.into_iter().collect();
    }
    let mut path: Vec<&str> = name.split('.').collect();
    if let Some(first) = path.first_mut() {
        *first = real_name(first, schema, aliases);
    }
    found.into_iter().chain(argument(arguments, schema, &path)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are converted")]
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64)
}

/// The argument at a path, or the default that the schema gives it.
fn argument<'a>(arguments: &'a Value, schema: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut lookup = Lookup { root: schema, steps: MAX_STEPS };
    let (mut value, mut schema) = (arguments, Some(schema));
    for part in path {
        schema = schema.and_then(|schema| lookup.part(schema, part));
        let found = match value {
            Value::Object(map) => map.get(*part),
            Value::Array(items) => Some(items.get(part.parse::<usize>().ok()?)?),
            Value::Null => None,
            _ => return None,
        };
        value = match found {
            Some(found) => found,
            None => lookup.default(schema?)?,
        };
    }
    Some(value)
}

/// How many schemas are looked at for one argument: those of a server may refer to each other without end.
const MAX_STEPS: u32 = 256;

struct Lookup<'a> {
    root: &'a Value,
    steps: u32,
}

impl<'a> Lookup<'a> {
    /// The schema of a part of what `schema` describes.
    fn part(&mut self, schema: &'a Value, name: &str) -> Option<&'a Value> {
        self.steps = self.steps.checked_sub(1)?;
        let own = schema.get("properties").and_then(|all| all.get(name));
        let item = || schema.get("items").filter(|_| name.parse::<usize>().is_ok());
        own.or_else(item).or_else(|| self.behind(schema).find_map(|other| self.part(other, name)))
    }

    fn default(&mut self, schema: &'a Value) -> Option<&'a Value> {
        self.steps = self.steps.checked_sub(1)?;
        schema.get("default").or_else(|| self.behind(schema).find_map(|other| self.default(other)))
    }

    /// The schemas that this one is made of.
    fn behind(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
        let target = target.and_then(|pointer| self.root.pointer(pointer));
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
        target.into_iter().chain(parts.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        let fits = |pattern: Value, value: Value| ArgumentMatch::new(&pattern).unwrap().matches(&value);
        assert!(fits(json!(5), json!(5.0)) && fits(json!(5.0), json!(5)));
        assert!(fits(json!("5"), json!(5.0)) && fits(json!("5.0"), json!(5.0)) && fits(json!("5"), json!(5)));
        assert!(fits(json!({"regex": "^5$"}), json!(5.0)) && !fits(json!({"not": 5}), json!(5.0)));
        assert!(fits(json!({"equals": {"a": [1]}}), json!({"a": [1.0]})));
        assert!(fits(json!(-0.0), json!(0)) && fits(json!(0.5), json!(0.5)));
        assert!(!fits(json!(5), json!(5.5)) && !fits(json!(5), json!("5")));
    }

    #[test]
    fn an_object_is_the_same_however_it_is_ordered() {
        let fits = |pattern: Value, value: Value| ArgumentMatch::new(&pattern).unwrap().matches(&value);
        for text in [
            r#"{"path":"/etc","a":{"y":[{"q":1,"p":2}],"x":1.0}}"#,
            r#"{"a":{"x":1.0,"y":[{"p":2,"q":1}]},"path":"/etc"}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(fits(json!(r#"{"a":{"x":1.0,"y":?{"p":2,*"path":"/etc*"#), value.clone()), "{value}");
            assert!(fits(json!({"regex": r#"^\{"a":\{"x":1,"#}), value.clone()), "{value}");
            assert!(!fits(json!(r#"{"path":"/etc*"#), value));
        }
    }

    #[test]
    fn a_name_with_a_dot_is_a_name_or_a_path() {
        let declared = json!({"properties": {"a.b": {"default": 7}, "command": {}}});
        let aliases = [(Arc::from("cmd"), Arc::from("command"))];
        let all = |arguments: &Value, schema: &Value, name: &str| -> Vec<Value> {
            meant(arguments, schema, &aliases, name).into_iter().cloned().collect()
        };
        assert_eq!(all(&json!({"a.b": 1, "a": {"b": 2}}), &declared, "a.b"), [json!(1)]);
        assert_eq!(all(&json!({"a": {"b": 2}}), &declared, "a.b"), [json!(7)]);
        assert_eq!(all(&json!({"a.b": 1, "a": {"b": 2}}), &json!({}), "a.b"), [json!(1), json!(2)]);
        assert_eq!(all(&json!({"command": {"x": 3}}), &declared, "cmd.x"), [json!(3)]);
        assert_eq!(all(&json!({"command": "ls"}), &declared, "cmd"), [json!("ls")]);
    }

    #[test]
    fn what_is_left_out_is_the_default() {
        let schema = json!({
            "properties": {
                "force": {"type": "boolean", "default": true},
                "plain": {"type": "boolean"},
                "options": {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}], "default": {"a": 1}},
                "mode": {"$ref": "#/$defs/Mode"},
                "loop": {"$ref": "#/properties/loop"},
                "list": {"items": {"properties": {"n": {"default": 3}}}},
            },
            "$defs": {"Options": {"properties": {"b": {"default": 2}}}, "Mode": {"default": "fast"}},
        });
        let find = |arguments: Value, path: &str| {
            let path: Vec<&str> = path.split('.').collect();
            argument(&arguments, &schema, &path).cloned()
        };
        assert_eq!(find(json!({}), "force"), Some(json!(true)));
        assert_eq!(find(Value::Null, "force"), Some(json!(true)));
        assert_eq!(find(json!({"force": false}), "force"), Some(json!(false)));
        assert_eq!(find(json!({}), "options.a"), Some(json!(1)));
        assert_eq!(find(json!({}), "options.b"), Some(json!(2)));
        assert_eq!(find(json!({"options": {}}), "options.b"), Some(json!(2)));
        assert_eq!(find(json!({}), "mode"), Some(json!("fast")));
        assert_eq!(find(json!({"list": [{}]}), "list.0.n"), Some(json!(3)));
        for nowhere in ["plain", "loop", "loop.x", "unknown", "force.x", "list.7.n", "list.n"] {
            assert_eq!(find(json!({"list": [{}]}), nowhere), None, "{nowhere}");
        }
    }
}
