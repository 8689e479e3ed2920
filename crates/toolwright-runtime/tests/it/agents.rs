//! Agents, handoffs, and what keeps a loop within bounds.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolwright_core::{
    AssistantMessage, Content, DynModel, DynToolSource, ErrorKind, Message, Model, ModelError,
    ModelErrorKind, ModelReply, ModelRequest, StopReason, ToolChoice, ToolDef, ToolError, ToolOutput,
    ToolSource, ToolSpec, Toolset,
};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{
    Agent, Conversation, EventKind, LimitKind, LoopOptions, Overflow, Policy, React, Run, RunEnd, RunLimits,
    RunState, StopWhen, ToolCalls,
};
use toolwright_testkit::exchange::Recorder;

use crate::support::{Ears, add, call, plain, tools};

fn asks_for_add() -> Reply {
    Reply::call("add", json!({"x": 1, "y": 2})).with_usage(1, 1)
}

fn go() -> Vec<Message> {
    vec![Message::user("go")]
}

fn script(replies: impl IntoIterator<Item = Reply>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(replies))
}

fn submit(answer: &str) -> Reply {
    Reply::call("submit", json!({"answer": answer}))
}

fn bare_run() -> Run {
    Run::builder(Toolset::new()).build().unwrap()
}

#[tokio::test]
async fn an_agent_works_until_it_submits() {
    let mut last = submit("3");
    last.text = "Now I know.".to_owned();
    let model = script([Reply::text("Let me think."), asks_for_add(), last]);
    let agent = Agent::new("adder", "Adds.")
        .instructions("You add numbers.")
        .model(model.clone())
        .tools(tools([add()]))
        .react(React::default().go_on("Go on."));
    let outcome = agent.run(&bare_run(), vec![Message::user("1 + 2?")]).await.unwrap();
    assert_eq!((outcome.answer.as_deref(), &outcome.end), (Some("3"), &RunEnd::Done));
    assert!(outcome.messages[0].text().starts_with("You add numbers.\n\nWork step by step"));
    assert_eq!(outcome.messages[3], Message::user("Go on."));
    let Some(Message::Assistant(said)) = outcome.messages.last() else { panic!() };
    assert_eq!(
        (said.text().as_str(), said.tool_calls.len()),
        ("Now I know.\n3", 0),
        "the answer joins the words"
    );
    assert_eq!(model.offered()[0].0, ["add", "submit"]);

    let agent =
        Agent::new("adder", "Adds.").model(script([submit("3")])).react(React::default().keep_submit());
    assert_eq!(agent.run(&bare_run(), go()).await.unwrap().messages.len(), 4);
}

#[tokio::test]
async fn a_wrong_answer_is_sent_back_as_often_as_asked() {
    let run = async |answers: &[&str]| {
        let judge = |answer: String| async move { answer == "42" };
        let model = script(answers.iter().map(|answer| submit(answer)));
        let agent = Agent::new("a", "b").model(model.clone()).react(React::default().attempts(3, judge));
        let outcome = agent.run(&bare_run(), go()).await.unwrap();
        (outcome.answer.unwrap(), model.left())
    };
    assert_eq!(run(&["41", "42", "43"]).await, ("42".to_owned(), 1));
    assert_eq!(run(&["1", "2", "3", "4"]).await, ("3".to_owned(), 1), "the last attempt counts");
}

#[tokio::test]
async fn the_tool_that_submits_has_the_name_it_is_given() {
    let model = script([Reply::text("Hm."), Reply::call("report", json!({"answer": "3"}))]);
    let agent = Agent::new("a", "b")
        .tools(tools([add()]))
        .model(model.clone())
        .react(React::default().submit_as("report", "Reports what was found."));
    let outcome = agent.run(&bare_run(), go()).await.unwrap();
    assert_eq!((outcome.answer.as_deref(), &outcome.end), (Some("3"), &RunEnd::Done));
    assert_eq!(model.offered()[0].0, ["add", "report"]);
    let told: Vec<String> = outcome.messages.iter().map(Message::text).collect();
    assert!(told[0].contains("the `report` tool") && told[3].contains("the `report` tool"), "{told:?}");
    let taken = Agent::new("a", "b")
        .tools(tools([add()]))
        .model(script([]))
        .react(React::default().submit_as("add", "Submits."));
    assert!(taken.run(&bare_run(), go()).await.is_err(), "the name is taken");
}

