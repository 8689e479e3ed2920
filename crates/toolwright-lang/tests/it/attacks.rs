//! Files that mean harm: each ends in a located problem, quickly and without much memory.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_lang::{Host, Source, load, load_all};

use crate::support::{call, loaded, problems, short};

/// Loads a file that must be refused in time, and tells the first problem.
fn refused(text: &str) -> String {
    let source = Source::text("t.yaml", text);
    let start = Instant::now();
    let outcome = load(source, &Host::new());
    let took = start.elapsed();
    // A build without optimisation, on a busy machine, is given more.
    let allowed = if cfg!(debug_assertions) { 2_000 } else { 50 };
    assert!(took < Duration::from_millis(allowed), "{took:?}");
    let problems = outcome.map(|_| ()).expect_err("the file was accepted");
    assert!(problems.iter().all(|problem| problem.line > 0 && !problem.render().is_empty()));
    short(&problems[0])
}

fn laughs(levels: usize, width: usize) -> String {
    let mut text = "shared:\n  data:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..=levels {
        let before = vec![format!("*a{}", level - 1); width].join(", ");
        text.push_str(&format!("    a{level}: &a{level} [{before}]\n"));
    }
    text
}

#[test]
fn bombs_do_not_go_off() {
    assert!(refused(&laughs(9, 9)).contains("more than 20000 values"));
    assert!(
        refused(&format!(
            "shared:\n  data:\n    a: &a [{}]\n    b: [{}]\n",
            "x, ".repeat(900),
            "*a, ".repeat(900)
        ))
        .contains("more than 20000 values")
    );
    assert!(refused("shared:\n  data: &d\n    a: *d\n").contains("inside the value it names"));
}

#[test]
fn depth_and_size_are_bounded() {
    assert!(refused(&"[".repeat(100_000)).contains("1:"));
    assert!(refused(&format!("a: {}", "{a: ".repeat(100_000))).contains("1:"));
    assert!(!refused(&"a:\n ".repeat(2_000)).is_empty());
    assert!(!refused(&format!("{}1", "- ".repeat(100_000))).is_empty());
    assert!(refused(&"---\na: 1\n".repeat(1_000)).contains("more than one document"));
    let keys: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
    assert!(refused(&keys[..800_000]).contains("more than 20000 values"));
    assert!(refused(&format!("a: {}", "x".repeat(2 << 20))).contains("larger than"));
    assert!(refused(&format!("# {}\nb: 1\n", "x".repeat(2 << 20))).contains("larger than"));
}

#[test]
fn duplicate_keys_and_merge_chains_are_refused() {
    assert_eq!(refused("shared: {}\nshared: {}\n"), "2:1 the key `shared` comes twice");
    let chain = "shared:\n  data:\n    a: &a {x: 1}\n    b: &b {<<: *a, y: 1}\n    c: {<<: *b}\n";
    assert!(refused(chain).contains("may not take in a map that has `<<` itself"));
}

#[test]
fn tags_mean_nothing_unless_they_are_ours() {
    for tag in
        ["!!python/object/apply:os.system [id]", "!!binary aGk=", "!custom x", "!!set {a}", "!!timestamp x"]
    {
        assert!(
            refused(&format!("shared:\n  data:\n    a: {tag}\n")).contains("means nothing here"),
            "{tag}"
        );
    }
}

#[test]
fn plain_words_always_mean_the_same() {
    let file = loaded(
        "shared:\n  data: {a: no, b: on, c: 0o17, d: 1_000, e: .inf, f: 2026-01-01, g: ~, h: y, i: 'no', j: 010}\n",
    );
    let shown: Vec<String> = file.data().values().map(|value| format!("{value:?}")).collect();
    assert_eq!(shown, ["False", "True", "'0o17'", "1000", "inf", "'2026-01-01'", "None", "'y'", "'no'", "8"]);
}

#[test]
fn unreadable_text_has_a_place() {
    assert!(refused("a: \"never closed\n").contains("not YAML"));
    assert!(refused("a:\n\t- b\n").contains(' '));
    assert!(!refused("a: x\u{0}y\n").is_empty());
    assert!(!refused("a: [1, 2\nb: 3\n").is_empty());
    let folder = std::env::temp_dir().join(format!("toolwright-utf8-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("bad.yaml");
    std::fs::write(&path, b"shared:\n  data: {a: \xff}\n").unwrap();
    let found = load(path, &Host::new()).unwrap_err();
    assert_eq!((found[0].line, found[0].message.as_str()), (2, "the file is not UTF-8 text"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_bad_tool_is_named_and_the_others_load() {
    let text = "
tools:
  - {name: fine, do: {eval: 1}}
  - {name: self, do: {call: self}}
  - {name: unknown, do: {jump: 1}}
  - {name: bad/name, do: {eval: 1}}
  - {name: \"ctrl\\a\", do: {eval: 1}}
  - {name: fine, do: {eval: 2}}
  - {name: also_fine, do: {call: fine}}
";
    let file = load_all(Source::text("t.yaml", text), &Host::new());
    assert_eq!(file.tools().names().collect::<Vec<_>>(), ["fine", "also_fine"]);
    let lines: Vec<usize> = file.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [4, 5, 6, 7, 8]);
    assert_eq!(call(&file, "also_fine", json!({})).await, Ok(json!(1)));
}

#[test]
fn too_many_tools_and_monstrous_texts_are_refused() {
    let many: String = (0..10_000).map(|n| format!("  - {{name: t{n}, do: {{eval: 1}}}}\n")).collect();
    assert!(refused(&format!("tools:\n{many}")).contains("values"));
    let long = format!("tools:\n  - {{name: t, description: {}, do: {{eval: 1}}}}\n", "x".repeat(2 << 20));
    assert!(refused(&long).contains("larger than"));
}

#[test]
fn hostile_patterns_are_linear_or_refused() {
    let with = |pattern: &str| {
        format!(
            "tools:\n  - name: t\n    do:\n      match: x\n      matchers: [{{pattern: '{pattern}', then: {{eval: 1}}}}]\n      default: {{eval: 2}}\n"
        )
    };
    assert_eq!(problems(&with("(a+)+$")), Vec::<String>::new());
    assert!(!problems(&with(r"\w{1000}{1000}")).is_empty());
    assert!(!problems(&with(&"(".repeat(100_000))).is_empty());
    assert!(!problems(&with(&"a".repeat(100_000))).is_empty());
    assert!(problems(&with(r"(?<=a)b"))[0].contains("not a regular expression"));
}

#[test]
fn templates_that_mean_harm_are_refused_with_the_place() {
    assert!(problems("tools:\n  - {name: t, do: {eval: '${x.__class__}'}}\n")[0].starts_with("2:"));
    let deep = format!(
        "tools:\n  - {{name: t, do: {{eval: '${{{}1{}}}'}}}}\n",
        "(".repeat(5_000),
        ")".repeat(5_000)
    );
    assert!(!problems(&deep).is_empty());
}
