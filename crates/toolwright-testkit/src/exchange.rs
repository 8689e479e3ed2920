//! Recorded exchanges with a model: record once against the real one, play again without it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use toolwright_core::{
    BoxFuture, Message, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, ToolChoice, ToolSpec,
    Usage,
};

/// What was asked, and what was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools that were offered.
    pub tools: Vec<ToolSpec>,
    /// Whether one had to be called.
    pub tool_choice: ToolChoice,
    /// The answer.
    pub reply: ModelReply,
}

/// Passes requests on to a model and keeps what was said.
pub struct Recorder<M> {
    model: M,
    exchanges: Mutex<Vec<Exchange>>,
}

impl<M: Model> Recorder<M> {
    /// Records what `model` is asked and answers.
    pub fn new(model: M) -> Self {
        Recorder { model, exchanges: Mutex::default() }
    }

    /// What was said so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what was said to a file.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut text = serde_json::to_string_pretty(&self.exchanges())?;
        text.push('\n');
        std::fs::write(path, text)
    }
}

impl<M: Model> Model for Recorder<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let (messages, tools) = (request.messages.to_vec(), request.tools.to_vec());
            let tool_choice = request.tool_choice.clone();
            let reply = self.model.generate(request).await?;
            let exchange = Exchange { messages, tools, tool_choice, reply: reply.clone() };
            self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
            Ok(reply)
        })
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.model.cost(usage)
    }
}

/// Answers as recorded. A request that differs from the recorded one is an error, so a change in what is sent to a
/// model cannot go unnoticed.
#[derive(Debug, Clone)]
pub struct Player {
    exchanges: Arc<Vec<Exchange>>,
    next: Arc<Mutex<usize>>,
}

impl Player {
    /// Plays these exchanges in order.
    pub fn new(exchanges: Vec<Exchange>) -> Self {
        Player { exchanges: Arc::new(exchanges), next: Arc::default() }
    }

    /// Plays the exchanges of a file that [`Recorder::save`] wrote.
    pub fn load(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Ok(Self::new(serde_json::from_str(&text)?))
    }

    fn answer(&self, request: &ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let script = |text: String| ModelError::new(ModelErrorKind::Script, text);
        let exchange = self.exchanges.get(*next).ok_or_else(|| {
            script(format!(
                "there are {} recorded exchanges, and one more was asked for",
                self.exchanges.len()
            ))
        })?;
        let differs = |what: &str, recorded: String, sent: String| {
            script(format!(
                "exchange {}: {what} differ\n  recorded: {recorded}\n  sent:     {sent}",
                *next + 1
            ))
        };
        if exchange.messages != request.messages {
            return Err(differs("the messages", json(&exchange.messages), json(request.messages)));
        }
        if exchange.tools != request.tools {
            return Err(differs("the tools", json(&exchange.tools), json(request.tools)));
        }
        if exchange.tool_choice != *request.tool_choice {
            return Err(differs("the tool choices", json(&exchange.tool_choice), json(request.tool_choice)));
        }
        *next += 1;
        Ok(exchange.reply.clone())
    }
}

impl Model for Player {
    fn name(&self) -> &str {
        "recorded"
    }

    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move { self.answer(&request) })
    }

    /// To play something again is free.
    fn cost(&self, _usage: &Usage) -> Option<f64> {
        Some(0.0)
    }
}

/// The JSON text of a value, for messages.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}
