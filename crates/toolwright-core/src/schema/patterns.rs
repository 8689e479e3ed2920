//! Patterns in linear time.
//!
//! A pattern comes from anywhere, and a backtracking engine can take exponential time: counting how often
//! it goes back does not bound what it does in between. The linear engine knows no look-ahead, but
//! `^(?=A)(?!B)C` says the same as three patterns without any: it matches `^A`, does not match `^B`, and
//! matches `^C`. That covers what schemas use it for. Any other look-around makes a schema that cannot be
//! compiled.
//!
//! A short pattern can be large once it is compiled (`\p{L}{20}` is a megabyte), and a schema has room for
//! thousands of them. They are weighed before any is compiled, and all of one schema share one limit.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jsonschema::Validator;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Value, json};

use super::SchemaError;

/// What holds data and no schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// The most that the patterns of one schema may weigh together, in bytes.
const MAX_WEIGHT: usize = 16 * 1024 * 1024;

/// The most that one pattern may weigh, compiled.
const MAX_PATTERN: usize = 1024 * 1024;

/// What is kept while a pattern is matched.
const MAX_MATCHING: usize = 256 * 1024;

/// What a compiled pattern weighs however short it is; 10 to 12 KiB were measured.
const LEAST_WEIGHT: usize = 12 * 1024;

/// What one named class (`\p{L}`) weighs before anything is known of it.
const NAMED_CLASS: usize = 32 * 1024;

/// A schema with the linear engine for its patterns.
pub(super) fn compiled(schema: &Value) -> Result<Validator, SchemaError> {
    let patterns = jsonschema::PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_MATCHING);
    let options = jsonschema::options().with_pattern_options(patterns);
    options.build(schema).map_err(|error| SchemaError(error.to_string()))
}

/// About how many bytes the patterns of a schema take once they are compiled; nothing when they are more than
/// one schema may have. Nothing is compiled for it, and what is too much is not even read.
pub(super) fn weight(schema: &Value) -> Option<usize> {
    let (mut values, mut names) = (HashSet::new(), HashSet::new());
    let mut todo = vec![schema];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(map) => {
                values.extend(map.get("pattern").and_then(Value::as_str));
                let named = map.get("patternProperties").and_then(Value::as_object);
                names.extend(named.into_iter().flatten().map(|(name, _)| name.as_str()));
                todo.extend(map.values());
            }
            _ => {}
        }
    }
    let mut sum: usize = 0;
    // Names are compiled twice, see `names`.
    for pattern in values.into_iter().chain(names.iter().copied()).chain(names.iter().copied()) {
        let classes = pattern.matches("\\p").count() + pattern.matches("\\P").count();
        let least = LEAST_WEIGHT + pattern.len().saturating_mul(16) + classes.saturating_mul(NAMED_CLASS);
        let within = |sum: usize| (sum <= MAX_WEIGHT).then_some(sum);
        within(sum.saturating_add(least))?;
        sum = within(sum.saturating_add(least.max(LEAST_WEIGHT.saturating_add(states(pattern)))))?;
    }
    Some(sum)
}

/// An error when the patterns of a schema are too many or too large.
pub(super) fn check_weight(schema: &Value) -> Result<(), SchemaError> {
    weight(schema).map(drop).ok_or_else(|| {
        let most = MAX_WEIGHT / (1024 * 1024);
        SchemaError(format!(
            "its patterns would take more than {most} MiB: it has too many, or too large ones"
        ))
    })
}

/// About how many bytes the states of a compiled pattern take. None for one that cannot be read: it is not
/// compiled.
pub(super) fn states(pattern: &str) -> usize {
    let Ok(rust) = jsonschema_regex::to_rust_regex(pattern) else { return 0 };
    // The parser bounds how deep groups are nested, and so what follows.
    regex_syntax::parse(&rust).map_or(0, |parsed| bytes(&parsed))
}

