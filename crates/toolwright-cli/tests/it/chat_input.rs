//! What is typed in a conversation, and terminals that are out of the ordinary.

use crate::chat::{CHAT, folder, start};
use crate::show_in;
use crate::terminal::Terminal;

/// What a terminal sends when a text is pasted.
fn pasted(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}

#[test]
fn a_text_longer_than_the_screen_is_edited_where_the_cursor_is() {
    let folder = folder("- text: Read.\n");
    let mut terminal = start(&folder, 60, 12);
    let lines: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
    terminal.send(&pasted(&lines.join("\n")));
    terminal.wait("line 100");
    terminal.send(&"\x1b[A".repeat(60));
    terminal.wait("line 40");
    terminal.send(" here");
    terminal.wait("line 40 here");
    terminal.send("\r");
    terminal.wait("Read.");
    terminal.wait("#2");
    // Of what was pasted the beginning is repeated, not a hundred rows.
    assert!(terminal.screen().contains("… 80 more lines"), "{}", terminal.screen());
    terminal.send("/export talk\r");
    terminal.wait("wrote talk.md");
    let talk = std::fs::read_to_string(folder.path().join("talk.md")).unwrap();
    assert!(talk.contains("line 39\nline 40 here\nline 41\n"), "{talk}");
}

#[test]
fn a_hundred_kilobytes_are_pasted_into_the_middle() {
    let folder = folder("- text: Read.\n");
    let mut terminal = start(&folder, 80, 24);
    terminal.send("(end)\x1b[H");
    terminal.send(&pasted(&"words and more words\n".repeat(5000)));
    terminal.wait("(end)");
    terminal.send("\r");
    terminal.wait("#2");
    terminal.send("/export talk\r");
    terminal.wait("wrote talk.md");
    let talk = std::fs::read_to_string(folder.path().join("talk.md")).unwrap();
    assert_eq!(talk.matches("words and more words\n").count(), 5000);
    assert!(talk.contains("words\n(end)"));
    // It is not kept among the inputs that Up brings back.
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
    let history = std::fs::read_to_string(folder.path().join(".local/share/toolwright/history")).unwrap();
    assert!(!history.contains("more words") && history.contains("/export talk"), "{history}");
}

#[test]
fn signs_that_are_joined_stay_joined_and_others_are_shown() {
    let folder = folder("- text: \"می\\u200cخواهم 👨\\u200d👩\\u200d👧 a\\u200db\"\n");
    let mut terminal = start(&folder, 80, 24);
    terminal.send("עברית 日本 👩\u{200d}🔬x");
    terminal.wait("👩");
    terminal.send("\r");
    terminal.wait("#2");
    let written = terminal.written();
    assert!(written.contains("می\u{200c}خواهم 👨\u{200d}👩\u{200d}👧 a\\u{200d}b"), "{written}");
    assert!(written.contains("עברית 日本 👩\u{200d}🔬x"), "{written}");
}

#[test]
fn a_question_fits_into_twenty_columns() {
    let folder = folder("- calls: [{tool: remember, arguments: {note: one}}]\n- text: Not kept.\n");
    let mut terminal = start(&folder, 20, 40);
    terminal.send("a\r");
    terminal.wait("Allow it?");
    terminal.send("n");
    terminal.wait("go back):");
    terminal.send("because it is not needed\r");
    terminal.wait("Not kept.");
    terminal.wait("#2");
    let screen = terminal.screen();
    assert!(screen.lines().all(|line| line.chars().count() < 20), "{screen}");
    assert!(screen.contains("needed") && !screen.contains("go back):"), "{screen}");
}

/// Lines are typed and shown; nothing moves the cursor, and questions are answered by lines too.
#[test]
fn a_terminal_that_can_do_nothing_gets_lines() {
    let call = "- calls: [{tool: remember, arguments: {note: one}}]\n";
    let folder = folder(&format!("{call}- text: '**Refused.**'\n{call}- text: Kept.\n"));
    let mut terminal = Terminal::start(folder.path(), CHAT, 80, 40, &[("TERM", "dumb")]);
    terminal.wait(">");
    terminal.send("first\n");
    terminal.wait("Allow it?");
    terminal.send("no\n");
    terminal.wait("why not");
    terminal.send("not today\n");
    terminal.wait("Refused.");
    terminal.wait_for("a prompt", |screen| screen.lines().last().is_some_and(|line| line.trim() == ">"));
    terminal.send("second\n");
    terminal.wait_for("a second question", |screen| screen.matches("Allow it?").count() == 2);
    terminal.send("yes\n");
    terminal.wait("Kept.");
    terminal.wait_for("a prompt", |screen| screen.lines().last().is_some_and(|line| line.trim() == ">"));
    terminal.send("/exit\n");
    assert_eq!(terminal.end(), 0);
    let written = terminal.written();
    assert!(!written.contains('\x1b') && written.contains("the user said no: not today"), "{written:?}");
}

