//! Approval, through whole calls.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_core::{
    Annotations, ApprovalRequest, Approver, CallView, Decision, ErrorKind, Message, ToolDef, ToolError,
    ToolResult, ToolSpec, WorkspacePath,
};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{EventKind, LoopOptions, Policy, Run, RunEnd, RunLimits};

use crate::support::{Ears, add, call, plain, sleeper, tools};

/// Answers as told, and remembers what it was shown.
#[derive(Clone)]
struct Person {
    answer: Decision,
    shown: Arc<Mutex<Vec<(Value, CallView)>>>,
}

impl Person {
    fn who_says(answer: Decision) -> Self {
        Person { answer, shown: Arc::default() }
    }
}

impl Approver for Person {
    fn name(&self) -> &str {
        "human"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.shown.lock().unwrap().push((request.call.arguments.clone(), request.view.clone()));
        self.answer.clone()
    }
}

async fn sum(
    policy: &str,
    person: Option<Person>,
    arguments: Value,
) -> (Result<ToolResult, ToolError>, Ears, Run) {
    let ears = Ears::default();
    let mut builder = ears.on(Run::builder(tools([add()])).policy(Policy::from_yaml(policy).unwrap()));
    if let Some(person) = person {
        builder = builder.approver(person);
    }
    let run = builder.build().unwrap();
    let result = run.call(call("add", arguments)).await;
    ears.check();
    (result, ears, run)
}

fn decisions(ears: &Ears) -> Vec<(String, String)> {
    let decided = |kind: EventKind| match kind {
        EventKind::CallDecided { approver, decision, .. } => Some((approver, decision)),
        _ => None,
    };
    ears.events().into_iter().filter_map(|event| decided(event.kind)).collect()
}

fn pair(approver: &str, decision: &str) -> Vec<(String, String)> {
    vec![(approver.to_owned(), decision.to_owned())]
}

#[tokio::test]
async fn rules_approve_reject_and_change_calls() {
    let arguments = json!({"x": 1, "y": 2});
    let (result, ears, _) = sum("- {tools: add, decision: approve}", None, arguments.clone()).await;
    assert_eq!((result.unwrap().to_text().as_str(), decisions(&ears)), ("3", pair("policy", "approve")));
    let (result, _, _) =
        sum("- {tools: add, decision: reject, reason: not today}", None, arguments.clone()).await;
    let error = result.unwrap().error.unwrap();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Approval, "not today"));
    let (result, ears, _) =
        sum("- {tools: add, decision: modify, set: {y: 40}}", None, arguments.clone()).await;
    assert_eq!((result.unwrap().to_text().as_str(), decisions(&ears)), ("41", pair("policy", "modify")));
    let (result, _, _) = sum("- {tools: add, decision: modify, set: {y: none}}", None, arguments).await;
    assert_eq!(
        result.unwrap().error.unwrap().kind,
        ErrorKind::Parsing,
        "changed arguments are validated again"
    );
}

#[tokio::test]
async fn a_person_is_asked_about_what_the_rules_made_of_the_call() {
    let given = json!({"x": 1, "y": 500});
    let careful = add().edit(|_, settings| settings.require_confirmation = Some(true));
    for (tool, policy) in [
        (careful, "- {tools: add, decision: modify, set: {y: '1'}}"),
        (add(), "- {tools: add, decision: modify, set: {y: 1}}\n- {tools: add, decision: ask}"),
    ] {
        let (person, ears) = (Person::who_says(Decision::Approve), Ears::default());
        let builder = Run::builder(tools([tool])).policy(Policy::from_yaml(policy).unwrap());
        let run = ears.on(builder.approver(person.clone())).build().unwrap();
        assert_eq!(run.call(call("add", given.clone())).await.unwrap().to_text(), "2", "{policy}");
        assert_eq!(person.shown.lock().unwrap()[0].0, json!({"x": 1, "y": 1}));
        assert_eq!(decisions(&ears), [pair("policy", "modify"), pair("human", "approve")].concat());
        let used = |kind: EventKind| match kind {
            EventKind::CallDecided { arguments, .. } => arguments,
            _ => None,
        };
        let used = ears.events().into_iter().rev().find_map(|event| used(event.kind));
        assert_eq!(used, Some(json!({"x": 1, "y": 1})), "the last decision says what ran");
    }
    let both =
        "- {tools: add, decision: modify, set: {x: 10}}\n- {tools: a*, decision: modify, set: {x: 5, y: 20}}";
    assert_eq!(sum(both, None, given.clone()).await.0.unwrap().to_text(), "30");
    let person = Person::who_says(Decision::Approve);
    let wrong = "- {tools: add, decision: modify, set: {y: none}}\n- {tools: add, decision: ask}";
    let (result, _, _) = sum(wrong, Some(person.clone()), given.clone()).await;
    assert_eq!(result.unwrap().error.unwrap().kind, ErrorKind::Parsing);
    assert!(person.shown.lock().unwrap().is_empty(), "nobody is asked about a call that cannot run");
    let refused = "- {tools: add, decision: modify, set: {y: 1}}\n- {tools: add, decision: reject}";
    assert_eq!(decisions(&sum(refused, None, given).await.1), pair("policy", "reject"));
}

