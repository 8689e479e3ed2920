//! The first part of an event's line: what an index needs, without reading pictures and long outputs.
//!
//! The writer puts what is long last, so reading stops there. A line in another order is read to its end.

use std::collections::BTreeMap;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use toolwright::model::Usage;
use toolwright::tool::ErrorInfo;

/// What the beginning of a line says; a field that the event does not have keeps its default.
#[derive(Debug, Default)]
pub struct LineHead {
    pub event: String,
    pub time: String,
    pub span: Option<u64>,
    pub parent: Option<u64>,
    pub tool: String,
    pub duration_us: Option<u64>,
    pub interrupted: bool,
    pub error: Option<ErrorInfo>,
    pub decision: String,
    pub model: String,
    pub usage: Usage,
    pub cost: f64,
    pub run_id: String,
    pub labels: BTreeMap<String, String>,
    pub status: String,
    /// Who speaks, in a message.
    pub role: String,
    /// The beginning of what a user says.
    pub said: String,
    /// The call that begins, or whose result a message is.
    pub call_id: String,
}

impl LineHead {
    /// Reads the beginning of a line; `None` when it is not an event.
    pub fn read(line: &[u8]) -> Option<LineHead> {
        let mut head = LineHead::default();
        let mut reader = serde_json::Deserializer::from_slice(line);
        let outcome = HeadSeed(&mut head).deserialize(&mut reader);
        let stopped = outcome.as_ref().is_err_and(|error| error.to_string().starts_with(ENOUGH));
        ((outcome.is_ok() || stopped) && !head.event.is_empty()).then_some(head)
    }
}

/// Stands for "no error, only enough".
const ENOUGH: &str = "enough was read";

/// How much of a user's words is kept.
const SAID: usize = 300;

struct HeadSeed<'a>(&'a mut LineHead);

impl<'de> DeserializeSeed<'de> for HeadSeed<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let head = self.0;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*key {
                "event" => head.event = map.next_value()?,
                "time" => head.time = map.next_value()?,
                "span" => head.span = Some(map.next_value()?),
                "parent" => head.parent = Some(map.next_value()?),
                "call_id" => head.call_id = map.next_value()?,
                "tool" => head.tool = map.next_value()?,
                "duration_us" => head.duration_us = Some(map.next_value()?),
                "interrupted" => head.interrupted = map.next_value()?,
                "error" if head.event == "call_finished" => head.error = Some(map.next_value()?),
                "decision" => head.decision = map.next_value()?,
                "model" => head.model = map.next_value()?,
                "usage" => head.usage = map.next_value()?,
                "cost" => head.cost = map.next_value::<Option<f64>>()?.unwrap_or_default(),
                "run_id" => head.run_id = map.next_value()?,
                "labels" => head.labels = map.next_value()?,
                "status" => head.status = map.next_value()?,
                "message" if head.event == "message_added" => {
                    map.next_value_seed(MessageSeed(head))?;
                    return Err(de::Error::custom(ENOUGH));
                }
                "result" if head.duration_us.is_some() => return Err(de::Error::custom(ENOUGH)),
                "arguments" | "tools" if !head.event.is_empty() => return Err(de::Error::custom(ENOUGH)),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct MessageSeed<'a>(&'a mut LineHead);

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let head = self.0;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*key {
                "role" => head.role = map.next_value()?,
                "content" if head.role == "user" => {
                    let content: Vec<toolwright::content::Content> = map.next_value()?;
                    let texts = content.iter().filter_map(toolwright::content::Content::as_text);
                    let said = texts.into_iter().next().unwrap_or_default();
                    head.said = toolwright_core::text::clip(&said, SAID).to_string();
                }
                "call_id" if head.role == "tool" => head.call_id = map.next_value()?,
                "name" if head.role == "tool" => head.tool = map.next_value()?,
                _ if !head.role.is_empty() && head.role != "user" => return Err(de::Error::custom(ENOUGH)),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_before_what_is_long() {
        let line = br#"{"seq":3,"time":"2026-01-01T00:00:00.000000Z","event":"call_finished","span":4,"duration_us":12,
            "error":{"type":"timeout","message":"late"},"result":{"call_id":"1","name":"x","content":[ broken"#;
        let head = LineHead::read(line).unwrap_or_default();
        assert_eq!((head.span, head.duration_us), (Some(4), Some(12)));
        assert_eq!(head.error.map(|error| error.message), Some("late".to_owned()));
        let line = br#"{"seq":3,"event":"message_added","message":{"role":"assistant","content": broken"#;
        assert_eq!(LineHead::read(line).unwrap_or_default().role, "assistant");
        assert!(LineHead::read(b"{\"seq\":3}").is_none() && LineHead::read(b"nonsense").is_none());
    }

    #[test]
    fn another_order_is_read_to_the_end() {
        let line = br#"{"event":"call_finished","span":4,"result":{"call_id":"1"},"duration_us":7}"#;
        assert_eq!(LineHead::read(line).unwrap_or_default().duration_us, Some(7));
    }
}
