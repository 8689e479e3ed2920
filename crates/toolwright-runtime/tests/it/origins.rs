//! Who a call comes from: carried by the runtime, never read from an id, which models choose.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    ApprovalRequest, Approver, CallNote, CancelToken, Decision, ErrorKind, Invocation, Message, Origin,
    Requester, ToolCall, ToolDef, ToolOutput, ToolSpec, Toolset,
};
use toolwright_models::{Reply, ScriptedCall, ScriptedModel};
use toolwright_runtime::{Agent, Policy, Run};

use crate::support::{plain, tools};

/// A call as an approver saw it: its id, its depth and its requester.
type SeenCall = (String, u32, Option<&'static str>);

struct Notes(Arc<Mutex<Vec<SeenCall>>>);

impl Approver for Notes {
    fn name(&self) -> &str {
        "notes"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        let asker = request.requester.get::<&'static str>().copied();
        self.0.lock().unwrap().push((request.call.id.to_string(), request.depth, asker));
        Decision::reject("not now")
    }
}

/// A model that calls `danger` under an id that is another call's.
fn forger() -> ScriptedModel {
    let call = ScriptedCall { tool: "danger".into(), arguments: json!({}), id: Some("mcp-1".to_owned()) };
    ScriptedModel::new([Reply { calls: vec![call], ..Reply::default() }, Reply::text("done")])
}

fn danger() -> Toolset {
    tools([plain("danger", |_| async { Ok("boom".to_owned()) })
        .edit(|_, settings| settings.require_confirmation = Some(true))])
}

/// A tool whose model works with `danger`.
fn helper() -> ToolDef {
    ToolDef::from_fn(ToolSpec::new("helper", "Helps."), |context, _| {
        Box::pin(async move {
            let (model, tools) = (forger(), danger());
            let messages = vec![Message::user("go")];
            let said = context.host().converse(context, &model, &tools, messages, 5).await?;
            Ok(ToolOutput::text(said.last().map(Message::text).unwrap_or_default()))
        })
    })
}

#[tokio::test]
async fn who_asked_is_known_to_approvers_whatever_id_a_model_gives_its_call() {
    let agent = Agent::new("agent", "Works.").model(Arc::new(forger())).tools(danger());
    let cases = [("helper", helper(), json!({})), ("agent", agent.as_tool(), json!({"input": "go"}))];
    for (name, tool, arguments) in cases {
        let seen = Arc::default();
        let builder = Run::builder(tools([tool])).policy(Policy::approve_all());
        let run = builder.approver(Notes(Arc::clone(&seen))).build().unwrap();
        let origin = Origin { requester: Requester::new("ann"), ..Origin::default() };
        let call = ToolCall::new("mcp-7", name, arguments);
        let result = run.dispatch().call(call, origin).await.unwrap();
        assert_eq!((&*result.call_id, result.to_text().as_str()), ("mcp-7", "done"));
        assert_eq!(*seen.lock().unwrap(), [("mcp-7.mcp-1".to_owned(), 1, Some("ann"))]);
    }
    // Nobody in particular: a call of a model in a loop of its own, under the id of somebody's call.
    let seen = Arc::default();
    let run = Run::builder(danger()).approver(Notes(Arc::clone(&seen))).build().unwrap();
    let _ = run.generate_loop(&forger(), vec![Message::user("go")], &Default::default()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [("mcp-1".to_owned(), 0, None)]);
}

type Heard = Arc<Mutex<Vec<String>>>;

#[tokio::test(start_paused = true)]
async fn a_call_is_stopped_and_followed_by_whoever_asked_for_it() {
    let slow = |name: &str| {
        plain(name, |context| async move {
            context.progress(1.0, None, context.tool_name().to_string());
            context.cancel_token().cancelled().await;
            context.check_cancelled().map(|()| String::new())
        })
    };
    let outer = plain("outer", |context| async move {
        let call = ToolCall::new("mine", "inner", json!({}));
        context.host().invoke(&context, Invocation::new(call)).await.map(|_| String::new())
    });
    let run = Run::builder(tools([slow("inner"), slow("other"), outer])).build().unwrap();
    let dispatch = run.dispatch();
    let (mine, others): (Heard, Heard) = Default::default();
    let origin = |stop: &CancelToken, heard: &Heard| {
        let heard = heard.clone();
        let watch = move |_: u64, note: &CallNote| {
            if let CallNote::Progress { message: Some(text), .. } = note {
                heard.lock().unwrap().push(text.clone());
            }
        };
        Origin { stop: Some(stop.clone()), listener: Some(Arc::new(watch)), requester: Requester::default() }
    };
    let (first, second) = (CancelToken::new(), CancelToken::new());
    let flow = dispatch.call(ToolCall::new("mine", "outer", json!({})), origin(&first, &mine));
    let other = dispatch.call(ToolCall::new("mine", "other", json!({})), origin(&second, &others));
    let stop = async {
        while run.active_calls().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        second.cancel();
        while run.active_calls().len() > 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        first.cancel();
    };
    let (flow, other, ()) = tokio::join!(flow, other, stop);
    assert_eq!(flow.unwrap().error.map(|error| error.kind), Some(ErrorKind::Cancelled));
    assert_eq!(other.unwrap().error.map(|error| error.kind), Some(ErrorKind::Cancelled));
    assert_eq!(*mine.lock().unwrap(), ["inner"], "a nested call is followed by the caller of the outer one");
    assert_eq!(*others.lock().unwrap(), ["other"]);
}
