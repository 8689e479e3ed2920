//! The model loop, with the scripted model.

use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    AssistantMessage, Message, ModelErrorKind, ModelOptions, StopReason, ToolCall, ToolChoice,
};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{
    EventKind, LimitKind, LoopOptions, Policy, Run, RunEnd, RunError, RunLimits, ToolCalls,
};
use toolwright_testkit::exchange::{Player, Recorder};

use crate::support::{Ears, Growing, add, plain, sleeper, tools};

fn asks_for_add() -> Reply {
    Reply::call("add", json!({"x": 1, "y": 2})).with_usage(1, 1)
}

fn go() -> Vec<Message> {
    vec![Message::user("go")]
}

#[tokio::test]
async fn the_loop_goes_on_until_the_model_asks_for_nothing() {
    let model = ScriptedModel::new([asks_for_add(), Reply::text("It is 3.").expecting("3")]);
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([add()]))).build().unwrap();
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!(
        (outcome.completion().as_str(), outcome.messages.len(), outcome.end),
        ("It is 3.", 4, Some(RunEnd::Done))
    );
    assert_eq!(run.spent().turns, 2);
    ears.check();
}

#[tokio::test]
async fn what_the_vendor_interrupted_goes_on_within_the_limits() {
    let paused = || Reply { stop: Some(StopReason::Paused), ..Reply::text("I search.").with_usage(1, 1) };
    let model = ScriptedModel::new([paused(), paused(), Reply::text("Found.").expecting("I search.")]);
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([add()]))).build().unwrap();
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    let said: Vec<String> = outcome.messages.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["go", "I search.", "I search.", "Found."]);
    assert_eq!(outcome.end, Some(RunEnd::Done));
    let stops: Vec<StopReason> = ears
        .events()
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ModelReplied { stop, .. } => Some(stop),
            _ => None,
        })
        .collect();
    assert_eq!(stops, [StopReason::Paused, StopReason::Paused, StopReason::EndTurn]);

    let limits = RunLimits { turns: Some(3), ..RunLimits::default() };
    let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
    let model = ScriptedModel::repeating([paused()]);
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::Turns));
    assert_eq!(run.spent().turns, 3);

    // A model that never says anything does not loop indefinitely.
    let run = Run::builder(tools([add()])).build().unwrap();
    let silent = Reply { stop: Some(StopReason::Paused), text: String::new(), ..paused() };
    let model = ScriptedModel::repeating([silent]);
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!((outcome.end, run.spent().turns), (Some(RunEnd::Done), 3));
}

#[tokio::test]
async fn calls_of_an_answer_that_was_refused_are_not_made() {
    for stop in [StopReason::Refusal, StopReason::Other] {
        for tool_calls in [ToolCalls::Loop, ToolCalls::None] {
            let refused =
                Reply { stop: Some(stop), ..asks_for_add().and_call("add", json!({"x": 3, "y": 4})) };
            let model = ScriptedModel::new([refused, Reply::text("Sorry.").expecting("and now?")]);
            let ears = Ears::default();
            let run = ears.on(Run::builder(tools([add()]))).build().unwrap();
            let how = LoopOptions { tool_calls, ..LoopOptions::default() };
            let mut chat = toolwright_runtime::Conversation::new(&run).with_loop(how);
            assert_eq!(chat.say(&model, "go").await.unwrap(), Some(RunEnd::Done));
            assert_eq!((chat.last_stop(), chat.pending()), (Some(stop), vec![]));
            // Each call has its answer, so the conversation can go on.
            let told = chat.messages().iter().filter_map(|message| match message {
                Message::Tool(result) => Some(result.error.as_ref().unwrap().message.clone()),
                _ => None,
            });
            let why = stop.warning().unwrap();
            assert_eq!(told.collect::<Vec<_>>(), vec![format!("this call was not made: {why}"); 2]);
            assert!(!ears.words().contains(&"call_started".to_owned()), "{:?}", ears.words());
            assert_eq!(chat.say(&model, "and now?").await.unwrap(), Some(RunEnd::Done));
        }
    }
}