#[tokio::test]
async fn people_are_asked_and_nobody_means_no() {
    let arguments = json!({"x": "1", "y": 2});
    let (result, _, _) = sum("[]", None, arguments.clone()).await;
    assert_eq!(result.unwrap().error.unwrap().message, "`add` needs approval, and there is nobody to ask");
    let person = Person::who_says(Decision::Approve);
    let (result, ears, _) =
        sum("- {tools: add, decision: ask}", Some(person.clone()), arguments.clone()).await;
    assert_eq!((result.unwrap().to_text().as_str(), decisions(&ears)), ("3", pair("human", "approve")));
    assert_eq!(
        person.shown.lock().unwrap()[0].0,
        json!({"x": 1, "y": 2}),
        "the approver sees validated arguments"
    );
    let changes = Person::who_says(Decision::Modify { arguments: json!({"x": 10, "y": 20}) });
    assert_eq!(sum("[]", Some(changes), arguments.clone()).await.0.unwrap().to_text(), "30");
    let passes_on = Person::who_says(Decision::Escalate);
    let (result, ears, _) = sum("[]", Some(passes_on), arguments).await;
    assert_eq!(result.unwrap().error.unwrap().kind, ErrorKind::Approval);
    assert_eq!(decisions(&ears), [pair("human", "escalate"), pair("policy", "reject")].concat());
}

/// As in Inspect: the entries of an `approvers:` file are gone through until one decides, and the end of them
/// is no.
#[tokio::test]
async fn an_approvers_file_ends_in_a_refusal() {
    let human = "{name: human, tools: add, choices: [approve, escalate]}";
    let auto = |decision: &str| format!("{{name: auto, tools: '*', decision: {decision}}}");
    let file = |entries: &[&str]| format!("approvers: [{}]", entries.join(", "));
    let check =
        async |policy: String, says: Decision, wanted: Result<&str, &str>, decided: &[(&str, &str)]| {
            let arguments = json!({"x": 1, "y": 2});
            let (result, ears, _) = sum(&policy, Some(Person::who_says(says)), arguments).await;
            let result = result.unwrap();
            let outcome = match &result.error {
                None => Ok(result.to_text()),
                Some(error) => Err(error.message.clone()),
            };
            assert_eq!(outcome, wanted.map(str::to_owned).map_err(str::to_owned), "{policy}");
            let decided: Vec<_> = decided.iter().flat_map(|(who, what)| pair(who, what)).collect();
            assert_eq!(decisions(&ears), decided, "{policy}");
        };
    let none = Err("no approver of the policy decides about this call");
    let refused = ("policy", "reject");
    // Nobody is asked where no entry is about the call, or all pass it on.
    check(file(&["{name: human, tools: other}"]), Decision::Approve, none, &[refused]).await;
    check(file(&[&auto("escalate")]), Decision::Approve, none, &[refused]).await;
    check(file(&[]), Decision::Approve, none, &[refused]).await;
    // A person may pass it on to the next entry.
    let passed = ("human", "escalate");
    check(file(&[human]), Decision::Escalate, none, &[passed, refused]).await;
    let on = file(&[human, &auto("escalate"), &auto("approve")]);
    check(on.clone(), Decision::Escalate, Ok("3"), &[passed, ("policy", "approve")]).await;
    let off = file(&[human, &auto("reject")]);
    let reason = Err("the policy does not allow this call");
    check(off, Decision::Escalate, reason, &[passed, refused]).await;
    check(on, Decision::Approve, Ok("3"), &[("human", "approve")]).await;
    // What is not offered lets nothing run.
    let mild = file(&["{name: human, tools: add, choices: [reject]}", &auto("approve")]);
    let reason = Err("the policy does not offer to approve this call");
    check(mild.clone(), Decision::Approve, reason, &[("human", "reject")]).await;
    let reason = Err("the policy does not offer to escalate this call");
    check(mild.clone(), Decision::Escalate, reason, &[("human", "reject")]).await;
    let unnamed = file(&["{name: human, tools: add}", &auto("approve")]);
    let nobody = Err("nobody granted approval for this call");
    check(unnamed, Decision::Escalate, nobody, &[passed, refused]).await;
    check(mild, Decision::reject("no"), Err("no"), &[("human", "reject")]).await;
}

