//! The `cli` section: a flow that runs once for each input, or once for all of them.
//!
//! It is a tool like any other, called [`CLI_TOOL`], so that its calls take the runtime's one path; variables
//! stored for one input are there for the next.

use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use toolwright_core::{
    Dispatch, Origin, Tool, ToolCall, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolSpec, Toolset,
};
use toolwright_expr::Value;
use toolwright_util::lock;

use crate::exec::{Flow, FlowLimits, Frame, Globals, Locals};
use crate::flow::failed;
use crate::step::Body;

/// The name of the batch program's tool. No tool of a file can be called so.
pub const CLI_TOOL: &str = "cli/input";

/// Whether the flow gets one input or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessInput {
    /// One run for each input.
    OneByOne,
    /// One run with the list of all inputs.
    AllAsList,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliOutput {
    /// As Python prints them.
    Text,
    /// JSON on one line.
    Json,
    /// JSON with two blanks of indent.
    PrettyJson,
}

/// The batch program of a file.
#[derive(Clone)]
pub struct Cli {
    pub(crate) process_input: ProcessInput,
    pub(crate) output: CliOutput,
    pub(crate) tools: Toolset,
    pub(crate) body: Arc<Body>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) limits: Arc<FlowLimits>,
}

impl Cli {
    /// Whether the flow gets one input or all.
    pub fn process_input(&self) -> ProcessInput {
        self.process_input
    }

    /// How results are written.
    pub fn output(&self) -> CliOutput {
        self.output
    }

    /// The section's own tools.
    pub fn tools(&self) -> &Toolset {
        &self.tools
    }

    /// The runs to make for these inputs: each input, or the list of all.
    pub fn inputs(&self, inputs: impl IntoIterator<Item = String>) -> Vec<Json> {
        let inputs = inputs.into_iter().map(Json::String);
        match self.process_input {
            ProcessInput::OneByOne => inputs.collect(),
            ProcessInput::AllAsList => vec![Json::Array(inputs.collect())],
        }
    }

    /// The program as a tool, to be added to the tools of a run. Each one keeps its own variables.
    pub fn tool(&self) -> impl Tool + 'static {
        let mut spec = ToolSpec::new(CLI_TOOL, "Runs the `cli` flow of the file on one input.");
        spec.parameters = json!({"type": "object", "properties": {"input": {}}, "required": ["input"]});
        let mut policy = ToolPolicy::default();
        policy.parallel = Some(false);
        policy.max_output = Some(0);
        CliTool { spec, policy, cli: self.clone(), kept: Mutex::default() }
    }

    /// Runs one input through a run that has the [`tool`](Self::tool).
    pub async fn run_input(&self, run: &dyn Dispatch, input: Json) -> Result<CliResult, ToolError> {
        let call = ToolCall::new("cli", CLI_TOOL, json!({ "input": input }));
        let result = run.call(call, Origin::default()).await?;
        match result.error {
            Some(info) => Err(info.into()),
            None => {
                let mut made = result.structured.unwrap_or_default();
                let mut take = |key: &str| made.get_mut(key).map(Json::take).unwrap_or_default();
                let text = take("text").as_str().map_or_else(String::new, str::to_owned);
                Ok(CliResult { text, value: take("value") })
            }
        }
    }

    /// What a person is told while an input is worked on: texts as they are, lists as Python shows them.
    pub fn show_input(input: &Json) -> String {
        Value::from_json(input).to_string()
    }

    fn write(&self, value: &Value, json: &Json) -> String {
        match self.output {
            CliOutput::Text => value.to_string(),
            CliOutput::Json => write_json(json, None),
            CliOutput::PrettyJson => write_json(json, Some(0)),
        }
    }
}

impl std::fmt::Debug for Cli {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cli")
            .field("process_input", &self.process_input)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

/// What the program made of one input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CliResult {
    /// The text to print, as the section's `json_output` says.
    pub text: String,
    /// The value itself.
    pub value: Json,
}

struct CliTool {
    spec: ToolSpec,
    policy: ToolPolicy,
    cli: Cli,
    kept: Mutex<Vec<(Arc<str>, Value)>>,
}

impl Tool for CliTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    async fn call(&self, context: &ToolContext, arguments: Json) -> Result<ToolOutput, ToolError> {
        let lock = || lock(&self.kept);
        let mut frame = Frame { variables: lock().clone(), outer: None };
        frame.set(&"input".into(), arguments.get("input").map_or(Value::None, Value::from_json));
        let flow = Flow::new(context, &self.cli.globals, None, &self.cli.limits);
        let value = flow.body(&self.cli.body, &mut frame, &Locals::default()).await;
        let value = value.map_err(|error| failed(context, error))?;
        *lock() = frame.variables;
        // The text a person reads travels in the structured value: a record bounds content, not the
        // program.
        let json = crate::json::from_value(&value, &flow.limits);
        let json = json.map_err(|error| failed(context, crate::error::stays(error, self.cli.body.end())))?;
        let text = self.cli.write(&value, &json);
        let made = json!({"text": &text, "value": json});
        Ok(ToolOutput::text(text).with_structured(made))
    }
}

/// JSON as Python's `json.dumps` writes it: blanks after `,` and `:`, other scripts kept.
pub(crate) fn write_json(value: &Json, indent: Option<usize>) -> String {
    let line = |level: usize| format!("\n{}", "  ".repeat(level));
    let join = |parts: Vec<String>, open: char, close: char| match indent {
        _ if parts.is_empty() => format!("{open}{close}"),
        None => format!("{open}{}{close}", parts.join(", ")),
        Some(level) => {
            let inner = line(level + 1);
            format!("{open}{inner}{}{}{close}", parts.join(&format!(",{inner}")), line(level))
        }
    };
    let deeper = indent.map(|level| level + 1);
    match value {
        Json::Array(items) => join(items.iter().map(|item| write_json(item, deeper)).collect(), '[', ']'),
        Json::Object(map) => {
            let entry = |(key, value): (&String, &Json)| {
                format!("{}: {}", Json::String(key.clone()), write_json(value, deeper))
            };
            join(map.iter().map(entry).collect::<Vec<_>>(), '{', '}')
        }
        Json::Number(number) if number.is_f64() => {
            Value::from_json(&Json::Number(number.clone())).to_string()
        }
        scalar => scalar.to_string(),
    }
}