fn bytes(part: &Hir) -> usize {
    const STATE: usize = 32;
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => STATE,
        HirKind::Literal(literal) => STATE.saturating_mul(literal.0.len()),
        HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => 96 * (2 + class.ranges().len()),
        HirKind::Class(Class::Unicode(class)) => STATE + 8 * class.ranges().len(),
        HirKind::Class(Class::Bytes(class)) => STATE + 8 * class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            bytes(&repetition.sub).saturating_add(STATE).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => bytes(&capture.sub).saturating_add(2 * STATE),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(bytes).fold(STATE, usize::saturating_add)
        }
    }
}

/// The names of fields that `patternProperties` speaks of, wherever it is in a schema.
pub(super) fn names(schema: &Value) -> Result<HashMap<String, Validator>, SchemaError> {
    let mut found = HashMap::new();
    let mut todo = vec![schema];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(map) => {
                let patterns = map.get("patternProperties").and_then(Value::as_object);
                for pattern in patterns.into_iter().flat_map(|all| all.keys()) {
                    if !found.contains_key(pattern) {
                        found.insert(pattern.clone(), compiled(&json!({"pattern": pattern}))?);
                    }
                }
                todo.extend(map.values());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The same schema without look-ahead at the start of patterns. `text` is its JSON text.
pub(super) fn without_look_ahead<'a>(schema: &'a Value, text: &str) -> Cow<'a, Value> {
    if !text.contains("^(?=") && !text.contains("^(?!") {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    replace(&mut schema);
    Cow::Owned(schema)
}

/// Recurses as deep as the schema, which is bounded.
fn replace(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(replace),
        Value::Object(map) => {
            for (keyword, part) in map.iter_mut() {
                if !DATA.contains(&keyword.as_str()) {
                    replace(part);
                }
            }
            let parts = map.get("pattern").and_then(Value::as_str).and_then(split);
            let all = map.get("allOf").is_none_or(Value::is_array);
            if let Some(parts) = parts.filter(|_| all) {
                map.shift_remove("pattern");
                if let Value::Array(all) = map.entry("allOf").or_insert_with(|| json!([])) {
                    all.extend(parts);
                }
            }
        }
        _ => {}
    }
}

/// What a pattern with look-ahead at its start demands, in schemas without.
fn split(pattern: &str) -> Option<Vec<Value>> {
    let mut rest = pattern.strip_prefix('^')?;
    let mut parts = Vec::new();
    while let Some(inner) = rest.strip_prefix("(?=").or_else(|| rest.strip_prefix("(?!")) {
        let end = plain(inner)?.find(|(_, c, depth)| *c == ')' && *depth == 0)?.0;
        let ahead = format!("^(?:{})", inner.get(..end)?);
        parts.push(if rest.starts_with("(?=") {
            json!({"pattern": ahead})
        } else {
            json!({"not": {"type": "string", "pattern": ahead}})
        });
        rest = inner.get(end + 1..)?;
    }
    let several = plain(rest)?.any(|(_, c, depth)| c == '|' && depth == 0);
    if parts.is_empty() || several || rest.starts_with(['*', '+', '?', '{']) {
        return None;
    }
    parts.push(json!({"pattern": format!("^(?:{rest})")}));
    Some(parts)
}

