//! What the tests share: a few tools, and ears for the events of a run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_core::{ToolCall, ToolContext, ToolDef, ToolError, ToolSpec, Toolset};
use toolwright_runtime::{Event, EventKind, RunBuilder};

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Pair {
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
}

pub(crate) fn add() -> ToolDef {
    ToolDef::typed("add", "Adds two numbers.", |_: ToolContext, pair: Pair| async move { pair.x + pair.y })
}

/// A tool without parameters that does what the closure says.
pub(crate) fn plain<F, Fut>(name: &str, code: F) -> ToolDef
where
    F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    ToolDef::dynamic(ToolSpec::new(name, "A tool."), move |context, _| code(context))
}

/// A tool that takes so long.
pub(crate) fn sleeper(name: &str, time: Duration) -> ToolDef {
    let said = name.to_owned();
    plain(name, move |_| {
        let said = said.clone();
        async move {
            tokio::time::sleep(time).await;
            Ok(said)
        }
    })
}

pub(crate) fn tools(all: impl IntoIterator<Item = ToolDef>) -> Toolset {
    all.into_iter().fold(Toolset::new(), |set, tool| set.with(tool).unwrap())
}

pub(crate) fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(format!("id-{tool}"), tool, arguments)
}

pub(crate) fn bare(tool: &str) -> ToolCall {
    call(tool, json!({}))
}

/// Has another tool each time it is asked: `tool_0`, then `tool_1`.
#[derive(Default)]
pub(crate) struct Growing(std::sync::atomic::AtomicU32);

impl toolwright_core::ToolSource for Growing {
    fn name(&self) -> &str {
        "growing"
    }

    async fn tools(&self) -> Result<Toolset, ToolError> {
        let n = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let tool = plain(&format!("tool_{n}"), |_| async { Ok("found".into()) });
        Ok(tools([tool]))
    }
}

/// Hears every event of a run.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<Vec<Event>>>);

impl Ears {
    pub(crate) fn on(&self, builder: RunBuilder) -> RunBuilder {
        let heard = self.0.clone();
        builder.on_event(move |event: &Event| heard.lock().unwrap().push(event.clone()))
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// The kinds of event, in order, as short words.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |event: &Event| serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned();
        self.events().iter().map(word).collect()
    }

    /// Checks that numbers have no gaps and that every call was closed exactly once.
    pub(crate) fn check(&self) {
        let events = self.events();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event.seq, index as u64);
        }
        let mut open = std::collections::BTreeMap::new();
        for event in &events {
            match &event.kind {
                EventKind::CallStarted { span, .. } => {
                    assert!(open.insert(*span, 0).is_none(), "span {span} opened twice")
                }
                EventKind::CallFinished { span, .. } => {
                    *open.get_mut(span).expect("closed before opened") += 1
                }
                _ => {}
            }
        }
        assert!(open.values().all(|closed| *closed == 1), "{open:?}");
    }
}
