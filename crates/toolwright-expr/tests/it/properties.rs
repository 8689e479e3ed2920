//! Whatever the text, nothing panics: it compiles or says why not, and evaluates or says why not.

use proptest::prelude::*;
use toolwright_expr::{EvalLimits, Program, Script, Template, Value, Variables};

use crate::generate::{Random, expression};

fn scope() -> Variables {
    [
        ("a", Value::Int(7)),
        ("f", Value::Float(0.5)),
        ("s", Value::str("text é😀")),
        ("l", Value::list(vec![Value::Int(1), Value::str("x"), Value::None])),
        ("d", Value::dict([("k", Value::Int(1)), ("n", Value::dict([("m", Value::Float(2.0))]))])),
    ]
    .into_iter()
    .collect()
}

fn limits() -> EvalLimits {
    EvalLimits { steps: 20_000, bytes: 1 << 20, ..EvalLimits::default() }
}

/// Errors must be printable too, and point into their source.
fn try_all(source: &str) {
    let check = |result: Result<Value, toolwright_expr::Error>| match result {
        Ok(value) => drop((value.to_string(), format!("{value:?}"), value.to_json().is_ok())),
        Err(error) => drop((error.render(source), error.python_class().to_owned())),
    };
    check(Program::compile(source).and_then(|program| program.evaluate(&scope(), &limits())));
    check(Template::compile(source).and_then(|template| template.evaluate(&scope(), &limits())));
    check(Script::compile(source).and_then(|script| script.evaluate(&scope(), &limits())));
}

/// Pieces of the language, put together without sense.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "f",
        "s",
        "l",
        "d",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        ".",
        "+",
        "-",
        "**",
        "//",
        "%",
        " if ",
        " else ",
        " for i in ",
        " in ",
        " not ",
        "lambda x: ",
        "'",
        "\"",
        "f'",
        "{",
        "}",
        "0x1",
        "1e9",
        "9999999999999999999",
        "\n",
        "  ",
        "=",
        "==",
        "<",
        "é",
        "😀",
        "\\",
        "#",
        "${",
        "\\${",
        "def f(x):",
        "return ",
        "for x in l:",
        "result = ",
        ".upper()",
        ".format(",
        "len(",
        "sorted(l, key=",
        "*",
        "**d",
        "!r",
        ":>5",
        "_",
        "b'",
        "r'",
        "...",
        "@",
        "~",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(source in any::<String>()) {
        try_all(&source);
    }

    #[test]
    fn any_pieces_of_the_language_are_answered(source in fragments()) {
        try_all(&source);
        try_all(&format!("${{{source}}}"));
    }

    #[test]
    fn damaged_expressions_are_answered(seed in any::<u64>(), cut in any::<prop::sample::Index>(), extra in any::<char>()) {
        let mut source = expression(&mut Random::new(seed), 4);
        let places: Vec<usize> = source.char_indices().map(|(at, _)| at).collect();
        source.insert(places[cut.index(places.len())], extra);
        try_all(&source);
    }
}

/// The ends of every range that a number is kept in, and values that are not numbers.
const EDGES: [&str; 9] =
    ["2**63-1", "-2**63", "2**63", "-2**62-1", "-(2**31)", "0", "-1", "'a{}%s'", "[3, 'x\\n  y']"];

/// Every function and every method of the reference, with numbers at the edge for all its arguments.
#[test]
fn numbers_at_the_edge_break_nothing() {
    let tables = toolwright_expr::reference_tables();
    let rows = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('('));
    let mut names: Vec<String> = rows
        .map(|(name, _)| match name.split_once('.') {
            None => name.to_owned(),
            Some((kind, method)) => {
                let value = match kind {
                    "s" => "'a\\tb c'",
                    "b" => "b'a\\tb c'",
                    "l" => "[3, 1, 2]",
                    "d" => "{'k': 1, 2: 3}",
                    "t" => "(3, 1)",
                    "f" | "x" => "(0.5)",
                    _ => "(7)",
                };
                format!("{value}.{method}")
            }
        })
        .collect();
    names.dedup();
    assert!(names.len() > 150, "only {} are known", names.len());
    let try_one = |call: &str| {
        try_all(call);
        try_all(&format!("str({call})"));
    };
    for name in &names {
        try_one(&format!("{name}()"));
        for one in EDGES {
            try_one(&format!("{name}({one})"));
            for two in EDGES {
                try_one(&format!("{name}({one}, {two})"));
                if !matches!(two, "0" | "-1") {
                    try_one(&format!("{name}('a\\nbc', {one}, {two})"));
                }
            }
        }
    }
    for (one, two) in EDGES.iter().flat_map(|one| EDGES.map(|two| (one, two))) {
        for shape in
            ["[1, 2, 3][{}:{}]", "'abc'[::{}][{}]", "range({}, {})[-1]", "f'{{1:{}.{}}}'", "'%{}.{}f' % 1.5"]
        {
            let source =
                shape.replacen("{}", one, 1).replacen("{}", two, 1).replace("{{", "{").replace("}}", "}");
            try_one(&source);
        }
        for operator in ["+", "-", "*", "//", "%", "**", "<<", ">>", "&", "in"] {
            try_one(&format!("({one}) {operator} ({two})"));
        }
    }
}