/// The characters that stand for something, and how many groups are open before each. Nothing for odd
/// classes.
fn plain(pattern: &str) -> Option<impl Iterator<Item = (usize, char, usize)>> {
    if pattern.contains("[]") || pattern.contains("[^]") {
        return None;
    }
    let (mut escaped, mut in_class, mut depth) = (false, false, 0_usize);
    Some(pattern.char_indices().filter_map(move |(place, c)| {
        if std::mem::take(&mut escaped) {
            return None;
        }
        let before = depth;
        match c {
            '\\' => escaped = true,
            ']' => in_class = false,
            '[' => in_class = true,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.saturating_sub(1),
            _ => {}
        }
        (!in_class).then_some((place, c, before))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, Strictness};
    use super::*;

    fn check(pattern: &str, good: &[&str], bad: &[&str]) {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": pattern}}});
        let schema = Schema::compile(&schema).unwrap();
        let fits = |text: &str| schema.validate(json!({"a": text}), Strictness::Strict).is_ok();
        for text in good {
            assert!(fits(text), "{pattern} and {text}");
        }
        for text in bad {
            assert!(!fits(text), "{pattern} and {text}");
        }
        assert!(schema.validate(json!({"a": 5}), Strictness::Strict).is_ok());
    }

    #[test]
    fn look_ahead_at_the_start_is_understood() {
        check("^(?!foo).*$", &["bar", "", "afoo"], &["foo", "foobar"]);
        check(r"^(?=.*[A-Z])(?=.*\d).{4,}$", &["Abc1"], &["abc1", "Abcd", "A1"]);
        check(r"^(?!(?:a|b)\)[)]x)[a-z)]+$", &["ab", "a))"], &["a))x", "b))x", "1"]);
        check("^(?!a|b)(?!c)", &["d", ""], &["a", "bb", "c"]);
    }

    #[test]
    fn other_look_around_is_refused_with_the_reason() {
        for pattern in ["a(?!b)", "(?<=a)b", "^(?!a)b|c", "^(?!a(?!b))", r"^(a)\1$", "^(?!a)*b"] {
            let schema = json!({"properties": {"a": {"pattern": pattern}}});
            let reason = Schema::compile(&schema).unwrap_err().to_string();
            assert!(reason.contains("regex") || reason.contains("pattern"), "{pattern}: {reason}");
        }
    }

    #[test]
    fn patterns_are_weighed_before_they_are_compiled() {
        let many = |count: usize, pattern: &dyn Fn(usize) -> String| {
            let fields = (0..count).map(|n| (format!("p{n}"), json!({"pattern": pattern(n)})));
            json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()})
        };
        let reason = |schema: &Value| Schema::compile(schema).unwrap_err().to_string();
        let large = many(1000, &|n| format!(r"^\p{{L}}{{22}}{n}$"));
        assert_eq!(
            reason(&large),
            "its patterns would take more than 16 MiB: it has too many, or too large ones"
        );
        assert!(reason(&many(30_000, &|n| format!("a{n}"))).contains("too many"));
        let one_long = json!({"properties": {"p": {"pattern": r"\p{L}".repeat(100_000)}}});
        assert!(reason(&one_long).contains("too large"));
        let names: serde_json::Map<_, _> = (0..8000).map(|n| (format!("a{n}$"), json!(true))).collect();
        assert!(reason(&json!({"patternProperties": names})).contains("too many"));
        // The same pattern everywhere is one pattern, and what schemas really have is far below.
        Schema::compile(&many(1000, &|_| r"^\p{L}{20}$".to_owned())).unwrap();
        Schema::compile(&many(300, &|n| format!("^[a-zA-Z0-9_-]{{1,{}}}$", n + 1))).unwrap();
    }

    #[test]
    fn a_weight_is_close_to_what_the_engine_counts() {
        for (pattern, at_least, at_most) in [
            (r"^\p{L}{20}$", 500_000, 2_000_000),
            ("^[a-z]{1,64}$", 2_000, 10_000),
            ("^.{1,255}$", 50_000, 250_000),
            ("^(?:(?:(?:a{100}){100}){100})$", 10_000_000, usize::MAX),
        ] {
            let found = states(pattern);
            assert!((at_least..=at_most).contains(&found), "{pattern}: {found}");
        }
    }

    #[test]
    fn the_schema_stays_as_it_was_given_and_data_is_not_touched() {
        let schema = json!({
            "properties": {"a": {"pattern": "^(?!b)", "allOf": [{"maxLength": 3}]}, "d": {"const": {"pattern": "^(?!b)"}}}
        });
        let compiled = Schema::compile(&schema).unwrap();
        assert_eq!(compiled.json(), &schema);
        assert!(compiled.problems(&json!({"a": "abc", "d": {"pattern": "^(?!b)"}})).is_empty());
        assert_eq!(compiled.problems(&json!({"a": "bbbb"})).len(), 2);
    }
}
