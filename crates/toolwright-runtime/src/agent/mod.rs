//! Agents: a model with instructions and tools of its own, that works inside a run.
//!
//! An agent's calls take the path of all calls: the run's policy, approvals, limits, sandboxes and record
//! hold for them. [`Agent::as_tool`] lets one agent ask another; [`Agent::handoff`] lets another go on with
//! the conversation.

mod handoff;
mod react;

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_core::{
    DynModel, ErrorKind, Message, ToolContext, ToolDef, ToolError, ToolOutput, ToolSource, ToolSpec, Toolset,
    ToolsetError,
};

use crate::conversation::Conversation;
use crate::limits::RunLimits;
use crate::run::{AgentRole, Run, RunEnd, RunOptions};
use crate::turn::{LoopOptions, RunError, completion};

pub(crate) use handoff::Handoff;
pub use react::React;

/// A model with instructions and tools of its own.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolwright_core::{Message, Toolset};
/// use toolwright_models::{Reply, ScriptedModel};
/// use toolwright_runtime::{Agent, React, Run};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([Reply::text("Hm."), Reply::call("submit", json!({"answer": "42"}))]);
/// let agent = Agent::new("solver", "Solves riddles.")
///     .instructions("You solve riddles.")
///     .model(Arc::new(model))
///     .react(React::default());
/// let run = Run::builder(Toolset::new()).build()?;
/// let outcome = agent.run(&run, vec![Message::user("What is the answer?")]).await?;
/// assert_eq!(outcome.answer.as_deref(), Some("42"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Agent {
    name: Arc<str>,
    description: String,
    instructions: Option<String>,
    model: Option<Arc<DynModel>>,
    /// The run it works in.
    options: RunOptions,
    turns: LoopOptions,
    react: Option<React>,
}

/// What an agent came to.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutcome {
    /// Its whole conversation.
    pub messages: Vec<Message>,
    /// What it submitted, when it submits answers.
    pub answer: Option<String>,
    /// How it ended.
    pub end: RunEnd,
}

impl AgentOutcome {
    /// What it has to say: its answer, else its last words.
    pub fn completion(&self) -> String {
        self.answer.clone().unwrap_or_else(|| completion(&self.messages))
    }

    /// Its result for the caller. A final message that is a confidential result stays confidential.
    fn output(&self) -> ToolOutput {
        let secret = |message: &Message| matches!(message, Message::Assistant(said) if said.confidential);
        let said = self.messages.iter().rev().find(|message| matches!(message, Message::Assistant(_)));
        let confidential = self.answer.is_none() && said.is_some_and(secret);
        ToolOutput { confidential, ..ToolOutput::text(self.completion()) }
    }
}