/// Inspect's patterns see the arguments as the model ordered them; here no order gets a call past an entry
/// that refuses it.
#[tokio::test]
async fn an_approvers_file_refuses_whatever_the_order_of_arguments() {
    let entry = |tools: &str, decision: &str| json!({"name": "auto", "tools": tools, "decision": decision});
    for pattern in ["add(x=1, y=2", "add(y=2", "add(*y=2*x=1", "*x=1*y=2*"] {
        let file = json!({"approvers": [entry(pattern, "reject"), entry("*", "approve")]});
        let (result, ..) = sum(&file.to_string(), None, json!({"y": 2, "x": 1})).await;
        assert_eq!(result.unwrap().error.unwrap().kind, ErrorKind::Approval, "{pattern}");
        let (result, ..) = sum(&file.to_string(), None, json!({"x": 3, "y": 3})).await;
        assert_eq!(result.unwrap().to_text(), "6", "{pattern}");
    }
}

#[tokio::test]
async fn a_tool_that_wants_a_word_gets_one_also_after_the_call_was_passed_on() {
    let careful = add().edit(|_, settings| settings.require_confirmation = Some(true));
    let policy =
        "approvers: [{name: human, tools: add, choices: [approve, escalate]}, {name: auto, tools: '*'}]";
    let (person, ears) = (Person::who_says(Decision::Escalate), Ears::default());
    let builder = Run::builder(tools([careful])).policy(Policy::from_yaml(policy).unwrap());
    let run = ears.on(builder.approver(person)).build().unwrap();
    let result = run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Approval);
    let passed = pair("human", "escalate");
    assert_eq!(decisions(&ears), [passed.clone(), passed, pair("policy", "reject")].concat());
}

#[tokio::test]
async fn a_call_that_one_approver_passes_on_is_decided_by_the_next() {
    let junior = Person::who_says(Decision::Escalate);
    for (answer, text) in [(Decision::Approve, Some("3")), (Decision::reject("no"), None)] {
        let (senior, never) = (Person::who_says(answer.clone()), Person::who_says(Decision::Approve));
        let ears = Ears::default();
        let builder = Run::builder(tools([add()])).approver(junior.clone()).approver(senior.clone());
        let run = ears.on(builder.approver(never.clone())).build().unwrap();
        let result = run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap();
        assert_eq!(text, (!result.is_error()).then(|| result.to_text()).as_deref());
        let wanted = [pair("human", "escalate"), pair("human", answer.as_str())].concat();
        assert_eq!(decisions(&ears), wanted);
        let asked = [&junior, &senior, &never].map(|person| person.shown.lock().unwrap().len());
        assert_eq!(asked[1..], [1, 0], "who comes after the one who decided is not asked");
    }
    assert_eq!(junior.shown.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn bad_calls_never_reach_the_approver() {
    let person = Person::who_says(Decision::Approve);
    sum("[]", Some(person.clone()), json!({"x": "a"})).await.0.unwrap();
    assert!(person.shown.lock().unwrap().is_empty());
}

#[tokio::test]
async fn terminating_ends_the_run_without_calling_it_a_failure() {
    let (result, ears, run) =
        sum("- {tools: add, decision: terminate, reason: enough}", None, json!({"x": 1, "y": 2})).await;
    assert!(result.unwrap_err().is_fatal());
    assert_eq!(run.ended(), Some(RunEnd::Terminated { reason: "enough".into() }));
    assert_eq!(decisions(&ears), pair("policy", "terminate"));
}

/// A flow may catch everything, and a client may not know.
#[tokio::test]
async fn a_run_that_was_ended_makes_no_more_calls() {
    let policy =
        "[{tools: add, when: {x: 1}, decision: terminate, reason: enough}, {tools: '*', decision: approve}]";
    let run = Run::builder(tools([add()])).policy(Policy::from_yaml(policy).unwrap()).build().unwrap();
    assert_eq!(run.call(call("add", json!({"x": 2, "y": 2}))).await.unwrap().to_text(), "4");
    assert!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap_err().is_fatal());
    let after = run.call(call("add", json!({"x": 2, "y": 2}))).await.unwrap_err();
    assert!(after.is_fatal() && after.message().contains("enough"), "{after}");

    let limits = RunLimits { turns: Some(0), ..RunLimits::default() };
    let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
    let model = ScriptedModel::new([Reply::text("two words")]);
    run.generate_loop(&model, vec![Message::user("hi")], &LoopOptions::default()).await.unwrap();
    assert!(matches!(run.ended(), Some(RunEnd::Limit { .. })), "{:?}", run.ended());
    let after = run.call(call("add", json!({"x": 2, "y": 2}))).await.unwrap();
    assert_eq!(after.error.map(|error| error.kind), Some(ErrorKind::Limit));
}

#[tokio::test]
async fn an_approver_without_a_policy_is_asked_about_everything_and_no_policy_approves() {
    let person = Person::who_says(Decision::reject("no"));
    let run = Run::builder(tools([add()])).approver(person).build().unwrap();
    assert!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().is_error());
    let free = Run::builder(tools([add()])).build().unwrap();
    assert!(!free.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().is_error());
}

