//! How optional members are read: `null` and values of the wrong type count as absent.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads `null` as the default: many languages write a member that is not set so.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads a value of the wrong type as the default, so that an optional member cannot spoil the message.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).unwrap_or_default())
}

/// Reads what is not an object as the default. `lenient` would take a list for a struct of as many members.
pub(super) fn object<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(
    from: D,
) -> Result<T, D::Error> {
    match Value::deserialize(from)? {
        value @ Value::Object(_) => Ok(serde_json::from_value(value).unwrap_or_default()),
        _ => Ok(T::default()),
    }
}
