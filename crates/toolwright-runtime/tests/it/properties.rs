//! What holds for any input and any order of things.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolwright_core::{ToolCall, ToolDef, ToolSpec};
use toolwright_runtime::{Run, RunLimits};

use crate::support::{Ears, add, sleeper, tools};

fn any_tool() -> ToolDef {
    let mut spec = ToolSpec::new("any", "Takes all kinds.");
    spec.parameters = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"}, "count": {"type": "integer", "minimum": 0}, "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/node"}]}},
            "either": {"oneOf": [{"const": "a"}, {"enum": [1, 2]}]}
        },
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}
    });
    ToolDef::dynamic(spec, |_, arguments: Value| async move { arguments })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_map(|number| serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)),
        ".*".prop_map(Value::from),
        "[0-9.eE+-]{1,12}".prop_map(Value::from),
        Just(Value::from("[1, 2")),
        Just(Value::from("{\"next\": {}}")),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        let key = prop_oneof!["[a-z]{0,4}", "text|count|flag|list|either|next"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_value_as_arguments_gives_a_typed_result(arguments in any_json(), name in "any|add|[a-z]{0,5}") {
        runtime().block_on(async {
            let run = Run::builder(tools([any_tool(), add()])).build().unwrap();
            let result = run.call(ToolCall::new("1", name, arguments)).await;
            prop_assert!(result.is_ok(), "{result:?}");
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_as_argument_text_give_a_typed_result(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        runtime().block_on(async {
            let run = Run::builder(tools([any_tool()])).build().unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            for text in [text.clone(), format!("{{{text}"), format!("{{\"text\": {text}}}"), format!("```\n{text}\n```")] {
                let result = run.call(ToolCall::new("1", "any", Value::String(text))).await;
                prop_assert!(result.is_ok(), "{result:?}");
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Calls that take 0 to 40 ms, under time-outs of 1 to 40 ms, in batches, some cancelled, some dropped,
    /// some ended by the run's own end: every record is closed exactly once.
    #[test]
    fn any_order_of_cancel_time_out_and_finish_closes_every_call_once(
        works in prop::collection::vec((0_u64..40, 1_u64..40, any::<bool>()), 1..6),
        cancel_at in 0_u64..50, which in 0_usize..6, drop_at in 0_u64..80, end_at in 0_u64..80,
    ) {
        runtime().block_on(async {
            let all = works.iter().enumerate().map(|(index, (time, timeout, parallel))| {
                sleeper(&format!("t{index}"), Duration::from_millis(*time))
                    .with_parallel(*parallel)
                    .with_timeout(Duration::from_millis(*timeout))
            });
            let ears = Ears::default();
            let limits = RunLimits { wall_time: Some(0.1), ..RunLimits::default() };
            let run = ears.on(Run::builder(tools(all)).limits(limits)).build().unwrap();
            let calls = (0..works.len()).map(|index| ToolCall::new(format!("c{index}"), format!("t{index}"), json!({}))).collect();
            let batch = tokio::spawn({ let run = run.clone(); async move { run.call_all(calls).await } });
            let canceller = tokio::spawn({
                let run = run.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(cancel_at)).await;
                    run.cancel_call(&format!("c{which}"));
                }
            });
            let ender = tokio::spawn({
                let run = run.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(end_at)).await;
                    run.cancel();
                }
            });
            tokio::time::sleep(Duration::from_millis(drop_at)).await;
            batch.abort();
            let _ = batch.await;
            canceller.await.unwrap();
            ender.await.unwrap();
            // Tasks that were aborted are dropped at their next turn.
            tokio::time::sleep(Duration::from_secs(1)).await;
            ears.check();
            prop_assert!(run.active_calls().is_empty());
            Ok(())
        })?;
    }
}
