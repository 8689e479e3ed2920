//! YAML in, JSON out, within bounds: keys are unique, and bombs do not go off.

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use toolwright_core::Step;

/// Reads one YAML document; only `true` and `false` are booleans.
pub(crate) fn read(text: &str) -> Result<Value, Box<serde_saphyr::Error>> {
    read_as(text, true)
}

/// Reads one YAML document in which `yes`, `no`, `on` and `off` are booleans, as they are for PyYAML and in tool files.
pub(crate) fn read_with_words(text: &str) -> Result<Value, Box<serde_saphyr::Error>> {
    let (mut read, texts) = (read_as(text, false)?, read_as(text, true)?);
    keep_letters(&mut read, texts);
    Ok(read)
}

/// Puts back the texts that our reader takes for booleans and PyYAML does not, such as `y`.
fn keep_letters(read: &mut Value, texts: Value) {
    match (read, texts) {
        (Value::Array(items), Value::Array(texts)) => {
            items.iter_mut().zip(texts).for_each(|(item, text)| keep_letters(item, text));
        }
        (Value::Object(map), Value::Object(texts)) => {
            map.values_mut().zip(texts).for_each(|(item, (_, text))| keep_letters(item, text));
        }
        (read @ Value::Bool(_), Value::String(text)) => {
            let word = text.to_ascii_lowercase();
            let written = text == word || text == word.to_ascii_uppercase() || {
                let (first, rest) = word.split_at(1);
                text == first.to_ascii_uppercase() + rest
            };
            if !(written && ["yes", "no", "on", "off", "true", "false"].contains(&word.as_str())) {
                *read = Value::String(text);
            }
        }
        _ => {}
    }
}

/// The line of what a way into a document leads to, or of the last thing on the way that is there.
pub(crate) fn line_of(text: &str, path: &[Step]) -> Option<u64> {
    let line = |path: &[Step]| {
        let way = |reader: serde_saphyr::Deserializer<'_, '_>| Way(path).deserialize(reader);
        serde_saphyr::with_deserializer_from_str_with_options(text, options(true), way).ok().flatten()
    };
    (1..=path.len()).rev().find_map(|steps| line(path.get(..steps)?))
}

/// Goes a way into a document, to the line where it ends.
struct Way<'p>(&'p [Step]);

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        match self.0.first() {
            Some(Step::Key(_)) => reader.deserialize_map(self),
            Some(Step::Index(_)) => reader.deserialize_seq(self),
            None => Ok(Some(Spanned::<IgnoredAny>::deserialize(reader)?.referenced.line())),
        }
    }
}

impl<'de> Visitor<'de> for Way<'_> {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((Step::Key(wanted), rest)) = self.0.split_first() else { return Ok(None) };
        let mut found = None;
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            if key.value != *wanted {
                map.next_value::<IgnoredAny>()?;
            } else if rest.is_empty() {
                found = Some(key.referenced.line());
                map.next_value::<IgnoredAny>()?;
            } else {
                found = map.next_value_seed(Way(rest))?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Some((Step::Index(wanted), rest)) = self.0.split_first() else { return Ok(None) };
        let mut found = None;
        for index in 0.. {
            let there = if index == *wanted {
                let line = list.next_element_seed(Way(rest))?;
                found = line.flatten();
                line.is_some()
            } else {
                list.next_element::<IgnoredAny>()?.is_some()
            };
            if !there {
                break;
            }
        }
        Ok(found)
    }
}

fn read_as(text: &str, strict_booleans: bool) -> Result<Value, Box<serde_saphyr::Error>> {
    serde_saphyr::from_str_with_options(text, options(strict_booleans)).map_err(Box::new)
}

fn options(strict_booleans: bool) -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: strict_booleans,
        // Only whoever reads the file knows the name that an excerpt would stand under.
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: 50_000,
            max_nodes: 20_000,
            max_depth: 64,
            max_aliases: 1_000,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_into_a_document_ends_at_a_line() {
        let text = "# rules\n- tools: a\n  decision: ask\n- tools: b\n  when:\n    x: 1\n    y: 2\n";
        let line = |path: &[Step]| line_of(text, path);
        let (first, second) = (Step::from(0), Step::from(1));
        assert_eq!(line(&[]), None);
        assert_eq!(line(std::slice::from_ref(&first)), Some(2));
        assert_eq!(line(&[first, "decision".into()]), Some(3));
        assert_eq!(line(std::slice::from_ref(&second)), Some(4));
        assert_eq!(line(&[second.clone(), "when".into(), "y".into()]), Some(7));
        assert_eq!(line(&[second.clone(), "when".into(), "z".into()]), Some(5), "as far as there is a way");
        assert_eq!(line(&[second, "zzz".into()]), Some(4));
        assert_eq!(line_of("a: [", &["a".into()]), None);
    }

    #[test]
    fn words_are_words_and_bombs_are_errors() {
        assert_eq!(read("[y, no, on, true]").unwrap(), serde_json::json!(["y", "no", "on", true]));
        let words = "{a: [y, N, no, On, yEs, 'off', True], yes: OFF, on: [ ], n: oN}";
        assert_eq!(
            read_with_words(words).unwrap(),
            serde_json::json!({
                "a": ["y", "N", false, true, "yEs", "off", true], "yes": false, "on": [], "n": "oN"
            })
        );
        assert!(read("{a: 1, a: 2}").is_err() && read_with_words("{a: 1, a: 2}").is_err());
        let bomb = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
            let before = level - 1;
            format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "))
        });
        assert!(read(&bomb).is_err());
        assert!(read(&"[".repeat(10_000)).is_err());
    }
}
