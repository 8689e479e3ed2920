//! Handing a conversation over to another agent.

use std::any::Any;
use std::sync::Arc;

use toolwright_core::{
    AssistantMessage, BoxFuture, CancelToken, Content, DynTool, Message, ToolDef, ToolSpec, Toolset,
};

use super::Agent;
use crate::approval::call_text;
use crate::conversation::Conversation;
use crate::guard::OwnTask;
use crate::history;
use crate::run::{AgentRole, Run, RunEnd};
use crate::turn::RunError;

/// The instructions of an agent that can hand over.
pub(super) const PROMPT: &str = "You work together with other agents. A tool named `transfer_to_...` lets another agent \
                                 go on with this conversation; when it has done its part, you go on.";

/// An agent to hand over to; the loop finds it at its tool.
#[derive(Clone)]
pub(crate) struct Handoff {
    agent: Arc<Agent>,
}

impl toolwright_core::Handoff for Handoff {
    fn agent(&self) -> &str {
        &self.agent.name
    }
}

/// What an agent added to a conversation, and whether it broke.
type HandoffResult = (Vec<Message>, Result<(), RunError>);

impl Handoff {
    pub(super) fn tool(agent: Agent) -> ToolDef {
        let name = agent.name.clone();
        let about = format!("Hands the conversation over to the agent {name}. {}", agent.description);
        let spec = ToolSpec::new(format!("transfer_to_{name}"), about.trim_end());
        let tool = ToolDef::dynamic(spec, move |_, _| {
            let text = format!("Transferred to {name}.");
            async move { text }
        });
        tool.with_parallel(false).with_handoff(Arc::new(Handoff { agent: Arc::new(agent) }))
    }

    /// The handoff behind a tool, if it is one.
    pub(crate) fn of(tool: &DynTool) -> Option<Handoff> {
        let handoff: &dyn Any = tool.handoff()?;
        handoff.downcast_ref().cloned()
    }

    /// Lets the agent go on with a conversation until `stop` fires: gives what it adds, and whether it broke.
    /// It sees what was said and done, without the instructions of others.
    pub(crate) fn take_over(
        self,
        run: &Run,
        messages: &[Message],
        stop: &CancelToken,
    ) -> BoxFuture<'static, HandoffResult> {
        let tools = run.frame.tools.current();
        let messages = history::for_model(messages, &tools, 0..0);
        let seen = messages
            .map(|messages| messages.iter().filter_map(|message| seen(message, &tools)).collect::<Vec<_>>());
        let (run, stop) = (run.clone(), stop.clone());
        Box::pin(async move {
            let seen = match seen {
                Ok(seen) => seen,
                Err(error) => return (Vec::new(), Err(error.into())),
            };
            // On a task of its own: agents that hand over to one another must not fill up a stack.
            let work = OwnTask::new(async move { Ok(self.go_on(&run, seen, &stop).await) });
            work.await.unwrap_or_else(|error| (Vec::new(), Err(error.into())))
        })
    }

    async fn go_on(&self, run: &Run, seen: Vec<Message>, stop: &CancelToken) -> HandoffResult {
        let agent = &self.agent;
        let options = match agent.run_options() {
            Ok(options) => options,
            Err(error) => return (Vec::new(), Err(error.into())),
        };
        let before = seen.len() + usize::from(agent.system_text().is_some());
        let run = run.nested(agent.name.clone(), options, AgentRole::TakesOver(stop));
        let mut conversation = Conversation::new(&run).with_loop(agent.turns.clone());
        let outcome = agent.work_in(&mut conversation, seen).await;
        let name = &agent.name;
        let said = agent.said(conversation);
        let (tools, new) = (run.frame.tools.current(), said.iter().skip(before));
        // What it was told on the way was not said by the user of the conversation; what the agents that it
        // handed over to added was.
        let told = |message: &&Message| agent.react.as_ref().is_some_and(|react| react.tells(message));
        let new = new.filter(|message| !told(message));
        let mut added: Vec<Message> = new.filter_map(|message| signed(message, name, &tools)).collect();
        added.push(Message::user(match &outcome {
            Ok((_, RunEnd::Limit { limit })) => format!("The agent {name} was stopped: {limit}."),
            Ok((_, RunEnd::Cancelled)) => format!("The agent {name} was stopped."),
            Ok(_) => format!("The agent {name} has done its part."),
            Err(_) => format!("The agent {name} could not go on."),
        }));
        (added, outcome.map(|_| ()))
    }
}

/// A message as another agent sees it, who has neither the instructions nor the tools that it is about: calls
/// and their results are words. That the conversation was handed over goes without saying.
fn seen(message: &Message, tools: &Toolset) -> Option<Message> {
    let hands_over = |name: &str| tools.get(name).is_some_and(|entry| Handoff::of(&*entry.tool).is_some());
    match message {
        Message::System { .. } => None,
        Message::User { .. } => Some(message.clone()),
        Message::Assistant(said) => {
            let mut content: Vec<Content> = shown(&said.content);
            let calls = said.tool_calls.iter().filter(|call| !hands_over(&call.name)).map(call_text);
            let calls = calls.collect::<Vec<_>>().join("\n");
            if !calls.is_empty() {
                content.push(Content::text(calls));
            }
            let confidential = said.confidential;
            let said = AssistantMessage { content, confidential, ..AssistantMessage::default() };
            (!said.content.is_empty()).then_some(Message::Assistant(said))
        }
        Message::Tool(result) if hands_over(&result.name) && !result.is_error() => None,
        Message::Tool(result) => {
            let mut result = result.clone();
            result.conceal();
            let mut content =
                vec![Content::text(format!("Result of {}:\n{}", result.name, result.to_text()))];
            content.extend(shown(&result.content).into_iter().filter(|block| block.as_text().is_none()));
            Some(Message::User { content })
        }
    }
}

/// What the agent said and did, under its name.
fn signed(message: &Message, name: &str, tools: &Toolset) -> Option<Message> {
    let mut message = seen(message, tools)?;
    let (Message::Assistant(AssistantMessage { content, .. }) | Message::User { content }) = &mut message
    else {
        return None;
    };
    if let Some(Content::Text { text, .. }) = content.first_mut() {
        *text = format!("[{name}] {text}");
    }
    Some(message)
}

fn shown(content: &[Content]) -> Vec<Content> {
    let shown = content.iter().filter(|block| matches!(block, Content::Text { .. } | Content::Image(_)));
    shown.cloned().collect()
}
