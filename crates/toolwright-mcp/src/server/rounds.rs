//! Calls that need several rounds, in the era without sessions: what the client answered so far travels with it,
//! sealed, so that any instance of the server can go on.
//!
//! The seal binds the answers to one client and to one request: the same method, name and arguments. It says nothing
//! secret, but nothing in it can be changed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::canonical_json;

use super::Request;
use crate::jsonrpc::{INVALID_PARAMS, RpcError};
use crate::random::random_bytes;

/// How long a client may take between two rounds.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The most answers one request may collect.
const MAX_ANSWERS: usize = 100;

/// The longest state a client may bring back.
const MAX_STATE: usize = 1024 * 1024;

/// The key that seals what clients carry for a server. Its `Debug` shows nothing of it.
#[derive(Clone)]
pub struct StateKey(hmac::Key);

impl StateKey {
    /// The least length of a key, in bytes.
    pub const MIN_BYTES: usize = 32;

    /// A key nobody else has.
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

/// What was answered in earlier rounds and in this one.
pub(super) struct Rounds {
    pub(super) answers: Map<String, Value>,
    /// True when the client brought back a state of ours.
    pub(super) resumed: bool,
    binding: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct State {
    /// When it stops being good, in seconds since 1970.
    until: u64,
    answers: Map<String, Value>,
}

impl Rounds {
    /// Reads `inputResponses` and `requestState` of a request. A state that was changed, is too old, or belongs to
    /// something else is refused.
    pub(super) fn open(
        key: &StateKey,
        request: &Request,
        what: (&str, &str, &Value),
        params: &Value,
    ) -> Result<Self, RpcError> {
        let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let (method, name, arguments) = what;
        let mut rounds = Rounds { answers: Map::new(), resumed: false, binding: [0; 32] };
        let given = params.get("inputResponses");
        let state = params.get("requestState");
        if !request.era.is_stateless() || (given.is_none() && state.is_none()) {
            // The common case: nothing to bind unless something is asked, and then `bind` is called.
            return Ok(rounds);
        }
        rounds.bind(request, (method, name, arguments));
        if let Some(state) = state {
            let state = state.as_str().filter(|state| state.len() <= MAX_STATE);
            let state = state.ok_or_else(|| invalid("`requestState` is not one of ours"))?;
            rounds.answers = rounds.unseal(key, state).map_err(invalid)?;
            rounds.resumed = true;
        }
        match given {
            None => {}
            Some(Value::Object(given)) => {
                rounds.answers.extend(given.iter().map(|(key, answer)| (key.clone(), answer.clone())));
            }
            Some(_) => return Err(invalid("`inputResponses` must be an object")),
        }
        if rounds.answers.len() > MAX_ANSWERS {
            return Err(invalid("there are too many answers"));
        }
        Ok(rounds)
    }

    /// Says which request the answers belong to.
    pub(super) fn bind(&mut self, request: &Request, (method, name, arguments): (&str, &str, &Value)) {
        let text = canonical_json(&json!([method, name, arguments, *request.subject]));
        self.binding = Sha256::digest(text.as_bytes()).into();
    }

    /// What the client is to bring back.
    pub(super) fn seal(&self, key: &StateKey, answers: Map<String, Value>) -> String {
        let state = State { until: now() + LIFETIME.as_secs(), answers };
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
        let state: State = serde_json::from_slice(&payload).map_err(|_| FORGED)?;
        if state.until < now() {
            return Err("`requestState` is too old; begin again without it");
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

    fn rounds(binding: u8) -> Rounds {
        Rounds { answers: Map::new(), resumed: false, binding: [binding; 32] }
    }

    fn answers() -> Map<String, Value> {
        Map::from_iter([("name".to_owned(), json!({"action": "accept", "content": {"name": "Ada"}}))])
    }

    #[test]
    fn a_state_comes_back_as_it_was_sent() {
        let key = StateKey::random();
        let state = rounds(1).seal(&key, answers());
        assert_eq!(rounds(1).unseal(&key, &state), Ok(answers()));
    }

    #[test]
    fn a_state_is_good_for_nothing_else() {
        let key = StateKey::random();
        let state = rounds(1).seal(&key, answers());
        assert!(rounds(2).unseal(&key, &state).is_err(), "another request");
        assert!(rounds(1).unseal(&StateKey::random(), &state).is_err(), "another server");
        for forged in
            [format!("{state}-TAMPERED"), format!("x{state}"), state.replace('.', ""), String::new()]
        {
            assert!(rounds(1).unseal(&key, &forged).is_err(), "{forged}");
        }
        let (payload, tag) = state.split_once('.').unwrap();
        let changed = payload.chars().rev().collect::<String>();
        assert!(rounds(1).unseal(&key, &format!("{changed}.{tag}")).is_err());
    }

    #[test]
    fn a_short_key_is_refused() {
        assert!(StateKey::from_bytes(b"secret").is_none());
        assert!(StateKey::from_bytes(&[7; 32]).is_some());
    }
}
