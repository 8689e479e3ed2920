//! What flows do beyond the recorded vectors: catching, scopes, parallel loops, stopping, limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::{
    CallInfo, CallNote, ErrorKind, Invocation, ToolCall, ToolContext, ToolDef, ToolOutput, ToolSpec, Toolset,
};
use toolwright_lang::{FlowLimits, Host, Source, SourceFile, Wanted, load};
use toolwright_runtime::{Event, EventKind, Run};

use crate::support::{call, host, loaded, problems};

async fn run(file: &str, arguments: Value) -> Result<Value, String> {
    call(&loaded(file), "t", arguments).await
}

#[tokio::test]
async fn a_caught_error_becomes_a_value_and_the_flow_goes_on() {
    let file = "
tools:
  - import_tool: read_file
  - name: t
    do:
      - call: read_file
        params: {path: missing, lines: 1}
        catch: all
      - eval: 'went on: ${_.error}: ${_.message}'
";
    assert_eq!(run(file, json!({})).await, Ok(json!("went on: file_not_found: no such file or folder")));
}

#[tokio::test]
async fn iterators_leave_a_flow_as_lists_and_enter_a_tool_as_such() {
    let file = r#"
tools:
  - name: pairs
    input: [{name: n, type: int}, {name: all, type: list}]
    do: {eval: "${zip([n], all)}"}
  - name: t
    do:
      - call: pairs
        params: {n: 1, all: "${(x * 2 for x in [1, 2])}"}
      - eval: "${[list(_), map(str.upper, 'ab'), {'inf': float('inf'), 'of': struct(a=filter(None, [0, 1]))}]}"
"#;
    let want = json!([[[1, 2]], ["A", "B"], {"inf": "inf", "of": {"a": [1]}}]);
    assert_eq!(run(file, json!({})).await.unwrap(), want);
    let fails = "tools: [{name: t, do: {eval: '${(1 // x for x in [0])}'}}]";
    assert!(run(fails, json!({})).await.unwrap_err().contains("division"));
}

#[tokio::test]
async fn iterators_of_a_script_run_where_their_tools_can_be_called() {
    for result in [
        "(greet(who=n) for n in ['a', 'b'])",
        "map(lambda n: greet(who=n), ['a', 'b'])",
        "greet(who='ab') and [w for w in map(lambda n: greet(who=n), (n for n in ['a', 'b']))]",
    ] {
        let tools = "tools:\n  - {name: greet, input: [{name: who, type: any}], do: {eval: 'hi ${who}'}}";
        let script = format!("starlark: \"result = {result}\"");
        let file = format!("{tools}\n  - name: t\n    do: {{{script}}}\n");
        assert_eq!(run(&file, json!({})).await, Ok(json!(["hi a", "hi b"])), "{result}");
        let file = format!("{tools}\n  - name: t\n    do:\n      - {script}\n      - eval: '${{list(_)}}'\n");
        assert_eq!(run(&file, json!({})).await, Ok(json!(["hi a", "hi b"])), "{result}");
        let file = format!(
            "{tools}\n  - name: t\n    do:\n      - {script}\n      - {{call: greet, params: {{who: '${{_}}'}}}}\n"
        );
        assert_eq!(run(&file, json!({})).await, Ok(json!("hi ['hi a', 'hi b']")), "{result}");
    }
}

