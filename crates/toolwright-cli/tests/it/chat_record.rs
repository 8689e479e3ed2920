//! What a chat leaves on record, shows again, and tells the person about its tools.

use crate::chat::{CHAT, folder, start};
use crate::show_in;
use crate::terminal::Terminal;

/// The events of the newest run.
fn events(folder: &tempfile::TempDir) -> String {
    show_in(folder.path(), &["runs", "show", "last", "--json"], "")
}

#[test]
fn a_failed_answer_is_on_record_and_so_is_what_was_taken_back() {
    let folder = folder("- text: One.\n");
    let here = |args: &[&str], input: &str| show_in(folder.path(), args, input);
    here(CHAT, "a\nb\n");
    let told = events(&folder);
    assert!(
        told.contains(r#""event":"model_failed","model":"scripted/r.yaml","message":"the script"#),
        "{told}"
    );
    assert!(told.contains(r#""event":"run_finished","status":"failed""#), "{told}");
    let shown = here(&["runs", "show"], "");
    assert!(shown.contains("\nthe model could not answer: the script has 1 replies"), "{shown}");
    assert!(here(&["runs", "--failed"], "").contains("chat"), "it is a failure");
    // Whoever takes the failed input back leaves a chat that is done, in which something failed.
    here(CHAT, "a\nb\n/rewind\n");
    let told = events(&folder);
    assert!(
        told.contains(r#""event":"rewound","messages":3"#) && told.contains(r#""status":"done""#),
        "{told}"
    );
    assert!(here(&["runs", "show"], "").contains("\nthe conversation was taken back to 3 messages"));
    assert_eq!(here(&["runs", "--failed"], "").matches("  chat  ").count(), 2);
    here(CHAT, "a\n");
    assert_eq!(here(&["runs", "--failed"], "").matches("  chat  ").count(), 2);
    // Two runs differ in it.
    let shown = here(&["diff", "last~1", "last"], "");
    assert!(shown.contains("- the conversation was taken back to 3 messages"), "{shown}");
}

#[test]
fn a_stopped_answer_is_on_record() {
    let folder = folder("- calls: [{tool: countdown, arguments: {seconds: 600}}]\n- text: Still here.\n");
    let mut terminal = start(&folder, 80, 30);
    terminal.send("wait\r");
    terminal.wait("s left");
    terminal.send("\x03");
    terminal.wait("#2");
    terminal.send("are you there?\r");
    terminal.wait("Still here.");
    terminal.wait("#3");
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
    let told = events(&folder);
    assert!(told.contains(r#""event":"answer_stopped""#) && told.contains(r#""status":"done""#), "{told}");
    assert!(show_in(folder.path(), &["runs", "show"], "").contains("\nthe answer was stopped"));
}

/// The story is told once; after that the demo says what to try, and a new conversation has it told again.
#[test]
fn the_demo_says_what_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let demo = &["chat", "--model", "demo", "--no-record"];
    let shown = show_in(folder.path(), demo, "hi\nand now?\n/clear\nagain\n");
    if shown.contains("no sandbox") {
        eprintln!("SKIPPED: the demo needs a sandbox, and there is none here");
        return;
    }
    assert_eq!(shown.matches("I read the draft.").count(), 2, "{shown}");
    assert_eq!(shown.matches("`toolwright init` writes a file of tools").count(), 1, "{shown}");
    assert!(!shown.contains("is not in draft.md"), "{shown}");
    // It keeps no session, and says so.
    let shown = show_in(folder.path(), demo, "/help\n");
    assert!(shown.contains("leaves; /save NAME keeps what was said"), "{shown}");
}

#[test]
fn who_may_not_write_is_told_how_to_be_let() {
    let folder = folder("- calls: [{tool: write_file, arguments: {path: n.txt, content: x}}]\n- text: Oh.\n");
    for args in [&["chat"][..], &["ask", "write it"]] {
        let args = [args, &["--model", "scripted/r.yaml", "--transcript", "t.jsonl"]].concat();
        let shown = show_in(folder.path(), &args, "write it\n");
        if shown.contains("no sandbox") {
            eprintln!("SKIPPED: there is no sandbox here");
            return;
        }
        assert!(shown.contains("`n.txt` cannot be written: its place is read-only"), "{shown}");
        assert!(shown.contains("hint: tools may write where they are allowed to: `--write .`"), "{shown}");
        // The hint for the model says that only the policy can change it.
        let told = std::fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
        assert!(told.contains("its policy can allow writing"), "{told}");
        std::fs::remove_file(folder.path().join("t.jsonl")).unwrap();
    }
}

#[test]
fn the_tools_a_chat_does_not_have_are_named() {
    let folder = folder("- calls: [{tool: greet}]\n- text: Oh.\n");
    let tool = "tools: [{name: greet, description: Greets., do: {eval: hello}}]\n";
    std::fs::write(folder.path().join("t.yaml"), format!("{tool}chat: {{system_message: Hi.}}\n")).unwrap();
    let told = "the chat has no tools (`chat.tools`), and not these of the file: greet";
    let shown = show_in(folder.path(), &["check", "t.yaml"], "");
    assert!(shown.contains(told) && shown.ends_with("--- exit 0\n"), "{shown}");
    let chat = ["chat", "t.yaml", "--model", "scripted/r.yaml", "--no-record"];
    assert!(show_in(folder.path(), &chat, "hi\n").contains(told));
    std::fs::write(folder.path().join("t.yaml"), format!("{tool}chat: {{tools: [greet]}}\n")).unwrap();
    assert!(!show_in(folder.path(), &["check", "t.yaml"], "").contains("not these"));
}

#[test]
fn a_chat_takes_the_tools_that_match() {
    let folder = folder("- calls: [{tool: add, arguments: {x: 1, y: 2}}]\n- text: Oh.\n");
    let with = |tools: &str| {
        let shown = show_in(folder.path(), &[CHAT, &["--no-record", "--tools", tools]].concat(), "hi\n");
        shown.contains("there is no tool `add`")
    };
    assert!(with("word_*") && !with("a*"));
}

#[test]
fn a_session_that_is_taken_up_shows_its_calls() {
    let folder = folder(
        "- text: Adding.\n  calls: [{tool: add, arguments: {x: 1, y: 2}}, {tool: add, arguments: {x: 1}}]\n- text: Three.\n",
    );
    show_in(folder.path(), CHAT, "add\n");
    let mut terminal = Terminal::start(folder.path(), &[CHAT, &["--resume"]].concat(), 80, 40, &[]);
    terminal.wait("#2");
    let screen = terminal.screen();
    let place = |text: &str| screen.find(text).unwrap_or_else(|| panic!("no {text:?} in\n{screen}"));
    let places =
        ["> add", "Adding.", "⏺ add(x=1, y=2)", "│ 3", "⏺ add(x=1)", "`y` is missing", "Three."].map(place);
    assert!(places.is_sorted(), "{screen}");
    drop(terminal);
    // In the record of the run that goes on, they are what was before.
    std::fs::write(folder.path().join("r.yaml"), "- text: Four.\n").unwrap();
    show_in(folder.path(), &[CHAT, &["--resume"]].concat(), "more\n");
    let shown = show_in(folder.path(), &["runs", "show"], "");
    assert!(shown.contains("Four.") && shown.contains("0 calls (0 failed)"), "{shown}");
}

/// What is taken back of a session before anything is asked is never put on record; the next answer is shown
/// all the same.
#[test]
fn an_answer_after_a_session_was_taken_back_is_shown() {
    let folder = folder("- text: One.\n- text: Two.\n");
    show_in(folder.path(), CHAT, "first\nsecond\n");
    std::fs::write(folder.path().join("r.yaml"), "- text: New answer.\n").unwrap();
    let args = [CHAT, &["--resume", "--no-record"]].concat();
    let session = crate::last_session(folder.path());
    let kept = std::fs::read(&session).unwrap();
    for back in ["/clear", "/rewind 1", "/rewind 2"] {
        std::fs::write(&session, &kept).unwrap();
        let shown = show_in(folder.path(), &args, &format!("/display stream off\n{back}\nthird\n"));
        assert!(shown.contains("--- stdout\nNew answer.\n"), "{back}: {shown}");
        assert!(!shown.contains("One.") && !shown.contains("Two."), "{back}: {shown}");
        assert!(shown.ends_with("--- exit 0\n"), "{shown}");
    }
}

#[test]
fn the_model_of_a_file_answers_or_it_is_said_who_does() {
    let folder = folder("- text: From r.\n");
    std::fs::write(folder.path().join("r2.yaml"), "- text: From r2.\n").unwrap();
    let chat = |models: &str, model_ref: &str| {
        let file = format!("models: {models}\nchat: {{model_ref: {model_ref}}}\n");
        std::fs::write(folder.path().join("t.yaml"), file).unwrap();
        let set = [("TOOLWRIGHT_MODEL", "scripted/r2.yaml")];
        crate::show_with(folder.path(), &["chat", "t.yaml", "--no-record"], "hi\n", &set)
    };
    let answers =
        |shown: String, text: &str| assert!(shown.contains(text) && shown.contains("exit 0"), "{shown}");
    answers(chat("{default: scripted/r2.yaml}", "scripted/r.yaml"), "From r.\n");
    answers(chat("{default: scripted/r2.yaml, fast: scripted/r.yaml}", "fast"), "From r.\n");
    answers(chat("{default: scripted/r.yaml}", "default"), "From r.\n");
    let wrong = chat("{default: scripted/r2.yaml, fast: scripted/r.yaml}", "fsat");
    assert!(wrong.contains("there is no model `fsat`, which `chat.model_ref` names"), "{wrong}");
    assert!(wrong.contains("did you mean `fast`?") && wrong.ends_with("--- exit 2\n"), "{wrong}");
    // A file of llm-workers leaves its models to others.
    let shown = chat("{}", "thinking");
    let told =
        "the file does not say which model `thinking` is (`chat.model_ref`), so scripted/r2.yaml answers";
    assert!(shown.contains(told), "{shown}");
    answers(shown, "From r2.");
    let shown = chat("{}", "default");
    assert!(!shown.contains("model_ref"), "{shown}");
    answers(shown, "From r2.");
}

/// What a conversation begins with was said in one that is taken up.
#[test]
fn the_prompt_of_a_file_begins_a_conversation_only_once() {
    let folder = folder("- text: One.\n- text: Two.\n");
    crate::trust(folder.path());
    let file = "models: {default: scripted/r.yaml}\nchat: {default_prompt: Begin with this}\n";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let mut terminal = Terminal::start(folder.path(), &["chat", "t.yaml"], 80, 24, &[]);
    terminal.wait("> Begin with this");
    terminal.send("\r");
    terminal.wait("One.");
    terminal.wait("#2");
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
    let mut terminal = Terminal::start(folder.path(), &["chat", "--resume"], 80, 24, &[]);
    terminal.wait("#2");
    terminal.send("and then?\r");
    terminal.wait("#3");
    assert!(terminal.screen().contains("> and then?"), "{}", terminal.screen());
    terminal.send("\x04");
    assert_eq!(terminal.end(), 0);
}
