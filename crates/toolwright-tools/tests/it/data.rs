//! Tools on data in their arguments, called as a model calls them. A filter runs in a worker, which is this
//! test program started again.

use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolCall, ToolResult, Toolset};
use toolwright_runtime::Run;
use toolwright_tools::resolve;

use crate::support::{block_on, value_of};

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok::<(), Failed>(())
        })
    };
    vec![
        trial("data::tools_answer_under_both_names", tools_answer_under_both_names),
        trial("data::filter_without_end_is_stopped", filter_without_end_is_stopped),
        trial("data::filter_sees_nothing_of_the_machine", filter_sees_nothing_of_the_machine),
    ]
}

fn call(reference: &str, arguments: Value) -> ToolResult {
    let tool = resolve(reference).unwrap();
    let name = tool.spec().name.clone();
    let run = Run::builder(Toolset::new().with(tool).unwrap()).build().unwrap();
    block_on(async { run.call(ToolCall::new("1", &*name, arguments)).await.unwrap() })
}

fn tools_answer_under_both_names() {
    for prefix in ["", "marsys."] {
        let csv = call(&format!("{prefix}parse_csv"), json!({"csv_text": "a,b\n1,x\n"}));
        assert_eq!(value_of(&csv), json!([{"a": "1", "b": "x"}]));
        let data = json!({"data": [1, 2, 3, 4], "operations": ["mean", "max"]});
        assert_eq!(value_of(&call(&format!("{prefix}analyze_data"), data)), json!({"mean": 2.5, "max": 4.0}));
        let json = json!({"json_data": {"l": [3, 1, 2]}, "jq_filter": ".l | sort | {first: .[0]}"});
        assert_eq!(value_of(&call(&format!("{prefix}transform_json"), json)), json!({"first": 1}));
    }
    let wrong = call("transform_json", json!({"json_data": {}, "jq_filter": ".["}));
    assert_eq!(wrong.error.unwrap().kind, ErrorKind::Unknown);
    let list = call("transform_json", json!({"json_data": [1], "jq_filter": "."}));
    assert_eq!(list.error.unwrap().kind, ErrorKind::Parsing);
}

fn filter_without_end_is_stopped() {
    for filter in ["def f: f; f", "[range(1e12)]", "last(repeat(1))", "[recurse([., .])]", "\"x\" * 1e12"] {
        let start = Instant::now();
        let result = call("transform_json", json!({"json_data": {"a": 1}, "jq_filter": filter}));
        let error = result.error.unwrap_or_else(|| panic!("{filter} ended"));
        let stopped = [ErrorKind::Timeout, ErrorKind::Limit, ErrorKind::OutputLimit, ErrorKind::Unknown]
            .contains(&error.kind);
        assert!(stopped, "{filter}: {error:?}");
        assert!(start.elapsed() < Duration::from_secs(60), "{filter} took {:?}", start.elapsed());
    }
}

fn filter_sees_nothing_of_the_machine() {
    let env = call("transform_json", json!({"json_data": {}, "jq_filter": "env"}));
    assert_eq!(value_of(&env), json!({}));
    for filter in ["import \"a\" as $a; $a", "include \"a\"; .", "input", "halt_error"] {
        let result = call("transform_json", json!({"json_data": {"a": 1}, "jq_filter": filter}));
        assert!(result.error.is_some(), "{filter}: {result:?}");
    }
}
