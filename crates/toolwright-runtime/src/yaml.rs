//! YAML in, JSON out, within bounds: keys are unique, and bombs do not go off.

use serde_json::Value;

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

fn read_as(text: &str, strict_booleans: bool) -> Result<Value, Box<serde_saphyr::Error>> {
    let options = serde_saphyr::options! {
        strict_booleans: strict_booleans,
        budget: serde_saphyr::budget! {
            max_events: 50_000,
            max_nodes: 20_000,
            max_depth: 64,
            max_aliases: 1_000,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;

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
