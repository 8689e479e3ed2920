//! What takes the room in a request: instructions, tool definitions, the conversation.

use toolwright::Toolset;
use toolwright::content::Message;
use toolwright::model::ModelErrorKind;
use toolwright::model::tokens::{estimate_text, estimate_tool};
use toolwright::run::RunError;
use toolwright::tool::{ErrorInfo, ErrorKind};
use toolwright_core::text::count;

use crate::console::Console;
use crate::prompt::printable;
use crate::report::{Failed, counted};

/// Estimated tokens of a request.
struct ContextRoom {
    instructions: u64,
    conversation: u64,
    /// By tool, the largest first.
    tools: Vec<(String, u64)>,
}

impl ContextRoom {
    fn of(messages: &[Message], tools: &Toolset) -> Self {
        let mut room = ContextRoom { instructions: 0, conversation: 0, tools: Vec::new() };
        for message in messages {
            let mut tokens = estimate_text(&message.text());
            if let Message::Assistant(answer) = message {
                tokens += answer
                    .tool_calls
                    .iter()
                    .map(|call| estimate_text(&call.arguments.to_string()))
                    .sum::<u64>();
            }
            match message {
                Message::System { .. } => room.instructions += tokens,
                _ => room.conversation += tokens,
            }
        }
        let tools = tools.specs().into_iter().map(|spec| (spec.name.to_string(), estimate_tool(&spec)));
        room.tools = tools.collect();
        room.tools.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        room
    }

    fn of_tools(&self) -> u64 {
        self.tools.iter().map(|(_, tokens)| tokens).sum()
    }

    /// `about 1,300 tokens: tools 1,200 (8; most for bash 300), conversation 100`.
    fn line(&self) -> String {
        let total = self.instructions + self.conversation + self.of_tools();
        let mut parts = Vec::new();
        if let Some((name, most)) = self.tools.first() {
            let tools = counted(self.tools.len() as u64, "tool");
            let most = format!("most for `{}`: {}", printable(name), count(*most));
            parts.push(format!("{} for {tools} ({most})", count(self.of_tools())));
        }
        if self.instructions > 0 {
            parts.push(format!("{} for instructions", count(self.instructions)));
        }
        parts.push(format!("{} for the conversation", count(self.conversation)));
        format!("about {} tokens: {}", count(total), parts.join(", "))
    }
}

/// Shows the instructions and what the request takes.
pub fn show(console: &Console, messages: &[Message], tools: &Toolset) {
    for message in messages {
        if let Message::System { .. } = message {
            console.remark(format_args!("instructions: {}", printable(&message.text())));
        }
    }
    let names: Vec<&str> = tools.names().collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    console.remark(format_args!("tools: {}", printable(&names)));
    console.remark(format_args!("request: {}", ContextRoom::of(messages, tools).line()));
}

/// The error for a request that is too long for the model, with what takes the room in it.
pub fn of_error(error: &RunError, messages: &[Message], tools: &Toolset) -> Option<Failed> {
    let RunError::Model(error) = error else { return None };
    if error.kind() != ModelErrorKind::ContextLength {
        return None;
    }
    let room = ContextRoom::of(messages, tools);
    let message = format!("the request is too long for the model's context ({}): {error}", room.line());
    let smaller = match room.of_tools() > room.conversation {
        true => "offer fewer tools (`--tools bash,read_file`, `--tools none`)",
        false => "ask with less text, or let a tool read it in parts",
    };
    let hint = format!(
        "{smaller}, or give the model a larger context (llama.cpp: `--ctx-size`, Ollama: `OLLAMA_CONTEXT_LENGTH`)"
    );
    Some(Failed(ErrorInfo { kind: ErrorKind::Limit, message, hint: Some(hint) }))
}
