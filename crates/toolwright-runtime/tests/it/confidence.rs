//! What is confidential reaches the user and no model, whichever way it takes.

use std::sync::Arc;

use serde_json::json;
use toolwright_core::{
    ErrorKind, Message, ModelOptions, ModelRequest, ToolCall, ToolChoice, ToolDef, ToolError, ToolOutput,
    ToolSpec,
};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{Agent, Conversation, LoopOptions, Run, RunEnd};
use toolwright_testkit::exchange::Recorder;

use crate::support::{bare, plain, tools};

fn quiet(tool: ToolDef) -> ToolDef {
    tool.edit(|_, settings| (settings.return_direct, settings.confidential) = (true, true))
}

fn pin() -> ToolDef {
    quiet(plain("pin", |_| async { Ok("PIN-1234".to_owned()) }))
}

/// A model that asks for one tool, then says something when it is asked again.
fn asks(tool: &str, arguments: serde_json::Value) -> Recorder<ScriptedModel> {
    Recorder::new(ScriptedModel::new([
        Reply::call(tool, arguments),
        Reply::text("then"),
        Reply::text("later"),
    ]))
}

fn sent(model: &Recorder<ScriptedModel>) -> String {
    serde_json::to_string(&model.exchanges()).unwrap()
}

#[tokio::test]
async fn what_an_agent_ends_with_is_for_the_user_and_not_for_who_asked_the_agent() {
    for name in ["pin", "functions.pin"] {
        let inner = Arc::new(asks(name, json!({})));
        let agent = Agent::new("agent", "Works.").model(inner.clone()).tools(tools([pin()]));
        let run = Run::builder(tools([agent.as_tool()])).build().unwrap();
        let outer = asks("agent", json!({"input": "go"}));
        let mut chat = Conversation::new(&run);
        assert_eq!(chat.say(&outer, "Which PIN?").await.unwrap(), Some(RunEnd::Done));
        assert_eq!(chat.messages().last().map(Message::text).as_deref(), Some("PIN-1234"));
        chat.say(&outer, "And now?").await.unwrap();
        for model in [&outer, &*inner] {
            assert!(!sent(model).contains("PIN-1234"), "{name}: {}", sent(model));
        }
    }
}

#[tokio::test]
async fn only_what_was_wrong_with_the_call_itself_is_told() {
    let pay = plain("pay", |_| async { Ok(String::new()) });
    let pay = pay.edit(|spec, _| {
        spec.parameters =
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    });
    let both = ToolDef::from_fn(ToolSpec::new("both", "Pays."), |context, _| {
        Box::pin(async move { context.call("pay", json!({"n": "PIN-1234"})).await })
    });
    let both = quiet(both.edit(|spec, _| {
        spec.parameters =
            json!({"type": "object", "required": ["who"], "properties": {"who": {"type": "string"}}});
    }));
    let run = Run::builder(tools([pay, both])).build().unwrap();
    let model = asks("both", json!({"who": "ann"}));
    let outcome =
        run.generate_loop(&model, vec![Message::user("go")], &LoopOptions::default()).await.unwrap();
    assert_eq!(outcome.completion(), "then");
    assert!(sent(&model).contains("what it said is confidential"), "{}", sent(&model));
    assert!(!sent(&model).contains("PIN-1234"), "{}", sent(&model));
    // Whoever calls it themselves is told everything.
    let result = run.call(ToolCall::new("1", "both", json!({"who": "ann"}))).await.unwrap();
    assert!(result.confidential && result.to_text().contains("PIN-1234"), "{result:?}");
    let model = asks("both", json!({"whom": "ann"}));
    run.generate_loop(&model, vec![Message::user("go")], &LoopOptions::default()).await.unwrap();
    assert!(sent(&model).contains("`who`") && !sent(&model).contains("confidential"), "{}", sent(&model));
}

#[tokio::test]
async fn the_error_of_a_confidential_tool_stays_so_in_the_tool_that_called_it() {
    let fails = quiet(plain("fails", |_| async { Err(ToolError::new("PIN-1234 is wrong")) }));
    let wraps = ToolDef::from_fn(ToolSpec::new("wraps", "Wraps."), |context, _| {
        Box::pin(async move { context.call("fails", json!({})).await })
    });
    let run = Run::builder(tools([fails, wraps])).build().unwrap();
    let model = asks("wraps", json!({}));
    run.generate_loop(&model, vec![Message::user("go")], &LoopOptions::default()).await.unwrap();
    assert!(!sent(&model).contains("PIN-1234"), "{}", sent(&model));
}

