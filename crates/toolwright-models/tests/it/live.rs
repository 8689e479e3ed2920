//! A real llama.cpp server with a tiny model, turn by turn, whole and streamed, over three wire formats.

use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    Content, DynModel, ErrorInfo, ErrorKind, Message, ModelDelta, ModelReply, Secret, StopReason, ToolChoice,
    ToolResult, ToolSpec,
};
use toolwright_models::{ModelSettings, connect, offered};

use crate::peers;
use crate::support::Conversation;

async fn ask(model: &DynModel, conversation: &Conversation, streamed: bool) -> (ModelReply, String) {
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
    let server = match peers::llama() {
        Ok(server) => server,
        Err(missing) => {
            println!("skipped whole_loops_with_a_real_server: {missing}");
            return;
        }
    };
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    let offered = offered(&base, Duration::from_secs(60), Duration::from_secs(60)).await.unwrap();
    assert_eq!((offered.len(), offered[0].images), (1, Some(false)), "{offered:?}");
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
            // Its grammar takes no `true`, and no reference to the whole.
            let mut odd = ToolSpec::new("odd", "Takes anything.");
            odd.parameters = json!({"type": "object", "properties": {
                "any": true, "again": {"$ref": "#"}, "none": {"type": "array", "items": false},
                "two": {"type": "array", "prefixItems": [{"type": "string"}, true], "items": false},
            }});
            conversation.tools.push(odd);
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
                }
                conversation.messages.push(Message::Tool(result));
            }
            conversation.tool_choice = ToolChoice::Auto;
            let (reply, told) = ask(&model, &conversation, streamed).await;
            assert_eq!((reply.message.text().as_str(), reply.stop), ("OK", StopReason::EndTurn), "{what}");
            assert!(!streamed || told == "OK", "{what}: {told}");

            // A call that was cut off does not end the conversation.
            for message in &mut conversation.messages {
                if let Message::Assistant(message) = message {
                    message.tool_calls.iter_mut().for_each(|call| call.arguments = json!("{\"unit\": \"m"));
                }
            }
            let (reply, _) = ask(&model, &conversation, streamed).await;
            assert_eq!(reply.message.text(), "OK", "{what}");
        }
    }
}
