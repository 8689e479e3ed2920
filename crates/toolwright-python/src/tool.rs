//! One function of a file as a tool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::text::clip;
use toolwright_core::{
    CallNote, ErrorKind, ExecRequest, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolSpec,
};

use crate::definition::PythonDefinition;
use crate::file::OpenedFile;
use crate::output;
use crate::worker::{CallEvent, RunningCall, gone};

/// What functions keep for the run with `Context.set`, saved with its state.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PythonValues(BTreeMap<String, Value>);

/// The most bytes of output that an error carries.
const MAX_PARTIAL: usize = 16 << 10;

/// One function of a file.
pub(crate) struct PythonTool {
    file: Arc<OpenedFile>,
    definition: PythonDefinition,
    spec: ToolSpec,
    policy: ToolPolicy,
}

impl PythonTool {
    pub(crate) fn new(file: &Arc<OpenedFile>, definition: PythonDefinition) -> Self {
        let mut spec = ToolSpec::new(definition.name.as_str(), definition.description.clone());
        spec.parameters = definition.parameters.clone();
        spec.output_schema = definition.output.clone();
        spec.annotations.read_only = definition.read_only;
        let mut policy = ToolPolicy::default();
        let own = definition.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        policy.timeout = own.filter(|time| !time.is_zero()).or(file.options.timeout);
        policy.parallel = Some(definition.parallel.unwrap_or(definition.is_async));
        // A function that can neither write nor reach anything only computes; the tools it calls are decided
        // about each.
        policy.delegates = file.options.confined;
        PythonTool { file: file.clone(), definition, spec, policy }
    }

    async fn run(&self, context: &ToolContext, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let (worker, started_again) = self.file.worker(&self.definition).await?;
        // What changed outside until now changed before this call.
        worker.commit(context).await?;
        let mut call = worker.begin(&self.definition.name, arguments).await?;
        let mut printed = String::new();
        let stop = context.cancel_token().clone();
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    let error = ToolError::of(ErrorKind::Cancelled, "the call was cancelled");
                    return Err(with_printed(error, &printed));
                }
                event = call.next() => event,
            };
            match event {
                CallEvent::Output { stream, text } => {
                    printed.push_str(&text);
                    context.note(CallNote::Output { stream, text });
                }
                CallEvent::Progress { done, total, message } => context.progress(done, total, message),
                CallEvent::Ask { number, question } => {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => {}
                        answered = answer(context, &call, number, &question) => answered?,
                    }
                }
                CallEvent::End(frame) => {
                    // A function that failed has changed what it has changed.
                    let effect = worker.commit(context).await?;
                    let output = output::of(frame).map_err(|error| with_printed(error, &printed))?;
                    let mut notes = vec![];
                    if started_again {
                        notes.push("the Python process was started again, and its state is new".to_owned());
                    }
                    let kept_back = effect.kept_back_text();
                    notes.extend((!kept_back.is_empty()).then(|| kept_back.trim_end().to_owned()));
                    return Ok(if notes.is_empty() { output } else { output.with_note(notes.join("\n")) });
                }
                CallEvent::Gone(reason) => {
                    // Without its sandbox there is nothing to commit.
                    let _ = worker.commit(context).await;
                    return Err(with_printed(gone(&reason), &printed));
                }
            }
        }
    }
}

impl Tool for PythonTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.run(context, &arguments).await
    }
}

/// The error with the end of what the function printed.
fn with_printed(error: ToolError, printed: &str) -> ToolError {
    if printed.is_empty() {
        return error;
    }
    let from = printed.len().saturating_sub(MAX_PARTIAL);
    let from = (from..=printed.len()).find(|at| printed.is_char_boundary(*at)).unwrap_or(printed.len());
    error.with_partial(ToolOutput::text(printed.get(from..).unwrap_or_default()))
}

/// Answers what a function asks through its `Context`.
async fn answer(
    context: &ToolContext,
    call: &RunningCall,
    number: u64,
    question: &Value,
) -> Result<(), ToolError> {
    let answered = match question.get("what").and_then(Value::as_str) {
        Some("call_tool") => call_tool(context, question).await,
        Some("exec") => exec(context, question).await,
        Some("get") => Ok(get(context, question)),
        Some("set") => Ok(set(context, question)),
        other => Err(ToolError::invalid(format!(
            "a function cannot ask for `{}`",
            clip(other.unwrap_or_default(), 100)
        ))),
    };
    // A fatal error of an inner tool ends the run, whatever the function makes of it.
    if let Err(error) = &answered
        && error.is_fatal()
    {
        return Err(ToolError::fatal(error.message().to_owned()));
    }
    call.answer(number, answered).await
}

fn text<'q>(question: &'q Value, key: &str) -> &'q str {
    question.get(key).and_then(Value::as_str).unwrap_or_default()
}

async fn call_tool(context: &ToolContext, question: &Value) -> Result<Value, ToolError> {
    let arguments = question.get("arguments").cloned().unwrap_or_else(|| json!({}));
    Ok(context.call(text(question, "tool"), arguments).await?.value())
}

#[derive(Deserialize)]
struct Exec {
    command: Vec<String>,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
}

async fn exec(context: &ToolContext, question: &Value) -> Result<Value, ToolError> {
    let Exec { command, input, timeout } =
        Exec::deserialize(question).map_err(|error| ToolError::invalid(error.to_string()))?;
    let mut request = ExecRequest::new(command);
    request.input = input.map(String::into_bytes);
    request.timeout = match timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            ToolError::invalid(format!("timeout must be a positive number of seconds, got {seconds}"))
        })?),
        None => None,
    };
    let result = context.sandbox()?.exec(request).await?;
    Ok(json!({"code": result.code, "stdout": result.stdout, "stderr": result.stderr}))
}

fn get(context: &ToolContext, question: &Value) -> Value {
    let kept = context.store::<PythonValues>().read(|values| values.0.get(text(question, "key")).cloned());
    kept.or_else(|| question.get("default").cloned()).unwrap_or_default()
}

fn set(context: &ToolContext, question: &Value) -> Value {
    let value = question.get("value").cloned().unwrap_or_default();
    let key = text(question, "key").to_owned();
    context.store::<PythonValues>().update(|values| values.0.insert(key, value));
    Value::Null
}