#[tokio::test]
async fn an_agent_without_a_tool_to_submit_is_done_when_it_answers() {
    let model =
        script([Reply::call("add", json!({"x": 1, "y": 2})), Reply::text("It is 3."), Reply::text("Three.")]);
    let agent = |react: React| Agent::new("a", "b").tools(tools([add()])).model(model.clone()).react(react);
    let react = React::default().without_submit().attempts(2, |answer| async move { answer == "Three." });
    let outcome = agent(react).run(&bare_run(), go()).await.unwrap();
    assert_eq!((outcome.answer.as_deref(), outcome.completion().as_str()), (None, "Three."));
    assert_eq!(outcome.end, RunEnd::Done);
    assert_eq!(model.offered()[0].0, ["add"]);
    let told: Vec<String> = outcome.messages.iter().map(Message::text).collect();
    assert!(told[0].ends_with("answer without calling a tool.") && !told[0].contains("submit"), "{told:?}");
    assert!(told[5].starts_with("Your answer was not correct"), "{told:?}");
}

#[tokio::test]
async fn an_agent_that_never_submits_is_stopped() {
    let model = Arc::new(ScriptedModel::repeating([Reply::text("Hm.")]));
    let agent = Agent::new("a", "b").model(model).react(React::default());
    let outcome = agent.run(&bare_run(), go()).await.unwrap();
    assert!(matches!(outcome.end, RunEnd::Limit { limit } if limit.max == 100.0));
}

#[tokio::test]
async fn an_agent_is_a_tool_of_another_and_its_calls_take_the_same_path() {
    let helper =
        Agent::new("helper", "Adds numbers.").model(script([asks_for_add(), Reply::text("It is 3.")]));
    let helper = helper.tools(tools([add()]));
    let policy = Policy::from_yaml("- {tools: [helper, add], decision: approve}").unwrap();
    let ears = Ears::default();
    let said = Arc::new(Mutex::new(String::new()));
    let heard = said.clone();
    let run = ears.on(Run::builder(tools([helper.as_tool()]))).policy(policy).on_delta(move |delta| {
        if let toolwright_core::ModelDelta::Text(text) = delta {
            heard.lock().unwrap().push_str(text);
        }
    });
    let run = run.build().unwrap();
    let boss = ScriptedModel::new([
        Reply::call("helper", json!({"input": "What is 1 + 2?"})),
        Reply::text("The helper says 3.").expecting("It is 3."),
    ]);
    let outcome = run.generate_loop(&boss, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!((outcome.messages.len(), outcome.end), (4, Some(RunEnd::Done)));
    assert_eq!(*said.lock().unwrap(), "The helper says 3.", "a helper's words are not the answer");
    assert_eq!((run.spent().turns, run.spent().tool_calls), (4, 2), "all is paid from one account");
    ears.check();
    let events = ears.events();
    let parent = events.iter().find_map(|event| match &event.kind {
        EventKind::CallStarted { tool, parent, .. } if &**tool == "add" => Some(*parent),
        _ => None,
    });
    assert_eq!(parent, Some(Some(0)), "the call is recorded under the agent's");
    let inner = events.iter().filter(|event| matches!(&event.kind, EventKind::AgentMessage { span: 0, .. }));
    assert_eq!(inner.count(), 4);
}

#[tokio::test]
async fn a_refusal_and_a_limit_inside_an_agent_are_news_for_the_one_who_asked() {
    let never = Arc::new(ScriptedModel::repeating([asks_for_add()]));
    let helper = Agent::new("helper", "Adds.").model(never).tools(tools([add()]));
    let helper = helper.limits(RunLimits { turns: Some(2), ..RunLimits::default() });
    let run = Run::builder(tools([helper.as_tool()])).build().unwrap();
    let boss = ScriptedModel::new([
        Reply::call("helper", json!({"input": "x"})),
        Reply::text("I go on alone.").expecting("the limit of 2 turns is used up"),
    ]);
    let outcome = run.generate_loop(&boss, go(), &LoopOptions::default()).await.unwrap();
    let Message::Tool(result) = &outcome.messages[2] else { panic!() };
    assert_eq!(result.error.as_ref().unwrap().kind, ErrorKind::Limit);
    assert_eq!(outcome.end, Some(RunEnd::Done), "the limit was the agent's own");
}

#[tokio::test]
async fn an_agent_without_a_model_says_so() {
    let helper = Agent::new("helper", "Adds.").tools(tools([add()]));
    let run = Run::builder(tools([helper.as_tool()])).build().unwrap();
    let model = ScriptedModel::new([Reply::call("helper", json!({"input": "x"}))]);
    let error = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap_err();
    assert!(
        std::error::Error::source(&error).unwrap().to_string().contains("the agent `helper` has no model")
    );
}

#[tokio::test]
async fn a_conversation_is_handed_over_and_comes_back() {
    let french = script([asks_for_add(), Reply::text("Trois.").expecting("3")]);
    let french = Agent::new("french", "Speaks French.")
        .instructions("Speak French.")
        .model(french)
        .tools(tools([add()]));
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([french.handoff(), add()]))).build().unwrap();
    let mut hands_over = Reply::call("transfer_to_french", json!({}));
    hands_over.text = "One moment.".to_owned();
    let boss = ScriptedModel::new([hands_over, Reply::text("There you are.").expecting("has done its part")]);
    let asked = vec![Message::system("Be brief."), Message::user("1 + 2, in French")];
    let outcome = run.generate_loop(&boss, asked, &LoopOptions::default()).await.unwrap();
    let texts: Vec<String> = outcome.messages.iter().map(Message::text).collect();
    assert_eq!(
        texts,
        [
            "Be brief.",
            "1 + 2, in French",
            "One moment.",
            "Transferred to french.",
            "[french] add(x=1, y=2)",
            "[french] Result of add:\n3",
            "[french] Trois.",
            "The agent french has done its part.",
            "There you are."
        ]
    );
    ears.check();
    let added =
        ears.events().iter().filter(|event| matches!(event.kind, EventKind::MessageAdded { .. })).count();
    assert_eq!(added, 9, "each message is recorded once");
}

