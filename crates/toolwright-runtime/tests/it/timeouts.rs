//! How long a call may take, and what does not count.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    ApprovalRequest, CallTimeout, Decision, ErrorKind, Form, FormAuthor, FormBody, FormReply, InvokeOptions,
    Person, ToolDef,
};
use toolwright_runtime::{Policy, Run};

use crate::support::{bare, plain, sleeper, tools};

/// A person who takes an hour for everything.
struct Slow;

const HOUR: Duration = Duration::from_secs(3600);

impl Person for Slow {
    async fn approve(&self, _: &ApprovalRequest<'_>) -> Decision {
        tokio::time::sleep(HOUR).await;
        Decision::Approve
    }

    async fn answer(&self, _: &Form) -> FormReply {
        tokio::time::sleep(HOUR).await;
        FormReply::Declined
    }
}

/// A tool that asks the person, and works for so long afterwards.
fn asking(work: u64) -> ToolDef {
    plain("asking", move |context| async move {
        let person = context.person().unwrap();
        person.answer(&Form::new(FormAuthor::Model, "?", FormBody::Text)).await;
        drop(person);
        tokio::time::sleep(Duration::from_secs(work)).await;
        Ok("done".to_owned())
    })
}

async fn kind_of(run: &Run, tool: &str) -> Option<ErrorKind> {
    run.call(bare(tool)).await.unwrap().error.map(|error| error.kind)
}

#[tokio::test(start_paused = true)]
async fn a_person_who_thinks_uses_up_no_time_of_a_call() {
    let run = |work| {
        let tool = asking(work).with_timeout(Duration::from_secs(10));
        Run::builder(tools([tool])).person(Arc::new(Slow)).policy(Policy::approve_all()).build().unwrap()
    };
    assert_eq!(kind_of(&run(5), "asking").await, None);
    assert_eq!(kind_of(&run(20), "asking").await, Some(ErrorKind::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_person_who_decides_about_a_call_uses_up_no_time_of_those_around_it() {
    let outer = |work| {
        plain("outer", move |context| async move {
            context.call("inner", json!({})).await?;
            tokio::time::sleep(Duration::from_secs(work)).await;
            // What comes later has its time too.
            context.call("later", json!({})).await?;
            Ok("done".to_owned())
        })
    };
    let run = |work| {
        let limited = outer(work).with_timeout(Duration::from_secs(10));
        let (inner, later) =
            (sleeper("inner", Duration::from_secs(1)), sleeper("later", Duration::from_secs(1)));
        let policy = "- {tools: '*', decision: approve}\n- {tools: inner, decision: ask}\n";
        let policy = Policy::from_yaml(policy).unwrap();
        Run::builder(tools([limited, inner, later])).person(Arc::new(Slow)).policy(policy).build().unwrap()
    };
    assert_eq!(kind_of(&run(5), "outer").await, None);
    assert_eq!(kind_of(&run(20), "outer").await, Some(ErrorKind::Timeout));
}

#[tokio::test(start_paused = true)]
async fn who_makes_a_call_says_how_long_it_may_take() {
    let caller = |timeout: CallTimeout| {
        plain("caller", move |context| async move {
            let options = InvokeOptions { timeout, ..InvokeOptions::default() };
            let inner =
                tools([sleeper("inner", Duration::from_secs(60)).with_timeout(Duration::from_secs(30))]);
            context.call_in(&inner, "inner", json!({}), options).await?;
            Ok("done".to_owned())
        })
    };
    for (timeout, fails) in [
        (CallTimeout::OfTool, true),
        (CallTimeout::Never, false),
        (CallTimeout::After(Duration::from_secs(50)), true),
        (CallTimeout::After(Duration::from_secs(70)), false),
    ] {
        let run = Run::builder(tools([caller(timeout)])).build().unwrap();
        let wanted = fails.then_some(ErrorKind::Timeout);
        assert_eq!(kind_of(&run, "caller").await, wanted, "{timeout:?}");
    }
}
