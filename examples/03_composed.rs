//! Tools that call tools, and wrappers that make any tool safe, patient, quick or slow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright::content::ToolCall;
use toolwright::events::{Event, EventKind};
use toolwright::tool::{CallNote, Retry, ToolExt as _};
use toolwright::{Run, ToolContext, ToolError, Toolset, tool};

/// Searches a (very small) library.
#[tool(read_only)]
async fn search(
    /// What to look for.
    topic: String,
    /// How many hits at the most.
    #[tool(default = 3, min = 1, max = 10)]
    limit: usize,
) -> Vec<String> {
    ["cats", "catalogues", "dogs", "cathedrals"]
        .iter()
        .filter(|title| title.starts_with(&topic))
        .take(limit)
        .map(|title| format!("On {title}"))
        .collect()
}

/// Fetches a book. The first attempt always fails.
#[tool(read_only)]
async fn fetch(
    /// The book's title.
    title: String,
) -> Result<String, ToolError> {
    static ATTEMPTS: AtomicU32 = AtomicU32::new(0);
    if ATTEMPTS.fetch_add(1, Ordering::SeqCst) == 0 {
        return Err(ToolError::new("the library is closed for lunch"));
    }
    Ok(format!("{title}: {} pages", title.len() * 10))
}

/// Researches a topic: one search, then every hit.
#[tool(read_only)]
async fn research(
    context: &ToolContext,
    /// The topic.
    topic: String,
    /// How thorough to be.
    #[tool(default = Depth::Shallow)]
    depth: Depth,
) -> Result<Value, ToolError> {
    let limit = match depth {
        Depth::Shallow => 1,
        Depth::Deep => 10,
    };
    let hits = context.call("search", json!({"topic": topic, "limit": limit})).await?.value();
    let mut sources = Vec::new();
    for hit in hits.as_array().into_iter().flatten() {
        sources.push(context.call("fetch", json!({"title": hit})).await?.value());
    }
    Ok(json!({"topic": topic, "source_count": sources.len(), "sources": sources}))
}

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Depth {
    Shallow,
    Deep,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fetch = fetch()
        .retry(Retry::times(3).pause(Duration::from_millis(1)))
        .cached(Duration::from_secs(60))
        .rate_limited(100, Duration::from_secs(1));
    let tools = Toolset::of((search(), fetch, research().safe()))?;
    let run = Run::builder(tools)
        .on_event(|event: &Event| match &event.kind {
            EventKind::CallStarted { tool, parent, .. } => {
                println!("{}{tool}", if parent.is_some() { "  " } else { "" })
            }
            EventKind::CallNoted { note: CallNote::Retry { error, .. }, .. } => {
                println!("  again, because {error}")
            }
            EventKind::CallNoted { note: CallNote::CacheHit { .. }, .. } => println!("  (from the cache)"),
            _ => {}
        })
        .build()?;
    for depth in ["shallow", "deep"] {
        let result =
            run.call(ToolCall::new("1", "research", json!({"topic": "cat", "depth": depth}))).await?;
        println!("{}\n", result.to_text());
    }
    Ok(())
}
