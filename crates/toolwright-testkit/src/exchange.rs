//! Recorded exchanges with a model: record once against the real one, play again without it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use toolwright_core::{
    DeltaSink, Message, Model, ModelError, ModelErrorKind, ModelOptions, ModelReply, ModelRequest,
    ToolChoice, ToolSpec, Usage,
};
use toolwright_util::lock;

/// A request and its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools that were offered.
    pub tools: Vec<ToolSpec>,
    /// Whether one had to be called.
    pub tool_choice: ToolChoice,
    /// How it was to be answered.
    #[serde(default)]
    pub options: ModelOptions,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The answer.
    Reply(ModelReply),
    /// Why there was none.
    Error {
        /// The kind.
        kind: ModelErrorKind,
        /// The words.
        message: String,
    },
}

impl Exchange {
    fn new(request: &ModelRequest<'_>, outcome: &Result<ModelReply, ModelError>) -> Self {
        Exchange {
            messages: request.messages.to_vec(),
            tools: request.tools.to_vec(),
            tool_choice: request.tool_choice.clone(),
            options: request.options.clone(),
            outcome: match outcome {
                Ok(reply) => Outcome::Reply(reply.clone()),
                Err(error) => Outcome::Error { kind: error.kind(), message: error.to_string() },
            },
        }
    }

    fn asks(&self, request: &ModelRequest<'_>) -> bool {
        self.messages == request.messages
            && self.tools == request.tools
            && self.tool_choice == *request.tool_choice
            && self.options == *request.options
    }
}

/// Forwards requests to a model and records every reply and failure.
pub struct Recorder<M> {
    model: M,
    exchanges: Mutex<Vec<Exchange>>,
}

impl<M: Model> Recorder<M> {
    /// Records the exchanges of `model`.
    pub fn new(model: M) -> Self {
        Recorder { model, exchanges: Mutex::default() }
    }

    /// The exchanges so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        lock(&self.exchanges).clone()
    }

    fn keep(&self, exchange: Exchange) {
        lock(&self.exchanges).push(exchange);
    }

    /// Writes the exchanges to a file.
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

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let outcome = self.model.generate(request.clone()).await;
        self.keep(Exchange::new(&request, &outcome));
        outcome
    }

    async fn generate_streaming(
        &self,
        request: ModelRequest<'_>,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let outcome = self.model.generate_streaming(request.clone(), sink).await;
        self.keep(Exchange::new(&request, &outcome));
        outcome
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.model.cost(usage)
    }
}

/// Answers as recorded. A request that differs from every recorded one is an error, so a change in what is
/// sent to a model cannot go unnoticed. Agents that worked at the same time may ask in another order than
/// they did.
#[derive(Debug, Clone)]
pub struct Player {
    exchanges: Arc<Vec<Exchange>>,
    /// Which exchanges were not played yet, in order.
    left: Arc<Mutex<Vec<usize>>>,
}

impl Player {
    /// Plays these exchanges, each once; of equal requests the first recorded comes first.
    pub fn new(exchanges: Vec<Exchange>) -> Self {
        let left = Arc::new(Mutex::new((0..exchanges.len()).collect()));
        Player { exchanges: Arc::new(exchanges), left }
    }

    /// Plays the exchanges of a file that [`Recorder::save`] wrote.
    pub fn load(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Ok(Self::new(serde_json::from_str(&text)?))
    }

    fn answer(&self, request: &ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let mut left = lock(&self.left);
        let at = |number: usize| self.exchanges.get(number);
        let meant = left.iter().position(|number| at(*number).is_some_and(|exchange| exchange.asks(request)));
        if let Some(exchange) = meant.and_then(|place| at(left.remove(place))) {
            return match &exchange.outcome {
                Outcome::Reply(reply) => Ok(reply.clone()),
                Outcome::Error { kind, message } => Err(ModelError::new(*kind, message.clone())),
            };
        }
        let script = |text: String| ModelError::new(ModelErrorKind::Script, text);
        let Some((number, exchange)) = left.first().and_then(|number| Some((*number, at(*number)?))) else {
            let count = self.exchanges.len();
            return Err(script(format!("there are {count} recorded exchanges, and one more was asked for")));
        };
        let differs = |what: &str, recorded: String, sent: String| {
            let number = number + 1;
            let others = match left.len() {
                1 => String::new(),
                count => format!(" (and so do {} more)", count - 1),
            };
            script(format!(
                "exchange {number}: {what} differ{others}\n  recorded: {recorded}\n  sent:     {sent}"
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
        Err(differs("the options", json(&exchange.options), json(request.options)))
    }
}

impl Model for Player {
    fn name(&self) -> &str {
        "recorded"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.answer(&request)
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
