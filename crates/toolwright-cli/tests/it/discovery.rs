//! What the program finds on a machine: keys, local servers, nothing; `doctor`, `init` and `models`.

use serde_json::Value;

use crate::fake_model::{ANSWER, FakeModel};
use crate::terminal::Terminal;
use crate::{show_in, show_with};

#[test]
fn a_key_is_found_and_its_vendor_answers() {
    let model = FakeModel::start();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", model.address);
    let variables = [("ANTHROPIC_API_KEY", "sk-test"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let shown = show_with(folder.path(), &["ask", "hello", "--no-record"], "", &variables);
    assert!(shown.contains("ANTHROPIC_API_KEY is set, so anthropic/claude-sonnet-4-5 answers"), "{shown}");
    assert!(shown.contains(&format!("--- stdout\n{ANSWER}\n")) && shown.ends_with("exit 0\n"), "{shown}");
    assert!(!shown.contains("sk-test"));
    let asked = model.asked.lock().unwrap().clone();
    assert_eq!(asked, ["POST /v1/messages HTTP/1.1"]);
}

#[test]
fn a_local_server_is_found_and_its_first_model_answers() {
    let model = FakeModel::start();
    let folder = tempfile::tempdir().unwrap();
    let variables = [("OLLAMA_HOST", model.address.as_str())];
    let shown = show_with(folder.path(), &["ask", "hello", "--no-record"], "", &variables);
    assert!(shown.contains("found a local Ollama server, so ollama/tiny answers"), "{shown}");
    assert!(shown.contains(&format!("--- stdout\n{ANSWER}\n")) && shown.ends_with("exit 0\n"), "{shown}");
    // The demo is there all the same for who asks for it, and a named model is not looked for.
    let before = model.asked.lock().unwrap().len();
    let demo = show_with(folder.path(), &["ask", "hello", "--no-record", "--model", "demo"], "", &variables);
    assert!(demo.contains("I am a script"), "{demo}");
    let args = ["ask", "hello", "--transcript", "t.jsonl", "--model", "demo"];
    let demo = show_with(folder.path(), &args, "", &variables);
    assert!(folder.path().join("t.jsonl").is_file(), "{demo}");
    assert_eq!(model.asked.lock().unwrap().len(), before);
}

#[test]
fn the_doctor_says_what_there_is_and_how_to_get_the_rest() {
    let model = FakeModel::start();
    let folder = tempfile::tempdir().unwrap();
    let with = [("OLLAMA_HOST", model.address.as_str()), ("OPENAI_API_KEY", "sk-test")];
    let shown = show_with(folder.path(), &["doctor"], "", &with);
    assert!(shown.contains("ok      model keys         OPENAI_API_KEY\n"), "{shown}");
    assert!(shown.contains(&format!("something listens on {}", model.address)), "{shown}");
    assert!(shown.contains("ok      a real model       openai/gpt-5\n"), "{shown}");
    let json = show_with(folder.path(), &["doctor", "--json"], "", &[("OLLAMA_HOST", "127.0.0.1:9")]);
    let body = json.split("--- stdout\n").nth(1).unwrap().split("--- exit").next().unwrap();
    let findings: Vec<Value> = serde_json::from_str(body).unwrap();
    let find = |what: &str| findings.iter().find(|finding| finding["what"] == what).unwrap();
    for what in
        ["tools", "sandbox", "approvals", "recorded runs", "model keys", "a real model", "browser", "desktop"]
    {
        let finding = find(what);
        // What does not work comes with what to do.
        assert!(finding["works"] == true || finding["fix"].is_string(), "{finding}");
    }
    assert_eq!(
        (&find("model keys")["works"], &find("Ollama server")["works"]),
        (&false.into(), &false.into())
    );
}

#[test]
fn init_asks_and_writes_what_check_accepts() {
    for (answers, wanted) in [
        (
            ["y", "ollama/qwen3", "cooking: \"soups\""],
            &[
                "import_tool: bash",
                "default: \"ollama/qwen3\"",
                "tools: [greet, longest_lines, read_file, bash]",
                "soups",
            ][..],
        ),
        (["n", "", "poems"], &["system_message: \"Help with: poems\""]),
        (["n", "", "what ${HOME} and ${x} are"], &["Help with: what \\\\${HOME} and \\\\${x} are"]),
        (["", "", ""], &["name: greet"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut terminal = Terminal::start(folder.path(), &["init"], 100, 30, &[]);
        for (question, answer) in
            ["May tools run commands", "Which model should answer", "What should it help with"]
                .iter()
                .zip(answers)
        {
            terminal.wait(question);
            terminal.send(&format!("{answer}\r"));
        }
        assert_eq!(terminal.end(), 0);
        terminal.wait("wrote toolwright.yaml");
        let file = std::fs::read_to_string(folder.path().join("toolwright.yaml")).unwrap();
        wanted.iter().for_each(|wanted| assert!(file.contains(wanted), "{wanted} is not in {file}"));
        let checked = show_in(folder.path(), &["check"], "");
        assert!(checked.contains("no problems") && checked.ends_with("exit 0\n"), "{checked}");
    }
}

#[test]
fn init_asks_again_for_what_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path(), &["init"], 100, 30, &[]);
    // Another word is refused.
    terminal.wait("May tools run commands");
    terminal.send("sure\r");
    terminal.wait("write y or n");
    terminal.send("n\r");
    for wrong in ["y", "claude-sonnet-4-5", "ollama/qwen3"] {
        terminal.wait("Which model should answer");
        terminal.send(&format!("{wrong}\r"));
        if wrong != "ollama/qwen3" {
            terminal.wait(&format!("`{wrong}`"));
        }
    }
    terminal.wait("What should it help with");
    terminal.send("\r");
    assert_eq!(terminal.end(), 0);
    let checked = show_in(folder.path(), &["check"], "");
    assert!(checked.contains("no problems") && checked.ends_with("exit 0\n"), "{checked}");
}

/// The models there are: those of keys, of a file, and of a server that is found; what cannot be used says
/// why.
#[test]
fn models_are_listed_with_where_they_come_from() {
    let model = FakeModel::start();
    let folder = tempfile::tempdir().unwrap();
    let file = "models:\n  quick: {model: scripted/demo}\n  far: {model: mistral/large}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    crate::trust(folder.path());
    let variables = [("OLLAMA_HOST", model.address.as_str()), ("OPENAI_API_KEY", "sk-hidden")];
    let shown = show_with(folder.path(), &["models"], "", &variables);
    for wanted in [
        "quick         the file: scripted/demo\n",
        "MISTRAL_API_KEY",
        "openai/gpt-5  OPENAI_API_KEY is set\n",
        "ollama/tiny   Ollama server at 127.0.0.1:",
        "without --model, openai/gpt-5 answers",
        "--- exit 0",
    ] {
        assert!(shown.contains(wanted), "{wanted:?} is not in {shown}");
    }
    assert!(!shown.contains("sk-hidden"));
    let json = show_with(folder.path(), &["models", "--json"], "", &variables);
    assert!(json.contains(r#""default": "openai/gpt-5""#) && json.contains(r#""usable": false"#), "{json}");
}

/// The demo works in a folder of its own; the files it is given are those of the person's.
#[test]
fn the_paths_of_a_demo_begin_where_the_person_is() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "- {tools: '*', decision: reject, reason: not here}\n";
    std::fs::write(folder.path().join("p.yaml"), rules).unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    for args in [&["ask", "hi"][..], &["chat"]] {
        let demo =
            ["--model", "demo", "--no-record", "--policy", "p.yaml", "--write", "out", "--read", "p.yaml"];
        let shown = show_in(folder.path(), &[args, &demo].concat(), "hi\n");
        assert!(shown.contains("not here") && !shown.contains("cannot"), "{shown}");
    }
}
