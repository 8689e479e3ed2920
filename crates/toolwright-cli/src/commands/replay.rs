//! `toolwright replay`: a recorded run again, offline.
//!
//! Everything but the work is real: calls are parsed, found, validated, approved and bounded as today's tools, file and
//! policy say; the model's answers and what the tools gave back come from the record.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolwright::{
    ApprovalRequest, Approver, AssistantMessage, BoxFuture, Conversation, Decision, Envelope, ErrorKind,
    Event, EventKind, Executor, Message, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, Run,
    RunEnd, ToolCall, ToolContext, ToolDef, ToolError, ToolOutput, ToolResult, ToolSpec, Toolset, Transcript,
};

use crate::args::Replay;
use crate::commands::{ask, diff};
use crate::prompt::printable;
use crate::runs::{self, story};
use crate::{files, report, toolbox};

pub async fn run(what: Replay, json: bool) -> anyhow::Result<()> {
    let path = runs::find(&what.run)?;
    let transcript = Transcript::load(&path).map_err(report::unusable)?;
    let record = Arc::new(Record::of(&transcript.events));
    let (tools, mut remarks) = tools(&what, &transcript.events)?;
    let events = Arc::new(Mutex::new(Vec::<Event>::new()));
    let seen = events.clone();
    let mut builder = Run::builder(tools);
    if what.policy.is_some() {
        builder = builder.policy(ask::policy(what.policy.as_deref())?);
    }
    // Whoever decided then decides again; a run that asked nobody asks nobody now.
    if what.policy.is_some() || record.decisions {
        builder = builder.approver(Recorded(record.clone()));
    }
    let run = builder
        .executor(Recorded(record.clone()))
        .max_output(0)
        .on_event(move |event: &Event| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone())
        })
        .build()?;
    let end = again(&run, &transcript.events, &record).await?;
    run.finish(end)?;
    let replayed = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
    let nested = record.nested;
    if nested > 0 {
        remarks.push(format!("{nested} calls that tools made themselves are part of those tools' answers"));
    }
    let changes = diff::compare(&story::lines(&transcript.events), &story::lines(&replayed));
    if json {
        report::line(json!({"run": runs::id_of(&path), "remarks": remarks, "changes": changes}))?;
    } else {
        remarks.iter().for_each(|remark| eprintln!("{}", printable(remark)));
        diff::print(&changes)?;
    }
    diff::outcome(&changes)
}

/// Today's tools under the names of the record, and what is to be said about them.
fn tools(what: &Replay, events: &[Event]) -> anyhow::Result<(Toolset, Vec<String>)> {
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted { labels, tools, .. } => Some((labels, tools)),
        _ => None,
    });
    let Some((labels, stamps)) = started else {
        return Err(report::Usage::new("the transcript has no beginning, so it cannot be replayed").into());
    };
    let mut remarks = Vec::new();
    let recorded = labels.get("file").map(PathBuf::from);
    let file: Option<&Path> = what.file.as_deref().or(recorded.as_deref().filter(|path| path.exists()));
    let mut tools = match file {
        Some(file) => files::open(file)?.tools().clone().combined(toolbox::all()?),
        None => Ok(toolbox::all()?),
    }
    .or_else(|_| files::open(file.unwrap_or_else(|| Path::new(""))).map(|loaded| loaded.tools().clone()))?;
    for stamp in stamps {
        match tools.get(&stamp.name) {
            Some(entry) if entry.fingerprint == stamp.fingerprint => {}
            Some(_) => remarks.push(format!("the definition of `{}` has changed since", stamp.name)),
            None => {
                remarks.push(format!("`{}` is not here now, so its arguments are not checked", stamp.name));
                tools = tools.with(stand_in(&stamp.name))?;
            }
        }
    }
    Ok((tools, remarks))
}

/// A tool that takes everything; the executor answers for it.
fn stand_in(name: &str) -> ToolDef {
    let spec = ToolSpec::new(name, "Known from a record only.");
    ToolDef::dynamic(spec, |_, _: Value| async { Err::<ToolOutput, _>(ToolError::fatal("it is not here")) })
}

/// Plays the conversation, or the calls of a run without one.
async fn again(run: &Run, events: &[Event], record: &Arc<Record>) -> anyhow::Result<RunEnd> {
    let recorded_end = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunFinished { end } => Some(end.clone()),
        _ => None,
    });
    if !record.talks {
        let calls = events.iter().filter_map(|event| match &event.kind {
            EventKind::CallStarted { parent: None, call_id, tool, arguments, .. } => {
                Some(ToolCall::new(call_id.clone(), tool.clone(), arguments.clone()))
            }
            _ => None,
        });
        for call in calls {
            run.call(call).await?;
        }
        return Ok(recorded_end.unwrap_or(RunEnd::Cancelled));
    }
    let model = Recorded(record.clone());
    let mut talk = Conversation::new(run);
    for turn in &record.turns {
        turn.iter().for_each(|message| talk.push(message.clone()));
        if let Err(error) = talk.answer(&model).await {
            // The record may end before the model has no further wish; then so does the replay.
            let ended = record.left() == 0;
            return Ok(if ended { RunEnd::Cancelled } else { RunEnd::Failed { message: error.to_string() } });
        }
    }
    Ok(recorded_end.unwrap_or(RunEnd::Cancelled))
}

