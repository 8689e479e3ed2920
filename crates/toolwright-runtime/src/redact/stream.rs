//! Redacting text that comes in pieces: the beginning of a secret waits until it is clear what it is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::Redactor;

/// Takes secrets out of a text that comes in pieces, wherever it is cut.
///
/// ```
/// use toolwright_core::Secret;
/// use toolwright_runtime::{Redactor, StreamRedactor};
///
/// let mut stream = StreamRedactor::new(Redactor::new([Secret::new("hunter2-hunter2")]));
/// let pieces: Vec<String> = ["a hun", "ter2-", "hunter2 b"].map(|piece| stream.push(piece)).into();
/// assert_eq!(pieces, ["a ", "", "[redacted] b"]);
/// assert_eq!(stream.finish(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// The end of the text so far that may be the beginning of a secret.
    held: String,
}

impl StreamRedactor {
    /// Takes out what this redactor knows.
    pub fn new(redactor: Redactor) -> Self {
        StreamRedactor { redactor, held: String::new() }
    }

    /// Takes the next piece; gives the text that is certain, without secrets.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let certain = self.redactor.certain(&self.held);
        let rest = self.held.split_off(certain);
        let text = std::mem::replace(&mut self.held, rest);
        self.redactor.redact_text(&text)
    }

    /// The rest of the text, once no piece follows.
    pub fn finish(&mut self) -> String {
        self.redactor.redact_text(&std::mem::take(&mut self.held))
    }
}

/// Takes secrets out of events in their written form. Pieces of a call's output are one text for each stream.
#[derive(Debug, Default)]
pub(crate) struct EventRedactor {
    redactor: Redactor,
    streams: Mutex<HashMap<(u64, String), StreamRedactor>>,
}

impl EventRedactor {
    pub(crate) fn new(redactor: Redactor) -> Self {
        EventRedactor { redactor, streams: Mutex::default() }
    }

    /// False when there is nothing to look for.
    pub(crate) fn is_needed(&self) -> bool {
        self.redactor.is_needed()
    }

    /// What is held back of a stream when its call ends is the beginning of a secret, if anything: it is not
    /// shown live; the result has it.
    pub(crate) fn redact(&self, event: &mut Value) {
        let text = |event: &Value, key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
        let span = event.get("span").and_then(Value::as_u64).unwrap_or_default();
        let kind = text(event, "event").unwrap_or_default();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if kind == "call_finished" {
            streams.retain(|(of, _), _| *of != span);
        }
        let piece = kind == "call_noted" && text(event, "note").is_some_and(|note| note == "output");
        if !piece {
            drop(streams);
            return self.redactor.redact_event(event);
        }
        let stream = text(event, "stream").unwrap_or_default();
        let redactor =
            streams.entry((span, stream)).or_insert_with(|| StreamRedactor::new(self.redactor.clone()));
        if let Some(Value::String(piece)) = event.get_mut("text") {
            *piece = redactor.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use toolwright_core::Secret;

    use super::*;

    /// Every part of a text that is long enough to say something.
    fn whole_of(text: &str) -> impl Iterator<Item = &str> {
        (4..text.len() - 8).filter_map(move |start| text.get(start..start + 5))
    }

    #[test]
    fn a_secret_is_found_wherever_the_text_is_cut() {
        use base64::Engine as _;
        let secret = "p/4s=5w\"rd-ünïque";
        let redactor = Redactor::new([Secret::new(secret), Secret::new("p/4s=5w")]);
        let base64 = base64::engine::general_purpose::STANDARD.encode(format!("u:{secret}"));
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let json = Value::from(secret).to_string();
        let percent: String = secret
            .bytes()
            .map(|byte| match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect();
        for form in [secret, &base64, &hex, json.trim_matches('"'), &percent, "p/4s=5w"] {
            let text = format!("before {form} after {form}!");
            let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
            let whole = redactor.redact_text(&text);
            assert!(!whole.contains(form), "{whole}");
            let parts = |cuts: &[usize]| {
                let mut stream = StreamRedactor::new(redactor.clone());
                let mut out = String::new();
                let mut last = 0;
                for cut in cuts.iter().copied().chain([text.len()]) {
                    out.push_str(&stream.push(text.get(last..cut).unwrap()));
                    last = cut;
                }
                out + &stream.finish()
            };
            // Beside base64 a character that holds some bits of the first byte may be gone already.
            let same = |pieces: &str| match *form == *base64 {
                true => pieces.contains("[redacted]") && !whole_of(&base64).any(|part| pieces.contains(part)),
                false => pieces == whole,
            };
            for first in &places {
                assert!(same(&parts(&[*first])), "{form} cut at {first}: {}", parts(&[*first]));
            }
            assert!(same(&parts(&places)), "{form} one character at a time: {}", parts(&places));
        }
    }

    #[test]
    fn text_without_a_secret_is_not_held_for_long() {
        let mut stream = StreamRedactor::new(Redactor::new([Secret::new("hunter2-hunter2")]));
        assert_eq!(stream.push("a line\n"), "a line\n");
        assert_eq!(stream.push("hunter"), "");
        assert_eq!(stream.push("s went out\n"), "hunters went out\n");
    }
}
