//! One call, start to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::{
    CallNote, Content, ErrorKind, State, ToolContext, ToolDef, ToolError, ToolExt, ToolOutput, ToolSpec,
};
use toolwright_runtime::{EventKind, LimitKind, Run, RunEnd, RunLimits};

use crate::support::{Ears, Growing, add, bare, call, plain, sleeper, tools};

async fn result_of(arguments: Value) -> (String, Option<(ErrorKind, String)>) {
    let run = Run::builder(tools([add()])).build().unwrap();
    let result = run.call(call("add", arguments)).await.unwrap();
    (result.to_text(), result.error.map(|error| (error.kind, error.message)))
}

#[tokio::test]
async fn good_arguments_run_and_bad_ones_go_back_to_the_model() {
    assert_eq!(result_of(json!({"x": 1, "y": 2})).await.0, "3");
    assert_eq!(result_of(json!({"x": "1", "y": 2.0})).await.0, "3");
    assert_eq!(result_of(json!("```json\n{\"x\": 1, \"y\": 2}\n```")).await.0, "3");
    let (_, error) = result_of(json!({"x": "a", "q": 1})).await;
    let (kind, message) = error.unwrap();
    assert_eq!(kind, ErrorKind::Parsing);
    assert_eq!(
        message,
        "the arguments do not fit:\n- `y` is missing\n- `x`: \"a\" is not an integer\n- `q` is not a parameter"
    );
    assert_eq!(result_of(json!("{\"x\": 1")).await.1.unwrap().0, ErrorKind::Parsing);
    assert_eq!(result_of(json!([1])).await.1.unwrap().0, ErrorKind::Parsing);
    assert_eq!(result_of(json!({"x": i64::MAX, "y": 1.5})).await.1.unwrap().0, ErrorKind::Parsing);
}

#[tokio::test]
async fn strict_runs_take_only_what_the_schema_takes() {
    let run = Run::builder(tools([add()])).strict().build().unwrap();
    assert!(run.call(call("add", json!({"x": "1", "y": 2}))).await.unwrap().is_error());
    assert_eq!(run.call(call("add", json!({"x": 1.0, "y": 2}))).await.unwrap().to_text(), "3");
}

#[tokio::test]
async fn an_unknown_tool_gets_the_nearest_name() {
    let run = Run::builder(tools([add()])).build().unwrap();
    let error = run.call(call("Add", json!({}))).await.unwrap().error.unwrap();
    assert_eq!((error.kind, error.hint.as_deref()), (ErrorKind::Parsing, Some("did you mean `add`?")));
}

#[tokio::test]
async fn safe_tool_makes_data_of_its_own_failures_and_not_of_the_end_of_the_run() {
    let odd = plain("odd", |_| async { Err(std::io::Error::other("disk on fire").into()) }).safe();
    let panics =
        plain("panics", |_| async { std::fs::read_to_string("/").map_or_else(|_| panic!("over"), Ok) })
            .safe();
    let run = Run::builder(tools([odd, panics])).build().unwrap();
    for name in ["odd", "panics"] {
        let result = run.call(bare(name)).await.unwrap();
        assert!(result.to_text().contains(r#""success":false"#), "{name}: {}", result.to_text());
    }
    assert!(run.ended().is_none());
    let fatal = plain("fatal", |_| async { Err(ToolError::fatal("broken")) });
    let outer = plain("outer", |context: ToolContext| async move {
        Ok(context.call("fatal", json!({})).await?.to_text())
    });
    let run = Run::builder(tools([fatal, outer.safe()])).build().unwrap();
    assert!(run.call(bare("outer")).await.is_err());
    let limits = RunLimits { tool_calls: Some(1), ..RunLimits::default() };
    let outer = plain("outer", |context: ToolContext| async move {
        Ok(context.call("add", json!({"x": 1, "y": 2})).await?.to_text())
    });
    let run = Run::builder(tools([add(), outer.safe()])).limits(limits).build().unwrap();
    let result = run.call(bare("outer")).await.unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Limit);
}

#[tokio::test]
async fn errors_keep_their_kind_and_fatal_ones_end_the_run() {
    let kinds = plain("missing", |_| async { Ok(std::fs::read_to_string("/no/such/file")?) });
    let own = plain("own", |_| async { Err(ToolError::new("mine").hint("do that")) });
    let odd = plain("odd", |_| async { Err(std::io::Error::other("disk on fire").into()) });
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([kinds, own, odd]))).build().unwrap();
    let missing = run.call(bare("missing")).await.unwrap().error.unwrap();
    assert_eq!(missing.kind, ErrorKind::FileNotFound);
    let own = run.call(bare("own")).await.unwrap();
    assert_eq!(own.to_text(), r#"{"error":{"type":"unknown","message":"mine","hint":"do that"}}"#);
    let fatal = run.call(bare("odd")).await.unwrap_err();
    assert!(fatal.is_fatal() && fatal.message().contains("disk on fire"));
    assert!(matches!(run.ended(), Some(RunEnd::Failed { .. })));
    ears.check();
}

