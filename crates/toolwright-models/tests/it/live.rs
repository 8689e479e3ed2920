//! A real llama.cpp server with a tiny model: whole loops, whole and streamed, over three wire formats.
//!
//! `cargo xtask test` installs the server; where it is missing, the test says so and passes.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use toolwright_core::{
    Content, ErrorInfo, ErrorKind, Message, Model, ModelDelta, ModelReply, Secret, StopReason, ToolChoice,
    ToolResult, ToolSpec,
};
use toolwright_models::{ModelSettings, connect};

use crate::support::{Conversation, file};

/// The server, which ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts it, or says what is missing.
    fn start() -> Result<Server, String> {
        let python = file("target/peers/llama/bin/python");
        if !python.exists() {
            return Err("llama.cpp is not installed (cargo xtask test installs it)".to_owned());
        }
        let script = file("xtask/peers/tiny_tool_model.py");
        let model = std::env::temp_dir().join(format!("toolwright-tiny-{}.gguf", std::process::id()));
        let made = Command::new(&python).arg(&script).arg("make").arg(&model).status();
        assert!(made.is_ok_and(|status| status.success()), "the tiny model could not be made");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(&python)
            .arg(&script)
            .arg("serve")
            .arg(&model)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It prints its address once it listens.
        let mut line = String::new();
        let read = BufReader::new(process.stdout.take().unwrap()).read_line(&mut line);
        let _ = std::fs::remove_file(model);
        assert!(read.is_ok_and(|read| read > 0), "the server did not start");
        Ok(Server { process, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn ask(model: &dyn Model, conversation: &Conversation, streamed: bool) -> (ModelReply, String) {
    let mut told = String::new();
    let mut sink = |delta: ModelDelta<'_>| match delta {
        ModelDelta::Text(text) => told.push_str(text),
        ModelDelta::Call { name } => told.push_str(&format!("<{name}>")),
        _ => {}
    };
    let reply = if streamed {
        model.generate_streaming(conversation.request(), &mut sink).await
    } else {
        model.generate(conversation.request()).await
    };
    (reply.unwrap(), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_loops_with_a_real_server() {
    let server = match Server::start() {
        Ok(server) => server,
        Err(missing) => {
            println!("skipped whole_loops_with_a_real_server: {missing}");
            return;
        }
    };
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    for vendor in ["llama.cpp", "openai-compatible", "anthropic-compatible", "openai"] {
        for streamed in [false, true] {
            let what = format!("{vendor}, streamed: {streamed}");
            let settings = ModelSettings::new().base_url(&base).key(Secret::new("none"));
            let model = connect(&format!("{vendor}/tiny"), settings, |_| None).unwrap();
            let mut conversation =
                Conversation::of([Message::system("Be brief."), Message::user("Measure it.")]);
            conversation.options.max_tokens = Some(300);
            conversation.options.temperature = Some(0.0);
            let mut tool = ToolSpec::new("tape.measure", "Measures something.");
            tool.parameters = json!({"type": "object", "properties": {
                "unit": {"enum": ["m", "km"]}, "places": {"type": "integer", "minimum": 1, "maximum": 3}
            }, "required": ["unit", "places"], "additionalProperties": false});
            conversation.tools.push(tool);
            conversation.tool_choice = ToolChoice::Any;

            let (reply, told) = ask(&model, &conversation, streamed).await;
            assert_eq!(reply.stop, StopReason::ToolCalls, "{what}: {reply:?}");
            let calls = reply.message.tool_calls.clone();
            let first = calls.first().unwrap();
            assert_eq!(&*first.name, "tape.measure", "{what}");
            assert!(["m", "km"].iter().any(|unit| first.arguments["unit"] == *unit), "{what}: {first:?}");
            assert!(first.arguments["places"].is_u64(), "{what}: {first:?}");
            assert!(
                reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0,
                "{what}: {:?}",
                reply.usage
            );
            assert!(!streamed || told.contains("<tape.measure>"), "{what}: {told}");

            conversation.messages.push(Message::Assistant(reply.message));
            for (number, call) in calls.iter().enumerate() {
                let info = ErrorInfo { kind: ErrorKind::Timeout, message: "too slow".into(), hint: None };
                let mut result = ToolResult::failed(call, info);
                if number == 0 {
                    result.error = None;
                    result.content = vec![Content::text("3.14"), Content::json(json!({"unit": "m"}))];
                    result.metadata.insert("tool".into(), "tape".into());
                }
                conversation.messages.push(Message::Tool(result));
            }
            conversation.tool_choice = ToolChoice::Auto;
            let (reply, told) = ask(&model, &conversation, streamed).await;
            assert_eq!((reply.message.text().as_str(), reply.stop), ("OK", StopReason::EndTurn), "{what}");
            assert!(!streamed || told == "OK", "{what}: {told}");
        }
    }
}