/// What a record says: the model's answers, what others said, and how each call went.
struct Record {
    talks: bool,
    answers: Vec<AssistantMessage>,
    next: Mutex<usize>,
    /// What was said to the model, each time before it answered.
    turns: Vec<Vec<Message>>,
    calls: Mutex<Vec<Recall>>,
    nested: usize,
    decisions: bool,
}

struct Recall {
    call: ToolCall,
    decision: Option<Decision>,
    result: Option<ToolResult>,
    error: Option<toolwright::ErrorInfo>,
    decided: bool,
    run: bool,
}

impl Record {
    fn of(events: &[Event]) -> Self {
        let (mut answers, mut turns, mut nested) = (Vec::new(), Vec::<Vec<Message>>::new(), 0);
        let mut calls: Vec<(u64, Recall)> = Vec::new();
        let (mut talks, mut decisions, mut answered) = (false, false, false);
        for event in events {
            match &event.kind {
                EventKind::MessageAdded { message } => {
                    talks = true;
                    match message {
                        Message::Assistant(answer) => {
                            answers.push(answer.clone());
                            answered = true;
                        }
                        Message::Tool(_) => {}
                        other => match turns.last_mut().filter(|_| !answered) {
                            Some(turn) => turn.push(other.clone()),
                            None => {
                                turns.push(vec![other.clone()]);
                                answered = false;
                            }
                        },
                    }
                }
                EventKind::CallStarted { parent: Some(_), .. } => nested += 1,
                EventKind::CallStarted { span, call_id, tool, arguments, .. } => {
                    let call = ToolCall::new(call_id.clone(), tool.clone(), arguments.clone());
                    let recall = Recall {
                        call,
                        decision: None,
                        result: None,
                        error: None,
                        decided: false,
                        run: false,
                    };
                    calls.push((*span, recall));
                }
                EventKind::CallDecided { span, decision, reason, arguments, .. } => {
                    decisions = true;
                    let reason = reason.clone().unwrap_or_default();
                    let decision = match decision.as_str() {
                        "modify" => Decision::Modify { arguments: arguments.clone().unwrap_or_default() },
                        "reject" => Decision::Reject { reason },
                        "terminate" => Decision::Terminate { reason },
                        "escalate" => Decision::Escalate,
                        _ => Decision::Approve,
                    };
                    if let Some((_, call)) = calls.iter_mut().rev().find(|(known, _)| known == span) {
                        call.decision = Some(decision);
                    }
                }
                EventKind::CallFinished { span, result, error, .. } => {
                    if let Some((_, call)) = calls.iter_mut().rev().find(|(known, _)| known == span) {
                        (call.result, call.error) = (result.clone(), error.clone());
                    }
                }
                _ => {}
            }
        }
        let calls = calls.into_iter().map(|(_, call)| call).collect();
        Record { talks, answers, next: Mutex::new(0), turns, calls: Mutex::new(calls), nested, decisions }
    }

    fn left(&self) -> usize {
        self.answers.len().saturating_sub(*self.next.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The call of the record that this one repeats: the first with its id that was not asked for yet.
    fn recall<T>(
        &self,
        id: &str,
        tool: &str,
        how: impl FnOnce(&mut Recall) -> T,
        of: fn(&Recall) -> bool,
    ) -> Option<T> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            calls.iter_mut().find(|known| *known.call.id == *id && *known.call.name == *tool && !of(known));
        found.map(how)
    }
}

/// The record, as a model, an approver and an executor.
struct Recorded(Arc<Record>);

impl Model for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    fn generate<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let mut next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.0.answers.get(*next).cloned();
        *next += 1;
        let none = || ModelError::new(ModelErrorKind::Script, "the record has no further answer");
        Box::pin(async move { answer.map(ModelReply::from).ok_or_else(none) })
    }
}

impl Approver for Recorded {
    fn name(&self) -> &str {
        "record"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        let call = request.call;
        let decided = self.0.recall(
            &call.id,
            &call.name,
            |known| {
                known.decided = true;
                known.decision.clone()
            },
            |known| known.decided,
        );
        // A call that nobody was asked about then is approved now.
        Box::pin(async move { decided.flatten().unwrap_or(Decision::Approve) })
    }
}

impl Executor for Recorded {
    fn execute<'a>(
        &'a self,
        _: &'a Toolset,
        envelope: Envelope,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let outcome = self.0.recall(
            &envelope.call_id,
            &envelope.tool,
            |known| {
                known.run = true;
                (known.result.clone(), known.error.clone())
            },
            |known| known.run,
        );
        Box::pin(async move {
            let Some((result, error)) = outcome else {
                return Err(ToolError::new("the record does not have this call"));
            };
            let output = result.map(|result| ToolOutput {
                content: result.content,
                structured: result.structured,
                metadata: result.metadata,
            });
            match error {
                None => Ok(output.unwrap_or_default()),
                Some(error) if matches!(error.kind, ErrorKind::Parsing | ErrorKind::Approval) => {
                    Err(ToolError::new(
                        "the call was refused then and would run now; the record has no answer for it",
                    ))
                }
                Some(error) => {
                    let error = ToolError::from(error);
                    Err(match output {
                        Some(output) => error.with_partial(output),
                        None => error,
                    })
                }
            }
        })
    }
}
