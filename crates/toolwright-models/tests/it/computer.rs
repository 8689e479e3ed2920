//! The vendors' own computer tools: requests compared as whole JSON values, replies of the documented shapes,
//! and the vendors' clients as judges of what goes back.

use serde_json::{Value, json};
use toolwright_core::{
    AssistantMessage, Content, ErrorKind, Message, ModelOptions, ToolCall, ToolChoice, ToolError, ToolResult,
    ToolSpec,
};
use toolwright_models::wire::{Delivery, ModelTarget};

use crate::oracle::judge;
use crate::support::{Conversation, vendor};

/// A conversation with the run's `computer` tool, and another one.
fn conversation(native: bool) -> Conversation {
    let mut computer = ToolSpec::new("computer", "Uses a computer.");
    computer.parameters = json!({"type": "object", "properties": {"action": {"type": "string"}}});
    computer.extras.insert("computer".to_owned(), json!({"width": 1280, "height": 800}));
    let mut conversation = Conversation::of([Message::user("Save the file.")]);
    conversation.tools = vec![ToolSpec::new("note", "Notes."), computer];
    conversation.options = ModelOptions { computer: native.then_some(true), ..ModelOptions::default() };
    conversation
}

fn target(name: &str) -> ModelTarget<'static> {
    let model = if name == "google" { "gemini-3.5-flash" } else { "m" };
    ModelTarget { vendor: vendor(name), model }
}

fn encode(name: &str, conversation: &Conversation) -> Value {
    vendor(name).wire.encode(target(name), &conversation.request(), Delivery::Whole).unwrap()
}

fn decode(name: &str, conversation: &Conversation, reply: &Value) -> AssistantMessage {
    let mut decoder = vendor(name).wire.decoder(target(name), &conversation.request());
    decoder.body(reply.to_string().as_bytes(), &mut |_| {}).unwrap();
    decoder.finish().unwrap().message
}

/// A reply with one call, as the vendor sends it.
fn reply(name: &str, call: &Value) -> Value {
    match name {
        "anthropic" => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "stop_sequence": null, "content": [call], "usage": {"input_tokens": 1, "output_tokens": 1},
        }),
        "openai" => json!({"id": "resp_1", "object": "response", "status": "completed", "output": [call]}),
        _ => {
            json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": call}]}, "finishReason": "STOP"}]})
        }
    }
}

/// The arguments of a call of the run's tool that a vendor's call becomes.
fn arguments(name: &str, call: &Value) -> Value {
    let message = decode(name, &conversation(true), &reply(name, call));
    let [call] = message.tool_calls.as_slice() else { panic!("{:?}", message.tool_calls) };
    assert_eq!(&*call.name, "computer");
    call.arguments.clone()
}

/// The conversation after a call, with a result.
fn answered(name: &str, call: &Value, failed: bool) -> Conversation {
    let mut conversation = conversation(true);
    let message = decode(name, &conversation, &reply(name, call));
    let made = message.tool_calls.first().unwrap().clone();
    let mut result = ToolResult::text(&made, "");
    result.content = vec![Content::image("image/png", b"png")];
    if failed {
        result.error = Some(ToolError::of(ErrorKind::Approval, "a person said no").info());
    }
    conversation.messages.extend([Message::Assistant(message), Message::Tool(result)]);
    conversation
}