#[tokio::test]
async fn a_tool_that_a_script_leaves_behind_is_called_in_scripts_only() {
    let file = |then: &str| {
        format!(
            r#"
tools:
  - {{name: greet, input: [{{name: who, type: any}}], do: {{eval: 'hi ${{who}}'}}}}
  - {{name: inner, do: {{eval: "${{s.kept[0](who='a')}}"}}}}
  - name: t
    do:
      - {{eval: '${{struct(kept=[])}}', store_as: s}}
      - {{starlark: "s.kept.append(greet)\nresult = greet", store_as: f}}
      - {then}
"#
        )
    };
    let refused = Err("greet can be called in scripts only");
    for (then, want) in [
        ("eval: \"${f(who='a')}\"", refused),
        ("eval: \"${s.kept[0](who='a')}\"", refused),
        ("eval: \"${map(lambda n: f(who=n), ['a'])}\"", refused),
        ("call: inner", refused),
        ("starlark: \"result = inner()\"", refused),
        ("starlark: \"result = f(who='a')\"", Ok("hi a")),
        ("starlark: \"result = f(who=['a'])\"", Ok("hi ['a']")),
    ] {
        match (run(&file(then), json!({})).await, want) {
            (Ok(value), Ok(want)) => assert_eq!(value, json!(want), "{then}"),
            (Err(error), Err(want)) => assert!(error.contains(want), "{then}: {error}"),
            (other, _) => panic!("{then}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn iterators_that_leave_a_flow_share_the_limits_of_one_expression() {
    let file = "
tools:
  - {name: take, input: [{name: x, type: any}], do: {eval: 1}}
  - {name: t, do: {eval: '${[(n for n in range(200000) if n < 0) for i in range(20000)]}'}}
  - {name: u, do: {call: take, params: {x: '${[(n for n in range(200000) if n < 0) for i in range(20000)]}'}}}
  - {name: v, do: {starlark: 'result = [take(x=[(n for n in range(200000) if n < 0)]) for i in range(20000)]'}}
";
    let loaded = loaded(file);
    let start = Instant::now();
    for tool in ["t", "u", "v"] {
        let error = call(&loaded, tool, json!({})).await.unwrap_err();
        assert!(error.starts_with("limit: ") && error.contains("000000 steps"), "{tool}: {error}");
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn documents_of_ordinary_size_leave_a_flow() {
    for (value, count) in [("list(range(1000000))", 1_000_000), ("rows", 200_000), ("texts", 250_000)] {
        let file = format!(
            "tools: [{{name: t, input: [{{name: rows, type: list}}, {{name: texts, type: list}}], do: {{eval: '${{{value}}}'}}}}]"
        );
        let limits = FlowLimits {
            expression: toolwright_expr::EvalLimits { bytes: 1 << 30, ..Default::default() },
            ..FlowLimits::default()
        };
        let file = load(Source::text("t.yaml", file), &Host::new().limits(limits)).unwrap();
        let rows = if value == "rows" { vec![json!({"id": 1, "name": "x"}); 200_000] } else { Vec::new() };
        let texts = if value == "texts" { vec![json!("some text"); 250_000] } else { Vec::new() };
        let left = call(&file, "t", json!({"rows": rows, "texts": texts})).await.unwrap();
        assert_eq!(left.as_array().map(Vec::len), Some(count), "{value}");
    }
}

#[tokio::test]
async fn a_small_value_that_would_be_a_huge_document_is_refused() {
    let file = r#"
tools:
  - {name: take, input: [{name: x, type: any}], do: {eval: 1}}
  - {name: t, do: {eval: "${[[[[0] * 100] * 100] * 100] * 100}"}}
  - {name: u, do: {call: take, params: {x: "${[[[[0] * 100] * 100] * 100] * 100}"}}}
  - name: v
    do: {starlark: "def run():\n  return take(x=[[[[0] * 100] * 100] * 100] * 100)"}
"#;
    let loaded = loaded(file);
    for tool in ["t", "u", "v"] {
        let error = call(&loaded, tool, json!({})).await.unwrap_err();
        let told = if tool == "t" {
            "a value cannot leave the flow"
        } else {
            "the value of `x` cannot enter `take`"
        };
        assert_eq!(error, format!("limit: {told}: it takes more than 128 MiB of memory"), "{tool}");
    }
}

#[tokio::test]
async fn a_value_that_is_no_document_is_placed() {
    let file = loaded(
        "tools:
  - {name: take, input: [{name: x, type: any}], do: {eval: 1}}
  - name: t
    do:
      - eval: 1
      - eval: '${(1 // x for x in [0])}'
  - {name: u, do: {call: take, params: {x: '${(1 // x for x in [0])}'}}}
",
    );
    let failed: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let heard = failed.clone();
    let run = Run::builder(file.tools().clone()).on_event(move |event: &Event| {
        if let EventKind::CallNoted { note: CallNote::Data { value, .. }, .. } = &event.kind {
            heard.lock().unwrap().push(value.as_str().unwrap_or_default().to_owned());
        }
    });
    let run = run.build().unwrap();
    for tool in ["t", "u"] {
        assert!(run.call(ToolCall::new("1", tool, json!({}))).await.unwrap().error.is_some());
    }
    let want = ["ZeroDivisionError in `t` at test.yaml:6:9", "ZeroDivisionError in `u` at test.yaml:7:45"];
    assert_eq!(*failed.lock().unwrap(), want);
}

#[tokio::test]
async fn the_groups_of_a_pattern_are_variables_of_its_way_alone() {
    let file = r#"
tools:
  - {name: inner, do: {eval: "${_match_groups[0]}!"}}
  - name: t
    input: [{name: q, type: str}]
    do:
      - {eval: before, store_as: match1}
      - match: "${q}"
        matchers:
          - pattern: "(\\w+)-(\\d+)?"
            then:
              - {call: inner, store_as: called}
              - {eval: "${[match0, match1, _match_groups, called]}"}
          - {pattern: "none (.*)", then: {eval: null}}
        default: {eval: "default"}
        store_as: found
      - eval: "${[found, match1]}"
"#;
    let given = |q: &str| run(file, json!({ "q": q }));
    assert_eq!(given("ab-12").await.unwrap(), json!([["ab", "12", ["ab", "12"], "ab!"], "before"]));
    assert_eq!(given("ab-").await.unwrap(), json!([["ab", null, ["ab", null], "ab!"], "before"]));
    assert_eq!(given("none x").await.unwrap(), json!(["default", "before"]));
}

#[tokio::test]
async fn keys_of_dicts_are_of_their_type_for_expressions() {
    let file = "
tools:
  - name: t
    input: [{name: i, type: 'dict[int, str]', default: {3: three}}]
    do: {eval: '${[i.get(1), i.get(3), list(i)]}'}
";
    assert_eq!(run(file, json!({"i": {"1": "one"}})).await, Ok(json!(["one", null, [1]])));
    assert_eq!(run(file, json!({})).await, Ok(json!([null, "three", [3]])));
}

#[tokio::test]
async fn wrong_arguments_of_a_nested_call_can_be_caught_by_either_name() {
    for name in ["parsing", "ValidationError"] {
        let file = format!(
            "
tools:
  - import_tool: read_file
  - name: t
    do: [{{call: read_file, params: {{lines: 1}}, catch: {name}}}, {{eval: '${{_.error}}'}}]
"
        );
        assert_eq!(run(&file, json!({})).await, Ok(json!("parsing")));
    }
}

#[tokio::test]
async fn missing_file_is_caught_as_the_exception_that_llm_workers_raises() {
    let file = "
tools:
  - import_tool: read_file
  - name: t
    do:
      - {call: read_file, params: {path: gone, lines: 1}, catch: [ToolException]}
      - {eval: '${_.error}'}
";
    assert_eq!(run(file, json!({})).await, Ok(json!("file_not_found")));
}

#[tokio::test]
async fn local_tools_hide_shared_ones_and_stay_private() {
    let file = "
tools:
  - {name: who, do: {eval: shared}}
  - name: t
    tools: [{name: who, do: {eval: local}}]
    do: {call: who}
  - name: u
    do: {call: who}
";
    let file = loaded(file);
    assert_eq!(call(&file, "t", json!({})).await, Ok(json!("local")));
    assert_eq!(call(&file, "u", json!({})).await, Ok(json!("shared")));
    assert_eq!(file.tools().names().collect::<Vec<_>>(), ["who", "t", "u"]);
}

#[tokio::test]
async fn parallel_elements_keep_their_own_variables_and_the_order() {
    let file = "
tools:
  - {name: id, input: [{name: v, type: int}], do: {eval: '${v}'}}
  - name: t
    do:
      - for_each: '${range(20)}'
        parallelism: 8
        do:
          - {call: id, params: {v: '${_}'}, store_as: mine}
          - eval: '${mine}'
        store_as: all
      - eval: ['${all}', '${mine}']
";
    let want: Vec<i64> = (0..20).collect();
    assert_eq!(run(file, json!({})).await, Ok(json!([want, 19])));
}

fn slow_host(running: &Arc<AtomicUsize>, most: &Arc<AtomicUsize>) -> Host {
    let (running, most) = (running.clone(), most.clone());
    let nap = ToolDef::dynamic(ToolSpec::new("nap", "Sleeps."), move |_: ToolContext, _| {
        let (running, most) = (running.clone(), most.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            ToolOutput::text("done")
        }
    });
    Host::new().builtins(Toolset::new().with(nap).unwrap())
}

#[tokio::test]
async fn parallelism_is_as_wide_as_asked_and_no_wider() {
    let (running, most) = (Arc::default(), Arc::default());
    let file = "
tools:
  - import_tool: nap
  - {name: t, do: {for_each: '${range(9)}', parallelism: 3, do: {call: nap}}}
";
    let file = load(Source::text("t.yaml", file), &slow_host(&running, &most)).unwrap();
    assert_eq!(call(&file, "t", json!({})).await, Ok(json!(vec!["done"; 9])));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_cancelled_flow_stops_between_steps() {
    let (running, most) = (Arc::default(), Arc::default());
    let file = "
tools:
  - import_tool: nap
  - {name: t, do: {for_each: '${range(1000)}', do: {call: nap}}}
";
    let file = load(Source::text("t.yaml", file), &slow_host(&running, &most)).unwrap();
    let run = Run::builder(file.tools().clone()).build().unwrap();
    let work = tokio::spawn({
        let run = run.clone();
        async move { run.call(ToolCall::new("1", "t", json!({}))).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let stopped = Instant::now();
    run.cancel();
    let result = work.await.unwrap();
    assert_eq!(result.error.unwrap().kind, ErrorKind::Cancelled);
    assert!(stopped.elapsed() < Duration::from_secs(20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_out_ends_loops_and_scripts_that_never_wait() {
    for body in [
        "for_each: '${range(900000)}'\n      do: {eval: '${[i * i for i in range(200)]}'}",
        "starlark: |\n        result = 0\n        for i in range(100000000):\n          result = result + i",
    ] {
        let file = format!("tools:\n  - name: t\n    do:\n      {body}\n");
        let limits = FlowLimits {
            expression: toolwright_expr::EvalLimits { steps: u64::MAX, bytes: 1 << 30, ..Default::default() },
            ..FlowLimits::default()
        };
        let file = load(Source::text("t.yaml", file), &Host::new().limits(limits)).unwrap();
        let tool = file.tools().get("t").unwrap().tool.clone();
        let tool = ToolDef::of(tool).with_timeout(Duration::from_millis(80));
        let run = Run::builder(Toolset::new().with(tool).unwrap()).build().unwrap();
        let start = Instant::now();
        let result = run.call(ToolCall::new("1", "t", json!({}))).await.unwrap();
        assert_eq!(result.error.unwrap().kind, ErrorKind::Timeout);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn endless_work_ends_in_a_limit() {
    let nested = "
tools:
  - name: t
    do:
      for_each: '${range(100000)}'
      do: {for_each: '${range(100000)}', do: {eval: 1}}
";
    assert_eq!(run(nested, json!({})).await.unwrap_err(), "limit: the flow runs more statements than it may");
    let hoard = "
tools:
  - name: t
    do: {for_each: '${range(10000)}', do: {eval: \"${'a' * 1000000}\"}}
";
    assert_eq!(run(hoard, json!({})).await.unwrap_err(), "limit: the flow keeps more data than it may");
}

#[tokio::test]
async fn pure_steps_make_no_events_and_calls_are_recorded_under_their_parent() {
    let file = loaded(
        "
tools:
  - {name: double, input: [{name: v, type: int}], do: {eval: '${v * 2}'}}
  - {name: t, do: [{eval: 1}, {eval: 2}, {call: double, params: {v: '${_}'}}, {eval: '${_}'}]}
",
    );
    let events = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = events.clone();
    let run = Run::builder(file.tools().clone())
        .on_event(move |event: &Event| {
            if let EventKind::CallStarted { span, parent, tool, .. } = &event.kind {
                heard.lock().unwrap().push((*span, *parent, tool.to_string()));
            }
        })
        .build()
        .unwrap();
    run.call(ToolCall::new("1", "t", json!({}))).await.unwrap();
    assert_eq!(*events.lock().unwrap(), [(0, None, "t".to_owned()), (1, Some(0), "double".to_owned())]);
}

#[tokio::test]
async fn values_from_tools_are_never_read_as_templates() {
    let file = "
tools:
  - {name: t, input: [{name: x, type: str}], do: [{eval: '${x}'}, {eval: 'got ${_}'}, {eval: {a: '${_}'}}]}
";
    assert_eq!(run(file, json!({"x": "${1/0}"})).await, Ok(json!({"a": "got ${1/0}"})));
}

#[tokio::test]
async fn errors_tell_what_failed_and_the_operator_where() {
    let file = loaded("tools:\n  - {name: t, do: [{eval: '${1/0}'}]}\n");
    let tool = file.tools().get("t").unwrap().tool.clone();
    let error = tool.call(&ToolContext::detached(), json!({})).await.unwrap_err();
    assert_eq!(error.message(), "cannot evaluate `${1/0}`: division by zero");
    let raised = toolwright_lang::raised(&error).unwrap();
    assert_eq!(
        (raised.class(), raised.cause(), raised.place()),
        ("ToolException", Some("ZeroDivisionError"), Some("test.yaml:2:30"))
    );
}

#[tokio::test]
async fn a_failing_script_is_placed_with_its_tool_its_line_and_its_callers() {
    let file = loaded(
        "tools:
  - name: inner
    input: [{name: d, type: dict}]
    do:
      starlark: |
        def a(x):
            return x['missing']
        result = a(d)
  - name: outer
    do:
      - for_each: [{missing: y}, {name: z}]
        do: {call: inner, params: {d: '${_}'}}
  - {name: caught, do: {call: inner, params: {d: {}}, catch: KeyError}}
",
    );
    let failed: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let heard = failed.clone();
    let run = Run::builder(file.tools().clone()).on_event(move |event: &Event| {
        if let EventKind::CallNoted { note: CallNote::Data { value, .. }, .. } = &event.kind {
            heard.lock().unwrap().push(value.as_str().unwrap_or_default().to_owned());
        }
    });
    let run = run.build().unwrap();
    let result = run.call(ToolCall::new("1", "outer", json!({}))).await.unwrap();
    // The model reads what; the operator where.
    assert_eq!(result.error.unwrap().message, "KeyError: 'missing'");
    let inner = "KeyError in `inner` at test.yaml:7:20";
    assert_eq!(*failed.lock().unwrap(), [inner.to_owned(), format!("{inner}, called at test.yaml:12:13")]);
    let caught = call(&file, "caught", json!({})).await.unwrap();
    assert_eq!(caught, json!({"error": "unknown", "message": "KeyError: 'missing'"}));
}

#[tokio::test]
async fn scripts_call_tools_by_name_and_see_copies() {
    let file = "
shared:
  data: {tags: [a]}
tools:
  - {name: double, input: [{name: v, type: int}], do: {eval: '${v * 2}'}}
  - name: t
    do:
      - starlark: |
          tags.append('b')
          result = [double(v=n) for n in [1, 2]] + tags
      - eval: ['${_}', '${tags}']
";
    assert_eq!(run(file, json!({})).await, Ok(json!([[2, 4, "a", "b"], ["a"]])));
}

#[tokio::test]
async fn tools_that_a_script_calls_see_the_flow_around_it() {
    let file = "
tools:
  - {name: inner, input: [{name: q, type: int}], do: {eval: '${q} ${x} ${w}'}}
  - {name: middle, do: {starlark: 'result = inner(q=1)'}}
  - name: t
    input: [{name: x, type: int}]
    tools:
      - {name: items, do: {eval: mine}}
    do:
      - eval: [stored]
        store_as: items
      - eval: W
        store_as: w
      - starlark: |
          x = 99
          result = [inner(q=x), middle(), items()]
";
    // The script's own `x` stays in the script; a tool hides a variable of its name.
    assert_eq!(run(file, json!({"x": 3})).await, Ok(json!(["99 3 W", "1 3 W", "mine"])));
}

#[tokio::test]
async fn settings_reach_the_tool() {
    let file = loaded(
        "
tools:
  - {name: a, confidential: true, do: {eval: 1}}
  - {name: b, require_confirmation: true, do: {eval: 1}}
  - {import_tool: read_file, name: c, return_direct: true, require_confirmation: false, description: Other}
",
    );
    let settings = |name: &str| file.tools().get(name).unwrap().tool.policy().clone();
    assert!(settings("a").confidential && settings("a").return_direct);
    assert_eq!(settings("b").require_confirmation, Some(true));
    assert_eq!((settings("c").return_direct, settings("c").require_confirmation), (true, Some(false)));
    assert_eq!(file.tools().get("c").unwrap().tool.spec().description, "Other");
    let _ = host();
}

/// F12.
#[tokio::test]
async fn how_long_a_call_may_take_is_set_on_a_tool_and_on_a_call() {
    let file = loaded(
        "
tools:
  - {import_tool: read_file}
  - {name: quick, do: {eval: 1}}
  - {name: calls, do: {call: read_file, params: {path: notes.txt}}}
  - {name: limited, timeout: 1.5, do: {call: read_file, params: {path: notes.txt}}}
  - {name: endless, timeout: none, do: {call: read_file, params: {path: notes.txt}, timeout: 3}}
  - {import_tool: read_file, name: read, timeout: 20}
",
    );
    let seconds =
        |name: &str| file.tools().get(name).unwrap().tool.policy().timeout.map(|time| time.as_secs_f64());
    assert_eq!(seconds("quick"), None, "what does not wait is bounded by its fuel");
    assert_eq!(seconds("calls"), Some(600.0));
    assert_eq!(seconds("limited"), Some(1.5));
    assert_eq!((seconds("endless"), seconds("read")), (None, Some(20.0)));
    for wrong in ["0", "-1", "soon", "true"] {
        assert!(
            !problems(&format!("tools: [{{name: a, timeout: {wrong}, do: {{eval: 1}}}}]")).is_empty(),
            "{wrong}"
        );
        let call =
            format!("tools: [{{name: q, do: {{eval: 1}}}}, {{name: a, do: {{call: q, timeout: {wrong}}}}}]");
        assert!(!problems(&call).is_empty(), "{wrong}");
    }
}

#[tokio::test]
async fn rules_follow_an_imported_tool_to_its_new_name() {
    let file =
        loaded("tools: [{import_tool: read_file, name: look}, {import_tool: read_file, description: Same}]");
    let known = |name: &str| file.tools().get(name).unwrap().tool.policy().known_as.clone();
    assert_eq!(known("look").iter().map(|name| &**name).collect::<Vec<_>>(), ["read_file"]);
    assert!(known("read_file").is_empty());
}

#[tokio::test]
async fn a_number_that_a_flow_computes_is_no_text_for_an_imported_tool() {
    let file = "
tools:
  - import_tool: validate_approval
  - name: t
    input: [{name: x, type: any}]
    do:
      - call: validate_approval
        params:
          approval_token: '${x}'
";
    let file = loaded(file);
    assert_eq!(call(&file, "t", json!({"x": "5"})).await, Ok(json!("fine")));
    // A model that writes a number means the text.
    assert_eq!(call(&file, "validate_approval", json!({"approval_token": 5})).await, Ok(json!("fine")));
    let run = Run::builder(file.tools().clone()).build().unwrap();
    let wrong = ToolCall::new("1", "t", json!({"x": 5}));
    let outcome = run.dispatch().invoke(&context(&run), Invocation::new(wrong).within(file.tools())).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parsing);
    assert_eq!(error.message(), "the arguments do not fit:\n- `approval_token`: 5 is not text");
    assert_eq!(error.hint_text(), Some("`${str(...)}` makes text of a number"));
    let raised = toolwright_lang::raised(&error).unwrap();
    assert_eq!((raised.class(), raised.place()), ("ValidationError", Some("test.yaml:9:28")));
}

fn context(run: &Run) -> ToolContext {
    ToolContext::new(
        run.dispatch(),
        CallInfo { call_id: "root".into(), tool: "root".into(), span: u64::MAX, ..CallInfo::default() },
    )
}

#[tokio::test]
async fn a_file_says_how_long_its_scripts_may_be() {
    let file = |limits: &str| {
        format!(
            "{limits}
tools:
  - name: t
    do:
      starlark: |
        n = 0
        for i in range(100000):
            n = n + i
        result = n
"
        )
    };
    // More than an expression may take, and an ordinary script.
    assert_eq!(run(&file(""), json!({})).await, Ok(json!(4_999_950_000_u64)));
    let text = file("limits: {steps: 1000}");
    let mut file = SourceFile::parse(Source::text("test.yaml", text));
    file.section("limits", |_| Ok(()));
    let needs = file.needs(&Wanted::everything());
    let loaded = file.bind(&host(), &needs).compile(&HashMap::new()).into_result().unwrap();
    let tool = loaded.tools().get("t").unwrap().tool.clone();
    let error = tool.call(&ToolContext::detached(), json!({})).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.hint_text()),
        (ErrorKind::Limit, Some("`limits: {steps: ...}` in the file allows more"))
    );
    assert_eq!(toolwright_lang::raised(&error).unwrap().tool(), Some("t"));
}

const PROMISES: &str = "
tools:
  - name: listed
    input: [{name: n, type: any}]
    output: list[int]
    annotations: {title: Numbers, read_only: yes, open_world: false}
    do: {eval: '${n}'}
  - name: described
    input: [{name: n, type: any}]
    output: {type: object, properties: {n: {type: integer}}, required: [n]}
    do: {eval: {n: '${n}'}}
  - name: open
    do: {eval: 1}
";

#[tokio::test]
async fn a_result_is_what_its_output_says_or_an_error() {
    let file = loaded(PROMISES);
    let spec = |name: &str| file.tools().get(name).unwrap().tool.spec().clone();
    assert_eq!(spec("listed").output_schema, Some(json!({"type": "array", "items": {"type": "integer"}})));
    let said = spec("listed").annotations;
    assert_eq!(
        (said.title.as_deref(), said.read_only, said.destructive),
        (Some("Numbers"), Some(true), None)
    );
    assert_eq!(said.open_world, Some(false));
    assert_eq!(spec("described").output_schema.unwrap()["required"], json!(["n"]));
    assert!(spec("open").output_schema.is_none() && spec("open").annotations.is_empty());
    assert_eq!(call(&file, "listed", json!({"n": [1, 2]})).await, Ok(json!([1, 2])));
    assert_eq!(call(&file, "described", json!({"n": 3})).await, Ok(json!({"n": 3})));
    for (tool, wrong) in [("listed", json!(["x"])), ("listed", json!(3)), ("described", json!("x"))] {
        let error = call(&file, tool, json!({"n": wrong})).await.unwrap_err();
        assert!(error.contains(&format!("the result of `{tool}` is not what its `output` says")), "{error}");
    }
    let file = "tools:\n  - {name: a, output: lst, do: {eval: 1}}\n  - {name: b, output: {type: 7}, do: {eval: 1}}\n  - {name: c, annotations: {readonly: true}, do: {eval: 1}}\n";
    let told = problems(file);
    assert!(told[0].starts_with("2:23 unknown type `lst`"), "{told:?}");
    assert!(told[1].starts_with("3:23 `output` is not a usable JSON Schema"), "{told:?}");
    assert!(told[2].contains("readonly"), "{told:?}");
}
