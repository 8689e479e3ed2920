//! What the MCP servers of a file ask (sampling, elicitation), and who answers.

use std::path::Path;

use crate::json;
use crate::terminal::Terminal;

/// A server in shell with one tool, `go`, that asks `question` and tells what came back. While there is a
/// file `hold` it does not ask, while there is a file `keep` it does not tell.
fn asking(folder: &Path, question: &str) {
    let script = format!(
        r#"answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
read -r hello
can=none; case "$hello" in *'"sampling":{{'*) can=sampling;; esac
answer 1 '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"asks","version":"1"}}}}'
read -r l; read -r l; answer 2 '{{"tools":[{{"name":"go","inputSchema":{{"type":"object"}}}}]}}'
read -r l
while [ -e hold ]; do sleep 0.05; done
printf '%s\n' '{question}'
read -r reply
while [ -e keep ]; do sleep 0.05; done
case "$reply" in
  *'"text":"hello from the model"'*) said='the model said hello';;
  *'"action":"accept"'*'"name":"Ada"'*) said='hello Ada';;
  *'"action":"accept"'*) said='accepted';;
  *'"action":"decline"'*) said='declined';;
  *rejected*) said='rejected';;
  *'is not offered'*) said='not offered';;
  *) said='something else';;
esac
answer 3 "{{\"content\":[{{\"type\":\"text\",\"text\":\"$said, $can\"}}]}}"
cat > /dev/null"#
    );
    std::fs::write(folder.join("asks.sh"), script).unwrap();
}

const SAMPLE: &str = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}}"#;

const ELICIT: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who is there?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"nobody"}}}}}"#;

#[test]
fn a_server_samples_the_model_of_the_file_if_the_policy_allows() {
    let folder = tempfile::tempdir().unwrap();
    asking(folder.path(), SAMPLE);
    std::fs::write(
        folder.path().join("replies.yaml"),
        "- {text: hello from the model, usage: {input_tokens: 5, output_tokens: 5}}\n",
    )
    .unwrap();
    let go = |sampling: &str, policy: &str| {
        let text = format!(
            "models: {{small: scripted/replies.yaml}}\nmcp:\n  s: {{transport: stdio, command: /bin/sh, args: [asks.sh], auto_import_scope: shared{sampling}}}\n{policy}"
        );
        std::fs::write(folder.path().join("t.yaml"), text).unwrap();
        json(folder.path(), &["call", "s_go", "-f", "t.yaml"])
    };
    let rules = "policy: [{tools: [mcp_sampling], decision: approve}]\n";
    let reply = |sampling: &str, policy: &str| go(sampling, policy).value()["content"][0]["text"].clone();
    assert_eq!(reply(", sampling: small", rules), "the model said hello, sampling");
    // What it asks is paid for by the run that makes the call.
    let poor = reply(", sampling: small", &format!("{rules}limits: {{tokens: 9}}\n"));
    assert_eq!(poor, "something else, sampling");
    let rich = reply(", sampling: small", &format!("{rules}limits: {{cost: 1.0, tokens: 100}}\n"));
    assert_eq!(rich, "the model said hello, sampling");
    // No rule allows it, and no user is available to answer.
    assert_eq!(reply(", sampling: small", ""), "rejected, sampling");
    let refused = reply(", sampling: small", "policy: [{tools: [mcp_sampling], decision: reject}]\n");
    assert_eq!(refused, "rejected, sampling");
    // The rules are not enough: the server must have been given a model.
    assert_eq!(reply("", rules), "not offered, none");
    go(", sampling: [small]", rules).fails("parsing", 2, &["`sampling`"]);
}

#[test]
fn the_servers_of_a_file_ask_at_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    asking(folder.path(), ELICIT);
    let text =
        "mcp:\n  s: {transport: stdio, command: /bin/sh, args: [asks.sh], auto_import_scope: shared}\n";
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    let args = ["call", "s_go", "-f", "t.yaml"];
    let mut terminal = Terminal::start(folder.path(), &args, 100, 30, &[]);
    terminal.wait("The server `s` asks:");
    terminal.wait("Answer it? [y]es, [n]o:");
    terminal.send("y\r");
    terminal.wait("name");
    terminal.send("Ada\r");
    terminal.wait("hello Ada");
    assert_eq!(terminal.end(), 0);
    // Without a terminal the client does not offer it.
    assert_eq!(json(folder.path(), &args).value()["content"][0]["text"], "not offered, none");
}

/// What was typed before a question was there is no answer to it, whoever asks.
#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    asking(folder.path(), ELICIT);
    write(
        "t.yaml",
        "mcp:\n  s: {transport: stdio, command: /bin/sh, args: [asks.sh], auto_import_scope: shared}\n\
         policy: [{tools: s_go, decision: approve}, {tools: greet, decision: ask}]\n\
         tools: [{name: greet, do: {eval: hello}}]\n",
    );
    write("replies.yaml", "- calls: [{tool: s_go}]\n- calls: [{tool: greet}]\n- {text: done}\n");
    write("hold", "");
    write("keep", "");
    let args = ["ask", "hi", "-f", "t.yaml", "--model", "scripted/replies.yaml", "--no-record"];
    let mut terminal = Terminal::start(folder.path(), &args, 80, 40, &[]);
    // Its echo may stand behind what the program is about to end with a newline.
    let typed = |times: usize| {
        move |screen: &str| screen.lines().filter(|line| line.trim_end().ends_with('y')).count() == times
    };
    terminal.wait("s_go");
    terminal.send("y\r");
    terminal.wait_for("the line that was typed", typed(1));
    std::fs::remove_file(folder.path().join("hold")).unwrap();
    terminal.wait("Answer it?");
    terminal.send("n\ry\r");
    terminal.wait_for("the other line that was typed", typed(2));
    std::fs::remove_file(folder.path().join("keep")).unwrap();
    terminal.wait("Allow it?");
    terminal.send("n\r");
    assert_eq!(terminal.end(), 0);
    let screen = terminal.screen();
    assert!(screen.contains("declined, none") && screen.contains("the user said no"), "{screen}");
}
