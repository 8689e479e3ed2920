//! Handing a conversation over to another agent.

use std::sync::Arc;

use toolwright_core::{AssistantMessage, CancelToken, Content, Message, ToolDef, ToolSettings, ToolSpec};

use super::Agent;
use crate::conversation::Conversation;
use crate::run::{Run, RunEnd};
use crate::turn::RunError;

/// What an agent that can hand over is told.
pub(super) const PROMPT: &str = "You work together with other agents. A tool named `transfer_to_...` lets another agent \
                                 go on with this conversation; when it has done its part, you go on.";

/// An agent to hand over to; the loop finds it in the settings of its tool.
pub(crate) struct Handoff {
    agent: Agent,
}

impl Handoff {
    pub(super) fn tool(agent: Agent) -> ToolDef {
        let name = agent.name.clone();
        let about = format!("Hands the conversation over to the agent {name}. {}", agent.description);
        let spec = ToolSpec::new(format!("transfer_to_{name}"), about.trim_end());
        let tool = ToolDef::dynamic(spec, move |_, _| {
            let text = format!("Transferred to {name}.");
            async move { text }
        });
        let handoff: Arc<dyn std::any::Any + Send + Sync> = Arc::new(Handoff { agent });
        tool.with_parallel(false).edit(|_, settings| settings.extension = Some(handoff))
    }

    /// The handoff behind a tool, if it is one.
    pub(crate) fn of(settings: &ToolSettings) -> Option<Arc<Handoff>> {
        settings.extension.clone().and_then(|extension| extension.downcast().ok())
    }

    /// Lets the agent go on with a conversation until `stop` fires: gives what it adds, and whether it broke. It sees what
    /// was said, without the instructions and the calls of others that are not answered.
    pub(crate) async fn take_over(
        &self,
        run: &Run,
        messages: &[Message],
        stop: &CancelToken,
    ) -> (Vec<Message>, Result<(), RunError>) {
        let agent = &self.agent;
        let part = match agent.part() {
            Ok(part) => part,
            Err(error) => return (Vec::new(), Err(error.into())),
        };
        let seen: Vec<Message> = messages.iter().filter_map(seen).collect();
        let before = seen.len() + usize::from(agent.system_text().is_some());
        let run = run.nested_unheard(part, stop);
        let mut conversation = Conversation::new(&run).going(agent.how.clone());
        let outcome = agent.work_in(&mut conversation, seen).await;
        let name = &agent.name;
        let said = agent.said(conversation);
        let mut added: Vec<Message> =
            said.iter().skip(before).filter_map(|message| signed(message, name)).collect();
        added.push(Message::user(match &outcome {
            Ok((_, RunEnd::Limit { limit })) => format!("The agent {name} was stopped: {limit}."),
            Ok((_, RunEnd::Cancelled)) => format!("The agent {name} was stopped."),
            Ok(_) => format!("The agent {name} has done its part."),
            Err(_) => format!("The agent {name} could not go on."),
        }));
        (added, outcome.map(|_| ()))
    }
}

/// A message as the other agent sees it: words, not instructions, calls or results.
fn seen(message: &Message) -> Option<Message> {
    match message {
        Message::System { .. } | Message::Tool(_) => None,
        Message::User { .. } => Some(message.clone()),
        Message::Assistant(said) => words(said).map(Message::Assistant),
    }
}

/// What the agent said, under its name.
fn signed(message: &Message, name: &str) -> Option<Message> {
    let Message::Assistant(said) = message else { return None };
    let mut said = words(said)?;
    if let Some(Content::Text { text, .. }) = said.content.first_mut() {
        *text = format!("[{name}] {text}");
    }
    Some(Message::Assistant(said))
}

fn words(said: &AssistantMessage) -> Option<AssistantMessage> {
    let content: Vec<Content> = said
        .content
        .iter()
        .filter(|block| matches!(block, Content::Text { .. } | Content::Image(_)))
        .cloned()
        .collect();
    let confidential = said.confidential;
    (!content.is_empty()).then(|| AssistantMessage { content, confidential, ..AssistantMessage::default() })
}
