//! Answers that come piece by piece, conversations that go on, and what stops them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    DeltaSink, ErrorKind, Message, Model, ModelDelta, ModelError, ModelErrorKind, ModelReply, ModelRequest,
    ToolError, ToolResult,
};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{
    Conversation, Event, EventKind, LoopOptions, Run, RunEnd, RunError, RunLimits, RunState, ToolCalls,
};

use crate::support::{Ears, add, plain, sleeper, tools};

/// Says `hello there` slowly; then it is silent, or the connection breaks.
struct Slow {
    breaks: bool,
}

impl Model for Slow {
    fn name(&self) -> &str {
        "test/slow"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.generate_streaming(request, &mut |_| {}).await
    }

    async fn generate_streaming(
        &self,
        _: ModelRequest<'_>,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        sink(ModelDelta::Reasoning("hm"));
        for word in ["hello", " there"] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            sink(ModelDelta::Text(word));
        }
        if self.breaks {
            return Err(ModelError::new(ModelErrorKind::Reply, "the stream broke off"));
        }
        std::future::pending().await
    }
}

#[tokio::test]
async fn pieces_come_in_order_before_the_message_they_make() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (pieces, events) = (heard.clone(), heard.clone());
    let run = Run::builder(tools([add()]))
        .on_delta(move |delta| pieces.lock().unwrap().push(format!("{delta:?}")))
        .on_event(move |event: &Event| match &event.kind {
            EventKind::MessageAdded { message } => {
                events.lock().unwrap().push(format!("+{}", message.text()))
            }
            EventKind::CallFinished { .. } => events.lock().unwrap().push("called".to_owned()),
            _ => {}
        })
        .build()
        .unwrap();
    let mut first = Reply::call("add", json!({"x": 1, "y": 2}));
    first.text = "Let me see.".to_owned();
    let model = ScriptedModel::new([first, Reply::text("It is 3.")]);
    let outcome =
        run.generate_loop(&model, vec![Message::user("1 + 2?")], &LoopOptions::default()).await.unwrap();
    assert_eq!(outcome.completion(), "It is 3.");
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "+1 + 2?",
            "Text(\"Let me see.\")",
            "Call { name: \"add\" }",
            "+Let me see.",
            "called",
            "+3",
            "Text(\"It is 3.\")",
            "+It is 3."
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_stopped_in_mid_stream_keeps_what_was_said_and_the_conversation_goes_on() {
    let run = Run::builder(tools([add()])).on_delta(|_| {}).build().unwrap();
    let mut chat = Conversation::new(&run);
    let stopper = chat.stopper();
    assert!(!stopper.stop(), "there is no answer yet");
    let later = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        stopper.stop()
    });
    assert_eq!(chat.say(&Slow { breaks: false }, "hi").await.unwrap(), Some(RunEnd::Cancelled));
    assert!(later.await.unwrap());
    assert_eq!(chat.messages(), [Message::user("hi"), Message::assistant("hello")]);

    let model = ScriptedModel::new([Reply::text("again")]);
    assert_eq!(chat.say(&model, "go on").await.unwrap(), Some(RunEnd::Done));
    assert_eq!((chat.messages().len(), run.ended()), (4, None));
}

