//! The record of an agent's session: one run, to which every hook process adds its events.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolwright::content::{Content, ToolCall, ToolResult, Truncation};
use toolwright::events::{Event, EventKind, FORMAT_VERSION, Transcript, TranscriptWriter};
use toolwright::run::RunEnd;
use toolwright::tool::{ErrorInfo, ErrorKind};
use toolwright_core::text;

use crate::args::HookClient;
use crate::hook::contract::{HookInput, Verdict};
use crate::report;
use crate::runs;

/// How long another hook of the same session is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of a result that are kept.
const MAX_RESULT: usize = 16 * 1024;

/// The record of one session, open for this process alone.
pub struct SessionRecord {
    writer: TranscriptWriter,
    earlier: Transcript,
}

impl SessionRecord {
    /// Opens, or begins, the record of the session that an event belongs to.
    pub fn open(client: HookClient, input: &HookInput, named: Option<&Path>) -> anyhow::Result<Self> {
        let (path, run_id) = match named {
            Some(path) => (path.to_owned(), run_id(&mark(client, input))),
            None => in_folder(&mark(client, input))?,
        };
        let redactor = runs::record::redactor([]);
        let (writer, earlier) =
            TranscriptWriter::join(&path, redactor, PATIENCE).map_err(report::unusable)?;
        let mut record = SessionRecord { writer, earlier };
        let last = record.earlier.events.last().map(|event| &event.kind);
        if matches!(last, None | Some(EventKind::RunFinished { .. })) {
            let labels = [
                ("command", format!("hook: {}", client.name())),
                ("program", crate::version::SHORT.to_owned()),
                ("folder", input.cwd.clone().unwrap_or_default()),
                ("session", text::clip(&input.session_id, 200)),
            ];
            record.writer.append(EventKind::RunStarted {
                version: FORMAT_VERSION,
                run_id,
                labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                tools: Vec::new(),
            })?;
        }
        Ok(record)
    }

    /// Records a call and what the rules say about it. A call that is refused is over.
    pub fn decided(&mut self, input: &HookInput, verdict: &Verdict) -> anyhow::Result<()> {
        // An agent that asks for permission has asked about the call before.
        let (span, _) = self.call(input)?;
        let (decision, reason, arguments) = match verdict {
            Verdict::Allow { changed: None } => ("approve", None, None),
            Verdict::Allow { changed } => ("modify", None, changed.clone()),
            Verdict::Ask { reason, changed } => ("escalate", Some(reason), changed.clone()),
            Verdict::Deny { reason, end: false } => ("reject", Some(reason), None),
            Verdict::Deny { reason, end: true } => ("terminate", Some(reason), None),
        };
        self.writer.append(EventKind::CallDecided {
            span,
            approver: "policy".to_owned(),
            decision: decision.to_owned(),
            reason: reason.cloned(),
            arguments,
        })?;
        if let Verdict::Deny { reason, .. } = verdict {
            let error = ErrorInfo { kind: ErrorKind::Approval, message: reason.clone(), hint: None };
            self.close(input, span, Duration::ZERO, Err(error))?;
        }
        Ok(())
    }

    /// Records how a call ended.
    pub fn finished(&mut self, input: &HookInput) -> anyhow::Result<()> {
        let (span, started) = self.call(input)?;
        let duration = started.and_then(|time| time.elapsed().ok()).unwrap_or_default();
        let outcome = match &input.error {
            None => Ok(&input.tool_response),
            Some(error) => Err(ErrorInfo {
                kind: ErrorKind::Unknown,
                message: text::clip(error, MAX_RESULT),
                hint: None,
            }),
        };
        self.close(input, span, duration, outcome)
    }

    /// Records the end of the session. A call without a result was not made, or cut off.
    pub fn ended(&mut self) -> anyhow::Result<()> {
        for span in self.earlier.open_calls() {
            let message = "the agent reported no result of the call".to_owned();
            let error = Some(ErrorInfo { kind: ErrorKind::Cancelled, message, hint: None });
            let duration = Duration::ZERO;
            self.writer.append(EventKind::CallFinished {
                span,
                duration,
                interrupted: true,
                error,
                result: None,
            })?;
        }
        Ok(self.writer.append(EventKind::RunFinished { end: RunEnd::Done })?)
    }