#[test]
fn a_vendor_with_a_computer_is_offered_its_own_and_others_are_offered_ours() {
    let note = json!({"name": "note", "description": "Notes."});
    let offered = |name: &str, native: bool| encode(name, &conversation(native))["tools"].clone();
    let with = |mut tool: Value, key: &str| {
        tool[key] = toolwright_core::empty_parameters();
        tool
    };
    let mut cached = json!({"type": "computer_toolset_20260801"});
    cached["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(offered("anthropic", true), json!([with(note.clone(), "input_schema"), cached]));
    let mut function = json!({"type": "function", "name": "note", "description": "Notes."});
    function["parameters"] = toolwright_core::empty_parameters();
    function["strict"] = false.into();
    assert_eq!(offered("openai", true), json!([function, {"type": "computer"}]));
    assert_eq!(
        offered("google", true),
        json!([
            {"functionDeclarations": [with(note, "parametersJsonSchema")]},
            {"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}},
        ])
    );
    for (name, native) in
        [("anthropic", false), ("openai", false), ("google", false), ("openai-chat", true), ("mistral", true)]
    {
        assert!(offered(name, native).to_string().contains("\"computer\""), "{name}");
        assert!(!offered(name, native).to_string().contains("\"type\":\"computer"), "{name}");
    }
    let mut forced = conversation(true);
    forced.tool_choice = ToolChoice::Tool("computer".to_owned());
    assert_eq!(encode("anthropic", &forced)["tool_choice"], json!({"type": "any"}));
    assert_eq!(encode("openai", &forced)["tool_choice"], "required");
    assert_eq!(encode("google", &forced)["toolConfig"]["functionCallingConfig"], json!({"mode": "ANY"}));
}

#[test]
fn anthropics_members_are_our_actions() {
    let call = |name: &str, input: Value| json!({"type": "tool_use", "id": "toolu_1", "name": name, "toolset_name": "computer", "input": input});
    for (name, input) in [
        ("left_click", json!({"coordinate": [100, 200], "text": "ctrl"})),
        ("key", json!({"text": "ctrl+s", "repeat": 2})),
        ("scroll", json!({"scroll_direction": "down", "scroll_amount": 3})),
        ("zoom", json!({"region": [0, 0, 10, 10]})),
        ("screenshot", json!({})),
    ] {
        let mut expected = input.clone();
        expected["action"] = name.into();
        assert_eq!(arguments("anthropic", &call(name, input)), expected);
    }
    let clicked = call("left_click", json!({"coordinate": [100, 200]}));
    let body = encode("anthropic", &answered("anthropic", &clicked, false));
    assert_eq!(body["messages"][1]["content"], json!([clicked]));
    assert_eq!(
        body["messages"][2]["content"],
        json!([{
            "type": "tool_result", "tool_use_id": "toolu_1", "toolset_name": "computer",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}}],
            "cache_control": {"type": "ephemeral"},
        }])
    );
    // A tool of the run that is called like a member is not the computer's.
    let plain = json!({"type": "tool_use", "id": "toolu_1", "name": "key", "input": {"text": "a"}});
    let message = decode("anthropic", &conversation(true), &reply("anthropic", &plain));
    assert_eq!(&*message.tool_calls[0].name, "key");
}

fn openai_call(actions: Value, checks: Value) -> Value {
    json!({"type": "computer_call", "id": "cu_1", "call_id": "call_1", "status": "completed", "actions": actions,
        "pending_safety_checks": checks})
}

