//! Keys that are twice in a JSON object. Readers do not agree about which value counts, so that what a person
//! or a rule saw need not be what a tool gets.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The first key of a JSON text that is twice in one object; `None` too when the text is not JSON.
///
/// ```
/// use toolwright_core::schema::repeated_key;
///
/// assert_eq!(repeated_key(r#"{"a": [{"b": 1, "b": 2}]}"#).as_deref(), Some("b"));
/// assert_eq!(repeated_key(r#"{"a": {"b": 1}, "b": 2}"#), None);
/// ```
pub fn repeated_key(json: &str) -> Option<String> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(json);
    let _ = RepeatedKey(&mut found).deserialize(&mut reader);
    found
}

struct RepeatedKey<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for RepeatedKey<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RepeatedKey<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(RepeatedKey(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if seen.contains(&key) {
                *self.0 = Some(key);
                return Err(A::Error::custom("a key is repeated"));
            }
            seen.insert(key);
            members.next_value_seed(RepeatedKey(self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_is_found_however_it_is_written_and_wherever_it_stands() {
        for repeated in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"x":{"a":1,"b":2,"a":null}}]"#,
            r#"{"a":1,"a":"#,
        ] {
            assert_eq!(repeated_key(repeated).as_deref(), Some("a"), "{repeated}");
        }
        for fine in [r#"{"a":{"a":{"a":1}}}"#, "[1, -2, 2.5, true, null, \"a\"]", "{", "no JSON", ""] {
            assert_eq!(repeated_key(fine), None, "{fine}");
        }
    }
}