#[tokio::test]
async fn a_call_that_the_vendor_could_not_read_is_mended_or_the_end_of_the_run() {
    let unread = || Reply { stop: Some(StopReason::MalformedCall), ..Reply::text("").with_usage(1, 1) };
    let half = || Reply { stop: Some(StopReason::MalformedCall), ..asks_for_add() };
    let model = ScriptedModel::new([
        unread(),
        half().expecting("could not be read"),
        asks_for_add().expecting("could not be read"),
        unread(),
        Reply::text("It is 3."),
    ]);
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([add()]))).build().unwrap();
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!((outcome.completion().as_str(), outcome.end), ("It is 3.", Some(RunEnd::Done)));
    let started = ears.words().iter().filter(|word| *word == "call_started").count();
    assert_eq!(started, 1, "the call beside it is not made");
    let Message::Tool(result) = &outcome.messages[4] else { panic!("{:?}", outcome.messages) };
    assert!(result.error.as_ref().unwrap().message.starts_with("this call was not made: "), "{result:?}");

    let run = Run::builder(tools([add()])).build().unwrap();
    let mut chat = toolwright_runtime::Conversation::new(&run);
    let model = ScriptedModel::repeating([unread()]);
    assert_eq!(chat.say(&model, "go").await.unwrap(), Some(RunEnd::Done));
    assert_eq!(chat.last_stop(), Some(StopReason::MalformedCall));
    assert_eq!(run.spent().turns, 4, "it is asked three times, and no more");
}

#[tokio::test]
async fn single_makes_one_round_and_none_leaves_the_calls_to_the_caller() {
    let run = Run::builder(tools([add()])).build().unwrap();
    let how = LoopOptions { tool_calls: ToolCalls::Single, ..LoopOptions::default() };
    let outcome = run.generate_loop(&ScriptedModel::repeating([asks_for_add()]), go(), &how).await.unwrap();
    assert_eq!(outcome.messages.len(), 3);
    let how = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
    let outcome = run.generate_loop(&ScriptedModel::repeating([asks_for_add()]), go(), &how).await.unwrap();
    assert_eq!((outcome.messages.len(), outcome.pending.len(), outcome.end), (2, 1, None));
    let results = run.call_all(outcome.pending).await.unwrap();
    assert_eq!(results[0].to_text(), "3");
}

#[tokio::test]
async fn calls_are_made_with_the_tools_the_model_was_told_of() {
    let calls = ["tool_0", "tool_1"].map(|name| Reply::call(name, json!({})));
    let model = ScriptedModel::new(calls.into_iter().chain([Reply::text("done")]));
    let run = Run::builder(tools([add()])).source(Growing::default()).build().unwrap();
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    let given: Vec<String> = outcome
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result.to_text()),
            _ => None,
        })
        .collect();
    assert_eq!(given, ["found", "found"]);
}

#[tokio::test]
async fn a_named_tool_is_asked_for_once() {
    let set = tools([add(), plain("sub", |_| async { Ok("1".into()) })]);
    let offered = async |choice: ToolChoice| {
        let model = ScriptedModel::new([asks_for_add(), Reply::text("done")]);
        let run = Run::builder(set.clone()).build().unwrap();
        let how = LoopOptions { tool_choice: choice, ..LoopOptions::default() };
        run.generate_loop(&model, go(), &how).await.unwrap();
        model.offered()
    };
    let both = vec!["add".to_owned(), "sub".to_owned()];
    assert_eq!(
        offered(ToolChoice::Tool("add".into())).await,
        [(vec!["add".to_owned()], ToolChoice::Tool("add".into())), (both.clone(), ToolChoice::Auto)]
    );
    assert_eq!(
        offered(ToolChoice::Tool("nope".into())).await,
        [(vec![], ToolChoice::None), (both.clone(), ToolChoice::Auto)]
    );
    assert_eq!(offered(ToolChoice::Any).await, [(both.clone(), ToolChoice::Any), (both, ToolChoice::Any)]);
    assert_eq!(offered(ToolChoice::None).await, [(vec![], ToolChoice::None), (vec![], ToolChoice::None)]);
}