/// A record that reads as a straight conversation where there was none would be wrong.
#[tokio::test(start_paused = true)]
async fn what_happens_to_a_conversation_is_told() {
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([])).on_delta(|_| {})).build().unwrap();
    let mut chat = Conversation::new(&run);
    chat.push(Message::user("never sent"));
    chat.rewind(0);
    let error = chat.say(&Slow { breaks: true }, "hi").await.unwrap_err();
    assert!(matches!(error, RunError::Model(_)));
    let stopper = chat.stopper();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        stopper.stop()
    });
    chat.say(&Slow { breaks: false }, "again").await.unwrap();
    chat.rewind(1);
    let told: Vec<EventKind> = ears.events().into_iter().map(|event| event.kind).collect();
    let told: Vec<&EventKind> = told
        .iter()
        .filter(|kind| !matches!(kind, EventKind::MessageAdded { .. } | EventKind::RunStarted { .. }))
        .collect();
    let failed = EventKind::ModelFailed { model: "test/slow".into(), message: "the stream broke off".into() };
    assert_eq!(told, [&failed, &EventKind::AnswerStopped, &EventKind::Rewound { messages: 1 }]);
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_in_mid_stream_keeps_what_was_said_too() {
    let limits = RunLimits { wall_time: Some(1.5), ..RunLimits::default() };
    let run = Run::builder(tools([])).limits(limits).on_delta(|_| {}).build().unwrap();
    let how = LoopOptions::default();
    let outcome = run.generate_loop(&Slow { breaks: false }, vec![Message::user("hi")], &how).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { .. })));
    assert_eq!(outcome.completion(), "hello");
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_reported_and_the_question_can_be_asked_again() {
    let run = Run::builder(tools([])).on_delta(|_| {}).build().unwrap();
    let mut chat = Conversation::new(&run);
    let error = chat.say(&Slow { breaks: true }, "hi").await.unwrap_err();
    assert!(matches!(error, RunError::Model(error) if error.to_string() == "the stream broke off"));
    assert_eq!(chat.messages(), [Message::user("hi")]);
    let end = chat.answer(&ScriptedModel::new([Reply::text("hello").expecting("hi")])).await.unwrap();
    assert_eq!((end, chat.messages().len()), (Some(RunEnd::Done), 2));
}

