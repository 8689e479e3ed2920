//! What the page asks for, as JSON.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use toolwright_util::lock;

use serde_json::{Value, json};
use toolwright::approval::call_text;
use toolwright::content::ToolCall;
use toolwright::events::{Event, EventKind};
use toolwright_core::text;

use crate::commands::runs::summary;
use crate::runs;
use crate::runs::index::{Index, ItemState, TimelineItem, TimelineKind};
use crate::runs::source::TranscriptSource;

/// Runs listed at once, items given at once, items found at once, transcripts kept open at once.
const RUNS: usize = 50;
const ITEMS: usize = 200;
const FOUND: usize = 20_000;
const OPEN: usize = 64;

/// How many bars a chart has at most.
const BARS: usize = 160;

/// Events longer than this are not read for a row of the list.
const ROW_BYTES: u64 = 1 << 20;

pub enum ApiResponse {
    Json(Value),
    NotFound,
    Failed(String),
}

pub struct Api {
    /// A transcript that was named by its path.
    extra: Option<PathBuf>,
    open: Mutex<HashMap<PathBuf, Arc<Mutex<TranscriptSource>>>>,
}

impl Api {
    pub fn new(extra: Option<PathBuf>) -> Self {
        Api { extra, open: Mutex::default() }
    }

    pub fn answer(&self, path: &str, query: &str) -> ApiResponse {
        let parts: Vec<&str> = path.split('/').collect();
        let outcome = match parts.as_slice() {
            ["runs"] => Ok(Some(self.runs(number(query, "offset")))),
            ["run", id, rest @ ..] => self.run(&decode(id), rest, query),
            _ => Ok(None),
        };
        match outcome {
            Ok(Some(value)) => ApiResponse::Json(value),
            Ok(None) => ApiResponse::NotFound,
            Err(error) => ApiResponse::Failed(format!("{error:#}")),
        }
    }

    /// How long a run's file is, to see whether it grows.
    pub fn size(&self, id: &str) -> Option<u64> {
        std::fs::metadata(self.path(&decode(id))?).ok().map(|found| found.len())
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.extra.iter().cloned().chain(runs::list()).collect()
    }

    /// The file of a run. Only names that the list has are files.
    fn path(&self, id: &str) -> Option<PathBuf> {
        self.paths().into_iter().find(|path| runs::id_of(path) == id)
    }