#[tokio::test]
async fn viewers_show_the_call_and_a_broken_one_refuses_it_under_a_policy_only() {
    let good = add().with_viewer(|_| Ok(CallView::markdown("add", "{{x}} + {{y}}")));
    let person = Person::who_says(Decision::Approve);
    let run = Run::builder(tools([good])).approver(person.clone()).build().unwrap();
    run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap();
    assert_eq!(person.shown.lock().unwrap()[0].1.call.as_ref().unwrap().content, "1 + 2");

    let broken = || add().with_viewer(|_| Err(ToolError::new("viewer broke")));
    let run = Run::builder(tools([broken()])).approver(Person::who_says(Decision::Approve)).build().unwrap();
    let error = run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().error.unwrap();
    assert!(error.kind == ErrorKind::Approval && error.message.contains("viewer broke"));
    let run = Run::builder(tools([broken()])).build().unwrap();
    assert_eq!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().to_text(), "3");
}

/// Breaks, at once or a moment later.
struct Panics {
    at_once: bool,
}

impl Approver for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    #[expect(clippy::panic, reason = "that is what it is for")]
    async fn decide(&self, _: &ApprovalRequest<'_>) -> Decision {
        if self.at_once {
            panic!("at once")
        }
        tokio::task::yield_now().await;
        panic!("later")
    }
}

#[tokio::test]
async fn a_panic_of_who_shows_or_decides_refuses_the_call_and_nothing_else() {
    let shows = add().with_viewer(|_| panic!("viewer"));
    let yes = || Person::who_says(Decision::Approve);
    let ears = Ears::default();
    let runs = [
        ears.on(Run::builder(tools([shows])).approver(yes())),
        Run::builder(tools([add()])).approver(Panics { at_once: true }).approver(yes()),
        Run::builder(tools([add()])).approver(Panics { at_once: false }).approver(yes()),
    ];
    for run in runs {
        let run = run.build().unwrap();
        for _ in 0..2 {
            let error = run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().error.unwrap();
            assert!(error.kind == ErrorKind::Approval && error.message.contains("panicked"), "{error:?}");
        }
        assert!(run.ended().is_none());
    }
    ears.check();
    let rewrites = add().with_model_input(|_, _, _| panic!("model input"));
    let run = Run::builder(tools([rewrites])).build().unwrap();
    let model = toolwright_models::ScriptedModel::new([
        toolwright_models::Reply::call("add", json!({"x": 1, "y": 2})),
        toolwright_models::Reply::text("3"),
    ]);
    let go = vec![toolwright_core::Message::user("go")];
    let error = run.generate_loop(&model, go, &toolwright_runtime::LoopOptions::default()).await.unwrap_err();
    let told = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(format!("{error} {told}").contains("panicked: model input"), "{error} {told}");
}

