//! Files that mean harm: each ends in a located problem, soon and in little memory.
//!
//! The files are data (`testdata/attacks/files.json`). Memory is always checked; processor time in optimised
//! builds, which `cargo xtask attacks` makes.

use std::path::Path;
use std::time::Duration;

use cpu_time::ThreadTime;
use serde::Deserialize;
use serde_json::json;
use toolwright_lang::{Host, LoadError, Loaded, Source, load, load_all};
use toolwright_testkit::vectors;

use crate::support::{call, loaded, problems, short};

const MEMORY: u64 = 32 << 20;
/// What a file may take, and one with an expression that is evaluated while loading.
const TIME: Duration = Duration::from_millis(50);
const EVALUATION: Duration = Duration::from_millis(100);

#[derive(Deserialize)]
struct Case {
    id: String,
    tried: String,
    text: Vec<Part>,
    says: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Repeated { times: usize, of: String },
}

impl Case {
    fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.text {
            match part {
                Part::Text(own) => text.push_str(own),
                Part::Repeated { times, of } if of.contains("{}") => {
                    (0..*times).for_each(|n| text.push_str(&of.replace("{}", &n.to_string())));
                }
                Part::Repeated { times, of } => text.push_str(&of.repeat(*times)),
            }
        }
        text
    }
}

/// Loads a file as a program would, and checks what that cost.
#[expect(clippy::print_stderr, reason = "the figures are shown with the test's output")]
fn contained(name: &str, source: Source) -> Result<Loaded, LoadError> {
    let mut outcome = None;
    let start = ThreadTime::now();
    let memory = allocation_counter::measure(|| outcome = Some(load(source, &Host::new()))).bytes_max;
    let time = start.elapsed();
    assert!(memory <= MEMORY, "{name} took {memory} bytes");
    let allowed = if name.starts_with("EX") { EVALUATION } else { TIME };
    assert!(cfg!(debug_assertions) || time <= allowed, "{name} took {time:?}");
    eprintln!("{name}: {:.1} ms, {:.1} MiB", time.as_secs_f64() * 1e3, memory as f64 / f64::from(1 << 20));
    outcome.unwrap()
}

#[test]
fn every_file_that_means_harm_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/attacks/files.json");
    let cases: Vec<Case> = vectors::load(&path).unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let name = format!("{} {}", case.id, case.tried);
        let found = contained(&name, Source::text("t.yaml", case.text())).err();
        let found = found.unwrap_or_else(|| panic!("{name} was accepted"));
        for problem in &found {
            assert!(
                problem.line > 0 && problem.column > 0 && problem.message.len() < 1000,
                "{name}: {problem:?}"
            );
            assert!(problem.render().len() < 4000, "{name}");
        }
        let first = short(&found.problems()[0]);
        assert!(first.contains(&case.says), "{name}: {first}");
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
fn files_that_are_no_text_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.yaml");
    std::fs::write(&path, b"shared:\n  data: {a: \xff}\n").unwrap();
    let found = contained("YM-06 invalid UTF-8", path.clone().into()).unwrap_err();
    let first = &found.problems()[0];
    assert_eq!((first.line, first.message.as_str()), (2, "the file is not UTF-8 text"));
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let found = contained("YM-02 a file of 1 TiB", path.into()).unwrap_err();
    assert!(found.to_string().contains("larger than"), "{found}");
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

/// EX-10: what an expression gives is one value to the tool that is called; nothing is split, quoted or read
/// again.
#[tokio::test]
async fn values_of_expressions_stay_whole() {
    let file = "
tools:
  - import_tool: run_python_script
  - name: t
    input: [{name: x, type: str}]
    do: {call: run_python_script, params: {script: '${x}'}}
";
    let file = loaded(file);
    for x in ["; rm -rf x", "$(id)", "a\nb", "-rf", "' OR 1=1 --", "\r\nX: y", "${1/0}", "{{x}}", "%0d%0a"] {
        assert_eq!(call(&file, "t", json!({"x": x})).await, Ok(json!(format!("ran {x}"))));
    }
}