#[tokio::test]
async fn what_an_agent_two_levels_down_found_out_comes_back_and_what_it_was_told_does_not() {
    let look = plain("look", |_| async { Ok("THE FACT".to_owned()) });
    let replies = [Reply::call("look", json!({})), Reply::text("c done")];
    let c = Agent::new("c", "C.").model(script(replies)).tools(tools([look]));
    let b = script([Reply::call("transfer_to_c", json!({})), Reply::text("hm"), submit("b done")]);
    let b = Agent::new("b", "B.").model(b).tools(tools([c.handoff()])).react(React::default());
    let run = Run::builder(tools([b.handoff()])).build().unwrap();
    let boss = ScriptedModel::new([Reply::call("transfer_to_b", json!({})), Reply::text("a done")]);
    let outcome = run.generate_loop(&boss, go(), &LoopOptions::default()).await.unwrap();
    let texts: Vec<String> = outcome.messages.iter().skip(3).map(Message::text).collect();
    assert_eq!(
        texts,
        [
            "[b] [c] look()",
            "[b] [c] Result of look:\nTHE FACT",
            "[b] [c] c done",
            "[b] The agent c has done its part.",
            "[b] hm",
            "[b] b done",
            "The agent b has done its part.",
            "a done"
        ]
    );
}

#[tokio::test]
async fn an_agent_that_submits_stops_where_going_on_is_of_no_use() {
    let stopped = |stop| Reply { stop: Some(stop), ..Reply::text("No.") };
    let asks = async |replies: Vec<Reply>, how: LoopOptions| {
        let agent = Agent::new("a", "b").tools(tools([add()])).model(script(replies)).with_loop(how);
        let run = Run::builder(tools([])).build().unwrap();
        let outcome = agent.react(React::default()).run(&run, vec![Message::user("go")]).await.unwrap();
        (outcome.answer, outcome.end, run.spent().turns)
    };
    // A condition of its own, which holds after a call.
    let enough = LoopOptions {
        stop_when: vec![StopWhen::new(|messages| messages.len() >= 4)],
        ..LoopOptions::default()
    };
    let calls = [asks_for_add(), asks_for_add(), submit("3")];
    assert_eq!(asks(calls.to_vec(), enough).await, (None, RunEnd::Done, 1));
    // A conversation that is full, and nothing can be left out.
    let full = stopped(StopReason::ContextLength);
    assert_eq!(asks(vec![full, submit("3")], LoopOptions::default()).await, (None, RunEnd::Done, 1));
    // Three refusals in a row, and no fewer.
    let refused = || stopped(StopReason::Refusal);
    let replies =
        vec![refused(), refused(), Reply::text("Hm."), refused(), refused(), refused(), submit("3")];
    assert_eq!(asks(replies, LoopOptions::default()).await, (None, RunEnd::Done, 6));
    let replies = vec![refused(), refused(), submit("3")];
    assert_eq!(asks(replies, LoopOptions::default()).await, (Some("3".to_owned()), RunEnd::Done, 3));
}