impl Agent {
    /// An agent that may use no tools yet. Other agents are told its name and what it is good for.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        Agent {
            name: name.into(),
            description: description.into(),
            instructions: None,
            model: None,
            options: RunOptions::default(),
            turns: LoopOptions::default(),
            react: None,
        }
    }

    /// The agent, told how to work.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// The agent with a model of its own; otherwise it uses that of the run.
    #[must_use]
    pub fn model(mut self, model: Arc<DynModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// The agent with these tools.
    #[must_use]
    pub fn tools(mut self, tools: Toolset) -> Self {
        self.options.tools = tools;
        self
    }

    /// The agent with the tools of this source too, such as an MCP server; they are asked for while it works.
    #[must_use]
    pub fn source(mut self, source: impl ToolSource + 'static) -> Self {
        self.options.sources.push(Arc::new(source));
        self
    }

    /// The agent, allowed to spend so much of what the run may spend.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// The agent with these options for its loop.
    #[must_use]
    pub fn with_loop(mut self, options: LoopOptions) -> Self {
        self.turns = options;
        self
    }

    /// The agent, which works until it submits an answer.
    #[must_use]
    pub fn react(mut self, react: React) -> Self {
        self.react = Some(react);
        self
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets the agent work on `input`, within the policy, the limits and the record of `run`. The run's own
    /// tools are not the agent's.
    pub async fn run(&self, run: &Run, input: Vec<Message>) -> Result<AgentOutcome, RunError> {
        self.work(&run.nested(self.name.clone(), self.run_options()?, AgentRole::Own), input).await
    }

    /// Lets the agent work on `input` as part of a tool's call: within the policy, the limits and the record
    /// of the run that makes the call, and no longer than the call.
    pub async fn run_within(
        &self,
        context: &ToolContext,
        input: Vec<Message>,
    ) -> Result<AgentOutcome, ToolError> {
        let options = self.run_options().map_err(|error| ToolError::fatal(error.to_string()))?;
        let run = Run::of(context)?.nested(self.name.clone(), options, AgentRole::Answers(context));
        self.work(&run, input).await.map_err(|error| match error {
            RunError::Tool(error) => error,
            RunError::Model(error) => {
                ToolError::new(format!("the agent `{}` got no answer from its model: {error}", self.name))
            }
        })
    }

    /// The agent as a tool: it takes one text, works on it alone, and returns what it has to say.
    pub fn as_tool(self) -> ToolDef {
        let mut spec = ToolSpec::new(self.name.clone(), &*self.description);
        spec.parameters = json!({
            "type": "object", "required": ["input"], "additionalProperties": false,
            "properties": {"input": {"type": "string", "description": "What it is to do, with all it needs to know."}}
        });
        let agent = Arc::new(self);
        let tool = ToolDef::from_fn(spec, move |context, arguments| {
            let agent = agent.clone();
            Box::pin(async move { agent.answer_to(context, &arguments).await })
        });
        tool.with_max_output(0)
    }

    /// The agent as a tool that hands the conversation over: the agent goes on where the caller is, and what
    /// it says stays in the conversation.
    pub fn handoff(self) -> ToolDef {
        Handoff::tool(self)
    }

    async fn answer_to(&self, context: &ToolContext, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let input = arguments.get("input").and_then(Value::as_str).unwrap_or_default();
        let outcome = self.run_within(context, vec![Message::user(input)]).await?;
        match &outcome.end {
            RunEnd::Done => Ok(outcome.output()),
            RunEnd::Limit { limit } => {
                // Without the limit as the cause: it is the agent's, and does not end the run around it.
                let message = format!("the agent `{}` was stopped: {limit}", self.name);
                let said = AgentOutcome { answer: None, ..outcome.clone() };
                Err(ToolError::of(ErrorKind::Limit, message).with_partial(said.output()))
            }
            RunEnd::Cancelled => Err(crate::guard::cancelled()),
            RunEnd::Terminated { reason } => Err(ToolError::fatal(reason.clone())),
            RunEnd::Failed { message } => Err(ToolError::fatal(message.clone())),
        }
    }

    /// What its run may use and spend: it has the tool that submits, and a limit of turns when it works until
    /// it is done.
    fn run_options(&self) -> Result<RunOptions, ToolsetError> {
        let mut options = self.options.clone();
        if let Some(react) = &self.react {
            options.tools = react.submit_tool().into_iter().try_fold(options.tools, Toolset::with)?;
            options.limits.turns.get_or_insert(react::DEFAULT_TURNS);
        }
        Ok(options)
    }

    /// Works in a run whose tools are the agent's.
    async fn work(&self, run: &Run, input: Vec<Message>) -> Result<AgentOutcome, RunError> {
        let mut conversation = Conversation::new(run).with_loop(self.turns.clone());
        let (answer, end) = self.work_in(&mut conversation, input).await?;
        Ok(AgentOutcome { messages: self.said(conversation), answer, end })
    }

    /// What was said in a conversation of the agent.
    fn said(&self, conversation: Conversation) -> Vec<Message> {
        let mut messages = conversation.into_messages();
        if let Some(react) = &self.react {
            react.tidy(&mut messages);
        }
        messages
    }

    /// Works in a conversation, which has all that was said whatever comes of it.
    async fn work_in(
        &self,
        conversation: &mut Conversation,
        input: Vec<Message>,
    ) -> Result<(Option<String>, RunEnd), RunError> {
        let run = conversation.run();
        let model = self.model.clone().or_else(|| run.frame.scope.model.clone());
        let model = model.ok_or_else(|| {
            ToolError::fatal(format!("the agent `{}` has no model", self.name))
                .hint("give it one with `Agent::model`, or the run with `RunBuilder::model`")
        })?;
        if let Some(text) = self.system_text() {
            conversation.push(Message::system(text));
        }
        input.into_iter().for_each(|message| conversation.push(message));
        if let Some(react) = &self.react {
            return react.go(conversation, &*model).await;
        }
        Ok((None, conversation.answer(&*model).await?.unwrap_or(RunEnd::Done)))
    }

    fn system_text(&self) -> Option<String> {
        let handoffs = self.options.tools.iter().any(|entry| Handoff::of(&*entry.tool).is_some());
        let react = self.react.as_ref().map(React::prompt);
        let parts = [self.instructions.as_deref(), handoffs.then_some(handoff::PROMPT), react.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).finish_non_exhaustive()
    }
}

impl From<ToolsetError> for RunError {
    fn from(error: ToolsetError) -> Self {
        RunError::Tool(ToolError::fatal(error.to_string()))
    }
}
