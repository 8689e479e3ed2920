//! Stop texts for models that may take none: OpenAI's Responses API has no such thing, and some reasoning
//! models refuse them elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolwright_core::{AssistantMessage, Content, ModelError, ModelErrorKind};

use crate::calls::Aloud;

/// Whether a model takes stop texts. Cloning shares what is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stops {
    refused: Arc<AtomicBool>,
}

impl Stops {
    /// The stop texts to send: these, or none to a model that has refused them.
    pub(crate) fn to_send<'a>(&self, wanted: &'a [&'a str]) -> &'a [&'a str] {
        if self.refused.load(Ordering::Relaxed) { &[] } else { wanted }
    }

    /// True when the model did not answer because of them; it is sent none from now on.
    pub(crate) fn are_refused(&self, error: &ModelError) -> bool {
        let refused = error.kind() == ModelErrorKind::Request
            && error.to_string().to_ascii_lowercase().contains("stop");
        self.refused.fetch_or(refused, Ordering::Relaxed);
        refused
    }
}

/// Ends an answer where the model would have stopped: at the first of the stop texts after `begin`, which is
/// returned. A A `begin` inside its reasoning does not count.
pub(crate) fn cut<'a>(message: &mut AssistantMessage, begin: &str, stops: &[&'a str]) -> Option<&'a str> {
    let mut hit = None;
    for block in &mut message.content {
        let Content::Text { text, .. } = block else { continue };
        if hit.is_some() {
            text.clear();
            continue;
        }
        let at = if begin.is_empty() { Some(0) } else { Aloud::new(text).find(begin, 0) };
        let Some(from) = at.map(|at| at + begin.len()) else { continue };
        let rest = text.get(from..).unwrap_or_default();
        if let Some((end, stop)) = stops.iter().filter_map(|stop| Some((rest.find(stop)?, *stop))).min() {
            text.truncate(from + end);
            hit = Some(stop);
        }
    }
    hit
}