#[tokio::test]
async fn a_continued_conversation_contains_the_earlier_results() {
    let found = |name: &str, what: &'static str| plain(name, move |_| async move { Ok(what.to_owned()) });
    let secret = |output| async move { Ok::<_, ToolError>(ToolOutput { confidential: true, ..output }) };
    let secret = ToolDef::dynamic(ToolSpec::new("secret", "Knows."), move |_, _| {
        secret(ToolOutput::text("the PIN is 1234"))
    });
    let writers = Arc::new(Recorder::new(ScriptedModel::new([
        Reply::call("lookup2", json!({})),
        Reply::call("nothing", json!({})),
        Reply::text("Here is the letter."),
    ])));
    let writer = Agent::new("writer", "Writes letters.")
        .tools(tools([found("lookup2", "CODE-88")]))
        .model(writers.clone())
        .handoff();
    let run = Run::builder(tools([found("lookup", "CODE-77"), secret, writer])).build().unwrap();
    let host = Recorder::new(ScriptedModel::new([
        Reply::call("lookup", json!({})),
        Reply::call("transfer_to_writer", json!({})),
        Reply::text("done"),
    ]));
    let asked = vec![
        Message::user("What is my PIN?"),
        Message::Assistant(AssistantMessage::calls([bare_call("0", "secret")])),
    ];
    let mut chat = toolwright_runtime::Conversation::new(&run);
    asked.into_iter().for_each(|message| chat.push(message));
    chat.make_pending().await.unwrap();
    chat.say(&host, "Write a letter with the code.").await.unwrap();
    let texts = |messages: &[Message]| messages.iter().map(Message::text).collect::<Vec<_>>();
    let shown = texts(&writers.exchanges()[0].messages);
    assert_eq!(
        shown,
        [
            "What is my PIN?",
            "secret()",
            "Result of secret:\nThe user was shown the result. Nothing more is to be done about it.",
            "[CONFIDENTIAL]",
            "Write a letter with the code.",
            "lookup()",
            "Result of lookup:\nCODE-77",
        ]
    );
    let last = texts(&host.exchanges().last().unwrap().messages);
    let (known, after) = last.split_at(last.len() - 6);
    assert!(known.last().unwrap().contains("Transferred to writer."), "{last:?}");
    assert_eq!(after[..2], ["[writer] lookup2()", "[writer] Result of lookup2:\nCODE-88"]);
    assert!(after[3].starts_with("[writer] Result of nothing:") && after[3].contains("parsing"), "{after:?}");
    assert_eq!(after[4..], ["[writer] Here is the letter.", "The agent writer has done its part."]);
}

fn bare_call(id: &'static str, name: &'static str) -> toolwright_core::ToolCall {
    toolwright_core::ToolCall::new(id, name, json!({}))
}

#[tokio::test]
async fn tools_are_switched_off_after_the_first_turn_when_asked() {
    let model = ScriptedModel::new([asks_for_add(), Reply::text("done")]);
    let how = LoopOptions {
        tool_choice: ToolChoice::Tool("add".into()),
        choice_after: Some(ToolChoice::None),
        ..LoopOptions::default()
    };
    let run = Run::builder(tools([add()])).build().unwrap();
    run.generate_loop(&model, go(), &how).await.unwrap();
    assert_eq!(
        model.offered(),
        [(vec!["add".to_owned()], ToolChoice::Tool("add".into())), (vec![], ToolChoice::None)]
    );
}

