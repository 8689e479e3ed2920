//! The parameters of a flow: type words, the JSON Schema a model is told, and the reading of arguments.
//!
//! Arguments are read the way llm-workers reads them (pydantic's lax mode): `"5"`, `5.0` and `true` are
//! integers, `"yes"` is a boolean, a number is fine where text is wanted. Nothing is lost on the way: 5.5 is
//! no integer.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_core::{ToolError, nearest, text};

use crate::template;

/// How deep types may be nested.
const MAX_DEPTH: usize = 16;

/// One parameter.
pub(crate) struct Input {
    pub(crate) name: Arc<str>,
    pub(crate) description: Option<String>,
    pub(crate) kind: Type,
    pub(crate) default: Option<Value>,
    /// Where the default stands, or else the parameter.
    pub(crate) place: crate::diag::FileSpan,
}

/// A type word of `input`, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    Any,
    List(Option<Box<Type>>),
    /// The types of keys and of values. Keys are text on their way, as arguments are JSON; a flow sees them
    /// as their type.
    Dict(Option<Box<(Type, Type)>>),
    Literal(Vec<String>),
}

impl Type {
    /// Reads a type word.
    pub(crate) fn parse(word: &str) -> Result<Type, String> {
        Self::parse_at(word, 0)
    }

    fn parse_at(word: &str, depth: usize) -> Result<Type, String> {
        let unknown = || format!("unknown type `{}`", text::clip(word, 80));
        if depth > MAX_DEPTH {
            return Err(format!("the type is nested more than {MAX_DEPTH} deep"));
        }
        if let Some(options) = word.strip_prefix("literal:") {
            let mut choices: Vec<String> = Vec::new();
            for option in options.split('|') {
                if !choices.iter().any(|choice| choice == option) {
                    choices.push(option.to_owned());
                }
            }
            return Ok(Type::Literal(choices));
        }
        let inner = |prefix: &str| word.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(']'));
        if let Some(item) = inner("list[").or_else(|| inner("array[")) {
            return Ok(Type::List(Some(Box::new(Self::parse_at(item, depth + 1)?))));
        }
        if let Some(inside) = inner("dict[").or_else(|| inner("object[")) {
            let parts = split_type_parameters(inside);
            let [key, value] = parts.as_slice() else {
                return Err(format!("`{word}` needs two types, of the keys and of the values"));
            };
            let types = (Self::parse_at(key, depth + 1)?, Self::parse_at(value, depth + 1)?);
            return Ok(Type::Dict(Some(Box::new(types))));
        }
        Ok(match word {
            "str" | "string" => Type::Text,
            "int" | "integer" => Type::Integer,
            "float" | "number" => Type::Number,
            "bool" | "boolean" => Type::Boolean,
            "dict" | "object" => Type::Dict(None),
            "list" | "array" => Type::List(None),
            "any" => Type::Any,
            _ => return Err(unknown()),
        })
    }

    /// The words a type may be, for hints.
    pub(crate) const WORDS: &'static str = "str, int, float, bool, dict, list, list[T], dict[K, V], literal:a|b, any (JSON Schema's words work too)";

    /// The JSON Schema a model is told.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        let schema = match self {
            Type::Text => json!({"type": "string"}),
            Type::Integer => json!({"type": "integer"}),
            Type::Number => json!({"type": "number"}),
            Type::Boolean => json!({"type": "boolean"}),
            Type::Any => json!({}),
            Type::List(None) => json!({"type": "array", "items": {}}),
            Type::List(Some(item)) => json!({"type": "array", "items": item.schema()}),
            Type::Dict(None) => json!({"type": "object", "additionalProperties": true}),
            Type::Dict(Some(types)) => {
                let (keys, values) = &**types;
                let mut schema = json!({"type": "object", "additionalProperties": values.schema()});
                // Keys are always text; only a choice of texts says more.
                if let (Type::Literal(_), Value::Object(map)) = (keys, &mut schema) {
                    let mut names = keys.schema();
                    names.remove("type");
                    map.insert("propertyNames".to_owned(), Value::Object(names));
                }
                schema
            }
            Type::Literal(options) => match options.as_slice() {
                [only] => json!({"const": only, "type": "string"}),
                options => json!({"enum": options, "type": "string"}),
            },
        };
        match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// Whether values of the type cannot smuggle a program into another one: numbers, and texts the file
    /// itself lists.
    pub(crate) fn holds_no_code(&self) -> bool {
        matches!(self, Type::Integer | Type::Number | Type::Boolean | Type::Literal(_))
    }

    /// Reads one argument, or says what is wrong and where.
    pub(crate) fn read(&self, value: Value, at: &str) -> Result<Value, String> {
        self.read_at(value, at, ValueDepth::Top)
    }

    /// An argument that was read, as expressions see it: keys of dicts are of their type.
    pub(crate) fn value(&self, json: Value) -> toolwright_expr::Value {
        use toolwright_expr::Value as Seen;
        match (self, json) {
            (Type::List(Some(item)), Value::Array(items)) if item.has_typed_keys() => {
                Seen::list(items.into_iter().map(|value| item.value(value)).collect())
            }
            (Type::Dict(Some(types)), Value::Object(map)) if self.has_typed_keys() => {
                let (keys, values) = &**types;
                // A default that does not fit its type keeps its keys.
                let key = |text: &str| keys.read_at(text.into(), "key", ValueDepth::Inside).ok();
                let pair = |(text, value): (String, Value)| {
                    let key = key(&text).map_or_else(|| Seen::str(text.as_str()), Seen::from);
                    (key, values.value(value))
                };
                template::dict(map.into_iter().map(pair).collect()).unwrap_or(Seen::None)
            }
            (_, json) => Seen::from(json),
        }
    }

    fn has_typed_keys(&self) -> bool {
        match self {
            Type::List(Some(item)) => item.has_typed_keys(),
            Type::Dict(Some(types)) => {
                matches!(types.0, Type::Integer | Type::Number | Type::Boolean) || types.1.has_typed_keys()
            }
            _ => false,
        }
    }

    /// Whether a value is of the type as it is, so that reading it would change nothing.
    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Type::Any, _) | (Type::Text, Value::String(_)) | (Type::Boolean, Value::Bool(_)) => true,
            (Type::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
            (Type::Number, Value::Number(number)) => number.is_f64(),
            (Type::List(None), Value::Array(_)) | (Type::Dict(None), Value::Object(_)) => true,
            (Type::List(Some(item)), Value::Array(items)) => items.iter().all(|value| item.fits(value)),
            (Type::Dict(Some(types)), Value::Object(map)) => {
                types.0 == Type::Text && map.values().all(|value| types.1.fits(value))
            }
            (Type::Literal(options), Value::String(text)) => options.contains(text),
            _ => false,
        }
    }

    fn read_at(&self, value: Value, at: &str, place: ValueDepth) -> Result<Value, String> {
        let wrong = |value: &Value, wanted: &str| {
            Err(format!("`{at}`: {} is not {wanted}", text::clip(&value.to_string(), 80)))
        };
        match self {
            Type::Any => Ok(value),
            Type::Text => match value {
                Value::String(_) => Ok(value),
                // Only a parameter of its own takes numbers; inside a list or a dict text must be text.
                Value::Number(_) if place == ValueDepth::Top => {
                    Ok(Value::String(toolwright_expr::Value::from_json(&value).to_string()))
                }
                other => wrong(&other, "text"),
            },
            Type::Integer => match read_integer(&value) {
                Some(number) => Ok(number),
                None if is_long_integer(&value) => {
                    wrong(&value, "an integer of at most 64 bits; give longer ones as `str`")
                }
                None => wrong(&value, "an integer"),
            },
            Type::Number => read_number(&value).map_or_else(|| wrong(&value, "a number"), Ok),
            Type::Boolean => {
                read_boolean(&value).map_or_else(|| wrong(&value, "true or false"), |flag| Ok(flag.into()))
            }
            Type::List(item) => match (value, item) {
                (Value::Array(items), None) => Ok(Value::Array(items)),
                (Value::Array(items), Some(item)) => {
                    let read = items.into_iter().enumerate();
                    let read = read.map(|(index, value)| {
                        item.read_at(value, &format!("{at}[{index}]"), ValueDepth::Inside)
                    });
                    read.collect::<Result<Vec<_>, _>>().map(Value::Array)
                }
                (other, _) => wrong(&other, "a list"),
            },
            Type::Dict(inner) => match (value, inner) {
                (Value::Object(map), None) => Ok(Value::Object(map)),
                (Value::Object(map), Some(types)) => {
                    let (keys, inner) = &**types;
                    let read = map.into_iter().map(|(key, value)| {
                        keys.read_at(
                            Value::from(key.as_str()),
                            &format!("{at}.{key} (key)"),
                            ValueDepth::Inside,
                        )?;
                        let value = inner.read_at(value, &format!("{at}.{key}"), ValueDepth::Inside)?;
                        Ok((key, value))
                    });
                    read.collect::<Result<Map<_, _>, String>>().map(Value::Object)
                }
                (other, _) => wrong(&other, "a dict"),
            },
            Type::Literal(options) => match &value {
                Value::String(text) if options.contains(text) => Ok(value),
                other => {
                    let options: Vec<_> = options.iter().map(|option| format!("`{option}`")).collect();
                    wrong(other, &format!("one of {}", options.join(", ")))
                }
            },
        }
    }
}

