//! Data made at random, written as YAML here and by the real llm-workers with PyYAML: the same, character for
//! character.

use std::path::Path;

use toolwright_expr::{EvalLimits, Program, Value};

use crate::differential::ask;
use crate::generate::Random;

const VALUES: usize = 20_000;

#[test]
fn random_data_is_written_as_pyyaml_writes_it() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/llm-workers/bin/python");
    if !python.exists() {
        eprintln!("skipped: random_data_is_written_as_pyyaml_writes_it (no llm-workers in target/peers)");
        return;
    }
    let count = std::env::var("TOOLWRIGHT_YAML").ok().and_then(|text| text.parse().ok()).unwrap_or(VALUES);
    let seed = std::env::var("TOOLWRIGHT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed);
    let asked: Vec<(String, &str)> = (0..count)
        .map(|index| {
            let trim = ["True", "False", "2", "5", "0", "-3", "-9223372036854775807"][random.below(7)];
            (data(&mut random, index % 4), trim)
        })
        .collect();
    let json = |trim: &str| -> serde_json::Value { serde_json::from_str(&trim.to_lowercase()).unwrap() };
    let requests = asked.iter().map(|(source, trim)| serde_json::json!([source, json(trim)]).to_string());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/yaml_oracle.py");
    let answers: Vec<String> = ask(&python, script, requests.collect());
    assert_eq!(answers.len(), count);
    let mut failures = Vec::new();
    for ((source, trim), wanted) in asked.iter().zip(answers) {
        let program = Program::compile(&format!("str(as_yaml({source}, {trim}))")).unwrap();
        let got = match program.evaluate(&(), &EvalLimits::default()) {
            Ok(Value::Str(text)) => text.to_string(),
            other => format!("{other:?}"),
        };
        if got != wanted {
            failures.push(format!("{source} cut to {trim}\n  python: {wanted:?}\n  ours:   {got:?}"));
        }
    }
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {count} differ:\n{shown}", failures.len());
}

/// Data as it is written in code, which both sides read alike.
fn data(random: &mut Random, depth: usize) -> String {
    let several = |random: &mut Random, part: &mut dyn FnMut(&mut Random) -> String| {
        let count = random.below(4);
        (0..count).map(|_| part(random)).collect::<Vec<_>>().join(", ")
    };
    if depth == 0 {
        return leaf(random);
    }
    match random.below(6) {
        0 | 1 => format!("[{}]", several(random, &mut |random| data(random, depth - 1))),
        2 => {
            let items = several(random, &mut |random| data(random, depth - 1) + ",");
            format!("({})", items.replace(",, ", ", "))
        }
        3 | 4 => {
            let entry = &mut |random: &mut Random| {
                let key = if random.below(8) == 0 { number(random) } else { text(random) };
                format!("{key}: {}", data(random, depth - 1))
            };
            format!("{{{}}}", several(random, entry))
        }
        _ => leaf(random),
    }
}

fn leaf(random: &mut Random) -> String {
    match random.below(10) {
        0 => ["None", "True", "False", "b'a\\n'", "1j", "range(3)", "..."][random.below(7)].to_owned(),
        1 | 2 => number(random),
        _ => text(random),
    }
}

fn number(random: &mut Random) -> String {
    const NUMBERS: [&str; 12] =
        ["0", "-7", "10**30", "1.0", "-0.5", "1e16", "1e-7", "1.5e300", "0.1", "-0.0", "123456789", "5e-324"];
    NUMBERS[random.below(NUMBERS.len())].to_owned()
}

/// A text of pieces that YAML has rules about.
fn text(random: &mut Random) -> String {
    const PIECES: [&str; 70] = [
        "a",
        "word",
        "é",
        "😀",
        "\\u4e2d",
        " ",
        "  ",
        "\\n",
        "\\n\\n",
        "\\t",
        "\\r",
        "\\r\\n",
        "\\x0b",
        "\\x1c",
        "\\x00",
        "\\x07",
        "\\x1b",
        "\\x7f",
        "\\x85",
        "\\xa0",
        "\\xad",
        "\\u2028",
        "\\u2029",
        "\\ufeff",
        "\\ufffe",
        "\\U0010fffe",
        "\\'",
        "\\\"",
        "\\\\",
        ":",
        ": ",
        "#",
        " #",
        "-",
        "- ",
        "?",
        "? ",
        "!",
        "&",
        "*",
        "|",
        ">",
        "%",
        "@",
        "`",
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "~",
        "---",
        "...",
        "<<",
        "yes",
        "No",
        "null",
        "true",
        "0",
        "12",
        "1_000",
        "0x1f",
        "1.5",
        "1e+5",
        ".5",
        ".inf",
        "1:30",
        "2001-12-14",
        "T21:59:43Z",
    ];
    let many = [0, 1, 1, 1, 2, 3, 4, 8][random.below(8)];
    let mut text: String = (0..many).map(|_| PIECES[random.below(PIECES.len())]).collect();
    if random.below(6) == 0 {
        // Long enough to be folded or cut.
        for _ in 0..random.below(60) {
            text.push_str(PIECES[random.below(PIECES.len())]);
            text.push_str(["", " ", "lengthening"][random.below(3)]);
        }
    }
    format!("'{text}'")
}