#[test]
fn openais_batches_become_lists_of_actions() {
    for (theirs, ours) in [
        (
            json!({"type": "click", "button": "left", "x": 1, "y": 2}),
            json!([{"action": "left_click", "coordinate": [1, 2]}]),
        ),
        (
            json!({"type": "click", "button": "right", "x": 1, "y": 2, "keys": ["CTRL", "SHIFT"]}),
            json!([{"action": "right_click", "coordinate": [1, 2], "text": "CTRL+SHIFT"}]),
        ),
        (
            json!({"type": "click", "button": "wheel", "x": 1, "y": 2}),
            json!([{"action": "middle_click", "coordinate": [1, 2]}]),
        ),
        (
            json!({"type": "click", "button": "back", "x": 1, "y": 2}),
            json!([{"action": "back_click", "coordinate": [1, 2]}]),
        ),
        (
            json!({"type": "double_click", "x": 1, "y": 2, "keys": null}),
            json!([{"action": "double_click", "coordinate": [1, 2]}]),
        ),
        (json!({"type": "move", "x": 1, "y": 2}), json!([{"action": "mouse_move", "coordinate": [1, 2]}])),
        (json!({"type": "keypress", "keys": ["CTRL", "S"]}), json!([{"action": "key", "text": "CTRL+S"}])),
        (json!({"type": "type", "text": "hi"}), json!([{"action": "type", "text": "hi"}])),
        (json!({"type": "wait"}), json!([{"action": "wait", "duration": 2}])),
        (json!({"type": "screenshot"}), json!([{"action": "screenshot"}])),
        (
            json!({"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]}),
            json!([{"action": "left_click_drag", "path": [[1, 2], [3, 4], [5, 6]]}]),
        ),
        (
            json!({"type": "scroll", "x": 1, "y": 2, "scroll_x": -250, "scroll_y": 100}),
            json!([
                {"action": "scroll", "coordinate": [1, 2], "scroll_direction": "down", "scroll_amount": 1},
                {"action": "scroll", "coordinate": [1, 2], "scroll_direction": "left", "scroll_amount": 3},
            ]),
        ),
    ] {
        let given = arguments("openai", &openai_call(json!([theirs]), json!([])));
        let ours = ours.as_array().unwrap();
        let expected = if ours.len() == 1 { ours[0].clone() } else { json!({"actions": ours}) };
        assert_eq!(given, expected, "{theirs}");
    }
    let several = openai_call(
        json!([{"type": "type", "text": "a"}, {"type": "keypress", "keys": ["ENTER"]}]),
        json!([]),
    );
    let expected = json!({"actions": [{"action": "type", "text": "a"}, {"action": "key", "text": "ENTER"}]});
    assert_eq!(arguments("openai", &several), expected);
    // The older form has one action.
    let mut older = openai_call(Value::Null, json!([]));
    older["action"] = json!({"type": "screenshot"});
    assert_eq!(arguments("openai", &older), json!({"action": "screenshot"}));
}

#[test]
fn openais_safety_checks_are_questions_and_are_acknowledged_when_nobody_refused() {
    let checks = json!([{"id": "cu_sc_1", "code": "malicious_instructions", "message": "Is this wanted?"}]);
    let call = openai_call(json!([{"type": "screenshot"}]), checks.clone());
    assert_eq!(
        arguments("openai", &call),
        json!({"actions": [
            {"action": "confirm", "code": "malicious_instructions", "message": "Is this wanted?"},
            {"action": "screenshot"},
        ]})
    );
    let body = encode("openai", &answered("openai", &call, false));
    let output = json!({"type": "computer_screenshot", "image_url": "data:image/png;base64,cG5n"});
    assert_eq!(body["input"][1], call);
    assert_eq!(
        body["input"][2],
        json!({"type": "computer_call_output", "call_id": "call_1", "output": output, "acknowledged_safety_checks": checks})
    );
    let body = encode("openai", &answered("openai", &call, true));
    assert_eq!(
        body["input"][2],
        json!({"type": "computer_call_output", "call_id": "call_1", "output": output})
    );
    let told = body["input"][3]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("call_1") && told.contains("a person said no"), "{told}");
}

#[test]
fn a_screenshot_that_was_removed_leaves_a_picture_for_openai() {
    let call = openai_call(json!([{"type": "screenshot"}]), json!([]));
    let mut conversation = answered("openai", &call, false);
    let Some(Message::Tool(result)) = conversation.messages.last_mut() else { panic!() };
    result.content = vec![Content::text("(an older screenshot was here)")];
    let body = encode("openai", &conversation);
    let url = body["input"][2]["output"]["image_url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,"), "{url}");
    assert_eq!(body["input"][3]["role"], "user");
}

#[test]
fn geminis_functions_become_actions_in_pixels() {
    for (name, args, ours) in [
        (
            "click",
            json!({"x": 500, "y": 500, "intent": "i"}),
            json!({"action": "left_click", "coordinate": [640, 400]}),
        ),
        ("click_at", json!({"x": 0, "y": 999}), json!({"action": "left_click", "coordinate": [0, 799]})),
        (
            "triple_click",
            json!({"x": 500, "y": 500}),
            json!({"action": "triple_click", "coordinate": [640, 400]}),
        ),
        (
            "mouse_down",
            json!({"x": 500, "y": 500}),
            json!({"action": "left_mouse_down", "coordinate": [640, 400]}),
        ),
        ("hover_at", json!({"x": 500, "y": 500}), json!({"action": "mouse_move", "coordinate": [640, 400]})),
        (
            "type",
            json!({"text": "a", "press_enter": true}),
            json!({"action": "type", "text": "a", "press_enter": true}),
        ),
        (
            "type_text_at",
            json!({"x": 500, "y": 500, "text": "a", "press_enter": false}),
            json!({"action": "type", "text": "a", "coordinate": [640, 400], "clear": true, "press_enter": false}),
        ),
        ("press_key", json!({"key": "ENTER"}), json!({"action": "key", "text": "ENTER"})),
        ("hotkey", json!({"keys": ["CTRL", "A"]}), json!({"action": "key", "text": "CTRL+A"})),
        ("key_combination", json!({"keys": "Control+A"}), json!({"action": "key", "text": "Control+A"})),
        ("key_down", json!({"key": "SHIFT"}), json!({"action": "key_down", "text": "SHIFT"})),
        (
            "drag_and_drop",
            json!({"start_x": 0, "start_y": 0, "end_x": 500, "end_y": 500}),
            json!({"action": "left_click_drag", "start_coordinate": [0, 0], "coordinate": [640, 400]}),
        ),
        (
            "scroll",
            json!({"x": 500, "y": 500, "direction": "up"}),
            json!({"action": "scroll", "coordinate": [640, 400], "scroll_direction": "up", "scroll_amount": 3}),
        ),
        (
            "scroll",
            json!({"x": 500, "y": 500, "direction": "up", "magnitude_in_wheel_clicks": 7}),
            json!({"action": "scroll", "coordinate": [640, 400], "scroll_direction": "up", "scroll_amount": 7}),
        ),
        ("wait", json!({}), json!({"action": "wait", "duration": 1})),
        ("take_screenshot", json!({}), json!({"action": "screenshot"})),
        (
            "navigate",
            json!({"url": "https://a.example"}),
            json!({"action": "navigate", "text": "https://a.example"}),
        ),
        ("go_back", json!({}), json!({"action": "key", "text": "alt+Left"})),
    ] {
        assert_eq!(arguments("google", &json!({"id": "1", "name": name, "args": args})), ours, "{name}");
    }
    let other = json!({"id": "1", "name": "note", "args": {}});
    let message = decode("google", &conversation(true), &reply("google", &other));
    assert_eq!(&*message.tool_calls[0].name, "note");
}