    /// The number of a call that is under way, and when it began; a call that is not known begins now.
    fn call(&mut self, input: &HookInput) -> anyhow::Result<(u64, Option<SystemTime>)> {
        let open = self.earlier.open_calls();
        let is_meant = |event: &&Event| match &event.kind {
            EventKind::CallStarted { span, call_id, tool, arguments, .. } if open.contains(span) => {
                match &input.tool_use_id {
                    Some(id) => **call_id == **id,
                    None => **tool == *input.tool_name && *arguments == input.tool_input,
                }
            }
            _ => false,
        };
        let known = self.earlier.events.iter().rev().find(is_meant);
        if let Some(Event { time, kind: EventKind::CallStarted { span, .. }, .. }) = known {
            return Ok((*span, Some(*time)));
        }
        let span = self.writer.new_span();
        self.writer.append(EventKind::CallStarted {
            span,
            parent: None,
            call_id: input.tool_use_id.as_deref().unwrap_or_default().into(),
            tool: input.tool_name.as_str().into(),
            arguments: input.tool_input.clone(),
        })?;
        Ok((span, None))
    }

    fn close(
        &mut self,
        input: &HookInput,
        span: u64,
        duration: Duration,
        outcome: Result<&Value, ErrorInfo>,
    ) -> anyhow::Result<()> {
        let id = input.tool_use_id.as_deref().unwrap_or_default();
        let call = ToolCall::new(id, input.tool_name.as_str(), Value::Null);
        let no_error = ErrorInfo { kind: ErrorKind::Unknown, message: String::new(), hint: None };
        let (result, error) = match outcome {
            Err(error) => (ToolResult::failed(&call, error.clone()), Some(error)),
            Ok(response) => {
                let (content, truncated) = bounded(response);
                let content = vec![content];
                let result =
                    ToolResult { content, truncated, error: None, ..ToolResult::failed(&call, no_error) };
                (result, None)
            }
        };
        let (interrupted, result) = (false, Some(result));
        Ok(self.writer.append(EventKind::CallFinished { span, duration, interrupted, error, result })?)
    }
}

/// A result as it is kept, and what is missing of it.
fn bounded(response: &Value) -> (Content, Option<Truncation>) {
    let whole = match response {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if whole.len() > MAX_RESULT {
        let (head, tail) = (text::head(&whole, MAX_RESULT / 2), text::tail(&whole, MAX_RESULT / 2));
        let left_out = whole.len() - head.len() - tail.len();
        let cut = format!("{head}\n[… {left_out} of {} bytes left out …]\n{tail}", whole.len());
        return (Content::text(cut), Some(Truncation { original: whole.len(), limit: MAX_RESULT }));
    }
    let content = match response {
        Value::String(text) => Content::text(text.clone()),
        other => Content::json(other.clone()),
    };
    (content, None)
}

/// What the records of a session have in their names.
fn mark(client: HookClient, input: &HookInput) -> String {
    let hash = Sha256::digest(format!("{}\n{}", client.name(), input.session_id));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The record of a session in the folder of runs. Hooks of one message run at the same time, so one of them
/// makes the name.
fn in_folder(mark: &str) -> anyhow::Result<(PathBuf, Arc<str>)> {
    let folder =
        runs::folder().context("cannot record the call: HOME is not set (--no-record says this is meant)")?;
    runs::record::make(&folder)
        .with_context(|| format!("cannot record the call in `{}`", folder.display()))?;
    let lock = std::fs::File::create(folder.join(".hooks"))?;
    lock.lock().context("cannot lock the folder of runs")?;
    let ending = format!("-{mark}-0");
    if let Some(path) = runs::list().into_iter().find(|path| runs::id_of(path).ends_with(&ending)) {
        let id = runs::id_of(&path).into();
        return Ok((path, id));
    }
    runs::prune();
    let id = run_id(mark);
    let path = runs::file(&id)?;
    // It is there before the lock is given back.
    drop(std::fs::OpenOptions::new().append(true).create(true).open(&path)?);
    Ok((path, id))
}

fn run_id(mark: &str) -> Arc<str> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:013x}-{mark}-0", since.as_micros()).into()
}
