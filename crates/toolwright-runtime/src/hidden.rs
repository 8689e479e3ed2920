//! Secrets of a file are references: flows use their values, models and people read `[redacted]`.

use toolwright_core::{Content, Message, Secret, ToolError, ToolResult};

use crate::events::{Event, EventKind};
use crate::redact::{EventRedactor, Redactor};

/// The secrets that nobody outside the calls of a run is shown.
#[derive(Debug, Default)]
pub(crate) struct HiddenSecrets {
    redactor: Redactor,
    events: EventRedactor,
}

impl HiddenSecrets {
    pub(crate) fn new(secrets: Vec<Secret>) -> Self {
        let redactor = Redactor::of_values(secrets);
        HiddenSecrets { events: EventRedactor::new(redactor.clone()), redactor }
    }

    /// A result as its caller gets it.
    pub(crate) fn clean(&self, result: &mut ToolResult) {
        if !self.redactor.is_needed() {
            return;
        }
        self.clean_content(&mut result.content);
        let beside = [Some(&mut result.metadata), result.extras.as_deref_mut()];
        for map in beside.into_iter().flatten() {
            let mut value = serde_json::Value::Object(std::mem::take(map));
            self.redactor.redact(&mut value);
            if let serde_json::Value::Object(clean) = value {
                *map = clean;
            }
        }
        result.structured.iter_mut().for_each(|value| self.redactor.redact(value));
        if let Some(error) = &mut result.error {
            error.message = self.redactor.redact_text(&error.message);
            error.hint = error.hint.take().map(|hint| self.redactor.redact_text(&hint));
        }
    }

    /// Messages as a model is sent them; `None` when they hold no secret.
    pub(crate) fn cleaned(&self, messages: &[Message]) -> Option<Vec<Message>> {
        if !self.redactor.is_needed() || !messages.iter().any(|message| self.holds_secret(message)) {
            return None;
        }
        let mut messages = messages.to_vec();
        for message in &mut messages {
            match message {
                Message::System { content } | Message::User { content } => self.clean_content(content),
                Message::Assistant(message) => self.clean_content(&mut message.content),
                Message::Tool(result) => self.clean(result),
            }
        }
        Some(messages)
    }

    fn holds_secret(&self, message: &Message) -> bool {
        let in_content = message.content().iter().any(|block| match block {
            Content::Text { text, .. } => self.redactor.finds(text),
            Content::Json { value } => self.redactor.finds(&value.to_string()),
            Content::ResourceLink { uri, name, description, .. } => {
                [Some(uri), Some(name), description.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|text| self.redactor.finds(text))
            }
            _ => false,
        });
        let in_error = match message {
            Message::Tool(result) => result.error.as_ref().is_some_and(|error| {
                std::iter::once(&error.message).chain(&error.hint).any(|text| self.redactor.finds(text))
            }),
            _ => false,
        };
        in_content || in_error
    }

    fn clean_content(&self, content: &mut [Content]) {
        for block in content {
            match block {
                Content::Text { text, .. } => self.redactor.redact_string(text),
                Content::Json { value } => self.redactor.redact(value),
                Content::ResourceLink { uri, name, description, .. } => {
                    for text in [Some(uri), Some(name), description.as_mut()].into_iter().flatten() {
                        *text = self.redactor.redact_text(text);
                    }
                }
                // Bytes, and reasoning, which must go back unchanged and was written by a model.
                _ => {}
            }
        }
    }

    /// An event as sinks get it.
    pub(crate) fn event(&self, event: Event) -> Result<Event, ToolError> {
        if !self.events.is_needed() {
            return Ok(event);
        }
        let Event { seq, time, kind } = event;
        let failed = |error: serde_json::Error| {
            ToolError::fatal("an event could not be cleared of secrets").with_source(error)
        };
        let mut value = serde_json::to_value(&kind).map_err(failed)?;
        self.events.redact(&mut value);
        let kind: EventKind = serde_json::from_value(value).map_err(failed)?;
        Ok(Event { seq, time, kind })
    }
}
