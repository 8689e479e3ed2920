//! Whatever the text, loading ends without a panic, and every problem can be shown.

use proptest::prelude::*;
use toolwright_lang::{Host, Source, load_all};

fn never_panics(text: &str) {
    let loaded = load_all(Source::text("t.yaml", text), &Host::new());
    for problem in loaded.check() {
        assert!(problem.line > 0 && problem.render().contains(&problem.message));
    }
}

/// Text made of the words and marks that files are made of.
fn like_a_file() -> impl Strategy<Value = String> {
    let words = [
        "tools:",
        "shared:",
        "data:",
        "- ",
        "name: ",
        "t",
        "do:",
        "eval: ",
        "call: ",
        "if: ",
        "then: ",
        "else: ",
        "for_each: ",
        "match: ",
        "matchers: ",
        "default: ",
        "starlark: ",
        "cli:",
        "chat:",
        "env:",
        "mcp:",
        "input: ",
        "type: ",
        "str",
        "'${x}'",
        "${_ + 1}",
        "{",
        "}",
        "[",
        "]",
        ", ",
        ": ",
        "\n",
        "\n  ",
        "\n    ",
        "\n      ",
        "&a ",
        "*a",
        "<<: ",
        "!include ",
        "!!str ",
        "|\n",
        "null",
        "true",
        "5",
        "'",
        "\"",
        "#",
        "é",
        "\t",
    ];
    proptest::collection::vec(prop::sample::select(words.to_vec()), 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_refused_or_loaded(text in any::<String>()) {
        never_panics(&text);
    }

    #[test]
    fn text_like_a_file_is_refused_or_loaded(text in like_a_file()) {
        never_panics(&text);
    }
}
