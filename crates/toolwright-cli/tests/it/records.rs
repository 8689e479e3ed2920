//! Recorded runs: kept by default, listed, shown and compared.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::fake_model::FakeModel;
use crate::terminal::Terminal;
use crate::{show_in, show_with};

const REPLIES: &str = "\
- {text: I keep a note., calls: [{tool: remember, arguments: {note: hi}}]}
- {calls: [{tool: add, arguments: {x: 1}}]}
- text: Done.
";

/// A folder with a script that makes one call that is refused and one that is wrong.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("replies.yaml"), REPLIES).unwrap();
    folder
}

pub const ASK: &[&str] = &["ask", "Remember hi", "--model", "scripted/replies.yaml"];

fn runs(folder: &Path) -> Vec<PathBuf> {
    let found =
        std::fs::read_dir(folder.join(".local/share/toolwright/runs")).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    runs.sort();
    runs
}

/// What was printed, without ids, times and folders.
pub fn calm(folder: &Path, shown: &str) -> String {
    let shown = shown.replace(&folder.to_string_lossy().into_owned(), "[folder]");
    let mut out = shown;
    for (pattern, text) in [
        (crate::RUN_ID, "[run]"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+", "[time]"),
        (r"( +|\()\d+(\.\d+)? (µs|ms|s)\b", "$1[span]"),
        (r" +\[span\]", " [span]"),
    ] {
        out = regex::Regex::new(pattern).unwrap().replace_all(&out, text).into_owned();
    }
    out
}

#[test]
fn why_an_answer_ended_is_told_and_kept() {
    for (stop, text, exit, warning) in [
        ("end_turn", "Half", 0, None),
        ("end_turn", "", 1, Some("the model gave no answer")),
        ("max_tokens", "Half", 0, Some("warning: the answer was cut off at the token limit")),
        (
            "refusal",
            "",
            1,
            Some("the model gave no answer: the model refused, or the vendor's filter stepped in"),
        ),
        ("malformed_call", "", 1, Some("the model gave no answer: the model meant to call a tool")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // A model is asked three times to mend a call.
        let replies = format!("- {{text: {text:?}, stop: {stop}}}\n").repeat(4);
        std::fs::write(folder.path().join("replies.yaml"), replies).unwrap();
        let ask = ["ask", "Go", "--model", "scripted/replies.yaml"];
        let shown = show_in(folder.path(), &ask, "");
        assert!(shown.contains(&format!("exit {exit}")), "{stop}: {shown}");
        assert!(warning.is_none_or(|warning| shown.contains(warning)), "{stop}: {shown}");
        assert_eq!(shown.contains("warning"), exit == 0 && warning.is_some(), "{stop}: {shown}");
        let events = std::fs::read_to_string(&runs(folder.path())[0]).unwrap();
        assert!(events.contains(&format!("\"stop\":\"{stop}\"")), "{stop}: {events}");
        let shown = show_in(folder.path(), &[&ask[..], &["--json"]].concat(), "");
        let status = if exit == 0 { "done" } else { "failed" };
        assert!(shown.contains(&format!("\"status\":\"{status}\"")), "{stop}: {shown}");
        assert!(shown.contains(&format!("\"stop\":\"{stop}\"")), "{stop}: {shown}");
    }
}

#[test]
fn what_was_spent_is_told_at_the_end() {
    let model = FakeModel::start();
    let folder = folder();
    let url = format!("http://{}", model.address);
    let variables = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let args = ["ask", "hello", "--model", "anthropic/claude-sonnet-4-5", "--sandbox", "none"];
    let shown = show_with(folder.path(), &args, "", &variables);
    let line = "\n\nTokens: 1,250 (1,200 in, 50 out) | $0.00435 USD\nrecorded as ";
    assert!(shown.contains(line), "{shown}");
    let json = show_with(folder.path(), &[&args[..], &["--json"]].concat(), "", &variables);
    assert!(!json.contains("Tokens:"), "{json}");
    for (colour, want) in [("", "\x1b[2mTokens: 1,250"), ("1", "\nTokens: 1,250")] {
        let variables = [&variables[..], &[("NO_COLOR", colour)]].concat();
        let mut terminal = Terminal::start(folder.path(), &args, 80, 24, &variables);
        assert_eq!(terminal.end(), 0);
        assert!(terminal.written().contains(want), "{:?}", terminal.written());
    }
}

#[test]
fn a_run_is_recorded_for_its_owner_alone_and_can_be_looked_at() {
    let folder = folder();
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    insta::assert_snapshot!("ask", here(ASK));
    let files = runs(folder.path());
    assert_eq!(files.len(), 1);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(files[0].parent().unwrap())), (0o600, 0o700));
    insta::assert_snapshot!("runs", here(&["runs"]));
    insta::assert_snapshot!("runs_show", here(&["runs", "show"]));
    for (args, count) in [
        (&["runs", "--failed"][..], 1),
        (&["runs", "--tool", "remember"], 1),
        (&["runs", "--tool", "bash"], 0),
        (&["runs", "--command", "call"], 0),
        (&["runs", "--search", "KEEP a note"], 1),
        (&["runs", "--search", "nothing like this"], 0),
    ] {
        assert_eq!(here(args).matches("[run]").count(), count, "{args:?}");
    }
    let line = here(&["runs", "--json"]);
    let summary: serde_json::Value =
        serde_json::from_str(line.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    assert_eq!(
        (&summary["calls"], &summary["errors"], &summary["status"]),
        (&2.into(), &2.into(), &"done".into())
    );
}

#[test]
fn no_record_leaves_nothing_behind_and_a_folder_that_cannot_be_used_is_no_obstacle() {
    let folder = folder();
    show_in(folder.path(), &[ASK, &["--no-record"]].concat(), "");
    assert!(runs(folder.path()).is_empty());
    std::fs::write(folder.path().join(".local"), "in the way").unwrap();
    let shown = show_in(folder.path(), ASK, "");
    assert!(shown.contains("not recorded: ") && shown.ends_with("--- exit 0\n"), "{shown}");
}

/// Calls of one message run at the same time and begin in any order; a comparison has them in the message's.
#[test]
fn calls_beside_each_other_are_compared_in_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        |seq: u32, rest: &str| format!("{{\"seq\":{seq},\"time\":\"2026-01-01T00:00:00.000000Z\",{rest}}}\n");
    let call = |span: u32, id: &str, x: u32| {
        line(
            1,
            &format!(
                r#""event":"call_started","span":{span},"call_id":"{id}","tool":"add","arguments":{{"x":{x}}}"#
            ),
        )
    };
    let end = |span: u32, id: &str, text: &str| {
        line(
            1,
            &format!(
                r#""event":"call_finished","span":{span},"duration_us":1,"result":{{"call_id":"{id}","name":"add","content":[{{"type":"text","text":"{text}"}}]}}"#
            ),
        )
    };
    let head = line(0, r#""event":"run_started","version":1,"run_id":"0-ffffffff-0","tools":[]"#)
        + &line(
            1,
            r#""event":"message_added","message":{"role":"assistant","content":[],"tool_calls":[{"id":"a","name":"add","arguments":{"x":1}},{"id":"b","name":"add","arguments":{"x":2}}]}"#,
        );
    let one = head.clone() + &call(1, "a", 1) + &call(2, "b", 2) + &end(1, "a", "1") + &end(2, "b", "2");
    let two = head.clone() + &call(1, "b", 2) + &call(2, "a", 1) + &end(1, "b", "2") + &end(2, "a", "1");
    let cut = head + &call(1, "a", 1) + &end(1, "a", "one");
    for (name, text) in [("one.jsonl", one), ("two.jsonl", two), ("cut.jsonl", cut)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    assert!(here(&["diff", "one.jsonl", "two.jsonl"]).contains("no difference"));
    insta::assert_snapshot!("diff_parallel_calls", here(&["diff", "one.jsonl", "cut.jsonl"]));
}

#[test]
fn two_runs_are_compared_by_what_happened() {
    let folder = folder();
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    show_in(folder.path(), ASK, "");
    show_in(folder.path(), ASK, "");
    assert!(here(&["diff", "last~1"]).ends_with("no difference\n--- exit 0\n"));
    std::fs::write(folder.path().join("replies.yaml"), REPLIES.replace("{x: 1}", "{x: 1, y: 2}")).unwrap();
    show_in(folder.path(), ASK, "");
    insta::assert_snapshot!("diff", here(&["diff", "last~1", "last"]));
}

#[test]
fn a_run_is_found_by_what_a_person_types() {
    let folder = folder();
    let here = |args: &[&str]| calm(folder.path(), &show_in(folder.path(), args, ""));
    insta::assert_snapshot!("no_runs", here(&["runs", "show"]));
    show_in(folder.path(), ASK, "");
    show_in(folder.path(), ASK, "");
    insta::assert_snapshot!("unknown_run", here(&["runs", "show", "nope"]));
    insta::assert_snapshot!("too_far_back", here(&["runs", "path", "last~9"]));
    let id = runs(folder.path())[0].file_stem().unwrap().to_string_lossy().into_owned();
    assert!(here(&["runs", "path", &id.chars().skip(4).collect::<String>()]).contains("--- exit 0"));
    assert!(here(&["runs", "remove", &id]).contains("removed"));
    assert_eq!(runs(folder.path()).len(), 1);
}

/// F15.
#[test]
fn nothing_but_a_transcript_is_removed() {
    let folder = folder();
    show_in(folder.path(), ASK, "");
    let recorded = runs(folder.path())[0].clone();
    let id = recorded.file_stem().unwrap().to_string_lossy().into_owned();
    for (name, text) in
        [("notes.txt", "buy milk\n"), ("data.jsonl", "{\"event\":\"other\"}\n"), ("empty.jsonl", "")]
    {
        let other = folder.path().join(name);
        std::fs::write(&other, text).unwrap();
        let path = other.to_string_lossy().into_owned();
        let shown = show_in(folder.path(), &["runs", "remove", &id, &path], "");
        assert!(shown.contains("--- exit 2"), "{shown}");
        assert!(other.exists() && recorded.exists(), "{name}");
    }
    let copy = folder.path().join("copy.jsonl");
    std::fs::copy(&recorded, &copy).unwrap();
    assert!(show_in(folder.path(), &["runs", "remove", &copy.to_string_lossy()], "").contains("--- exit 0"));
    assert!(!copy.exists());
}

#[test]
fn the_oldest_runs_go_when_there_are_too_many() {
    let folder = folder();
    let store = folder.path().join(".local/share/toolwright/runs");
    std::fs::create_dir_all(&store).unwrap();
    for number in 0..1005 {
        std::fs::write(store.join(format!("{number:013x}-1-0.jsonl")), "").unwrap();
    }
    show_in(folder.path(), ASK, "");
    let left = runs(folder.path());
    assert_eq!(left.len(), 1001);
    assert!(!left.iter().any(|path| path.ends_with("0000000000000-1-0.jsonl")));
}

#[test]
fn keys_do_not_reach_the_record() {
    let folder = folder();
    let key = "sk-a-key-that-nobody-may-see";
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(["call", "word_count", &format!("text=the key is {key}")])
        .env_clear()
        .env("HOME", folder.path())
        .env("OPENAI_API_KEY", key)
        .output()
        .unwrap();
    assert!(status.status.success());
    let record = std::fs::read_to_string(&runs(folder.path())[0]).unwrap();
    assert!(record.contains("[redacted]") && !record.contains(key), "{record}");
}

/// A cut-off or foreign file is shown as far as it goes; nothing of it reaches the terminal raw.
#[test]
fn hostile_transcripts_are_shown_without_harm() {
    let folder = folder();
    show_in(folder.path(), ASK, "");
    let file = runs(folder.path())[0].clone();
    let mut record = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    let evil = r#"{"seq":99,"time":"2026-01-01T00:00:00.000000Z","event":"message_added","message":{"role":"user","content":[{"type":"text","text":"\u001b[2J\u001b]0;owned\u0007"}]}}"#;
    writeln!(record, "{evil}\nnot an event\n{{\"event\": 5}}").unwrap();
    write!(record, "{{\"seq\":100,\"torn").unwrap();
    let shown = show_in(folder.path(), &["runs", "show"], "");
    assert!(
        shown.contains("2 lines of the file cannot be read as events") && !shown.contains('\u{1b}'),
        "{shown}"
    );
}

/// Times that are missing, or that cannot be, are said to be not known.
#[test]
fn a_damaged_record_has_times_that_are_not_known() {
    let folder = folder();
    let record = |begun: &str, ended: &str, took: &str| {
        format!(
            r#"{{"seq":0,{begun}"event":"run_started","version":1,"run_id":"0-1-0","tools":[]}}
{{"seq":1,"time":"2026-01-01T00:00:00.000000Z","event":"call_started","span":1,"call_id":"a","tool":"add","arguments":{{}}}}
{{"seq":2,"time":"{ended}","event":"call_finished","span":1,{took}"result":{{"call_id":"a","name":"add","content":[]}}}}
"#
        )
    };
    let (day, late) = (r#""time":"2026-01-01T00:00:00.000000Z","#, "2026-01-01T00:00:02.000000Z");
    let wild = "99999999999999999";
    for (name, text) in [
        ("whole", record(day, late, r#""duration_us":1000,"#)),
        ("missing", record("", late, "")),
        (
            "early",
            record(r#""time":"1970-01-01T00:00:00.000000Z","#, late, &format!(r#""duration_us":{wild},"#)),
        ),
        ("late", record(day, "9999-12-31T23:59:59.000000Z", r#""duration_us":1000,"#)),
    ] {
        std::fs::write(folder.path().join(format!("{name}.jsonl")), text).unwrap();
    }
    let here = |args: &[&str]| show_in(folder.path(), args, "");
    let shown = |name: &str| here(&["runs", "show", &format!("{name}.jsonl")]);
    let whole = shown("whole");
    assert!(whole.contains("2026-01-01 00:00:00 UTC, ") && whole.contains(", 2.0 s\n"), "{whole}");
    for name in ["missing", "early"] {
        let shown = shown(name);
        assert!(shown.contains("\ntime not known, ") && !shown.contains(" min "), "{shown}");
        assert!(!shown.contains("1970") && !shown.contains("0 µs"), "{shown}");
    }
    let late = shown("late");
    let head = late.lines().find(|line| line.starts_with("run late: ")).unwrap();
    assert!(late.contains("2026-01-01 00:00:00 UTC, ") && !head.contains(','), "{late}");
    let diff = here(&["diff", "whole.jsonl", "missing.jsonl", "--json"]);
    let told = diff.lines().find(|line| line.starts_with('{')).unwrap();
    let told: serde_json::Value = serde_json::from_str(told).unwrap();
    assert_eq!((&told["a"]["duration_us"], &told["b"]["duration_us"]), (&2_000_000.into(), &().into()));
    assert_eq!(told["b"]["started"], serde_json::Value::Null);
}

/// `TOOLWRIGHT_BIG=1` makes it a gigabyte, as it is measured; always, the index must not hold the contents.
#[test]
fn a_large_transcript_opens_by_its_index() {
    let folder = folder();
    let megabytes = if std::env::var_os("TOOLWRIGHT_BIG").is_some() { 1024 } else { 40 };
    let path = folder.path().join("big.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let text = "word ".repeat(20_000);
    writeln!(file, r#"{{"seq":0,"time":"2026-01-01T00:00:00.000000Z","event":"run_started","version":1,"run_id":"0-1-0","tools":[]}}"#).unwrap();
    for number in 0..megabytes * 10 {
        writeln!(file, r#"{{"seq":{},"time":"2026-01-01T00:00:00.000000Z","event":"call_started","span":{number},"call_id":"c","tool":"read_file","arguments":{{"n":{number}}}}}"#, number * 2 + 1).unwrap();
        writeln!(file, r#"{{"seq":{},"time":"2026-01-01T00:00:01.000000Z","event":"call_finished","span":{number},"duration_us":1000000,"result":{{"call_id":"c","name":"read_file","content":[{{"type":"text","text":"{text}"}}]}}}}"#, number * 2 + 2).unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    for _ in 0..2 {
        let start = std::time::Instant::now();
        let shown = show_in(folder.path(), &["diff", "--help"], "");
        let base = start.elapsed();
        assert!(shown.contains("exit 0"));
        let start = std::time::Instant::now();
        let listed = std::process::Command::new(env!("CARGO_BIN_EXE_toolwright"))
            .args(["runs", "--json"])
            .env_clear()
            .env("TOOLWRIGHT_RUNS", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(text.contains(&format!("\"calls\":{}", megabytes * 10)), "{text}");
        eprintln!("{megabytes} MB opened in {:?} (starting takes {base:?})", start.elapsed());
    }
    // Comparing it reads it, and holds little of it: less than a third of it may be in memory at once when it
    // is large.
    let most = (megabytes * 1024 / 3).max(400_000);
    let script =
        format!("ulimit -v {most}; exec '{}' diff big.jsonl big.jsonl", env!("CARGO_BIN_EXE_toolwright"));
    let start = std::time::Instant::now();
    let compared =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(text.ends_with("no difference\n"), "{text}{}", String::from_utf8_lossy(&compared.stderr));
    eprintln!("compared with itself in {:?}", start.elapsed());
    let index = std::fs::metadata(path.with_extension("index")).unwrap().len();
    assert!(index < 200 * megabytes * 10 + 10_000, "the index has {index} bytes");
}