#[test]
fn a_sentence_is_no_consent() {
    let folder = folder("- calls: [{tool: remember, arguments: {note: one}}]\n- text: Refused.\n");
    let mut terminal = Terminal::start(folder.path(), CHAT, 80, 40, &[("TERM", "dumb")]);
    terminal.wait(">");
    terminal.send("first\n");
    for (asked, answer) in ["absolutely not", "you must be joking", "every time?", ""].iter().enumerate() {
        terminal.wait_for("a question", |screen| screen.matches("Allow it?").count() == asked + 1);
        terminal.send(&format!("{answer}\n"));
    }
    terminal.wait_for("a question", |screen| screen.matches("Allow it?").count() == 5);
    terminal.send("No\n");
    terminal.wait("why not");
    terminal.send("not today\n");
    terminal.wait("Refused.");
    let written = terminal.written();
    assert!(written.contains("the user said no: not today"), "{written:?}");
}

#[test]
fn arguments_are_typed_anew_where_there_is_no_editor() {
    let folder = folder("- calls: [{tool: add, arguments: {x: 1, y: 2}}]\n- text: Added.\n");
    std::fs::write(folder.path().join("p.yaml"), "- {tools: add, decision: ask}\n").unwrap();
    let args = [CHAT, &["--policy", "p.yaml"]].concat();
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &[("TERM", "dumb")]);
    terminal.wait(">");
    terminal.send("first\n");
    terminal.wait("Allow it?");
    terminal.send("edit\n");
    terminal.wait("arguments: {");
    terminal.send("{\"x\": 40, \"y\": 2}\n");
    terminal.wait("Added.");
    assert!(terminal.screen().contains("edited"), "{}", terminal.screen());
}

/// Wrong arguments can be corrected in the editor: the call is not lost.
#[test]
fn arguments_that_do_not_fit_are_asked_for_again() {
    let folder = folder("- calls: [{tool: add, arguments: {x: 1, y: 2}}]\n- text: Added.\n  expect: '42'\n");
    std::fs::write(folder.path().join("p.yaml"), "- {tools: add, decision: ask}\n").unwrap();
    let args = [CHAT, &["--policy", "p.yaml"]].concat();
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &[]);
    terminal.wait("#1");
    terminal.send("first\r");
    terminal.wait("Allow it?");
    terminal.send("e");
    terminal.wait("arguments: {");
    terminal.send("\x03{\"x\": \"forty\", \"y\": 2}\r");
    terminal.wait("`x`");
    assert!(!terminal.screen().contains("edited"), "{}", terminal.screen());
    terminal.send("\x03{\"x\": 40, \"z\": 2}\r");
    terminal.wait("`y`");
    terminal.send("\x03{\"x\": 40, \"y\": 2}\r");
    terminal.wait("Added.");
    assert!(terminal.screen().contains("edited"), "{}", terminal.screen());
}

/// A call that goes on until there is a file `go`, and one that is asked about.
fn waiting_for_go() -> tempfile::TempDir {
    let command = "until [ -e go ]; do sleep 0.05; done";
    let folder = folder(&format!(
        "- calls: [{{tool: bash, arguments: {{command: '{command}'}}}}]\n\
         - calls: [{{tool: remember, arguments: {{note: one}}}}]\n- text: Kept.\n- text: Second.\n"
    ));
    let rules = "- {tools: bash, decision: approve}\n- {tools: remember, decision: ask}\n";
    std::fs::write(folder.path().join("p.yaml"), rules).unwrap();
    folder
}

#[test]
fn what_is_typed_meanwhile_waits_and_answers_no_question() {
    let folder = waiting_for_go();
    let args = ["chat", "--model", "scripted/r.yaml", "--sandbox", "local", "--policy", "p.yaml"];
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &[]);
    terminal.wait("#1");
    terminal.send("first\r");
    terminal.wait("until [ -e go ]");
    terminal.send("yes always\r");
    terminal.wait("> yes always (waits)");
    terminal.send(&pasted("more"));
    terminal.wait("> more");
    std::fs::write(folder.path().join("go"), "").unwrap();
    terminal.wait("Allow it?");
    terminal.wait("Enter or Esc ends what you are typing");
    // Who types on has not seen the question.
    terminal.send("ay");
    terminal.wait("> moreay");
    terminal.send("\x1b");
    terminal.wait_for("the question alone", |screen| !screen.contains("Enter or Esc ends"));
    assert!(terminal.screen().contains("Allow it?"), "{}", terminal.screen());
    terminal.send("y");
    terminal.wait("Kept.");
    terminal.wait("Second.");
    terminal
        .wait_for("what was typed", |screen| screen.lines().last().is_some_and(|line| line == "> moreay"));
    let screen = terminal.screen();
    assert!(screen.contains("#3") && screen.contains("\n> yes always\n"), "{screen}");
}

#[test]
fn what_waits_is_given_back_when_the_answer_is_stopped() {
    let folder = folder("- calls: [{tool: countdown, arguments: {seconds: 600}}]\n- text: Both.\n");
    let mut terminal = start(&folder, 80, 30);
    terminal.send("wait\r");
    terminal.wait("s left");
    terminal.send("next\rrest");
    terminal.wait("> next (waits)");
    terminal.wait("> rest");
    terminal.send("\x03");
    terminal.wait("stopped; what there is stays");
    terminal.wait_for("both in the editor", |screen| screen.ends_with("> next\n  rest"));
    terminal.send("\r");
    terminal.wait("Both.");
}

