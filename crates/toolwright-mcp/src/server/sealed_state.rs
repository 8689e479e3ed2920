//! The state of calls that need several rounds, in the era without sessions: the client carries its answers
//! so far, sealed, so that any instance of the server can go on.
//!
//! The seal binds the answers to one client and one request. The state is not secret, but it cannot be
//! changed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::canonical_json;

use super::IncomingRequest;
use crate::jsonrpc::{INVALID_PARAMS, RpcError};
use crate::protocol::Round;
use crate::random::random_bytes;

/// How long a client may take between two rounds.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The most answers one request may collect.
const MAX_ANSWERS: usize = 100;

/// The longest state a client may bring back.
const MAX_STATE: usize = 1024 * 1024;

/// The key that seals the state that clients carry for a server. Its `Debug` does not show it.
#[derive(Clone)]
pub struct StateKey(hmac::Key);

impl StateKey {
    /// The least length of a key, in bytes.
    pub const MIN_BYTES: usize = 32;

    /// A random key.
    pub fn random() -> Self {
        StateKey(hmac::Key::new(hmac::HMAC_SHA256, &random_bytes::<32>()))
    }

    /// A key that several instances share; `None` when it is shorter than [`StateKey::MIN_BYTES`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= Self::MIN_BYTES).then(|| StateKey(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey(..)")
    }
}

/// The request that sealed answers belong to: the same method, name and arguments.
#[derive(Clone, Copy)]
pub(super) struct Binding<'a> {
    pub(super) method: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a Value,
}

/// The answers of earlier rounds and of this one.
pub(super) struct SealedState {
    pub(super) answers: Map<String, Value>,
    /// True when the client brought back a state of ours.
    pub(super) resumed: bool,
    binding: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct RoundState {
    /// When it expires, in seconds since 1970.
    until: u64,
    answers: Map<String, Value>,
}

impl SealedState {
    /// Opens what a client brings back. A state that was changed, has expired, or belongs to another request
    /// is refused.
    pub(super) fn open(
        key: &StateKey,
        request: &IncomingRequest,
        binding: Binding<'_>,
        round: Round,
    ) -> Result<Self, RpcError> {
        let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let mut sealed = SealedState { answers: Map::new(), resumed: false, binding: [0; 32] };
        let Round { input_responses, request_state } = round;
        if !request.era.is_stateless() || (input_responses.is_none() && request_state.is_none()) {
            // The common case: nothing is bound unless something is asked, and then `bind` is called.
            return Ok(sealed);
        }
        sealed.bind(request, binding);
        if let Some(state) = request_state {
            let state = state.as_str().filter(|state| state.len() <= MAX_STATE);
            let state = state.ok_or_else(|| invalid("`requestState` is not one of this server"))?;
            sealed.answers = sealed.unseal(key, state).map_err(invalid)?;
            sealed.resumed = true;
        }
        sealed.answers.extend(input_responses.unwrap_or_default());
        if sealed.answers.len() > MAX_ANSWERS {
            return Err(invalid("there are too many answers"));
        }
        Ok(sealed)
    }

    /// Names the request that the answers belong to.
    pub(super) fn bind(&mut self, request: &IncomingRequest, binding: Binding<'_>) {
        let Binding { method, name, arguments } = binding;
        let text = canonical_json(&json!([method, name, arguments, *request.subject]));
        self.binding = Sha256::digest(text.as_bytes()).into();
    }

    /// Seals answers for the client to bring back.
    pub(super) fn seal(&self, key: &StateKey, answers: Map<String, Value>) -> String {
        let state = RoundState { until: now() + LIFETIME.as_secs(), answers };
        let payload = serde_json::to_vec(&state).unwrap_or_default();
        let tag = hmac::sign(&key.0, &self.signed(&payload));
        format!("{}.{}", URL_SAFE_NO_PAD.encode(&payload), URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    fn unseal(&self, key: &StateKey, state: &str) -> Result<Map<String, Value>, &'static str> {
        const FORGED: &str = "`requestState` is not what this server sent for this request";
        let (payload, tag) = state.split_once('.').ok_or(FORGED)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| FORGED)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| FORGED)?;
        hmac::verify(&key.0, &self.signed(&payload), &tag).map_err(|_| FORGED)?;
        let state: RoundState = serde_json::from_slice(&payload).map_err(|_| FORGED)?;
        if state.until < now() {
            return Err("`requestState` has expired; begin again without it");
        }
        Ok(state.answers)
    }

    fn signed(&self, payload: &[u8]) -> Vec<u8> {
        [b"toolwright mcp state 1\n", self.binding.as_slice(), payload].concat()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(binding: u8) -> SealedState {
        SealedState { answers: Map::new(), resumed: false, binding: [binding; 32] }
    }

    fn answers() -> Map<String, Value> {
        Map::from_iter([("name".to_owned(), json!({"action": "accept", "content": {"name": "Ada"}}))])
    }

    #[test]
    fn state_comes_back_as_it_was_sent() {
        let key = StateKey::random();
        let state = sealed(1).seal(&key, answers());
        assert_eq!(sealed(1).unseal(&key, &state), Ok(answers()));
    }

    #[test]
    fn state_is_valid_for_its_own_request_and_server_only() {
        let key = StateKey::random();
        let state = sealed(1).seal(&key, answers());
        assert!(sealed(2).unseal(&key, &state).is_err(), "another request");
        assert!(sealed(1).unseal(&StateKey::random(), &state).is_err(), "another server");
        for forged in
            [format!("{state}-TAMPERED"), format!("x{state}"), state.replace('.', ""), String::new()]
        {
            assert!(sealed(1).unseal(&key, &forged).is_err(), "{forged}");
        }
        let (payload, tag) = state.split_once('.').unwrap();
        let changed = payload.chars().rev().collect::<String>();
        assert!(sealed(1).unseal(&key, &format!("{changed}.{tag}")).is_err());
    }

    #[test]
    fn short_key_is_refused() {
        assert!(StateKey::from_bytes(b"secret").is_none());
        assert!(StateKey::from_bytes(&[7; 32]).is_some());
    }
}