#[tokio::test]
async fn a_panic_is_fatal_and_the_process_lives() {
    let panics = plain("panics", |_| async { panic!("index 7 of 3") });
    let blocks =
        ToolDef::blocking(ToolSpec::new("blocks", "B."), |_, _| -> String { panic!("blocked and broke") });
    let deadline = plain("deadline", |_| async { panic!("late") }).with_timeout(Duration::from_secs(5));
    let run = Run::builder(tools([panics, blocks, deadline])).build().unwrap();
    assert_eq!(run.call(bare("panics")).await.unwrap_err().message(), "the tool panicked: index 7 of 3");
    assert_eq!(run.call(bare("blocks")).await.unwrap_err().message(), "the tool panicked: blocked and broke");
    assert_eq!(run.call(bare("deadline")).await.unwrap_err().message(), "the tool panicked: late");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_outs_hold_for_code_that_ignores_them() {
    let blocking = ToolDef::blocking(ToolSpec::new("blocking", "B."), |_, _| {
        std::thread::sleep(Duration::from_secs(3));
        "late"
    });
    // An async function that never yields.
    let rude = plain("rude", |_| async {
        std::thread::sleep(Duration::from_secs(3));
        Ok("late".into())
    });
    let kind = sleeper("kind", Duration::from_secs(3600));
    let all = [blocking, rude, kind].map(|tool| tool.with_timeout(Duration::from_millis(100)));
    let run = Run::builder(tools(all)).build().unwrap();
    for name in ["blocking", "rude", "kind"] {
        let start = Instant::now();
        let error = run.call(bare(name)).await.unwrap().error.unwrap();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Timeout, "the call took longer than 100ms and was stopped")
        );
        assert!(start.elapsed() < Duration::from_secs(2), "{name} took {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_tool_may_hand_over_what_it_has() {
    let tool = plain("partial", |context| async move {
        context.cancel_token().cancelled().await;
        Err(ToolError::new("stopped").with_partial(ToolOutput::text("half of it")))
    });
    let run = Run::builder(tools([tool.with_timeout(Duration::from_secs(1))])).build().unwrap();
    let result = run.call(bare("partial")).await.unwrap();
    assert_eq!(result.content, [Content::text("half of it")]);
    assert_eq!(result.error.unwrap().kind, ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn one_call_can_be_cancelled_and_the_whole_run_too() {
    let ears = Ears::default();
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let slow = plain("slow", move |_| {
        let guard = SetOnDrop(flag.clone());
        async move {
            let _guard = guard;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok("late".into())
        }
    });
    let run = ears.on(Run::builder(tools([slow, add()]))).build().unwrap();
    let waiting = tokio::spawn({
        let run = run.clone();
        async move { run.call(bare("slow")).await.unwrap() }
    });
    tokio::task::yield_now().await;
    assert_eq!(run.active_calls().len(), 1);
    assert!(run.cancel_call("id-slow") && !run.cancel_call("nobody"));
    assert_eq!(waiting.await.unwrap().error.unwrap().kind, ErrorKind::Cancelled);
    assert!(dropped.load(Ordering::SeqCst), "the work was dropped");
    assert_eq!(run.call(call("add", json!({"x": 1, "y": 1}))).await.unwrap().to_text(), "2");

    run.cancel();
    let after = run.call(call("add", json!({"x": 1, "y": 1}))).await.unwrap();
    assert_eq!(after.error.unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(run.ended(), Some(RunEnd::Cancelled));
    assert!(run.active_calls().is_empty());
    ears.check();
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_a_closed_record() {
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([sleeper("slow", Duration::from_secs(60))]))).build().unwrap();
    let cut = tokio::time::timeout(Duration::from_secs(1), run.call(bare("slow"))).await;
    assert!(cut.is_err());
    ears.check();
    assert!(matches!(ears.events().last().unwrap().kind, EventKind::CallFinished { interrupted: true, .. }));
    assert!(run.active_calls().is_empty());
}

#[tokio::test]
async fn nested_calls_take_the_same_path_and_name_their_parent() {
    let outer = plain("outer", |context| async move {
        let sum = context.call("add", json!({"x": "20", "y": 22})).await?;
        let bad = context.call("add", json!({"x": "nothing"})).await.unwrap_err();
        assert_eq!(bad.kind(), ErrorKind::Parsing);
        Ok(format!("sum {}", sum.to_text()))
    });
    let ears = Ears::default();
    let run = ears.on(Run::builder(tools([add(), outer]))).build().unwrap();
    assert_eq!(run.call(bare("outer")).await.unwrap().to_text(), "sum 42");
    ears.check();
    let parents: Vec<_> = ears
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::CallStarted { span, parent, tool, .. } => Some((*span, *parent, tool.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(parents, [(0, None, "outer".into()), (1, Some(0), "add".into()), (2, Some(0), "add".into())]);
    assert_eq!(run.spent().tool_calls, 2, "the call with bad arguments was not admitted");
}

#[tokio::test]
async fn tools_that_call_each_other_for_ever_hit_the_depth_limit() {
    let forever = plain("forever", |context| async move {
        match context.call("forever", json!({})).await {
            Ok(output) => Ok(output.to_text()),
            Err(error) if error.kind() == ErrorKind::Limit => Ok(format!("stopped at {}", context.depth())),
            Err(error) => Err(error),
        }
    });
    let run = Run::builder(tools([forever])).max_depth(5).build().unwrap();
    assert_eq!(run.call(bare("forever")).await.unwrap().to_text(), "stopped at 5");
}

#[tokio::test]
async fn nested_output_is_whole_while_the_models_is_cut() {
    let big = plain("big", |_| async { Ok("x".repeat(100_000)) });
    let measure = plain("measure", |context| async move {
        Ok(context.call("big", json!({})).await?.to_text().len().to_string())
    });
    let run = Run::builder(tools([big, measure])).build().unwrap();
    assert_eq!(run.call(bare("measure")).await.unwrap().to_text(), "100000");
    let cut = run.call(bare("big")).await.unwrap();
    assert!(cut.to_text().len() < 17_000 && cut.truncated.is_some());
}

#[tokio::test]
async fn a_tool_may_set_its_own_output_bound() {
    let big = |name: &str| plain(name, |_| async { Ok("x".repeat(30_000)) });
    let run =
        Run::builder(tools([big("whole").with_max_output(0), big("tiny").with_max_output(10), big("run")]))
            .max_output(1000)
            .build()
            .unwrap();
    assert_eq!(run.call(bare("whole")).await.unwrap().to_text().len(), 30_000);
    assert_eq!(run.call(bare("tiny")).await.unwrap().truncated.unwrap().limit, 10);
    assert_eq!(run.call(bare("run")).await.unwrap().truncated.unwrap().limit, 1000);
}

#[tokio::test]
async fn injected_state_and_the_store_reach_tools() {
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    struct Count {
        n: u32,
    }
    struct Db(&'static str);
    let counts = plain("counts", |context| async move {
        let db: State<Db> = State(context.state::<Db>()?);
        let n = context.store::<Count>().update(|count| {
            count.n += 1;
            count.n
        });
        Ok(format!("{} {n}", db.0.0))
    });
    let one = Run::builder(tools([counts.clone()])).state(Db("pg")).build().unwrap();
    one.call(bare("counts")).await.unwrap();
    assert_eq!(one.call(bare("counts")).await.unwrap().to_text(), "pg 2");
    let state = one.state(Vec::new(), Vec::new()).unwrap();
    let text = serde_json::to_string(&state).unwrap();
    let resumed = serde_json::from_str(&text).unwrap();
    let two = Run::builder(tools([counts.clone()])).state(Db("pg")).resume(&resumed).build().unwrap();
    assert_eq!(two.call(bare("counts")).await.unwrap().to_text(), "pg 3");
    assert_eq!(two.spent().tool_calls, 3);
    let other: toolwright_runtime::RunState =
        serde_json::from_str(&text.replace(r#"{"n":2}"#, r#"{"n":"two"}"#)).unwrap();
    let odd = Run::builder(tools([counts.clone()])).state(Db("pg")).resume(&other).build().unwrap();
    let error = odd.call(bare("counts")).await.unwrap_err();
    assert!(error.message().contains("Count` does not fit"), "{error}");
    assert_eq!(odd.state(Vec::new(), Vec::new()).unwrap().store, other.store);
    let fresh = Run::builder(tools([counts])).state(Db("pg")).build().unwrap();
    assert_eq!(fresh.call(bare("counts")).await.unwrap().to_text(), "pg 1");
}

#[tokio::test(start_paused = true)]
async fn run_limits_name_themselves_and_end_the_run() {
    let ears = Ears::default();
    let limits = RunLimits { wall_time: Some(1.0), ..RunLimits::default() };
    let run = ears
        .on(Run::builder(tools([sleeper("slow", Duration::from_secs(60))])).limits(limits))
        .build()
        .unwrap();
    let error = run.call(bare("slow")).await.unwrap().error.unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Limit, "the wall_time limit of 1 s is used up")
    );
    assert!(matches!(run.ended(), Some(RunEnd::Limit { limit }) if limit.limit == LimitKind::WallTime));
    assert!(ears.words().contains(&"limit_hit".to_owned()));
    ears.check();
}

#[tokio::test(start_paused = true)]
async fn wrappers_report_what_they_did() {
    let flaky = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let work = plain("work", move |_| {
        let n = flaky.fetch_add(1, Ordering::SeqCst);
        async move { if n == 0 { Err(ToolError::new("once")) } else { Ok(format!("run {n}")) } }
    });
    let work = work
        .retry(toolwright_core::Retry::times(2))
        .cached(Duration::from_secs(60))
        .rate_limited(1, Duration::from_secs(10));
    let ears = Ears::default();
    let limits = RunLimits { working_time: Some(5.0), ..RunLimits::default() };
    let run = ears.on(Run::builder(tools([work])).limits(limits)).build().unwrap();
    assert_eq!(run.call(bare("work")).await.unwrap().to_text(), "run 1");
    assert_eq!(run.call(bare("work")).await.unwrap().to_text(), "run 1");
    let notes: Vec<CallNote> = ears
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::CallNoted { note, .. } => Some(note),
            _ => None,
        })
        .collect();
    assert!(matches!(notes[0], CallNote::Retry { attempt: 1, .. }), "{notes:?}");
    assert!(matches!(notes[1], CallNote::RateLimited { wait } if wait > Duration::from_secs(9)));
    assert!(matches!(notes[2], CallNote::CacheHit { .. }));
    assert!(run.spent().waited > 9.0, "waiting for the rate limit is not working time");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_call_that_announced_it() {
    let limit = toolwright_core::RateLimit::new(1, Duration::from_secs(3600));
    let fetch = plain("fetch", |_| async { Ok("fetched".into()) }).rate_limited_by(&limit);
    let set = tools([fetch.with_timeout(Duration::from_secs(2)), sleeper("work", Duration::from_secs(60))]);
    let limits = RunLimits { working_time: Some(10.0), ..RunLimits::default() };
    let run = Run::builder(set).limits(limits).build().unwrap();
    run.call(bare("fetch")).await.unwrap();
    assert_eq!(run.call(bare("fetch")).await.unwrap().error.unwrap().kind, ErrorKind::Timeout);
    assert!(run.spent().waited < 5.0, "{}", run.spent().waited);
    let stopped = run.call(bare("work")).await.unwrap().error.unwrap();
    assert_eq!(stopped.message, "the working_time limit of 10 s is used up");
}

#[tokio::test]
async fn events_tell_the_whole_story_in_order() {
    let progress = plain("progress", |context: ToolContext| async move {
        context.progress(1.0, Some(2.0), "half");
        Ok("done".into())
    });
    let ears = Ears::default();
    let policy = toolwright_runtime::Policy::from_yaml("- {tools: '*', decision: approve}").unwrap();
    let run = ears.on(Run::builder(tools([progress])).policy(policy)).build().unwrap();
    run.call(bare("progress")).await.unwrap();
    run.finish(RunEnd::Done).unwrap();
    assert_eq!(
        ears.words(),
        ["run_started", "call_started", "call_decided", "call_noted", "call_finished", "run_finished"]
    );
    ears.check();
}

#[tokio::test]
async fn sources_are_asked_each_time() {
    let run = Run::builder(tools([add()])).source(Growing::default()).build().unwrap();
    assert_eq!(run.call(bare("tool_0")).await.unwrap().to_text(), "found");
    assert_eq!(run.call(bare("tool_1")).await.unwrap().to_text(), "found");
    assert!(run.call(bare("tool_0")).await.unwrap().is_error());
}

#[tokio::test]
async fn listings_include_the_tools_of_sources() {
    let listing = plain("listing", |context: ToolContext| async move {
        Ok(context.tools().await?.iter().map(|spec| spec.name.to_string()).collect::<Vec<_>>().join(" "))
    });
    let run = Run::builder(tools([listing])).source(tools([add()])).build().unwrap();
    let listed = run.dispatch().fresh_specs().await.unwrap();
    assert_eq!(listed.iter().map(|spec| &*spec.name).collect::<Vec<_>>(), ["listing", "add"]);
    assert_eq!(run.call(bare("listing")).await.unwrap().to_text(), "listing add");
}

#[tokio::test(start_paused = true)]
async fn limits_and_caches_can_be_shared_between_tools() {
    let limit = toolwright_core::RateLimit::new(2, Duration::from_secs(10));
    let cache = toolwright_core::Cache::new(Duration::from_secs(60));
    let named = |name: &'static str| plain(name, move |_| async move { Ok(name.to_owned()) });
    let set = tools([
        named("a").rate_limited_by(&limit),
        named("b").rate_limited_by(&limit),
        named("c").cached_in(&cache),
        named("d").cached_in(&cache),
    ]);
    let run = Run::builder(set).build().unwrap();
    let start = tokio::time::Instant::now();
    for name in ["a", "b", "a"] {
        run.call(bare(name)).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::from_secs(10), "the third call of either waits");
    for name in ["c", "d", "c", "d"] {
        assert_eq!(
            run.call(bare(name)).await.unwrap().to_text(),
            name,
            "equal arguments of other tools are other results"
        );
    }
    assert_eq!(cache.len(), 2);
}

#[tokio::test]
async fn a_call_travels_as_data_and_a_changed_definition_does_not_run() {
    use toolwright_runtime::{Envelope, Executor, LocalExecutor};

    /// Sends each call through JSON, as a worker elsewhere would get it.
    struct Elsewhere;
    impl Executor for Elsewhere {
        fn is_remote(&self) -> bool {
            true
        }
        async fn execute(
            &self,
            tools: &toolwright_core::Toolset,
            envelope: Envelope,
            context: &ToolContext,
        ) -> Result<ToolOutput, ToolError> {
            let text = serde_json::to_string(&envelope).unwrap();
            let arrived: Envelope = serde_json::from_str(&text).unwrap();
            assert_eq!(arrived, envelope);
            assert!(arrived.idempotency_key.as_ref().is_some_and(|key| key.ends_with("/0")), "{arrived:?}");
            assert!(arrived.policy.as_ref().is_some_and(|id| id.len() == 32), "{arrived:?}");
            assert_eq!(arrived.trace["traceparent"], "00-1-2-01");
            assert!(arrived.deadline_ms.is_some());
            LocalExecutor.execute(tools, arrived, context).await
        }
    }
    let add = add().with_timeout(Duration::from_secs(5));
    let policy = toolwright_runtime::Policy::from_yaml("- {tools: add, decision: approve}").unwrap();
    let run = Run::builder(tools([add.clone()]))
        .executor(Elsewhere)
        .policy(policy)
        .trace("traceparent", "00-1-2-01");
    let run = run.build().unwrap();
    assert_eq!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().to_text(), "3");

    let set = tools([add]);
    let envelope = Envelope {
        call_id: "1".into(),
        span: 0,
        tool: "add".into(),
        fingerprint: toolwright_core::Fingerprint("another".into()),
        arguments: json!({"x": 1, "y": 2}),
        deadline_ms: None,
        policy: None,
        idempotency_key: None,
        trace: std::collections::BTreeMap::new(),
    };
    let context = ToolContext::detached();
    let refused = LocalExecutor.execute(&set, envelope, &context).await.unwrap_err();
    assert!(refused.is_fatal() && refused.message().contains("changed after it was approved"));
}

#[tokio::test]
async fn a_cached_tool_that_calls_itself_is_stopped_by_its_depth() {
    let calls = |name: &str| {
        plain(name, |context| async move { Ok(context.call("again", json!({})).await?.to_text()) })
    };
    let minute = Duration::from_secs(60);
    let both = [calls("again").cached(minute), calls("other").cached(minute)];
    let run = Run::builder(tools(both)).build().unwrap();
    for name in ["again", "other"] {
        let result = tokio::time::timeout(minute, run.call(bare(name))).await.expect("it hangs");
        assert_eq!(result.unwrap().error.unwrap().kind, ErrorKind::Limit, "{name}");
    }
}

#[tokio::test]
async fn a_time_out_beyond_the_clock_is_none() {
    // One that the clock of the machine can hold, and the calendar cannot.
    let nearly = Duration::from_secs(i64::MAX as u64 - 1_000_000_000);
    for timeout in [Duration::MAX, nearly] {
        let run = Run::builder(tools([add().with_timeout(timeout)])).build().unwrap();
        assert_eq!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().to_text(), "3");
    }
    let limits = toolwright_runtime::RunLimits { wall_time: Some(1e19), ..Default::default() };
    let run = Run::builder(tools([add()])).limits(limits).build().unwrap();
    assert_eq!(run.call(call("add", json!({"x": 1, "y": 2}))).await.unwrap().to_text(), "3");
}

#[tokio::test]
async fn a_parameter_may_be_given_under_an_alias() {
    let run = Run::builder(tools([add().with_alias("first", "x").unwrap()])).build().unwrap();
    let add_with = async |arguments: Value| run.call(call("add", arguments)).await.unwrap();
    assert_eq!(add_with(json!({"first": "1", "y": 2})).await.to_text(), "3");
    let both = add_with(json!({"first": 1, "x": 1, "y": 2})).await;
    assert_eq!(both.error.unwrap().kind, ErrorKind::Parsing, "two values for one parameter");
    assert!(add().with_alias("y", "x").is_err() && add().with_alias("z", "q").is_err());
}
