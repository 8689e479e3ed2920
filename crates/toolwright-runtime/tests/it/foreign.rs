//! Code that is not ours and no tool's either: sources, models, listeners and judges that are slow or that
//! break.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    ErrorKind, Message, Model, ModelError, ModelReply, ModelRequest, ToolCall, ToolError, ToolResult,
    ToolSource, Toolset,
};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{
    Agent, Conversation, Event, LimitKind, LoopOptions, React, Run, RunBuilder, RunEnd, RunError, RunLimits,
};

use crate::support::{add, bare, call, plain, tools};

/// A source that never answers, or that breaks.
struct Source {
    breaks: bool,
}

impl ToolSource for Source {
    fn name(&self) -> &str {
        "shop"
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        assert!(!self.breaks, "out of stock");
        std::future::pending().await
    }
}

fn slow() -> RunBuilder {
    Run::builder(tools([add()])).source(Source { breaks: false })
}

fn question() -> Vec<Message> {
    vec![Message::user("go")]
}

/// What happens within a minute; a hang is a failure and not a test without end.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it hangs")
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_stopped_by_cancel_and_by_a_stopper() {
    let run = slow().build().unwrap();
    let work = async {
        let one = run.call(call("add", json!({"x": 1, "y": 2}))).await;
        (one, run.call_all(vec![bare("add"), bare("add")]).await)
    };
    let (one, all) = soon(async { tokio::join!(work, async { run.cancel() }).0 }).await;
    let kinds = all.unwrap().into_iter().chain([one.unwrap()]).map(|result| result.error.unwrap().kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [ErrorKind::Cancelled; 3]);

    let run = slow().build().unwrap();
    let model = ScriptedModel::new([Reply::text("hi")]);
    let mut chat = Conversation::new(&run);
    let stopper = chat.stopper();
    let stopped = async { tokio::join!(chat.say(&model, "go"), async { stopper.stop() }) };
    let (end, was_there) = soon(stopped).await;
    assert_eq!((end.unwrap(), was_there, run.ended()), (Some(RunEnd::Cancelled), true, None));
    assert_eq!(chat.messages(), question());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_does_not_answer_is_stopped_by_the_clock() {
    let limits = RunLimits { wall_time: Some(0.5), ..RunLimits::default() };
    let run = slow().limits(limits.clone()).build().unwrap();
    let result = soon(run.call(call("add", json!({"x": 1, "y": 2})))).await.unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Limit);

    let run = slow().limits(limits).build().unwrap();
    let model = ScriptedModel::new([Reply::text("hi")]);
    let outcome = soon(run.generate_loop(&model, question(), &LoopOptions::default())).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::WallTime));
    assert_eq!(outcome.messages, question());
}

#[tokio::test]
async fn a_time_limit_that_is_reached_while_a_request_is_made_ends_the_run_cleanly() {
    let slow = add().with_model_input(|_, _, content| {
        std::thread::sleep(Duration::from_millis(600));
        content.to_vec()
    });
    let limits = RunLimits { wall_time: Some(0.5), ..RunLimits::default() };
    let run = Run::builder(tools([slow])).limits(limits).build().unwrap();
    let asked = call("add", json!({"x": 1, "y": 2}));
    let result = ToolResult::text(&asked, "3");
    let said = vec![Message::user("go"), Message::Assistant(assistant_calling(asked)), Message::Tool(result)];
    let model = ScriptedModel::new([Reply::text("three")]);
    let outcome = run.generate_loop(&model, said.clone(), &LoopOptions::default()).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::WallTime));
    assert_eq!(outcome.messages, said);
}

fn assistant_calling(call: ToolCall) -> toolwright_core::AssistantMessage {
    toolwright_core::AssistantMessage { tool_calls: vec![call], ..Default::default() }
}

/// Breaks before it has begun to think, or while it does.
struct Broken {
    at_once: bool,
}

impl Model for Broken {
    fn name(&self) -> &str {
        "test/broken"
    }

    async fn generate(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        assert!(!self.at_once, "no brain");
        panic!("no brain")
    }
}

#[tokio::test]
async fn a_panic_in_a_model_or_in_whoever_hears_it_is_an_error_of_the_model() {
    let told = |outcome: Result<_, RunError>| match outcome {
        Err(RunError::Model(error)) => error.to_string(),
        _ => panic!("no error of the model"),
    };
    for at_once in [true, false] {
        let run = Run::builder(tools([add()])).build().unwrap();
        let error = told(run.generate_loop(&Broken { at_once }, question(), &LoopOptions::default()).await);
        assert_eq!(error, "the model `test/broken`, or a listener to its answer, panicked: no brain");
        let agent = Agent::new("thinker", "Thinks.").model(Arc::new(Broken { at_once }));
        let run = Run::builder(tools([agent.as_tool()])).build().unwrap();
        let error = run.call(call("thinker", json!({"input": "x"}))).await.unwrap().error.unwrap();
        assert!(error.message.contains("panicked: no brain"), "{}", error.message);
    }
    let run = Run::builder(tools([])).on_delta(|_| panic!("no ears")).build().unwrap();
    let model = ScriptedModel::new([Reply::text("hello"), Reply::text("again")]);
    let mut chat = Conversation::new(&run);
    let error = told(chat.say(&model, "hi").await.map(|_| unreachable!("it broke")));
    assert!(error.ends_with("panicked: no ears"), "{error}");
    assert_eq!(chat.messages().len(), 1, "what was said stays");
}

#[tokio::test]
async fn a_panic_in_a_source_or_a_judge_is_a_fatal_error() {
    let run = Run::builder(tools([add()])).source(Source { breaks: true }).build().unwrap();
    let error = run.call(bare("add")).await.unwrap_err();
    assert_eq!(error.message(), "the source of tools `shop` panicked: out of stock");
    assert!(error.is_fatal() && run.dispatch().fresh_specs().await.is_err());

    let submits = ScriptedModel::new([Reply::call("submit", json!({"answer": "3"}))]);
    let judged = React::default().attempts(2, |_| async { panic!("no judge today") });
    let agent = Agent::new("adder", "Adds.").react(judged).model(Arc::new(submits));
    let run = Run::builder(tools([])).build().unwrap();
    let Err(RunError::Tool(error)) = agent.run(&run, question()).await else { panic!("no error") };
    assert_eq!(error.message(), "the judge of the agent's answers panicked: no judge today");
}

#[tokio::test]
async fn a_sink_that_finishes_the_run_is_told_no_and_one_that_cancels_it_is_not() {
    let known: Arc<Mutex<Option<Run>>> = Arc::default();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = {
        let (known, told) = (known.clone(), told.clone());
        move |_: &Event| {
            let Some(run) = known.lock().unwrap().clone() else { return };
            run.cancel();
            told.lock()
                .unwrap()
                .extend(run.finish(RunEnd::Done).err().map(|error| error.message().to_owned()));
        }
    };
    let run = Run::builder(tools([plain("t", |_| async { Ok("x".into()) })])).on_event(sink).build().unwrap();
    *known.lock().unwrap() = Some(run.clone());
    let result = soon(tokio::spawn(async move { run.call(bare("t")).await })).await.unwrap().unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Cancelled);
    let told = told.lock().unwrap();
    assert!(told.len() == 2 && told[0].contains("an event itself"), "{told:?}");
    *known.lock().unwrap() = None;
}