/// The models of the world now and then call what they remember from the conversation.
#[tokio::test]
async fn only_what_was_offered_is_called() {
    let set = tools([add(), plain("sub", |_| async { Ok("1".into()) })]);
    let both = || asks_for_add().and_call("functions.sub", json!({}));
    let after = |choice_after: Option<ToolChoice>, tool_choice| LoopOptions {
        tool_choice,
        choice_after,
        ..LoopOptions::default()
    };
    let sub = || ToolChoice::Tool("sub".into());
    let none = "no tools are available now: answer without one";
    let only_sub = "what was offered: sub";
    let cases = [
        (after(None, ToolChoice::None), vec![(Some(none)), Some(none)]),
        (after(None, sub()), vec![Some(only_sub), None]),
        (after(None, ToolChoice::Any), vec![None, None]),
        (after(Some(ToolChoice::None), ToolChoice::Auto), vec![None, None, Some(none), Some(none)]),
    ];
    for (how, want) in cases {
        for tool_calls in [ToolCalls::Loop, ToolCalls::None] {
            let asked = std::iter::repeat_with(both).take(want.len() / 2);
            let model = ScriptedModel::new(asked.chain([Reply::text("done")]));
            let ears = Ears::default();
            let run = ears.on(Run::builder(set.clone())).build().unwrap();
            let mut chat = toolwright_runtime::Conversation::new(&run)
                .with_loop(LoopOptions { tool_calls, ..how.clone() });
            chat.push(Message::user("go"));
            while chat.answer(&model).await.unwrap().is_none() {
                chat.make_pending().await.unwrap();
                // By hand, the choice is the caller's before each answer.
                let after = how.choice_after.clone().unwrap_or(ToolChoice::Auto);
                chat.options_mut().tool_choice = after;
            }
            let told: Vec<Option<&str>> = chat
                .messages()
                .iter()
                .filter_map(|message| match message {
                    Message::Tool(result) => {
                        Some(result.error.as_ref().map(|error| error.hint.as_deref().unwrap()))
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(told, want, "{how:?} {tool_calls:?}");
            let made = want.iter().filter(|hint| hint.is_none()).count() as u64;
            assert_eq!(run.spent().tool_calls, made);
        }
    }
    // An unknown tool counts as a call, so that a model that insists reaches the limit.
    let limits = RunLimits { repeats: Some(2), ..RunLimits::default() };
    let run = Run::builder(set).limits(limits).build().unwrap();
    let model = ScriptedModel::repeating([both()]);
    let outcome = run.generate_loop(&model, go(), &after(None, ToolChoice::None)).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::Repeats));
}

/// By hand, calls are made as the loop makes them.
#[tokio::test]
async fn pending_calls_are_made_as_the_loop_makes_them() {
    let direct =
        plain("report", |_| async { Ok("REPORT".into()) }).edit(|_, settings| settings.return_direct = true);
    let bad = plain("bad", |_| async { Err(toolwright_core::ToolError::new("bad")) });
    let writer = toolwright_runtime::Agent::new("writer", "Writes.")
        .model(std::sync::Arc::new(ScriptedModel::repeating([Reply::text("A letter.")])))
        .handoff();
    let set = tools([add(), direct, bad, writer]);
    let call = |name: &str| ToolCall::new(name, name, json!({"x": 1, "y": 2}));
    let bare = |id: &str, name: &str| ToolCall::new(id, name, json!({}));
    let failing_fast = AssistantMessage {
        fail_fast: vec!["bad".into()],
        ..AssistantMessage::calls([bare("1", "bad"), bare("2", "bad")])
    };
    let cases = [
        AssistantMessage::calls([bare("1", "report")]),
        AssistantMessage::calls([bare("1", "report"), call("add")]),
        failing_fast,
        AssistantMessage::calls([bare("1", "transfer_to_writer")]),
    ];
    for asked in cases {
        let mut seen = Vec::new();
        for tool_calls in [ToolCalls::Loop, ToolCalls::None] {
            let ears = Ears::default();
            let run = ears.on(Run::builder(set.clone())).build().unwrap();
            let mut chat = toolwright_runtime::Conversation::new(&run)
                .with_loop(LoopOptions { tool_calls, ..LoopOptions::default() });
            chat.push(Message::user("go"));
            chat.push(Message::Assistant(asked.clone()));
            let model = ScriptedModel::repeating([Reply::text("done")]);
            let mut end = None;
            if tool_calls == ToolCalls::None {
                assert_eq!(chat.answer(&model).await.unwrap(), None);
                end = chat.make_pending().await.unwrap();
            }
            if end.is_none() {
                end = chat.answer(&model).await.unwrap();
            }
            seen.push((end, chat.messages().to_vec(), ears.words()));
        }
        let (by_loop, by_hand) = (&seen[0], &seen[1]);
        assert_eq!(by_loop, by_hand, "{asked:?}");
    }
}

async fn limited(limits: RunLimits) -> (usize, LimitKind) {
    let set = tools([add(), sleeper("slow", Duration::from_secs(3600))]);
    let run = Run::builder(set).limits(limits.clone()).build().unwrap();
    let reply = if limits.wall_time.is_some() { Reply::call("slow", json!({})) } else { asks_for_add() };
    let outcome =
        run.generate_loop(&ScriptedModel::repeating([reply]), go(), &LoopOptions::default()).await.unwrap();
    match outcome.end {
        Some(RunEnd::Limit { limit }) => (outcome.messages.len(), limit.limit),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn each_limit_ends_a_run_cleanly_with_the_conversation_so_far() {
    assert_eq!(
        limited(RunLimits { messages: Some(5), ..RunLimits::default() }).await,
        (5, LimitKind::Messages)
    );
    assert_eq!(limited(RunLimits { turns: Some(2), ..RunLimits::default() }).await, (5, LimitKind::Turns));
    assert_eq!(limited(RunLimits { tokens: Some(3), ..RunLimits::default() }).await, (4, LimitKind::Tokens));
    assert_eq!(
        limited(RunLimits { tool_calls: Some(1), ..RunLimits::default() }).await,
        (5, LimitKind::ToolCalls)
    );
    assert_eq!(
        limited(RunLimits { wall_time: Some(1.0), ..RunLimits::default() }).await,
        (3, LimitKind::WallTime)
    );
}

#[tokio::test]
async fn a_terminating_approver_ends_the_loop_without_an_error() {
    let policy = Policy::from_yaml("- {tools: '*', decision: terminate, reason: stop it}").unwrap();
    let run = Run::builder(tools([add()])).policy(policy).build().unwrap();
    let outcome = run
        .generate_loop(&ScriptedModel::repeating([asks_for_add()]), go(), &LoopOptions::default())
        .await
        .unwrap();
    assert_eq!(
        (outcome.messages.len(), outcome.end),
        (2, Some(RunEnd::Terminated { reason: "stop it".into() }))
    );
}

#[tokio::test]
async fn a_model_that_cannot_answer_is_an_error_of_its_own() {
    let run = Run::builder(tools([add()])).build().unwrap();
    let error = run.generate_loop(&ScriptedModel::new([]), go(), &LoopOptions::default()).await.unwrap_err();
    assert!(matches!(error, RunError::Model(error) if error.kind() == ModelErrorKind::Script));
}

#[tokio::test]
async fn a_recorded_conversation_plays_again_and_notices_a_difference() {
    let recorder = Recorder::new(ScriptedModel::new([asks_for_add(), Reply::text("3")]));
    let run = || Run::builder(tools([add()])).build().unwrap();
    let first = run().generate_loop(&recorder, go(), &LoopOptions::default()).await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    recorder.save(file.path()).unwrap();

    let player = Player::load(file.path()).unwrap();
    let again = run().generate_loop(&player, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!(again, first);
    let other = Player::load(file.path()).unwrap();
    let error =
        run().generate_loop(&other, vec![Message::user("stop")], &LoopOptions::default()).await.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("the messages differ"));
    // How it is to be answered is part of what is asked.
    let strict = ModelOptions { strict: Some(true), ..ModelOptions::default() };
    let how = LoopOptions { options: strict, ..LoopOptions::default() };
    let other = Player::load(file.path()).unwrap();
    let error = run().generate_loop(&other, go(), &how).await.unwrap_err();
    let told = std::error::Error::source(&error).unwrap().to_string();
    assert!(told.contains("the options differ") && told.contains("\"strict\":true"), "{told}");
}

/// A conversation that does not fit: two calls, then an error until the middle is left out.
struct Small;

impl toolwright_core::Model for Small {
    fn name(&self) -> &str {
        "test/small"
    }

    async fn generate(
        &self,
        request: toolwright_core::ModelRequest<'_>,
    ) -> Result<toolwright_core::ModelReply, toolwright_core::ModelError> {
        if request.messages.len() > 5 {
            let full = "too long".to_owned();
            return Err(toolwright_core::ModelError::new(ModelErrorKind::ContextLength, full));
        }
        let cut = request.messages.iter().any(|message| message.text().contains("left out"));
        if cut {
            let content = vec![toolwright_core::Content::text("done")];
            return Ok(AssistantMessage { content, ..AssistantMessage::default() }.into());
        }
        Ok(AssistantMessage::calls([ToolCall::new("1", "add", json!({"x": 1, "y": 2}))]).into())
    }
}

#[tokio::test]
async fn a_run_through_a_failed_request_is_recorded_heard_and_played_again() {
    let run = || {
        let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let ears = heard.clone();
        let builder = Run::builder(tools([add()])).on_delta(move |delta| {
            if let toolwright_core::ModelDelta::Text(text) = delta {
                ears.lock().unwrap().push_str(text);
            }
        });
        (builder.build().unwrap(), heard)
    };
    let recorder = Recorder::new(Small);
    let ((first, heard), (second, again)) = (run(), run());
    let outcome = first.generate_loop(&recorder, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!((outcome.completion().as_str(), heard.lock().unwrap().as_str()), ("done", "done"));
    // A request that was too long does not count as a turn: nothing was answered.
    assert_eq!(first.spent().turns, 4);
    let file = tempfile::NamedTempFile::new().unwrap();
    recorder.save(file.path()).unwrap();
    let player = Player::load(file.path()).unwrap();
    assert_eq!(second.generate_loop(&player, go(), &LoopOptions::default()).await.unwrap(), outcome);
    assert_eq!(*again.lock().unwrap(), "done");
}

/// Says that it waits, or only sleeps, for a minute.
struct Waits {
    says_so: bool,
}

impl toolwright_core::Model for Waits {
    fn name(&self) -> &str {
        "test/waits"
    }

    async fn generate(
        &self,
        _: toolwright_core::ModelRequest<'_>,
    ) -> Result<toolwright_core::ModelReply, toolwright_core::ModelError> {
        let minute = Duration::from_secs(60);
        match self.says_so {
            true => toolwright_core::wait(minute).await,
            false => tokio::time::sleep(minute).await,
        }
        Ok(AssistantMessage::default().into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_waits_for_its_vendor_does_not_work() {
    let ask = async |says_so, limits: RunLimits| {
        let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
        let end = run.generate_loop(&Waits { says_so }, go(), &LoopOptions::default()).await.unwrap().end;
        let limit = match end {
            Some(RunEnd::Limit { limit }) => Some(limit.limit),
            _ => None,
        };
        (limit, run.spent().waited)
    };
    let working = || RunLimits { working_time: Some(10.0), ..RunLimits::default() };
    assert_eq!(ask(true, working()).await, (None, 60.0));
    assert_eq!(ask(false, working()).await, (Some(LimitKind::WorkingTime), 0.0));
    let wall = RunLimits { wall_time: Some(10.0), ..RunLimits::default() };
    assert_eq!(ask(true, wall).await, (Some(LimitKind::WallTime), 10.0));
}

/// Asks two helpers at once; of these the first is `slow`.
struct Asks {
    /// Whom to keep waiting: the helper whose question this is.
    slow: &'static str,
    /// Set once the other helper was answered.
    answered: tokio::sync::Notify,
}

impl toolwright_core::Model for Asks {
    fn name(&self) -> &str {
        "test/asks"
    }

    async fn generate(
        &self,
        request: toolwright_core::ModelRequest<'_>,
    ) -> Result<toolwright_core::ModelReply, toolwright_core::ModelError> {
        use toolwright_core::{AssistantMessage, Content, ToolCall};
        let last = request.messages.last().map(Message::text).unwrap_or_default();
        if request.messages.len() == 1 && !request.tools.is_empty() {
            let ask = |id, about| ToolCall::new(id, "helper", json!({"input": about}));
            return Ok(AssistantMessage::calls([ask("1", "one"), ask("2", "two")]).into());
        }
        match request.tools.is_empty() {
            true if last == self.slow => self.answered.notified().await,
            true => self.answered.notify_one(),
            false => {}
        }
        let content = vec![Content::text(format!("done: {last}"))];
        Ok(AssistantMessage { content, ..AssistantMessage::default() }.into())
    }
}

#[tokio::test]
async fn agents_that_worked_at_the_same_time_are_played_again_in_any_order() {
    async fn work(model: std::sync::Arc<toolwright_core::DynModel>) -> Result<String, RunError> {
        let helper = toolwright_runtime::Agent::new("helper", "Helps.").as_tool();
        let run = Run::builder(tools([helper])).model(model.clone()).build().unwrap();
        Ok(run.generate_loop(&*model, go(), &LoopOptions::default()).await?.completion())
    }
    for slow in ["one", "two"] {
        let recorder =
            std::sync::Arc::new(Recorder::new(Asks { slow, answered: tokio::sync::Notify::default() }));
        let first = work(recorder.clone()).await.unwrap();
        let recorded = recorder.exchanges();
        assert_eq!(recorded.len(), 4);
        let mut turned = recorded.clone();
        turned.swap(1, 2);
        for exchanges in [recorded, turned] {
            assert_eq!(work(std::sync::Arc::new(Player::new(exchanges))).await.unwrap(), first);
        }
    }
}

/// Never answers.
struct Thinker;

impl toolwright_core::Model for Thinker {
    fn name(&self) -> &str {
        "test/thinker"
    }

    async fn generate(
        &self,
        _: toolwright_core::ModelRequest<'_>,
    ) -> Result<toolwright_core::ModelReply, toolwright_core::ModelError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_answer_is_stopped_by_cancel_and_by_the_clock() {
    let run = Run::builder(tools([add()])).build().unwrap();
    let asked = tokio::spawn({
        let run = run.clone();
        async move { run.generate_loop(&Thinker, go(), &LoopOptions::default()).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.cancel();
    assert_eq!(asked.await.unwrap().end, Some(RunEnd::Cancelled));

    let limits = RunLimits { wall_time: Some(2.0), ..RunLimits::default() };
    let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
    let outcome = run.generate_loop(&Thinker, go(), &LoopOptions::default()).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::WallTime));
}

/// Asks for a tool again and again, at a cent a turn; or at a price nobody knows.
struct Priced(ScriptedModel, Option<f64>);

impl toolwright_core::Model for Priced {
    fn name(&self) -> &str {
        "test/priced"
    }

    async fn generate(
        &self,
        request: toolwright_core::ModelRequest<'_>,
    ) -> Result<toolwright_core::ModelReply, toolwright_core::ModelError> {
        self.0.generate(request).await
    }

    fn cost(&self, _: &toolwright_core::Usage) -> Option<f64> {
        self.1
    }
}

#[tokio::test]
async fn money_is_counted_and_a_price_nobody_knows_is_no_way_around_the_limit() {
    let priced = |price| Priced(ScriptedModel::repeating([asks_for_add()]), price);
    let run = || {
        let limits = RunLimits { cost: Some(0.025), ..RunLimits::default() };
        Run::builder(tools([add()])).limits(limits).build().unwrap()
    };
    let first = run();
    let outcome = first.generate_loop(&priced(Some(0.01)), go(), &LoopOptions::default()).await.unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::Cost));
    assert_eq!((first.spent().turns, first.spent().cost), (3, 0.03));

    let second = run();
    let error = second.generate_loop(&priced(None), go(), &LoopOptions::default()).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the price of `test/priced` is not known, so its cost cannot be limited");
    assert_eq!(second.spent().turns, 1);
}

#[tokio::test]
async fn a_direct_result_is_the_answer_and_a_confidential_one_stays_between_tool_and_user() {
    let secret = plain("secret", |_| async { Ok("  4711 ".into()) }).edit(|_, settings| {
        settings.return_direct = true;
        settings.confidential = true;
    });
    let run = Run::builder(tools([add(), secret])).build().unwrap();
    let model = ScriptedModel::new([
        Reply::call("secret", json!({})),
        Reply::text("It was masked.").expecting("and now?"),
    ]);
    let mut chat = toolwright_runtime::Conversation::new(&run);
    assert_eq!(chat.say(&model, "What is it?").await.unwrap(), Some(RunEnd::Done));
    let texts: Vec<String> = chat.messages().iter().map(Message::text).collect();
    assert_eq!(texts.last().unwrap(), "4711");
    assert!(!texts[2].contains("4711"), "the model is only told that there was a result: {}", texts[2]);

    let recorder = Recorder::new(model);
    chat.say(&recorder, "and now?").await.unwrap();
    let asked = serde_json::to_string(&recorder.exchanges()).unwrap();
    assert!(asked.contains("[CONFIDENTIAL]") && !asked.contains("4711"), "{asked}");

    let model = ScriptedModel::new([
        Reply::call("secret", json!({})).and_call("add", json!({"x": 1, "y": 2})),
        Reply::text("ok").expecting("3"),
    ]);
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    assert!(
        matches!(&outcome.messages[2], Message::Tool(result) if result.is_error() && &*result.name == "secret")
    );
    assert_eq!(outcome.completion(), "ok");
}