#[test]
fn geminis_safety_decision_is_a_question_and_is_acknowledged() {
    let args = json!({"x": 500, "y": 500,
        "safety_decision": {"decision": "require_confirmation", "explanation": "It is a purchase."}});
    let call = json!({"id": "1", "name": "click", "args": args});
    assert_eq!(
        arguments("google", &call),
        json!({"actions": [
            {"action": "confirm", "code": "require_confirmation", "message": "It is a purchase."},
            {"action": "left_click", "coordinate": [640, 400]},
        ]})
    );
    let body = encode("google", &answered("google", &call, false));
    assert_eq!(body["contents"][1]["parts"][0]["functionCall"], call);
    let response = json!({"id": "1", "name": "click", "response": {"output": "", "url": "", "safety_acknowledgement": "true"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "cG5n"}}]});
    let mut sent = body["contents"][2]["parts"][0]["functionResponse"].clone();
    let said = sent["response"].as_object_mut().unwrap().shift_remove("output");
    assert!(said.is_none_or(|said| said == ""));
    let mut expected = response;
    expected["response"].as_object_mut().unwrap().shift_remove("output");
    assert_eq!(sent, expected);
    let refused = encode("google", &answered("google", &call, true));
    let response = &refused["contents"][2]["parts"][0]["functionResponse"]["response"];
    assert_eq!(response.get("safety_acknowledgement"), None);
}

#[test]
fn calls_of_another_vendor_stay_calls_of_a_function() {
    let call = openai_call(json!([{"type": "screenshot"}]), json!([]));
    let conversation = answered("openai", &call, false);
    let body = encode("google", &conversation);
    assert_eq!(body["contents"][1]["parts"][0]["functionCall"]["name"], "computer");
    let body = encode("anthropic", &conversation);
    // Its action has the name of a member, so it is one.
    assert_eq!(body["messages"][1]["content"][0]["name"], "screenshot");
    assert_eq!(body["messages"][2]["content"][0]["toolset_name"], "computer");
}

#[test]
fn the_vendors_clients_know_every_key_of_requests_with_a_computer() {
    let checks = json!([{"id": "cu_sc_1", "code": "c", "message": "m"}]);
    let click = json!({"type": "click", "button": "left", "x": 1, "y": 2});
    let calls = [
        ("openai", "openai_responses", openai_call(json!([click]), checks)),
        ("google", "gemini", json!({"id": "1", "name": "click", "args": {"x": 1, "y": 2}})),
    ];
    let mut requests = Vec::new();
    for (name, format, call) in calls {
        for failed in [false, true] {
            let body = encode(name, &answered(name, &call, failed));
            requests.push(json!({"format": format, "streamed": false, "body": body}));
        }
    }
    let made = ToolCall::new("1", "computer", json!({"action": "key", "text": "a"}));
    assert_eq!(&*made.name, "computer");
    let output = match judge("check_requests.py", &requests.into()) {
        Ok(output) => output,
        Err(missing) => {
            println!("skipped the_vendors_clients_know_every_key_of_requests_with_a_computer: {missing}");
            return;
        }
    };
    let shown: String = String::from_utf8_lossy(&output.stdout).chars().take(6000).collect();
    assert!(output.status.success(), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
}