    /// The run's source, with what was added since it was last looked at.
    fn source(&self, path: PathBuf) -> anyhow::Result<Arc<Mutex<TranscriptSource>>> {
        let known = self.lock().get(&path).cloned();
        if let Some(source) = known {
            let mut held = lock(&source);
            held.index.update(&path)?;
            drop(held);
            return Ok(source);
        }
        let source = Arc::new(Mutex::new(TranscriptSource::open(&path)?));
        let mut open = self.lock();
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(path, source.clone());
        Ok(source)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Mutex<TranscriptSource>>>> {
        lock(&self.open)
    }

    fn runs(&self, offset: usize) -> Value {
        let paths = self.paths();
        let page = paths.iter().skip(offset).take(RUNS).filter_map(|path| {
            let source = self.source(path.clone()).ok()?;
            let held = lock(&source);
            let mut value = summary(path, &held.index);
            let first = held.index.items.iter().find_map(|item| item.call.as_ref());
            set(&mut value, "about", first.map_or("", |call| held.index.name_of(call.tool)));
            Some(value)
        });
        json!({"runs": page.collect::<Vec<_>>(), "all": paths.len()})
    }

    fn run(&self, id: &str, rest: &[&str], query: &str) -> anyhow::Result<Option<Value>> {
        let Some(path) = self.path(id) else { return Ok(None) };
        let source = self.source(path.clone())?;
        let source = lock(&source);
        let index = &source.index;
        Ok(match rest {
            [] => {
                let mut value = summary(&path, index);
                set(&mut value, "items", index.items.len());
                set(&mut value, "started_us", index.started);
                set(&mut value, "chart", chart(index));
                set(&mut value, "tools", tools(index));
                Some(value)
            }
            ["items"] => {
                let numbers: Vec<usize> = match text_of(query, "list") {
                    Some(list) => list.split(',').filter_map(|text| text.parse().ok()).take(ITEMS).collect(),
                    None => {
                        let from = number(query, "from");
                        (from..from.saturating_add(number(query, "count").min(ITEMS))).collect()
                    }
                };
                let running = index.is_running();
                let rows = numbers
                    .into_iter()
                    .filter_map(|number| Some(row(&source, number, index.items.get(number)?, running)));
                Some(rows.collect::<Vec<_>>().into())
            }
            ["item", number] => {
                let item = number.parse().ok().and_then(|number: usize| index.items.get(number));
                match item {
                    None => None,
                    Some(item) => {
                        let whole = source.whole(item)?;
                        Some(json!({
                            "event": whole.event, "decided": whole.decided, "finished": whole.finished, "notes": whole.notes
                        }))
                    }
                }
            }
            ["filter"] => Some(filter(&source, query)?),
            _ => None,
        })
    }
}

/// Adds a field to an object.
fn set(value: &mut Value, name: &str, field: impl Into<Value>) {
    if let Some(map) = value.as_object_mut() {
        map.insert(name.to_owned(), field.into());
    }
}

/// One line of the list.
fn row(source: &TranscriptSource, number: usize, item: &TimelineItem, running: bool) -> Value {
    let index = &source.index;
    let event = if item.at.1 <= ROW_BYTES { source.event(item.at).ok() } else { None };
    let words = match event {
        Some(Event { kind: EventKind::MessageAdded { message }, .. }) => {
            let said = message.text();
            match &message {
                toolwright::content::Message::Assistant(answer) if said.is_empty() => {
                    let names: Vec<&str> = answer.tool_calls.iter().map(|call| &*call.name).collect();
                    format!("asks for {}", names.join(", "))
                }
                toolwright::content::Message::Tool(result) => {
                    let why = result.error.as_ref().map(|error| error.message.as_str());
                    [said.as_str()].into_iter().chain(why).collect::<Vec<_>>().join(" ")
                }
                _ => said,
            }
        }
        Some(Event { kind: EventKind::CallStarted { call_id, tool, arguments, .. }, .. }) => {
            call_text(&ToolCall::new(call_id, tool, arguments))
        }
        Some(Event { kind: EventKind::LimitHit { limit }, .. }) => limit.to_string(),
        Some(Event { kind: EventKind::RunFinished { end }, .. }) => runs::story::end_text(&end),
        event => event
            .and_then(|event| runs::story::turn_text(&event.kind))
            .unwrap_or_else(|| format!("{} bytes", item.at.1)),
    };
    let words = text::clip(&words.replace('\n', " "), 300);
    let mut value = json!({"number": number, "kind": item.kind, "time": item.time, "text": words});
    if let Some(call) = &item.call {
        set(&mut value, "tool", index.name_of(call.tool));
        set(&mut value, "depth", call.depth);
        set(&mut value, "state", json!(call.state_in(running)));
        set(&mut value, "duration_us", call.duration_us);
    } else if let Some(reply) = item.reply.and_then(|reply| index.replies.get(reply as usize)) {
        set(&mut value, "duration_us", reply.duration_us);
    }
    value
}

/// The items that match what is searched for.
fn filter(source: &TranscriptSource, query: &str) -> anyhow::Result<Value> {
    let index = &source.index;
    let (found, cut) = match text_of(query, "q").filter(|text| !text.is_empty()) {
        Some(text) => {
            let found = source.search(&text, FOUND + 1)?;
            let cut = found.len() > FOUND;
            (found, cut)
        }
        None => ((0..index.items.len()).collect(), false),
    };
    let tool = text_of(query, "tool").filter(|tool| !tool.is_empty());
    let failed = text_of(query, "failed").is_some_and(|text| !text.is_empty());
    let running = index.is_running();
    let wanted = |item: &TimelineItem| {
        let call = item.call.as_ref();
        let right_tool = |tool: &String| call.is_some_and(|call| index.name_of(call.tool) == *tool);
        let bad = match (call, item.kind) {
            (Some(call), _) => !matches!(call.state_in(running), ItemState::Ok | ItemState::Running),
            (None, kind) => {
                matches!(kind, TimelineKind::Limit | TimelineKind::Failed)
                    || (kind == TimelineKind::End && index.status != "done")
            }
        };
        tool.as_ref().is_none_or(right_tool) && (!failed || bad)
    };
    let mut numbers: Vec<usize> =
        found.into_iter().filter(|number| index.items.get(*number).is_some_and(wanted)).collect();
    let more = cut || numbers.len() > FOUND;
    numbers.truncate(FOUND);
    Ok(json!({"items": numbers, "more": more}))
}

/// Tokens and money per turn; of very many turns, several share a bar.
fn chart(index: &Index) -> Value {
    let per_bar = index.replies.len().div_ceil(BARS).max(1);
    let bars = index.replies.chunks(per_bar).map(|replies| {
        let sum = |what: fn(&toolwright::model::Usage) -> u64| replies.iter().map(|reply| what(&reply.usage)).sum::<u64>();
        let cost: f64 = replies.iter().map(|reply| reply.cost).sum();
        json!({"input": sum(|usage| usage.input_tokens), "output": sum(|usage| usage.output_tokens), "cost": cost})
    });
    bars.collect::<Vec<_>>().into()
}

/// How often each tool was called, how often it failed, and how long it took in all.
fn tools(index: &Index) -> Value {
    let mut tools: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let running = index.is_running();
    for call in index.items.iter().filter_map(|item| item.call.as_ref()) {
        let (calls, errors, time) = tools.entry(index.name_of(call.tool)).or_default();
        *calls += 1;
        *errors += u64::from(!matches!(call.state_in(running), ItemState::Ok | ItemState::Running));
        *time += call.duration_us.unwrap_or_default();
    }
    let tools = tools.into_iter().map(|(name, (calls, errors, total_us))| {
        json!({"name": name, "calls": calls, "errors": errors, "total_us": total_us})
    });
    tools.collect::<Vec<_>>().into()
}

fn text_of(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| decode(value))
}

fn number(query: &str, name: &str) -> usize {
    text_of(query, name).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Undoes what a browser does to text in an address.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut ahead = rest.clone();
                match (digit(ahead.next()), digit(ahead.next())) {
                    (Some(high), Some(low)) => {
                        bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                        rest = ahead;
                    }
                    _ => bytes.push(byte),
                }
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_back() {
        assert_eq!(decode("a%20b+c%C3%A9%zz%"), "a b cé%zz%");
        assert_eq!(text_of("q=no+such&tool=", "q").as_deref(), Some("no such"));
        assert_eq!((number("from=12", "from"), number("from=-1", "from")), (12, 0));
    }
}