#[test]
fn headers_and_arguments_of_servers_hold_no_control_characters() {
    let text = "
shared: {data: {x: 1}}
mcp:
  web:
    transport: streamable_http
    url: http://localhost
    auto_import_scope: none
    headers: {X-A: \"${'a\\\\r\\\\nHost: evil'}\", \"b\\nc\": d}
  local:
    transport: stdio
    command: x
    auto_import_scope: none
    args: [\"${chr(0)}\"]
";
    assert_eq!(
        problems(text),
        [
            "8:20 a header may not hold control characters",
            "8:46 a header may not hold control characters",
            "13:12 an argument may not hold a NUL character",
        ]
    );
}

#[test]
fn shell_text_made_of_values_is_pointed_at() {
    let text = "
tools:
  - import_tool: run_python_script
  - name: t
    input: [{name: x, type: str}, {name: n, type: int}, {name: m, type: 'literal:a|b'}, {name: o, type: int}]
    do:
      - {call: run_python_script, params: {script: '${x}'}}
      - {call: run_python_script, params: {script: 'print(${x})'}}
      - {call: run_python_script, params: {script: 'print(${repr(x)})'}}
      - {call: run_python_script, params: {script: 'print(${n}, ${m}, ${len(x)})'}}
      - {eval: '${x}', store_as: o}
      - {call: run_python_script, params: {script: 'print(${o})'}}
";
    let found: Vec<String> = loaded(text).check().iter().map(short).collect();
    let told = "what `${...}` gives becomes part of the program, and is run with it";
    assert_eq!(found, [format!("8:52 {told}"), format!("12:52 {told}")]);
}

#[test]
fn patterns_without_backtracking_are_linear() {
    for pattern in ["(a+)+$", "(.*a){50}", "(x+x+)+y", "(a|a)*b"] {
        let text = format!(
            "tools:\n  - name: t\n    do:\n      match: x\n      matchers: [{{pattern: '{pattern}', then: {{eval: 1}}}}]\n      default: {{eval: 2}}\n"
        );
        assert_eq!(problems(&text), Vec::<String>::new());
        let file = contained(
            &format!("RX-01 {pattern}"),
            Source::text("t.yaml", text.replace("match: x", "match: '${s}'")),
        );
        let run = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let long = "a".repeat(100_000);
        let start = ThreadTime::now();
        run.block_on(call(&file.unwrap(), "t", json!({"s": long}))).ok();
        assert!(cfg!(debug_assertions) || start.elapsed() <= TIME, "{pattern} took {:?}", start.elapsed());
    }
}

/// A file that is replaced while it is read is the old one or the new one, never a mixture.
#[test]
fn a_file_that_is_replaced_while_loading_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.yaml");
    let version = |name: &str, count: usize| -> String {
        let tools = (0..count).map(|n| format!("  - {{name: {name}{n}, do: {{eval: {n}}}}}\n"));
        format!("tools:\n{}", tools.collect::<String>())
    };
    let versions = [version("old", 40), version("new", 60)];
    std::fs::write(&path, &versions[0]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, versions, path) = (&stop, &versions, &path);
        scope.spawn(move || {
            for text in versions.iter().cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let beside = path.with_extension("next");
                std::fs::write(&beside, text).unwrap();
                std::fs::rename(&beside, path).unwrap();
            }
        });
        for _ in 0..40 {
            let file = load(path.clone(), &Host::new()).unwrap_or_else(|error| panic!("{error}"));
            let (old, new): (Vec<&str>, Vec<&str>) =
                file.tools().names().partition(|name| name.starts_with("old"));
            assert!(matches!((old.len(), new.len()), (40, 0) | (0, 60)), "{} and {}", old.len(), new.len());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
