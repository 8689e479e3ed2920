//! The vendors' own clients as judges: they read every request we can make. That they and we
//! read the same in streams is told in `streams`.
//!
//! `cargo xtask test` installs them; where they are missing, the tests say so and pass.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use toolwright_core::{
    AssistantMessage, Content, Message, ModelOptions, ToolCall, ToolChoice, ToolError, ToolResult, ToolSpec,
};
use toolwright_models::wire::Delivery;

use crate::support::{Conversation, FORMATS, file, json as read_json, target, vendor};

/// Runs a script of the clients' environment on some data, or says what is missing.
pub(crate) fn judge(script: &str, data: &Value) -> Result<Output, String> {
    let python = file("target/peers/sdks/bin/python");
    if !python.exists() {
        return Err("the vendors' clients are not installed (cargo xtask test installs them)".to_owned());
    }
    let folder = std::env::temp_dir();
    // Tests of one process may ask the same script at the same time.
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf = folder.join(format!("toolwright-{script}-{}-{number}.json", std::process::id()));
    std::fs::write(&path, data.to_string()).unwrap();
    let output =
        Command::new(python).arg(file(&format!("xtask/peers/{script}"))).arg(&path).output().unwrap();
    std::fs::remove_file(path).unwrap();
    Ok(output)
}

/// A conversation in which `block` is said by the user, by the model, and by a tool that failed or not.
fn about(
    block: &Content,
    failed: bool,
    tools: &[ToolSpec],
    choice: &ToolChoice,
    options: &ModelOptions,
) -> Conversation {
    let call = ToolCall::new("call_1", "files.look", json!({"path": "a"}));
    let mut result = ToolResult::failed(&call, ToolError::new("no").info());
    result.content.push(block.clone());
    result.metadata.insert("k".to_owned(), 1.into());
    if !failed {
        result.error = None;
    }
    let said = AssistantMessage {
        content: vec![block.clone()],
        tool_calls: vec![call],
        ..AssistantMessage::default()
    };
    let mut messages = vec![
        Message::system("Be brief."),
        Message::User { content: vec![block.clone()] },
        Message::Assistant(said),
        Message::Tool(result),
    ];
    if !failed {
        messages.push(Message::user("go on"));
    }
    Conversation { messages, tools: tools.to_vec(), tool_choice: choice.clone(), options: options.clone() }
}

#[test]
fn the_vendors_clients_know_every_key_of_every_request() {
    let everything: Conversation =
        serde_json::from_value(read_json("testdata/wire/conversation.json")).unwrap();
    let blocks: Vec<_> = everything.messages.iter().flat_map(|message| message.content().to_vec()).collect();
    let choices = [ToolChoice::Auto, ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("measure".into())];
    let answer = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let plain = ModelOptions { max_tokens: Some(9), ..ModelOptions::default() };
    let rich = ModelOptions {
        temperature: Some(0.5),
        strict: Some(true),
        cache: Some(true),
        response_schema: Some(answer),
        ..plain.clone()
    };
    let mut requests = Vec::new();
    for (name, format) in FORMATS {
        let mut add = |conversation: &Conversation, delivery: Delivery| {
            let body = vendor(name).wire.encode(target(name), &conversation.request(), delivery).unwrap();
            let request = json!({"format": format, "streamed": delivery == Delivery::Stream, "body": body});
            requests.push(request);
        };
        for delivery in [Delivery::Whole, Delivery::Stream] {
            for block in &blocks {
                for choice in &choices {
                    for failed in [false, true] {
                        add(&about(block, failed, &everything.tools, choice, &plain), delivery);
                    }
                    add(&about(block, false, &everything.tools, choice, &rich), delivery);
                }
            }
            // The vendor's own replies, sent back.
            for message in echoed(name, format) {
                add(&Conversation::of([Message::user("x"), Message::Assistant(message)]), delivery);
            }
        }
        let mut whole: Conversation =
            serde_json::from_value(read_json("testdata/wire/conversation.json")).unwrap();
        whole.options.extra = Map::new();
        if name == "openai" {
            whole.options.stop.clear();
        }
        add(&whole, Delivery::Whole);
    }
    assert!(requests.len() > 1000, "{}", requests.len());
    let output = match judge("check_requests.py", &requests.into()) {
        Ok(output) => output,
        Err(missing) => {
            println!("skipped the_vendors_clients_know_every_key_of_every_request: {missing}");
            return;
        }
    };
    let shown: String = String::from_utf8_lossy(&output.stdout).chars().take(6000).collect();
    assert!(output.status.success(), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The messages in the recorded replies of a format.
fn echoed(name: &str, format: &str) -> Vec<AssistantMessage> {
    let folder = if name == "bedrock-invoke" { "anthropic" } else { format };
    let recorded = read_json(&format!("testdata/wire/{folder}/replies.json"));
    let messages = recorded.as_array().unwrap().iter().filter_map(|reply| {
        let mut message = reply.get("want")?.get("message")?.clone();
        // The recordings of this vendor, from any source.
        for block in message.get_mut("content")?.as_array_mut()? {
            // A chunk of thoughts is Mistral's own, of which the other vendor's client knows nothing.
            if block.pointer("/opaque/chunk").is_some() {
                return None;
            }
            if let Some(from) = block.pointer_mut("/opaque/from") {
                *from = name.into();
            }
        }
        serde_json::from_value(message).ok()
    });
    messages.collect()
}
