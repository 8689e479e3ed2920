//! YAML in, JSON out, within bounds: only `true` and `false` are booleans, keys are unique, and bombs do not go off.

use serde_json::Value;

/// Reads one YAML document.
pub(crate) fn read(text: &str) -> Result<Value, Box<serde_saphyr::Error>> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
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
        assert!(read("{a: 1, a: 2}").is_err());
        let bomb = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
            let before = level - 1;
            format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "))
        });
        assert!(read(&bomb).is_err());
        assert!(read(&"[".repeat(10_000)).is_err());
    }
}