/// Whether a value is a parameter of its own or part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueDepth {
    Top,
    Inside,
}

fn read_integer(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(value.clone()),
        Value::Number(number) => whole(number.as_f64()?),
        Value::Bool(flag) => Some(i64::from(*flag).into()),
        Value::String(text) => {
            let text = without_marks(text.trim())?;
            let digits = match text.split_once('.') {
                Some((digits, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => {
                    digits
                }
                Some(_) => return None,
                None => &text,
            };
            digits.parse::<i64>().map(Value::from).or_else(|_| digits.parse::<u64>().map(Value::from)).ok()
        }
        _ => None,
    }
}

/// A number as text without the marks between its digits: `1_000`. A mark stands between two digits.
fn without_marks(text: &str) -> Option<String> {
    let misplaced = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!misplaced).then(|| text.replace('_', ""))
}

/// Digits that are an integer, but one that does not fit.
fn is_long_integer(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default().trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A float that is a whole number small enough to be exact.
fn whole(number: f64) -> Option<Value> {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
    (number.fract() == 0.0 && number.abs() < 9.0e15).then(|| Value::from(number as i64))
}

fn read_number(value: &Value) -> Option<Value> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::String(text) => without_marks(text.trim())?.parse().ok()?,
        _ => return None,
    };
    serde_json::Number::from_f64(number).map(Value::Number)
}

