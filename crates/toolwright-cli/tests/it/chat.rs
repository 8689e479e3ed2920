//! Conversations in a terminal: what is typed, and the screens a person sees.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::fake_model::{ANSWER, FakeModel, THOUGHT};
use crate::show_in;
use crate::terminal::Terminal;

const REPLIES: &str = r##"
- text: "# Hello\nI am a **script**; first I add, then I keep a note.\n- one\n- two `words`\n"
  usage: {input_tokens: 1234, output_tokens: 56}
  calls: [{tool: add, arguments: {x: 1, y: 2}}]
- calls: [{tool: remember, arguments: {note: first}}]
- text: "Kept.\n\n| what | how many |\n|---|---|\n| notes | 1 |\n"
- text: "Second answer."
- text: "Third answer."
- text: "Fourth answer."
"##;

pub fn folder(replies: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.yaml"), replies).unwrap();
    folder
}

pub const CHAT: &[&str] = &["chat", "--model", "scripted/r.yaml", "--sandbox", "none"];

/// The screen without times and ids.
fn calm(terminal: &Terminal) -> String {
    let mut text = terminal.screen();
    for (pattern, with) in [
        (r"\d+(\.\d+)? (µs|ms|s)\b", "[span]"),
        (r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "*"),
        (r"\b\d+s\b", "[n]s"),
        (crate::RUN_ID, "[run]"),
        (r"/\S*/pictures", "[pictures]"),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

pub fn start(folder: &tempfile::TempDir, columns: u16, rows: u16) -> Terminal {
    let mut terminal = Terminal::start(folder.path(), CHAT, columns, rows, &[]);
    terminal.wait("#1");
    terminal
}

#[test]
fn a_conversation_with_tools_an_approval_and_its_end() {
    let folder = folder(REPLIES);
    let mut terminal = start(&folder, 80, 40);
    terminal.send("hello there\r");
    terminal.wait("Allow it?");
    insta::assert_snapshot!("asks", calm(&terminal));
    terminal.send("y");
    terminal.wait("#2");
    insta::assert_snapshot!("answered", calm(&terminal));
    terminal.send("/cost\r");
    terminal.wait("Per-Model");
    terminal.send("/exit\r");
    assert_eq!(terminal.end(), 0);
    terminal.wait("recorded as");
    insta::assert_snapshot!("left", calm(&terminal));
    // The terminal is as it was, and the session is for its owner alone.
    use std::os::unix::fs::PermissionsExt as _;
    let session = std::fs::metadata(crate::last_session(folder.path())).unwrap();
    assert_eq!(session.permissions().mode() & 0o777, 0o600);
}

#[test]
fn approvals_can_be_refused_edited_and_given_for_good() {
    let call = "- calls: [{tool: remember, arguments: {note: one}}]\n";
    let replies = format!("{call}- text: Refused.\n{call}- text: Edited.\n{call}{call}- text: Always.\n");
    let folder = folder(&replies);
    let mut terminal = start(&folder, 80, 50);
    terminal.send("a\r");
    terminal.wait("Allow it?");
    terminal.send("n");
    terminal.wait("why not");
    terminal.send("not today\r");
    terminal.wait("Refused.");
    terminal.send("b\r");
    terminal.wait("Allow it?");
    terminal.send("e");
    terminal.wait("arguments: {");
    // Not JSON first; then right.
    terminal.send("\x03{]\r");
    terminal.wait("this is not JSON");
    terminal.send("\x03{\"note\": \"two\"}\r");
    terminal.wait("Edited.");
    terminal.send("c\r");
    terminal.wait("Allow it?");
    terminal.send("a");
    terminal.wait("Always.");
    insta::assert_snapshot!("approvals", calm(&terminal));
}

#[test]
fn rewinding_gives_the_input_back_and_a_session_is_resumed() {
    let folder = folder("- text: One.\n- text: Two.\n- text: Three.\n- text: Four.\n");
    let mut terminal = start(&folder, 80, 40);
    terminal.send("first\r");
    terminal.wait("One.");
    terminal.wait("#2");
    terminal.send("second\r");
    terminal.wait("Two.");
    terminal.wait("#3");
    terminal.send("/rewind\r");
    terminal.wait("back before #2");
    terminal.send(" again\r");
    terminal.wait("Three.");
    terminal.wait("#3");
    insta::assert_snapshot!("rewound", calm(&terminal));
    terminal.send("/export talk\r");
    terminal.wait("wrote talk.md");
    terminal.send("/save mine\r");
    terminal.wait("wrote mine.chat.yaml");
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
    let exported = std::fs::read_to_string(folder.path().join("talk.md")).unwrap();
    assert_eq!(
        exported,
        "# User #1\n\nfirst\n\n---\n\n# Assistant #1\n\nOne.\n\n---\n\n# User #2\n\nsecond again\n\n---\n\n# Assistant #2\n\nThree.\n"
    );
    let args = [CHAT, &["--resume"]].concat();
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &[]);
    terminal.wait("#3");
    terminal.send("third\r");
    terminal.wait("One.");
    terminal.wait("#4");
    insta::assert_snapshot!("resumed", calm(&terminal));
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
    let session = std::fs::read_to_string(folder.path().join("mine.chat.yaml")).unwrap();
    assert!(session.contains("second again") && !session.contains("third"), "{session}");
}

#[test]
fn a_narrow_terminal_wraps_and_a_resize_is_taken() {
    let folder = folder(REPLIES);
    let mut terminal = start(&folder, 30, 40);
    terminal.send("a long input that does not fit into one row\r");
    terminal.wait("Allow it?");
    insta::assert_snapshot!("narrow", calm(&terminal));
    terminal.resize(70, 40);
    // The program has taken it when the question fits into fewer rows.
    terminal.wait("[a]lways for these arguments  [e]dit");
    terminal.send("y");
    terminal.wait("#2");
    terminal.send("and now a longer input that fits into the wider row\r");
    terminal.wait("Second answer.");
    terminal.wait("#3");
    let last: Vec<String> = calm(&terminal).lines().rev().take(8).map(str::to_owned).collect();
    insta::assert_snapshot!("wider", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
}

#[test]
fn ctrl_c_stops_the_call_and_keeps_the_session() {
    let folder = folder("- calls: [{tool: countdown, arguments: {seconds: 600}}]\n- text: Still here.\n");
    let mut terminal = start(&folder, 80, 30);
    terminal.send("wait\r");
    terminal.wait("s left");
    terminal.send("\x03");
    terminal.wait("stopped; what there is stays");
    terminal.wait("#2");
    terminal.send("are you there?\r");
    terminal.wait("Still here.");
    insta::assert_snapshot!("stopped", calm(&terminal));
}

#[test]
fn several_lines_history_completion_and_unknown_commands() {
    let folder = folder("- text: Read.\n- text: Again.\n");
    std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
    let mut terminal = start(&folder, 80, 60);
    terminal.send("look at @not\t\x1b\rand a second line\r");
    terminal.wait("Read.");
    terminal.wait("#2");
    terminal.send("/hel\t\r");
    terminal.wait("Ctrl-D");
    terminal.send("/fly\r");
    terminal.wait("Unknown command: /fly.");
    terminal.wait_for("a prompt", |screen| screen.lines().last().is_some_and(|line| line.trim() == ">"));
    terminal.send("\x1b[A\x1b[A\x1b[A\r");
    terminal.wait("Again.");
    insta::assert_snapshot!("typed", calm(&terminal));
}

#[test]
fn reasoning_is_shown_dimmed_and_on_request_and_spending_in_money() {
    let model = FakeModel::start();
    let folder = folder(REPLIES);
    let url = format!("http://{}", model.address);
    let variables = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let args = ["chat", "--model", "anthropic/claude-sonnet-4-5", "--sandbox", "none"];
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &variables);
    terminal.wait("#1");
    terminal.send("hello\r");
    terminal.wait("#2");
    assert!(terminal.screen().contains(ANSWER) && !terminal.screen().contains(THOUGHT));
    terminal.send("/display show_reasoning on\r");
    terminal.wait("show_reasoning: on");
    terminal.send("hello again\r");
    terminal.wait("#3");
    insta::assert_snapshot!("reasoning", calm(&terminal));
    // Dim and italic; the answer is neither.
    let written = terminal.written();
    assert!(written.contains(&format!("\x1b[2;3m{THOUGHT}")), "{written:?}");
}

#[test]
fn files_that_changed_meanwhile_are_named() {
    let folder = folder(
        "- calls: [{tool: write_file, arguments: {path: new.txt, content: hello}}]\n- text: Written.\n",
    );
    let mut terminal =
        Terminal::start(folder.path(), &["chat", "--model", "scripted/r.yaml", "--write", "."], 80, 40, &[]);
    terminal.wait("#1");
    if terminal.screen().contains("no sandbox") {
        eprintln!("SKIPPED: there is no sandbox here");
        return;
    }
    terminal.send("write it\r");
    terminal.wait("#2");
    assert!(terminal.screen().contains("Files created: new.txt"), "{}", terminal.screen());
}

#[test]
fn colours_can_be_turned_off() {
    let folder = folder(REPLIES);
    let mut terminal = Terminal::start(folder.path(), CHAT, 80, 40, &[("NO_COLOR", "1")]);
    terminal.wait("#1");
    terminal.send("go\r");
    terminal.wait("Allow it?");
    let written = terminal.written();
    let colour = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    assert!(!colour.is_match(&written), "{written:?}");
}

#[test]
fn a_pipe_gets_answers_and_nothing_else() {
    let folder = folder(
        "- text: '**One**'\n  calls: [{tool: add, arguments: {x: 1, y: 2}}]\n- text: Two.\n- text: Three.\n",
    );
    let shown = show_in(folder.path(), &[CHAT, &["--no-record"]].concat(), "first\nsecond\n/cost\n");
    let shown =
        regex::Regex::new(r"\d+(\.\d+)? (µs|ms|s)\b").unwrap().replace_all(&shown, "[span]").into_owned();
    insta::assert_snapshot!("pipe", shown);
}

/// The next inputs of a pipe wait for an answer, and so does its end.
#[test]
fn a_pipe_loses_no_input_while_a_tool_works() {
    let slow = "- calls: [{tool: countdown, arguments: {seconds: 1}}]\n";
    let folder = folder(&format!("{slow}- text: One.\n{slow}- text: Two.\n"));
    let shown = show_in(folder.path(), &[CHAT, &["--no-record"]].concat(), "first\nsecond\n/cost\n");
    let (_, stdout) = shown.split_once("--- stdout\n").unwrap();
    assert!(stdout.starts_with("One.\nTwo.\n--- stderr\n") && stdout.ends_with("--- exit 0\n"), "{shown}");
    assert!(!stdout.contains("cancelled") && stdout.contains("Per-Model"), "{shown}");
}

#[test]
fn a_pipe_whose_inputs_were_not_all_answered_ends_with_1() {
    let folder = folder("- text: One.\n");
    insta::assert_snapshot!(
        "pipe_unanswered",
        show_in(folder.path(), &[CHAT, &["--no-record"]].concat(), "a\nb\n/model nope\n")
    );
}

/// What the chat writes, and shows, when a tool gives a picture.
fn drawn(variables: &[(&str, &str)], attributes: &'static str) -> (String, String) {
    let folder = folder("- calls: [{tool: chart, arguments: {values: [1, 2]}}]\n- text: Seen.\n");
    let mut terminal = Terminal::start_as(folder.path(), CHAT, 80, 24, variables, attributes);
    terminal.wait("#1");
    terminal.send("draw\r");
    terminal.wait("Seen.");
    terminal.wait("#2");
    (terminal.written(), terminal.screen())
}

#[test]
fn pictures_are_shown_in_the_terminals_own_way() {
    // Forty pixels by a hundred, one colour; the second bar alone reaches the top.
    let sixel = "\x1bP0;1;0q\"1;1;40;100#0;2;20;40;80#0!22?!16~??-";
    let (written, screen) = drawn(&[], "\x1b[?62;4;22c");
    assert!(written.contains(sixel) && !screen.contains("a picture"), "{screen}\n{written:?}");
    let (written, _) = drawn(&[], "\x1b_Gi=31;OK\x1b\\\x1b[?62;c");
    assert!(written.contains("\x1b_Gf=100,a=T,q=2,m=0;iVBOR"), "{written:?}");
    let (written, _) = drawn(&[("TERM_PROGRAM", "iTerm.app")], "");
    assert!(written.contains("\x1b]1337;File=inline=1;size=") && !written.contains("\x1b[c"), "{written:?}");
    // Where none is shown, it is saved, and said where.
    let (written, screen) = drawn(&[], "\x1b[?62;22c");
    assert!(!written.contains(sixel) && screen.contains("a picture: /"), "{screen}");
}

/// In a demo the program works elsewhere; what is saved stands where it was started.
#[test]
fn the_demo_saves_where_it_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path(), &["chat", "--model", "demo"], 160, 40, &[]);
    terminal.wait("#1");
    terminal.send("/export talk\r");
    terminal.wait("talk.md");
    terminal.send("/save my talk\r");
    terminal.wait("my talk.chat.yaml' --resume --model VENDOR/MODEL` goes on with another model");
    assert!(folder.path().join("talk.md").exists());
    let session = std::fs::read_to_string(folder.path().join("my talk.chat.yaml")).unwrap();
    assert!(session.starts_with("script_name: null\n"), "{session}");
}

