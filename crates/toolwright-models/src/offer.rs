//! Which models a server has to offer.

use std::time::Duration;

use serde_json::Value;
use toolwright_core::ModelError;

use crate::error;

/// The most bytes of a list.
const MOST: usize = 1 << 20;

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What the server calls it.
    pub name: String,
    /// Whether it sees pictures; `None` when the server does not say.
    pub images: Option<bool>,
}

/// The models that an OpenAI-compatible server has, such as a llama.cpp or Ollama server on this machine.
/// `base` ends where `/models` follows; `connect` and `answer` bound the time.
pub async fn offered(base: &str, connect: Duration, answer: Duration) -> Result<Vec<Offer>, ModelError> {
    let failed = |cause: reqwest::Error| {
        error::unavailable("the server does not say which models it has").with_source(cause.without_url())
    };
    let client = toolwright_net::client(base.starts_with("https:"), connect, answer)
        .map_err(|cause| error::request("the connection cannot be set up").with_source(cause))?;
    let request = client.get(format!("{}/models", base.trim_end_matches('/'))).timeout(connect + answer);
    let mut response = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MOST {
            return Err(error::reply("the list of models is too long"));
        }
        body.extend_from_slice(&chunk);
    }
    let list: Value = serde_json::from_slice(&body)
        .map_err(|cause| error::reply("the list of models is not JSON").with_source(cause))?;
    let list = list.get("data").and_then(Value::as_array);
    let list = list.ok_or_else(|| error::reply("the list of models has no `data`"))?;
    Ok(list.iter().filter_map(offer).collect())
}

fn offer(model: &Value) -> Option<Offer> {
    let takes = model.pointer("/architecture/input_modalities").and_then(Value::as_array);
    let images = takes.map(|takes| takes.iter().any(|kind| kind == "image"));
    Some(Offer { name: model.get("id")?.as_str()?.to_owned(), images })
}