fn read_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_f64() {
            Some(0.0) => Some(false),
            Some(1.0) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.to_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The parts of a type's parameters, split at commas that are not inside brackets.
///
/// ```
/// assert_eq!(toolwright_lang::split_type_parameters("str, list[int,int]"), ["str", "list[int,int]"]);
/// ```
pub fn split_type_parameters(text: &str) -> Vec<String> {
    let mut depth = 0_i64;
    let mut parts = vec![String::new()];
    for c in text.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    // A trailing comma adds no part.
    if parts.last().is_some_and(|part| part.trim().is_empty()) {
        parts.pop();
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// The schema of a flow's parameters.
pub(crate) fn schema(inputs: &[Input]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for input in inputs {
        let mut schema = Map::new();
        if let Some(default) = &input.default {
            schema.insert("default".to_owned(), default.clone());
        }
        if let Some(description) = &input.description {
            schema.insert("description".to_owned(), description.as_str().into());
        }
        schema.extend(input.kind.schema());
        properties.insert(input.name.to_string(), Value::Object(schema));
        if input.default.is_none() {
            required.push(Value::from(&*input.name));
        }
    }
    let mut schema = Map::from_iter([("properties".to_owned(), Value::Object(properties))]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("type".to_owned(), "object".into());
    Value::Object(schema)
}

/// Reads the arguments of a flow: each one by its type, unknown ones dropped, every problem told.
pub(crate) fn read(inputs: &[Input], arguments: Value) -> Result<Value, ToolError> {
    let Value::Object(mut given) = arguments else {
        return Err(ToolError::invalid("the arguments must be a JSON object"));
    };
    // The common case: everything is there and of its type, and nothing else.
    let known =
        inputs.iter().filter(|input| given.get(&*input.name).is_some_and(|value| input.kind.fits(value)));
    if known.count() == given.len()
        && inputs.iter().all(|i| i.default.is_some() || given.contains_key(&*i.name))
    {
        return Ok(Value::Object(given));
    }
    let mut read = Map::new();
    let mut problems = Vec::new();
    for input in inputs {
        match given.remove(&*input.name) {
            Some(value) => match input.kind.read(value, &input.name) {
                Ok(value) => {
                    read.insert(input.name.to_string(), value);
                }
                Err(problem) => problems.push(problem),
            },
            None if input.default.is_some() => {}
            None => problems.push(format!("`{}` is missing", input.name)),
        }
    }
    let names: Vec<&str> = inputs.iter().map(|input| &*input.name).collect();
    // What is left was meant for something.
    let mut near = None;
    for name in given.keys() {
        problems.push(format!("`{}` is not a parameter", text::clip(name, 80)));
        near = near.or_else(|| nearest(name, names.iter().copied()));
    }
    if problems.is_empty() {
        return Ok(Value::Object(read));
    }
    problems.truncate(20);
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let hint = match names.as_slice() {
        [] => "it takes no arguments".to_owned(),
        names => format!("{near}the parameters are: {}", text::clip(&names.join(", "), 1000)),
    };
    Err(ToolError::invalid(format!("the arguments do not fit:\n- {}", problems.join("\n- "))).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, value: Value, want: Option<Value>) {
        let got = Type::parse(word).unwrap().read(value.clone(), "x").ok();
        assert_eq!(got, want, "{word} of {value}");
    }

    #[test]
    fn readings_are_lax_and_lose_nothing() {
        check("int", json!(" 5 "), Some(json!(5)));
        check("int", json!("5.0"), Some(json!(5)));
        check("int", json!(5.5), None);
        check("int", json!(true), Some(json!(1)));
        check("int", json!(null), None);
        check("float", json!(1), Some(json!(1.0)));
        check("float", json!("1.5"), Some(json!(1.5)));
        check("bool", json!("YES"), Some(json!(true)));
        check("bool", json!(0.0), Some(json!(false)));
        check("bool", json!(2), None);
        check("str", json!(5), Some(json!("5")));
        check("str", json!(1e-7), Some(json!("1e-07")));
        check("str", json!(true), None);
        check("int", json!("1_000"), Some(json!(1000)));
        for misplaced in ["_5", "5_", "1__0", "5."] {
            check("int", json!(misplaced), None);
        }
        check("float", json!("1__0"), None);
        check("dict[int, int]", json!({"1": "2"}), Some(json!({"1": 2})));
        check("dict[int, int]", json!({"a": 2}), None);
        check("dict[literal:a|b, int]", json!({"c": 2}), None);
        let choice = Type::parse("dict[literal:a|b, int]").unwrap().schema();
        assert_eq!(choice.get("propertyNames"), Some(&json!({"enum": ["a", "b"]})));
        check("literal: a|b", json!("a"), None);
        check("list[str]", json!([5]), None);
        check("list[int]", json!([1, "2", 3.0]), Some(json!([1, 2, 3])));
        check("dict[str, list[int]]", json!({"a": ["1"]}), Some(json!({"a": [1]})));
        check("dict", json!([]), None);
        check("literal:a|b", json!("a"), Some(json!("a")));
        check("literal:1|2", json!(1), None);
        check("any", json!([null]), Some(json!([null])));
    }

    #[test]
    fn keys_are_seen_as_their_type() {
        let seen = |word: &str, json: Value| {
            let kind = Type::parse(word).unwrap();
            format!("{:?}", kind.value(kind.read(json, "x").unwrap()))
        };
        assert_eq!(seen("dict[int, str]", json!({"1": "one", "2.0": "two"})), "{1: 'one', 2: 'two'}");
        assert_eq!(seen("list[dict[float, int]]", json!([{"1": 2}])), "[{1.0: 2}]");
        assert_eq!(seen("dict[str, dict[bool, any]]", json!({"1": {"yes": null}})), "{'1': {True: None}}");
        assert_eq!(seen("dict[str, int]", json!({"1": 2})), "{'1': 2}");
    }

    #[test]
    fn integers_that_do_not_fit_are_told_apart() {
        let told = |value: Value| Type::Integer.read(value, "x").unwrap_err();
        assert!(told(json!("10000000000000000000000000")).contains("at most 64 bits"));
        assert!(!told(json!("ten")).contains("64 bits") && !told(json!(5.5)).contains("64 bits"));
    }

    #[test]
    fn words_that_are_no_types_are_refused() {
        for word in ["", "text", "list[", "tuple[int]", "dict[str]", "dict[str,int,int]", "list[nope]"] {
            assert!(Type::parse(word).is_err(), "{word}");
        }
        assert!(Type::parse(&format!("{}int{}", "list[".repeat(40), "]".repeat(40))).is_err());
    }

    #[test]
    fn unknown_arguments_are_refused_and_all_problems_told() {
        let input = |name: &str, word: &str| Input {
            name: name.into(),
            description: None,
            kind: Type::parse(word).unwrap(),
            default: None,
            place: crate::diag::FileSpan::default(),
        };
        let inputs = [input("a", "int"), input("b", "bool"), input("c", "str")];
        let error = read(&inputs, json!({"a": "x", "b": 7, "zz": 1})).unwrap_err();
        assert_eq!(
            error.message(),
            "the arguments do not fit:\n- `a`: \"x\" is not an integer\n- `b`: 7 is not true or false\n- `c` is missing\n- `zz` is not a parameter"
        );
        let hint = error.info().hint;
        assert_eq!(hint.as_deref(), Some("the parameters are: a, b, c"));
        let fine = read(&inputs, json!({"c": "t", "b": 1, "a": "3"})).unwrap();
        assert_eq!(fine, json!({"a": 3, "b": true, "c": "t"}));
    }
}