#[test]
fn ctrl_z_goes_to_the_shell_while_the_model_works_and_while_something_is_asked() {
    let folder = folder(
        "- calls: [{tool: countdown, arguments: {seconds: 600}}]\n\
         - calls: [{tool: remember, arguments: {note: one}}]\n- text: Refused.\n",
    );
    let mut terminal = Terminal::start_in_shell(folder.path(), CHAT, 80, 40);
    let shells = |count: usize| move |screen: &str| screen.matches("[in the shell]").count() == count;
    let back = |text: &'static str| {
        move |screen: &str| screen.rsplit("[in the shell]").next().is_some_and(|rest| rest.contains(text))
    };
    terminal.wait("#1");
    terminal.send("wait\r");
    terminal.wait("s left");
    terminal.send("\x1a");
    terminal.wait_for("the shell", shells(1));
    terminal.send("\n");
    terminal.wait_for("the call", back("s left"));
    terminal.send("\x03");
    terminal.wait("#2");
    terminal.send("again\r");
    terminal.wait("Allow it?");
    terminal.send("\x1a");
    terminal.wait_for("the shell", shells(2));
    terminal.send("\n");
    terminal.wait_for("the question", back("Allow it?"));
    terminal.send("n");
    terminal.wait("why not");
    terminal.send("becau\x1a");
    terminal.wait_for("the shell", shells(3));
    terminal.send("\n");
    terminal.wait_for("what was typed", back("becau"));
    terminal.send("se\r");
    terminal.wait("Refused.");
    assert!(terminal.written().contains("the user said no: because"), "{}", terminal.screen());
}

/// Each keeps its own history, in any order of leaving.
#[test]
fn two_chats_at_once_keep_both_their_inputs() {
    let folder = folder("- text: One.\n");
    let (mut first, mut second) = (start(&folder, 80, 24), start(&folder, 80, 24));
    for (terminal, text) in [(&mut first, "in the first"), (&mut second, "in the second")] {
        terminal.send(&format!("{text}\r"));
        terminal.wait("#2");
        terminal.send("\x04");
        assert_eq!(terminal.end(), 0);
    }
    let history = std::fs::read_to_string(folder.path().join(".local/share/toolwright/history")).unwrap();
    assert_eq!(history, "\"in the first\"\n\"in the second\"\n");
}

/// Where there is no shell to go back to, Ctrl-Z changes nothing.
#[test]
fn ctrl_z_without_a_shell_is_survived() {
    let folder = folder("- text: Still here.\n");
    let mut terminal = start(&folder, 80, 24);
    terminal.send("are you\x1a there?\r");
    terminal.wait("Still here.");
    assert!(terminal.screen().contains("> are you there?"), "{}", terminal.screen());
}

/// Told to end in the middle of a call, the program keeps the session and gives the terminal back.
#[test]
fn a_chat_that_is_told_to_end_keeps_the_session() {
    let folder = folder("- calls: [{tool: countdown, arguments: {seconds: 600}}]\n");
    let mut terminal = start(&folder, 80, 24);
    terminal.send("wait\r");
    terminal.wait("s left");
    let told = std::process::Command::new("kill").arg(terminal.id().to_string()).status().unwrap();
    assert!(told.success());
    assert_eq!(terminal.end(), 0);
    assert!(terminal.written().ends_with("shows it\r\n"), "{:?}", terminal.written());
    let session = std::fs::read_to_string(crate::last_session(folder.path())).unwrap();
    assert!(session.contains("wait") && session.contains("cancelled"), "{session}");
}

#[test]
fn a_session_is_resumed_by_the_name_it_was_saved_under() {
    let folder = folder("- text: One.\n- text: Two.\n");
    let run =
        |args: &[&str], input: &str| show_in(folder.path(), &[CHAT, args, &["--no-record"]].concat(), input);
    run(&[], "first\n/save mine\n");
    let shown = run(&["mine", "--resume"], "second\n");
    assert!(shown.contains("taking up a conversation of 1 input"), "{shown}");
    let shown = run(&["yours", "--resume"], "");
    assert!(shown.contains("there is no session `yours.chat.yaml`"), "{shown}");
}

#[test]
fn a_conversation_in_which_nothing_was_said_is_not_recorded() {
    let folder = folder("- text: One.\n");
    let shown = show_in(folder.path(), CHAT, "/help\n");
    assert!(!shown.contains("recorded as"), "{shown}");
    let runs = std::fs::read_dir(folder.path().join(".local/share/toolwright/runs")).unwrap();
    assert_eq!(runs.count(), 0);
}

/// A line that is not UTF-8 is answered like any other, and so are the lines after it.
#[test]
fn a_pipe_may_hold_any_bytes() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let folder = folder("- text: One.\n- text: Two.\n");
    let mut process = Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(CHAT)
        .arg("--no-record")
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(b"caf\xe9\r\nsecond").unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "One.\nTwo.\n");
    assert!(output.status.success());
}
