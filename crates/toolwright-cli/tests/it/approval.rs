//! Questions about calls at the terminal: the choices a policy offers, and how an open question ends.

use crate::json;
use crate::terminal::Terminal;

/// The `choices` of an approvers file are the only answers; passing a call on goes to its next entry.
#[test]
fn a_person_is_offered_the_choices_of_an_approvers_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tools.yaml", "tools: [{name: greet, do: {eval: hello}}]\n");
    write("replies.yaml", "- calls: [{tool: greet}]\n- {text: done}\n");
    let policy = |entries: &str| write("policy.yaml", &format!("approvers: [{entries}]\n"));
    policy(
        "{name: human, tools: greet, choices: [reject, escalate]}, {name: auto, tools: '*', decision: reject}",
    );
    let args =
        ["ask", "hi", "-f", "tools.yaml", "--policy", "policy.yaml", "--model", "scripted/replies.yaml"];
    let mut terminal = Terminal::start(folder.path(), &[&args[..], &["--no-record"]].concat(), 80, 24, &[]);
    let question = "Allow it? [n]o, [p]ass it on:";
    terminal.wait(question);
    terminal.send("y\r");
    terminal.wait_for("the question again", |screen| screen.matches(question).count() == 2);
    terminal.send("p\r");
    assert_eq!(terminal.end(), 0);
    let screen = terminal.screen();
    assert!(screen.contains("the policy does not allow this call"), "{screen}");
    policy("{name: human, tools: greet, choices: [frobnicate]}");
    let checked = json(folder.path(), &["check", "tools.yaml", "--policy", "policy.yaml"]);
    checked.fails("parsing", 2, &[]);
    checked.has_problems(&[("error", "`frobnicate`")]);
    // Nobody is asked about what no entry is about.
    policy("{name: auto, tools: other}");
    let asked = json(folder.path(), &[&args[..], &["--no-record"]].concat());
    let messages = asked.value()["messages"].clone();
    assert_eq!(messages[3]["error"]["type"], "approval", "{asked:?}");
}

/// A person who does not answer keeps nothing waiting: Ctrl-C ends the run, and so does its time.
#[test]
fn an_open_question_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let tools = "tools: [{name: greet, do: {eval: hello}}]\n";
    let rule = "policy: [{tools: greet, decision: ask, reason: greetings are precious}]\n";
    write("tools.yaml", &format!("{rule}{tools}"));
    write("timed.yaml", &format!("{rule}limits: {{wall_time: 2}}\n{tools}"));
    write("replies.yaml", "- calls: [{tool: greet}]\n- {text: done}\n");
    for (file, key, told) in [("tools.yaml", "\x03", "stopped"), ("timed.yaml", "", "limit of 2")] {
        let args = ["ask", "hi", "-f", file, "--model", "scripted/replies.yaml", "--no-record"];
        let mut terminal = Terminal::start(folder.path(), &args, 80, 24, &[]);
        terminal.wait("greetings are precious");
        terminal.wait("Allow it?");
        terminal.send(key);
        let code = if key.is_empty() { 1 } else { 130 };
        assert_eq!(terminal.end(), code, "{file}");
        let screen = terminal.screen();
        assert!(screen.contains(told), "{file}: {screen}");
    }
}