#[tokio::test(start_paused = true)]
async fn stopping_while_tools_work_stops_them_and_answers_their_calls() {
    let ears = Ears::default();
    let set =
        tools([sleeper("slow", Duration::from_secs(3600)), sleeper("other", Duration::from_secs(3600))]);
    let run = ears.on(Run::builder(set)).build().unwrap();
    let mut chat = Conversation::new(&run);
    let stopper = chat.stopper();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stopper.stop()
    });
    let model = ScriptedModel::new([Reply::call("slow", json!({})).and_call("other", json!({}))]);
    assert_eq!(chat.say(&model, "work").await.unwrap(), Some(RunEnd::Cancelled));
    let errors: Vec<_> = chat.messages()[2..]
        .iter()
        .map(|message| match message {
            Message::Tool(ToolResult { error: Some(error), .. }) => error.kind,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(errors, [ErrorKind::Cancelled, ErrorKind::Cancelled]);
    assert_eq!(run.ended(), None);
    chat.say(&ScriptedModel::new([Reply::text("fine")]), "never mind").await.unwrap();
    ears.check();
    let added =
        ears.events().iter().filter(|event| matches!(event.kind, EventKind::MessageAdded { .. })).count();
    assert_eq!(added, chat.messages().len(), "each message is recorded once");
}

#[tokio::test]
async fn pending_calls_travel_in_the_state_and_are_made_by_whoever_takes_it_up() {
    let manual = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
    let model =
        ScriptedModel::new([Reply::call("add", json!({"x": 1, "y": 2})), Reply::text("3").expecting("3")]);
    let run = Run::builder(tools([add()])).build().unwrap();
    let mut chat = Conversation::new(&run).with_loop(manual);
    assert_eq!(chat.say(&model, "1 + 2?").await.unwrap(), None);
    assert_eq!(chat.pending().len(), 1);
    assert_eq!(chat.answer(&model).await.unwrap(), None, "asking again changes nothing");
    let text = serde_json::to_string(&chat.state().unwrap()).unwrap();

    let state: RunState = serde_json::from_str(&text).unwrap();
    let run = Run::builder(tools([add()])).resume(&state).build().unwrap();
    let mut chat = Conversation::resume(&run, &state);
    assert_eq!(chat.pending(), state.pending);
    assert_eq!(chat.answer(&model).await.unwrap(), Some(RunEnd::Done));
    assert_eq!((chat.messages().len(), chat.pending().len()), (4, 0));
    assert_eq!(run.spent().turns, 2);
}

#[tokio::test]
async fn a_state_with_arguments_nested_very_deep_can_be_read_again() {
    let manual = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
    let deep = (0..122).fold(json!(1), |inner, _| json!([inner]));
    let model = ScriptedModel::new([Reply::call("add", json!({"x": deep, "y": 2})), Reply::text("no")]);
    let run = Run::builder(tools([add()])).build().unwrap();
    let mut chat = Conversation::new(&run).with_loop(manual);
    chat.say(&model, "1 + 2?").await.unwrap();
    let text = serde_json::to_string(&chat.state().unwrap()).unwrap();
    let state: RunState = serde_json::from_str(&text).unwrap();
    let mut chat = Conversation::resume(&run, &state);
    assert_eq!(chat.answer(&model).await.unwrap(), Some(RunEnd::Done));
    let told = serde_json::to_string(chat.messages()).unwrap();
    assert!(told.contains("nested more than 100 deep"), "{told}");
}

#[tokio::test]
async fn a_result_from_the_caller_answers_a_pending_call() {
    let manual = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
    let run = Run::builder(tools([add()])).build().unwrap();
    let mut chat = Conversation::new(&run).with_loop(manual);
    let model =
        ScriptedModel::new([Reply::call("add", json!({"x": 1, "y": 2})), Reply::text("5").expecting("five")]);
    chat.say(&model, "1 + 2?").await.unwrap();
    let [call] = chat.pending().try_into().unwrap();
    chat.push(Message::Tool(ToolResult::text(&call, "five")));
    assert_eq!(chat.answer(&model).await.unwrap(), Some(RunEnd::Done));
}

#[tokio::test]
async fn a_run_that_has_ended_makes_no_more_calls() {
    let limits = RunLimits { tokens: Some(1), ..RunLimits::default() };
    let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
    let mut chat = Conversation::new(&run);
    let model = ScriptedModel::repeating([Reply::call("add", json!({"x": 1, "y": 2})).with_usage(1, 1)]);
    let first = chat.say(&model, "go").await.unwrap();
    assert!(matches!(first, Some(RunEnd::Limit { .. })));
    assert_eq!((chat.answer(&model).await.unwrap(), run.spent().tool_calls), (first, 0));
}

/// What was done is in the conversation, however the answer ended, and is not done again.
#[tokio::test]
async fn finished_calls_are_kept_when_a_later_one_breaks_or_nobody_waits() {
    let waits = Arc::new(AtomicBool::new(false));
    let reached = waits.clone();
    let once = plain("once", |_| async { Ok("done".into()) });
    let never = plain("never", move |_| {
        reached.store(true, Ordering::SeqCst);
        std::future::pending()
    });
    let breaks = plain("breaks", |_| async { Err(ToolError::fatal("broken")) });
    let set = tools([once, never, breaks].map(|tool| tool.with_parallel(false)));
    let both = |second: &str| Reply::call("once", json!({})).and_call(second, json!({}));
    let pending = |chat: &Conversation| -> Vec<String> {
        chat.pending().iter().map(|call| call.name.to_string()).collect()
    };

    let run = Run::builder(set.clone()).build().unwrap();
    let mut chat = Conversation::new(&run);
    let model = ScriptedModel::new([both("never")]);
    {
        let mut answer = Box::pin(chat.say(&model, "go"));
        while !waits.load(Ordering::SeqCst) {
            tokio::select! {
                biased;
                _ = &mut answer => panic!("it cannot end"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    }
    assert_eq!((pending(&chat), chat.messages().len()), (vec!["never".to_owned()], 3));

    let run = Run::builder(set).build().unwrap();
    let mut chat = Conversation::new(&run);
    let failed = chat.say(&ScriptedModel::new([both("breaks")]), "go").await;
    assert!(matches!(failed, Err(RunError::Tool(_))));
    assert_eq!((pending(&chat), chat.messages().len()), (vec!["breaks".to_owned()], 3));
}