#[tokio::test]
async fn a_stop_condition_ends_the_loop_after_the_calls_were_made() {
    let how = LoopOptions {
        stop_when: vec![StopWhen::new(|messages| messages.len() >= 5)],
        ..LoopOptions::default()
    };
    let run = Run::builder(tools([add()])).build().unwrap();
    let outcome = run.generate_loop(&ScriptedModel::repeating([asks_for_add()]), go(), &how).await.unwrap();
    assert_eq!((outcome.messages.len(), outcome.end, run.ended()), (5, Some(RunEnd::Done), None));
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_told_and_then_stopped() {
    let limits = RunLimits { repeats: Some(2), ..RunLimits::default() };
    let run = Run::builder(tools([add()])).limits(limits.clone()).build().unwrap();
    let outcome = run
        .generate_loop(&ScriptedModel::repeating([asks_for_add()]), go(), &LoopOptions::default())
        .await
        .unwrap();
    assert!(matches!(outcome.end, Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::Repeats));
    let Message::Tool(told) = &outcome.messages[6] else { panic!() };
    assert!(told.error.as_ref().unwrap().message.contains("the same 2 times in a row"));
    assert_eq!(run.spent().tool_calls, 2);

    let other = Reply::call("add", json!({"x": 2, "y": 2}));
    let replies = [asks_for_add(), asks_for_add(), asks_for_add(), other, asks_for_add(), Reply::text("ok")];
    let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
    let outcome =
        run.generate_loop(&ScriptedModel::new(replies), go(), &LoopOptions::default()).await.unwrap();
    assert_eq!(outcome.end, Some(RunEnd::Done), "one that changes its mind goes on");
}

/// Whoever asks step by step, each time in another process, is told and stopped like the loop.
#[tokio::test]
async fn a_model_that_repeats_itself_step_by_step_is_told_and_then_stopped() {
    let limits = RunLimits { repeats: Some(2), ..RunLimits::default() };
    let builder = || Run::builder(tools([add()])).limits(limits.clone());
    let model = || ScriptedModel::repeating([asks_for_add()]);
    let run = builder().build().unwrap();
    let by_loop = run.generate_loop(&model(), go(), &LoopOptions::default()).await.unwrap();

    let model = model();
    let mut state = RunState { messages: go(), ..RunState::new("steps") };
    let end = loop {
        let run = builder().resume(&state).build().unwrap();
        let how = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
        let mut chat = Conversation::resume(&run, &state).with_loop(how);
        let end = chat.answer(&model).await.unwrap();
        if end.is_some() {
            state = chat.state().unwrap();
            break end;
        }
        chat.make_pending().await.unwrap();
        state = chat.state().unwrap();
        assert!(state.messages.len() < 20);
    };
    assert_eq!((&state.messages, &end), (&by_loop.messages, &by_loop.end));
    // The next question is another one.
    state.messages.truncate(state.messages.len() - 1);
    state.messages.push(Message::user("again"));
    let run = builder().resume(&state).build().unwrap();
    let mut chat = Conversation::resume(&run, &state);
    let end = chat.answer(&ScriptedModel::new([asks_for_add(), Reply::text("ok")])).await.unwrap();
    assert_eq!(end, Some(RunEnd::Done));
}

/// Takes no more than so many messages.
struct Small {
    most: usize,
    says_so: bool,
    script: ScriptedModel,
}

impl Model for Small {
    fn name(&self) -> &str {
        "test/small"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        if request.messages.len() <= self.most {
            return self.script.generate(request).await;
        }
        let said = self.says_so;
        if !said {
            return Err(ModelError::new(ModelErrorKind::ContextLength, "the prompt is too long"));
        }
        let mut reply = ModelReply::from(toolwright_core::AssistantMessage::default());
        reply.stop = StopReason::ContextLength;
        Ok(reply)
    }
}

#[tokio::test]
async fn a_conversation_that_no_longer_fits_goes_on_without_its_middle() {
    let replies = || (0..8).map(|_| asks_for_add()).chain([Reply::text("done").expecting("3")]);
    for says_so in [false, true] {
        let model = Small { most: 9, says_so, script: ScriptedModel::new(replies()) };
        let ears = Ears::default();
        let run = ears.on(Run::builder(tools([add()]))).build().unwrap();
        let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
        assert_eq!(
            (outcome.messages.len(), outcome.completion().as_str()),
            (18, "done"),
            "the record is whole"
        );
        assert!(ears.events().iter().any(|event| matches!(event.kind, EventKind::MiddleLeftOut { .. })));

        let model = Small { most: 9, says_so, script: ScriptedModel::new(replies()) };
        let how = LoopOptions { overflow: Overflow::Stop, ..LoopOptions::default() };
        let run = Run::builder(tools([add()])).build().unwrap();
        let outcome = run.generate_loop(&model, go(), &how).await;
        assert_eq!(outcome.is_err(), !says_so);
    }
    // One question that is too long by itself cannot be helped.
    let model = Small { most: 0, says_so: false, script: ScriptedModel::new([]) };
    assert!(bare_run().generate_loop(&model, go(), &LoopOptions::default()).await.is_err());
}

/// Keeps what it was sent.
struct Keeper {
    script: ScriptedModel,
    sent: Mutex<Vec<Vec<Message>>>,
}

impl Model for Keeper {
    fn name(&self) -> &str {
        "test/keeper"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.sent.lock().unwrap().push(request.messages.to_vec());
        self.script.generate(request).await
    }
}

#[tokio::test]
async fn old_screenshots_are_folded_for_the_model_and_kept_in_the_record() {
    let spec = ToolSpec::new("screenshot", "Takes one.");
    let shot = ToolDef::dynamic(spec, |_, _| async { Content::image("image/png", b"pixels") });
    let shot = shot.with_model_input(|index, total, content| match index + 1 == total {
        true => content.to_vec(),
        false => vec![Content::text("[an older screenshot]")],
    });
    let look = || Reply::call("screenshot", json!({}));
    let other = Reply::call("other", json!({}));
    let script = ScriptedModel::new([look(), look(), other, Reply::text("seen")]);
    let model = Keeper { script, sent: Mutex::default() };
    let run = Run::builder(tools([shot, plain("other", |_| async { Ok("x".into()) })])).build().unwrap();
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    let pictures = |messages: &[Message]| {
        messages.iter().flat_map(Message::content).filter(|block| matches!(block, Content::Image(_))).count()
    };
    let sent: Vec<usize> = model.sent.lock().unwrap().iter().map(|messages| pictures(messages)).collect();
    assert_eq!(
        (sent, pictures(&outcome.messages)),
        (vec![0, 1, 1, 1], 2),
        "calls of other tools change nothing"
    );
}

#[tokio::test]
async fn an_agent_has_the_tools_of_its_sources() {
    let agent = |replies: Vec<Reply>| {
        Agent::new("helper", "Helps.")
            .source(tools([add()]))
            .model(script(replies))
            .limits(RunLimits { turns: Some(5), ..RunLimits::default() })
    };
    let sum = || vec![asks_for_add(), Reply::text("It is 3.").expecting("3")];
    let alone = agent(sum()).run(&bare_run(), go()).await.unwrap();
    assert_eq!(alone.completion(), "It is 3.");
    let run = Run::builder(tools([agent(sum()).as_tool()])).build().unwrap();
    let asked = run.call(call("helper", json!({"input": "1 + 2?"}))).await.unwrap();
    assert_eq!(asked.to_text(), "It is 3.");
    let run = Run::builder(tools([agent(sum()).handoff()])).build().unwrap();
    let model = ScriptedModel::new([Reply::call("transfer_to_helper", json!({})), Reply::text("Thanks.")]);
    let outcome = run.generate_loop(&model, go(), &LoopOptions::default()).await.unwrap();
    assert!(outcome.messages.iter().any(|message| message.text() == "[helper] It is 3."), "{outcome:?}");
}

#[tokio::test]
async fn several_agents_go_on_one_after_the_other() {
    let helper = |name: &'static str, words: &'static str, after: &'static str| {
        let reply = Reply::text(words).expecting(after);
        Agent::new(name, "Helps.").model(script([reply])).handoff()
    };
    let set =
        tools([helper("one", "First.", "go"), helper("two", "Second.", "The agent one has done its part.")]);
    let run = Run::builder(set).build().unwrap();
    let both = Reply::call("transfer_to_one", json!({})).and_call("transfer_to_two", json!({}));
    let boss = ScriptedModel::new([both, Reply::text("Done.").expecting("The agent two has done its part.")]);
    let outcome = run.generate_loop(&boss, go(), &LoopOptions::default()).await.unwrap();
    let said: Vec<String> = outcome.messages.iter().map(Message::text).collect();
    assert!(
        said.contains(&"[one] First.".to_owned()) && said.contains(&"[two] Second.".to_owned()),
        "{said:?}"
    );
}