#[tokio::test]
async fn the_cautious_policy_lets_harmless_tools_pass() {
    let reads: ToolDef = plain("reads", |_| async { Ok("read".into()) });
    let reads = reads.with_annotations(Annotations { read_only: Some(true), ..Annotations::default() });
    let run = Run::builder(tools([reads, add()])).policy(Policy::cautious()).build().unwrap();
    assert_eq!(run.call(call("reads", json!({}))).await.unwrap().to_text(), "read");
    assert!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().is_error());
}

/// Never answers.
struct Silent;

impl Approver for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    async fn decide(&self, _: &ApprovalRequest<'_>) -> Decision {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_approval_ends_on_cancel_and_on_the_clock_but_is_not_working_time() {
    let limited = |limits: RunLimits| {
        let ears = Ears::default();
        (ears.on(Run::builder(tools([add()])).approver(Silent).limits(limits)).build().unwrap(), ears)
    };
    let ask =
        |run: Run| tokio::spawn(async move { run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap() });

    let (run, ears) = limited(RunLimits { working_time: Some(1.0), ..RunLimits::default() });
    let asked = ask(run.clone());
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(!asked.is_finished(), "a minute of thinking is not a second of working");
    assert!(run.cancel_call("id-add"));
    assert_eq!(asked.await.unwrap().error.unwrap().kind, ErrorKind::Cancelled);
    ears.check();

    let (run, ears) = limited(RunLimits { wall_time: Some(5.0), ..RunLimits::default() });
    assert_eq!(ask(run).await.unwrap().error.unwrap().kind, ErrorKind::Limit);
    ears.check();

    let (run, ears) = limited(RunLimits::default());
    let asked = ask(run.clone());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    run.cancel();
    assert_eq!(asked.await.unwrap().error.unwrap().kind, ErrorKind::Cancelled);
    ears.check();
}

/// A sandbox that runs nothing, and says whether it isolates.
struct Named(bool);

impl toolwright_core::Sandbox for Named {
    fn kind(&self) -> &str {
        "named"
    }

    fn isolates(&self) -> bool {
        self.0
    }

    async fn exec(
        &self,
        _: toolwright_core::ExecRequest,
    ) -> Result<toolwright_core::ExecResult, toolwright_core::ToolError> {
        Ok(toolwright_core::ExecResult::default())
    }

    async fn write_file(&self, _: &str, _: &[u8]) -> Result<(), toolwright_core::ToolError> {
        Ok(())
    }

