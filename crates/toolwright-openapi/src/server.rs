//! Where an API is: the address that the caller names, or the first server of the document.

use serde_json::Value;

/// The address of the server that a `servers` list names first, its variables at their defaults.
pub(crate) fn first(of: &Value) -> Option<String> {
    let server = of.get("servers")?.as_array()?.first()?;
    let mut url = server.get("url")?.as_str()?.trim().to_owned();
    for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten() {
        let default = match variable.get("default") {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => continue,
        };
        url = url.replace(&format!("{{{name}}}"), &default);
    }
    Some(url)
}

/// An address with a scheme and a host, without a trailing slash; an error says what is missing.
pub(crate) fn checked(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err(format!("`{url}` is not the address of a server"));
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.contains(['{', '}', '@', ' ', '\\']) || url.contains(['?', '#', '{']) {
        return Err(format!("`{url}` is not the address of a server"));
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(format!("`{}` is not the address of a server", url.escape_debug()));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// The scheme, host and port of an address: where a secret may go.
pub(crate) fn origin(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(after..).and_then(|rest| rest.find('/')).map_or(url.len(), |at| after + at);
    url.get(..end).unwrap_or(url)
}