#[tokio::test]
async fn an_agent_that_submits_makes_its_calls_whatever_its_loop_says() {
    let how = LoopOptions { tool_calls: ToolCalls::None, ..LoopOptions::default() };
    let agent = Agent::new("a", "b").model(script([submit("42")])).with_loop(how).react(React::default());
    assert_eq!(agent.run(&bare_run(), go()).await.unwrap().answer.as_deref(), Some("42"));
}

#[tokio::test]
async fn a_time_out_beyond_all_time_is_none() {
    let tool = plain("slow", |_| async { Ok("done".into()) });
    let tool = tool.edit(|_, settings| settings.timeout = Some(std::time::Duration::MAX));
    let run = Run::builder(tools([tool])).build().unwrap();
    let result = run.call(toolwright_core::ToolCall::new("1", "slow", json!({}))).await.unwrap();
    assert_eq!(result.to_text(), "done");
}

/// Answers once, then never, or not at all.
struct Stuck {
    breaks: bool,
    asked: std::sync::atomic::AtomicU32,
}

impl Model for Stuck {
    fn name(&self) -> &str {
        "test/stuck"
    }

    async fn generate(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let first = self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        if first {
            let mut said = toolwright_core::AssistantMessage::calls([toolwright_core::ToolCall::new(
                "1",
                "add",
                json!({"x": 1, "y": 2}),
            )]);
            said.content = vec![Content::text("I add.")];
            return Ok(said.into());
        }
        match self.breaks {
            true => Err(ModelError::new(ModelErrorKind::Request, "no more")),
            false => std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn an_agent_that_was_handed_the_conversation_stops_with_it_and_leaves_what_it_said() {
    for breaks in [false, true] {
        let stuck = Arc::new(Stuck { breaks, asked: Default::default() });
        let agent = Agent::new("adder", "Adds.").model(stuck.clone()).tools(tools([add()]));
        let ears = Ears::default();
        let run = ears.on(Run::builder(tools([agent.handoff()]))).build().unwrap();
        let model = ScriptedModel::new([Reply::call("transfer_to_adder", json!({}))]);
        let mut chat = toolwright_runtime::Conversation::new(&run);
        let stopper = chat.stopper();
        let stop = async {
            while stuck.asked.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            stopper.stop();
        };
        let (end, ()) = tokio::join!(chat.say(&model, "go"), stop);
        match breaks {
            true => assert!(end.is_err()),
            false => assert_eq!(end.unwrap(), Some(RunEnd::Cancelled)),
        }
        assert!(run.ended().is_none(), "the run goes on");
        let texts: Vec<String> = chat.messages().iter().map(Message::text).collect();
        assert!(texts.iter().any(|text| text.starts_with("[adder] I add.")), "{texts:?}");
        let mut recorded = ears.events().into_iter().filter_map(|event| match event.kind {
            EventKind::MessageAdded { message } => Some(message.text()),
            _ => None,
        });
        assert!(recorded.any(|text| text.starts_with("[adder] I add.")));
    }
}

/// A helper who may ask the same team, and so on.
#[derive(Clone)]
struct Team {
    hands_over: bool,
}

impl ToolSource for Team {
    fn name(&self) -> &str {
        "team"
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        let helper = Agent::new("helper", "Helps.").source(self.clone());
        let helper = if self.hands_over { helper.handoff() } else { helper.as_tool() };
        Ok(Toolset::new().with(helper)?)
    }
}

/// Always passes the work on; remembers what it was told last, by how much had been said.
#[derive(Default)]
struct Lazy {
    refused: Mutex<Vec<String>>,
}

impl Model for Lazy {
    fn name(&self) -> &str {
        "test/lazy"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let refused = request.messages.iter().find_map(|message| match message {
            Message::Tool(result) if result.is_error() => Some(result.to_text()),
            _ => None,
        });
        if let Some(text) = refused {
            self.refused.lock().unwrap().push(text);
            return Ok(ModelReply::from(AssistantMessage {
                content: vec![Content::text("I give up.")],
                ..AssistantMessage::default()
            }));
        }
        let handed_back = request.messages.iter().any(|message| message.text().contains("done its part"));
        let tool = &request.tools[0].name;
        let arguments = match &**tool {
            "helper" if request.messages.len() > 2 => return Ok(text_reply()),
            "helper" => json!({"input": "you do it"}),
            _ if handed_back => return Ok(text_reply()),
            _ => json!({}),
        };
        Ok(AssistantMessage::calls([toolwright_core::ToolCall::new("1", tool.clone(), arguments)]).into())
    }
}

fn text_reply() -> ModelReply {
    AssistantMessage { content: vec![Content::text("Fine.")], ..AssistantMessage::default() }.into()
}

/// On a thread with the stack of a worker, whatever the test harness gives its own.
#[test]
fn agents_that_pass_the_work_on_for_ever_meet_a_limit_and_not_the_end_of_the_stack() {
    for (hands_over, max_depth) in [(false, 16), (true, 16), (false, 200), (true, 200)] {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_stack_size(2 << 20).enable_all().build().unwrap();
        let lazy = Arc::new(Lazy::default());
        let model = lazy.clone();
        let work = async move {
            let run = Run::builder(Toolset::new())
                .source(Team { hands_over })
                .model(model.clone())
                .max_depth(max_depth)
                .build()
                .unwrap();
            let outcome = run.generate_loop(&*model, go(), &LoopOptions::default()).await.unwrap();
            (outcome.end, run.spent().turns)
        };
        let (end, turns) = runtime.block_on(async { tokio::spawn(work).await.unwrap() });
        assert_eq!(end, Some(RunEnd::Done));
        // Each level of agents takes two turns, and there is one more around them all.
        assert_eq!(turns, 2 * (u64::from(max_depth) + 2), "handing over: {hands_over}");
        let refused = lazy.refused.lock().unwrap();
        assert!(refused[0].contains(&format!("{max_depth} deep")), "{refused:?}");
    }
}

#[tokio::test]
async fn an_agent_that_submits_ends_some_day_whatever_else_bounds_it() {
    let agent = |limits: RunLimits| {
        let model = Arc::new(ScriptedModel::repeating([Reply::text("Hm.").with_usage(1, 1)]));
        Agent::new("a", "b").model(model).react(React::default()).limits(limits)
    };
    let spent = RunLimits { tokens: Some(1_000_000), ..RunLimits::default() };
    for (limits, turns) in [(spent, 100.0), (RunLimits { turns: Some(7), ..RunLimits::default() }, 7.0)] {
        let end = agent(limits).run(&bare_run(), go()).await.unwrap().end;
        let RunEnd::Limit { limit } = end else { panic!("{end:?}") };
        assert_eq!((limit.limit, limit.max), (LimitKind::Turns, turns));
    }
}

#[tokio::test]
async fn an_agent_outside_any_run_is_told_so() {
    let agent = Agent::new("a", "b").model(script([Reply::text("Hm.")]));
    let error = agent.run_within(&toolwright_core::ToolContext::detached(), go()).await.unwrap_err();
    assert!(error.message().contains("belongs to no run") && !error.message().contains("Handle"), "{error}");
}

#[tokio::test]
async fn models_sources_and_approvers_are_taken_behind_pointers() {
    let model: Arc<DynModel> = script([asks_for_add(), Reply::text("3")]);
    let recorder = Recorder::new(model);
    let source: Box<DynToolSource> = Box::new(tools([add()]));
    let approver: Box<toolwright_core::DynApprover> = Box::new(Arc::new(Nods));
    let run = Run::builder(Toolset::new()).source(Arc::new(source)).approver(approver).build().unwrap();
    let outcome = run.generate_loop(&recorder, go(), &LoopOptions::default()).await.unwrap();
    assert_eq!((outcome.completion().as_str(), recorder.exchanges().len()), ("3", 2));
    assert_eq!(outcome.messages[2].text(), "3");
}

/// Allows everything.
struct Nods;

impl toolwright_core::Approver for Nods {
    fn name(&self) -> &str {
        "nods"
    }

    async fn decide(&self, _: &toolwright_core::ApprovalRequest<'_>) -> toolwright_core::Decision {
        toolwright_core::Decision::Approve
    }
}