    async fn read_file(&self, _: &str) -> Result<Vec<u8>, toolwright_core::ToolError> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_tool_is_no_safer_than_the_sandbox_it_is_given() {
    for isolates in [true, false] {
        let tool = crate::support::plain("shell", |_| async { Ok("ran".to_owned()) }).with_sandboxed(true);
        let run = Run::builder(crate::support::tools([tool]))
            .policy(Policy::cautious())
            .sandbox("default", std::sync::Arc::new(Named(isolates)))
            .build()
            .unwrap();
        let result =
            run.call(toolwright_core::ToolCall::new("1", "shell", serde_json::json!({}))).await.unwrap();
        assert_eq!(result.error.is_none(), isolates);
    }
}

#[tokio::test]
async fn a_tool_that_asks_for_confirmation_is_asked_about_even_when_a_policy_approves() {
    let careful = add().edit(|_, settings| settings.require_confirmation = Some(true));
    let policy = || Policy::from_yaml("- {tools: '*', decision: approve}").unwrap();
    let arguments = json!({"x": 1, "y": 2});
    let alone = Run::builder(tools([careful.clone()])).policy(policy()).build().unwrap();
    assert!(
        alone.call(call("add", arguments.clone())).await.unwrap().is_error(),
        "nobody is there to confirm"
    );
    let without = Run::builder(tools([careful.clone()])).build().unwrap();
    let refused = without.call(call("add", arguments.clone())).await.unwrap();
    assert_eq!(refused.error.unwrap().kind, ErrorKind::Approval, "an empty policy still asks");
    let person = Person::who_says(Decision::Approve);
    let asked = Run::builder(tools([careful])).policy(policy()).approver(person.clone()).build().unwrap();
    assert_eq!(asked.call(call("add", arguments)).await.unwrap().to_text(), "3");
    assert_eq!(person.shown.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn rules_hold_however_a_model_writes_a_call() {
    let spec = ToolSpec { parameters: shell_schema(), ..ToolSpec::new("sh", "Runs a command.") };
    let shell = ToolDef::dynamic(spec, |_, arguments| async move { arguments["command"].to_string() });
    let policy = r#"
- {tools: "sh(command='git status'", decision: approve}
- {tools: "sh(command='rm", decision: reject}
- {tools: sh, when: {command: "*secret*"}, decision: reject}
"#;
    let run = Run::builder(tools([shell])).policy(Policy::from_yaml(policy).unwrap()).build().unwrap();
    let kind = async |name: &str, arguments: Value| {
        let result = run.call(call(name, arguments)).await.unwrap();
        result.error.map(|error| error.kind)
    };
    let refused = Some(ErrorKind::Approval);
    assert_eq!(kind("sh", json!({"command": "git status"})).await, None);
    assert_eq!(kind("functions.sh", json!({"command": "git status"})).await, None);
    for name in ["sh", "functions.sh", "tools.sh"] {
        assert_eq!(kind(name, json!({"command": "cat secret"})).await, refused);
        // A rule about the text of a call sees the same text whatever order the arguments come in,
        assert_eq!(kind(name, json!({"timeout": 1, "command": "rm -rf /"})).await, refused);
        // and a name cannot pretend to be an argument.
        assert_eq!(kind(name, json!({"command='git status', x": 1, "command": "rm -rf /"})).await, refused);
    }
}

fn shell_schema() -> Value {
    json!({"type": "object", "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}}})
}

/// Answers after an hour.
struct Slow;

impl Approver for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn decide(&self, _: &ApprovalRequest<'_>) -> Decision {
        tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
        Decision::Approve
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_decision_is_not_the_call_s() {
    let (ears, second) = (Ears::default(), std::time::Duration::from_secs(1));
    let run = ears.on(Run::builder(tools([sleeper("nap", second)])).approver(Slow)).build().unwrap();
    run.call(call("nap", json!({}))).await.unwrap();
    let took = ears.events().into_iter().find_map(|event| match event.kind {
        EventKind::CallFinished { duration, .. } => Some(duration),
        _ => None,
    });
    assert!(took.is_some_and(|took| took >= second && took < 2 * second), "{took:?}");
}

/// Approval of nested calls, two at the same time, does not count as work of the outer call.
#[tokio::test(start_paused = true)]
async fn the_time_of_decisions_is_not_that_of_the_calls_around() {
    let (ears, second) = (Ears::default(), std::time::Duration::from_secs(1));
    let spec = |name: &str| ToolSpec::new(name, "Calls others.");
    let inner = ToolDef::dynamic(spec("inner"), |context, _: Value| async move {
        let both = tokio::join!(context.call("nap", json!({})), context.call("nap", json!({})));
        both.0.and(both.1)
    });
    let outer = ToolDef::dynamic(spec("outer"), |context, _: Value| async move {
        context.call("inner", json!({})).await?;
        context.call("nap", json!({})).await
    });
    let policy =
        Policy::from_yaml("[{tools: nap, decision: ask}, {tools: \"*er\", decision: approve}]").unwrap();
    let tools = tools([sleeper("nap", second), inner, outer]);
    let run = ears.on(Run::builder(tools).policy(policy).approver(Slow)).build().unwrap();
    assert!(run.call(call("outer", json!({}))).await.unwrap().error.is_none());
    let took = ears.events().into_iter().filter_map(|event| match event.kind {
        EventKind::CallFinished { duration, .. } => Some(duration.as_secs()),
        _ => None,
    });
    let took: Vec<u64> = took.collect();
    assert_eq!(took, [1, 1, 1, 1, 2]);
}

/// Reads a file and a backup of it.
#[toolwright_core::tool]
async fn read_both(
    /// The file.
    source: WorkspacePath,
    /// Where more of it is.
    more: Option<Vec<WorkspacePath>>,
    /// The text to search for; not a path.
    needle: String,
) -> String {
    let more: Vec<&str> = more.iter().flatten().map(WorkspacePath::as_str).collect();
    format!("{source} {} {needle}", more.join(","))
}

#[tokio::test]
async fn rules_see_the_paths_of_any_tool_in_their_plain_form_whatever_the_parameter_is_called() {
    let rules = "[{tools: 'read_both', decision: approve}, \
                  {tools: 'read_both', when: {source: 'secret/*'}, decision: reject}]";
    let run = Run::builder(tools([read_both()])).policy(Policy::from_yaml(rules).unwrap()).build().unwrap();
    let read = async |source: &str| {
        let arguments = json!({"source": source, "more": ["./a//b", "c/../d"], "needle": "./x"});
        run.call(call("read_both", arguments)).await.unwrap()
    };
    for hidden in ["secret/key", "./secret/key", "docs/../secret//key", "secret/./key/"] {
        let error = read(hidden).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Approval, "{hidden}");
    }
    assert_eq!(read("secret/../docs//a.md").await.to_text(), "docs/a.md a/b,d ./x");
}

const REVIEWED: &str = "- {tools: add, decision: review, by: careful, reason: only small sums}\n";

/// A run whose `add` is reviewed by a model that gives these answers.
async fn reviewed(
    rules: &str,
    answers: impl IntoIterator<Item = Reply>,
    person: Option<Person>,
) -> (ToolResult, Vec<(String, String)>, Vec<Option<String>>) {
    let ears = Ears::default();
    let model = Arc::new(ScriptedModel::new(answers));
    let mut builder = ears.on(Run::builder(tools([add()])).policy(Policy::from_yaml(rules).unwrap()));
    builder = builder.reviewers(move |name| (name == "careful").then(|| Ok(model.clone() as Arc<_>)));
    if let Some(person) = person {
        builder = builder.approver(person);
    }
    let result = builder.build().unwrap().call(call("add", json!({"x": 1, "y": 2}))).await.unwrap();
    let reasons = ears.events().into_iter().filter_map(|event| match event.kind {
        EventKind::CallDecided { reason, .. } => Some(reason),
        _ => None,
    });
    (result, decisions(&ears), reasons.collect())
}

#[tokio::test]
async fn a_model_reviews_a_call_before_a_person_is_asked() {
    let says = |verdict: &str| Reply::text(json!({"verdict": verdict, "reason": "because"}).to_string());
    let (result, decided, reasons) = reviewed(REVIEWED, [says("approve")], None).await;
    assert_eq!((result.to_text().as_str(), decided), ("3", pair("review by careful", "approve")));
    assert_eq!(reasons, [Some("because".to_owned())]);

    // What it does not approve is a person's to decide, and without a person it is refused.
    let unsure = [says("ask"), says("reject"), Reply::text("no idea"), Reply::text("{\"verdict\": 1}")];
    for answer in unsure {
        let (result, decided, _) = reviewed(REVIEWED, [answer.clone()], None).await;
        assert_eq!(result.error.unwrap().kind, ErrorKind::Approval);
        assert_eq!(decided, [pair("review by careful", "escalate"), pair("policy", "reject")].concat());
        let person = Person::who_says(Decision::Approve);
        let (result, decided, _) = reviewed(REVIEWED, [answer], Some(person)).await;
        assert_eq!(result.to_text(), "3");
        assert_eq!(decided, [pair("review by careful", "escalate"), pair("human", "approve")].concat());
    }
}

#[tokio::test]
async fn a_reviewing_model_never_overrules_a_stricter_rule() {
    let says = Reply::text("{\"verdict\": \"approve\"}");
    let rules = format!("{REVIEWED}- {{tools: add, decision: reject, reason: never}}\n");
    let (result, decided, _) = reviewed(&rules, [says], None).await;
    assert_eq!((result.error.unwrap().message.as_str(), decided), ("never", pair("policy", "reject")));
}

#[tokio::test]
async fn a_policy_that_names_a_model_or_an_argument_that_is_not_there_starts_no_run() {
    let build = |rules: &str| Run::builder(tools([add()])).policy(Policy::from_yaml(rules).unwrap()).build();
    for rules in [
        REVIEWED,
        "- {tools: add, when: {z: 1}, decision: reject}",
        "- {tools: add, decision: modify, set: {z: 1}}",
    ] {
        assert!(build(rules).is_err_and(|error| error.is_configuration()), "{rules}");
    }
    // Other tools may have it.
    assert!(build("- {tools: other, when: {z: 1}, decision: reject}").is_ok());
    assert!(build("- {tools: '*', when: {z: 1}, decision: reject}").is_ok());
    for wrong in ["- {tools: add, decision: review}", "- {tools: add, decision: ask, by: careful}"] {
        assert!(Policy::from_yaml(wrong).is_err(), "{wrong}");
    }
}
