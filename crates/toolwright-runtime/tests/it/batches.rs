//! The calls of one message.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolwright_core::{AssistantMessage, ErrorKind, Message, ToolDef, ToolError};
use toolwright_runtime::{Conversation, EventKind, Run, RunEnd, RunError};

use crate::support::{Ears, add, bare, call, plain, sleeper, tools};

fn traced(name: &'static str, millis: u64, trace: &Arc<Mutex<Vec<String>>>) -> ToolDef {
    let trace = trace.clone();
    plain(name, move |_| {
        let trace = trace.clone();
        async move {
            trace.lock().unwrap().push(format!("start {name}"));
            tokio::time::sleep(Duration::from_millis(millis)).await;
            trace.lock().unwrap().push(format!("end {name}"));
            Ok(name.to_owned())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn stages_run_together_and_barriers_wait() {
    let trace = Arc::default();
    let set = tools([
        traced("p1", 200, &trace),
        traced("p2", 100, &trace),
        traced("s", 100, &trace).with_parallel(false),
        traced("p3", 100, &trace),
    ]);
    let run = Run::builder(set).build().unwrap();
    let start = Instant::now();
    let results = run.call_all(["p1", "p2", "s", "p3", "p1"].map(bare).to_vec()).await.unwrap();
    assert_eq!(
        results.iter().map(|result| result.to_text()).collect::<Vec<_>>(),
        ["p1", "p2", "s", "p3", "p1"]
    );
    assert_eq!(
        *trace.lock().unwrap(),
        [
            "start p1", "start p2", "end p2", "end p1", "start s", "end s", "start p3", "start p1", "end p3",
            "end p1"
        ]
    );
    assert_eq!(start.elapsed(), Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_stops_no_other_call() {
    let bad = plain("bad", |_| async { Err(ToolError::new("bad")) });
    let set = tools([bad.clone(), bad.with_name("bad_serial").with_parallel(false), add()]);
    let run = Run::builder(set).build().unwrap();
    let calls = vec![
        bare("bad"),
        call("add", json!({"x": 1, "y": 1})),
        bare("bad_serial"),
        bare("nope"),
        call("add", json!({"x": 2, "y": 2})),
    ];
    let results = run.call_all(calls).await.unwrap();
    let outcome: Vec<_> =
        results.iter().map(|result| result.error.as_ref().map(|error| error.kind)).collect();
    assert_eq!(
        outcome,
        [Some(ErrorKind::Unknown), None, Some(ErrorKind::Unknown), Some(ErrorKind::Parsing), None]
    );
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_cancels_siblings_skips_the_rest_and_closes_everything() {
    let boom = plain("boom", |_| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(ToolError::fatal("boom"))
    });
    let ears = Ears::default();
    let set = tools([boom, sleeper("slow", Duration::from_secs(3600)), add().with_parallel(false)]);
    let run = ears.on(Run::builder(set)).build().unwrap();
    let start = Instant::now();
    let error = run
        .call_all(vec![bare("slow"), bare("boom"), call("add", json!({"x": 1, "y": 1}))])
        .await
        .unwrap_err();
    assert_eq!((error.message(), start.elapsed()), ("boom", Duration::from_millis(50)));
    ears.check();
    let started =
        ears.events().iter().filter(|event| matches!(event.kind, EventKind::CallStarted { .. })).count();
    assert_eq!(started, 2, "the call after the barrier was not begun");
    assert!(matches!(run.ended(), Some(RunEnd::Failed { .. })));
}

/// Otherwise continuing the conversation would run it twice.
#[tokio::test]
async fn what_was_done_is_in_the_conversation_even_when_the_rest_is_not() {
    let boom = plain("boom", |_| async { Err(ToolError::fatal("boom")) });
    let run = Run::builder(tools([add().with_parallel(false), boom])).build().unwrap();
    let mut chat = Conversation::new(&run);
    chat.push(Message::user("go"));
    let calls = [call("add", json!({"x": 1, "y": 1})), bare("boom")];
    chat.push(Message::Assistant(AssistantMessage::calls(calls)));
    let error = chat.make_pending().await.unwrap_err();
    assert!(matches!(&error, RunError::Tool(error) if error.message() == "boom"), "{error:?}");
    let left: Vec<_> = chat.pending().iter().map(|call| call.name.to_string()).collect();
    assert_eq!((chat.messages().len(), left), (3, vec!["boom".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn fail_fast_skips_later_calls_of_the_failed_tool_only() {
    let bad = plain("bad", |_| async { Err(ToolError::new("bad")) });
    let run = Run::builder(tools([bad, add()])).build().unwrap();
    let calls = vec![bare("bad"), bare("bad"), call("add", json!({"x": 1, "y": 1}))];
    let results = run.call_all_failing_fast(calls, &["bad".to_owned()]).await.unwrap();
    let kinds: Vec<_> = results.iter().map(|result| result.error.as_ref().map(|error| error.kind)).collect();
    assert_eq!(kinds, [Some(ErrorKind::Unknown), Some(ErrorKind::Cancelled), None]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_one_call_leaves_its_siblings_alone() {
    let set = tools([sleeper("long", Duration::from_secs(3600)), sleeper("short", Duration::from_secs(1))]);
    let run = Run::builder(set).build().unwrap();
    let batch = tokio::spawn({
        let run = run.clone();
        async move { run.call_all(vec![bare("long"), bare("short")]).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(run.cancel_call("id-long"));
    let results = batch.await.unwrap();
    assert_eq!(results[0].error.as_ref().unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(results[1].to_text(), "short");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_calls_of_a_message_run_at_once() {
    let most = async |limit: Option<usize>, calls: usize| {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let inner = plain("inner", |_| async { Ok("in".to_owned()) });
        let work = plain("work", {
            let (now, most) = (now.clone(), most.clone());
            move |context: toolwright_core::ToolContext| {
                let (now, most) = (now.clone(), most.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    // What a tool calls needs no place of its own.
                    context.call("inner", json!({})).await?;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok("done".to_owned())
                }
            }
        });
        let mut builder = Run::builder(tools([work, inner]));
        if let Some(limit) = limit {
            builder = builder.max_parallel(limit);
        }
        let results = builder.build().unwrap().call_all(vec![bare("work"); calls]).await.unwrap();
        assert!(results.len() == calls && results.iter().all(|result| result.to_text() == "done"));
        most.load(Ordering::SeqCst)
    };
    assert_eq!(most(None, 100).await, toolwright_runtime::DEFAULT_MAX_PARALLEL);
    assert_eq!(most(Some(3), 10).await, 3);
    assert_eq!(most(Some(0), 3).await, 1);
    assert_eq!(most(Some(50), 20).await, 20);
}