#[test]
fn esc_leaves_the_editor_of_a_question() {
    let folder = folder("- calls: [{tool: remember, arguments: {note: one}}]\n- text: Kept.\n");
    let mut terminal = start(&folder, 80, 40);
    terminal.send("a\r");
    for key in ["e", "n"] {
        terminal.wait("Allow it?");
        terminal.send(key);
        terminal.wait("Esc ");
        terminal.send("\x1b");
    }
    terminal.wait("Allow it?");
    terminal.send("y");
    terminal.wait("Kept.");
}

#[test]
fn a_missing_session_is_an_error() {
    insta::assert_snapshot!("session_missing", show_in(folder(REPLIES).path(), &["chat", "--resume"], ""));
}

#[test]
fn a_session_is_resumed_with_its_own_tools_or_not_at_all() {
    let folder = folder("- calls: [{tool: two}]\n- text: Done.\n");
    let sub = folder.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let session = "script_name: t.yaml\nmessages: [{type: human, content: hi}]\n";
    std::fs::write(sub.join("a.chat.yaml"), session).unwrap();
    let args = ["chat", "sub/a.chat.yaml", "--resume", "--model", "scripted/r.yaml", "--no-record"];
    let shown = show_in(folder.path(), &args, "go on\n");
    assert!(
        shown.contains("error: the file of tools `t.yaml` of the session `sub/a.chat.yaml` is not there"),
        "{shown}"
    );
    assert!(shown.ends_with("--- exit 2\n") && !folder.path().join(".local").exists(), "{shown}");
    // It may stand beside the session.
    let policy = "policy: [{tools: '*', decision: approve}]";
    std::fs::write(
        sub.join("t.yaml"),
        format!("{policy}\ntools: [{{name: two, description: Two., do: {{eval: '${{1 + 1}}'}}}}]\n"),
    )
    .unwrap();
    // The session names it, and nobody else.
    let shown = show_in(folder.path(), &args, "go on\n");
    assert!(shown.contains("-f sub/t.yaml") && shown.ends_with("--- exit 2\n"), "{shown}");
    let trusted = crate::json(folder.path(), &["trust", "sub", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let shown = show_in(folder.path(), &args, "go on\n");
    assert!(shown.contains("--- stdout\nDone.\n") && shown.ends_with("--- exit 0\n"), "{shown}");
    let saved = std::fs::read_to_string(crate::last_session(folder.path())).unwrap();
    assert!(saved.contains("script_name: sub/t.yaml\n") && saved.contains("status: success"), "{saved}");
}

#[test]
fn a_thousand_turns_do_not_pile_up() {
    let replies = "- text: An answer of some words, again and again.\n".repeat(1000);
    let folder = folder(&replies);
    let mut process = Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(CHAT)
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let memory = |id: u32| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let mut early = 0;
    for turn in 1..=1000 {
        writeln!(input, "input number {turn}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("An answer"), "{turn}: {line}");
        if turn == 200 {
            early = memory(process.id());
        }
    }
    let late = memory(process.id());
    eprintln!("{early} kB after 200 turns, {late} kB after 1000");
    assert!(late < early + 8 * 1024, "{early} kB after 200 turns, {late} kB after 1000");
    drop(input);
    assert!(process.wait().unwrap().success());
}