#[tokio::test]
async fn results_that_a_program_or_a_tool_gives_a_model_itself_are_masked() {
    let run = Run::builder(tools([pin()])).build().unwrap();
    let model = Recorder::new(ScriptedModel::new([Reply::text("ok")]));
    let mut chat = Conversation::new(&run);
    chat.push(Message::user("go"));
    chat.push(Message::Assistant(toolwright_core::AssistantMessage::calls([bare("pin")])));
    let results = run.call_all(chat.pending()).await.unwrap();
    assert_eq!(results[0].to_text(), "PIN-1234");
    results.into_iter().for_each(|result| chat.push(Message::Tool(result)));
    // The mark goes with the message, also through JSON.
    let state = serde_json::from_str(&serde_json::to_string(&chat.state().unwrap()).unwrap()).unwrap();
    let mut chat = Conversation::resume(&run, &state);
    chat.answer(&model).await.unwrap();
    assert!(
        sent(&model).contains("[CONFIDENTIAL]") && !sent(&model).contains("PIN-1234"),
        "{}",
        sent(&model)
    );

    let model = Arc::new(Recorder::new(ScriptedModel::new([Reply::text("ok")])));
    let given = state.messages.clone();
    let asker = model.clone();
    let asking = ToolDef::from_fn(ToolSpec::new("asking", "Asks."), move |context, _| {
        let (model, messages) = (asker.clone(), given.clone());
        Box::pin(async move {
            let (tool_choice, options) = (ToolChoice::Auto, ModelOptions::default());
            let request = ModelRequest {
                messages: &messages,
                tools: &[],
                tool_choice: &tool_choice,
                options: &options,
            };
            context.ask(&*model, request).await.map(|reply| ToolOutput::text(reply.message.text()))
        })
    });
    let run = Run::builder(tools([asking])).build().unwrap();
    assert_eq!(run.call(bare("asking")).await.unwrap().to_text(), "ok");
    assert!(!sent(&model).contains("PIN-1234"), "{}", sent(&model));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_late_or_cancelled_hands_over_what_the_calls_inside_it_had() {
    let inner = ToolDef::from_fn(ToolSpec::new("inner", "Works."), |context, _| {
        Box::pin(async move {
            context.cancel_token().cancelled().await;
            // As a command that must be killed and drained first.
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            Err(ToolError::of(ErrorKind::Cancelled, "killed").with_partial(ToolOutput::text("part")))
        })
    });
    let outer = |name: &str| {
        ToolDef::from_fn(ToolSpec::new(name, "Calls."), |context, _| {
            Box::pin(async move {
                let outcome = context.call("inner", json!({})).await;
                tokio::time::sleep(std::time::Duration::from_millis(150)).await;
                outcome
            })
        })
    };
    let told = plain("told", |context| async move { Ok(format!("{:?}", context.time_left())) });
    let asks = ToolDef::from_fn(ToolSpec::new("asks", "Calls."), |context, _| {
        Box::pin(async move { context.call("told", json!({})).await })
    });
    let asks = asks.edit(|_, settings| settings.timeout = Some(std::time::Duration::from_secs(7)));
    let run = Run::builder(tools([told, asks])).build().unwrap();
    assert_eq!(run.call(bare("asks")).await.unwrap().to_text(), "Some(7s)");
    let late = outer("late").edit(|_, settings| settings.timeout = Some(std::time::Duration::from_secs(1)));
    let run = Run::builder(tools([inner, late, outer("outer")])).build().unwrap();
    let result = run.call(bare("late")).await.unwrap();
    assert_eq!(result.error.as_ref().map(|error| error.kind), Some(ErrorKind::Timeout));
    assert_eq!(result.content, ToolOutput::text("part").content);
    let stop = async {
        while run.active_calls().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(run.cancel_call("id-outer"));
    };
    let (result, ()) = tokio::join!(run.call(bare("outer")), stop);
    let result = result.unwrap();
    assert_eq!(result.error.as_ref().map(|error| error.kind), Some(ErrorKind::Cancelled));
    assert_eq!(result.content, ToolOutput::text("part").content);
}
