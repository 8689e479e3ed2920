//! What a client sends to a server and nobody else may read: a server that repeats it, as gateways do in their errors, does
//! not make us repeat it to a model, a log or a transcript.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use toolwright_core::Secret;
use toolwright_net::reqwest::Url;

use crate::jsonrpc::{Message, RpcError};

/// Values shorter than this are too common to look for.
const SHORTEST: usize = 6;

/// How many tokens are remembered: an answer may come after the token that was sent for it was replaced.
const TOKENS: usize = 8;

/// What stands in place of a secret.
const SHOWN: &str = "[secret]";

/// The names of headers and of parts of a query that hold credentials have one of these in them.
const CREDENTIALS: [&str; 8] = ["auth", "key", "token", "secret", "password", "cookie", "credential", "sig"];

/// The secrets that one server was sent.
#[derive(Default)]
pub(crate) struct Hidden {
    /// Credentials, which are hidden wherever they come back. The longest are first, so that none is hidden in part.
    credentials: Vec<Secret>,
    /// Everything that was sent in headers and in the address. It may be a word that is common in results, such as the name of
    /// a project, so it is hidden in errors alone.
    values: Vec<Secret>,
    tokens: Mutex<Vec<Secret>>,
}

impl Hidden {
    pub(crate) fn new(url: &Url, headers: &[(String, Secret)]) -> Self {
        let mut hidden = Hidden::default();
        for (name, value) in headers {
            hidden.add(name, value.expose());
            // `Bearer` or `Basic`, and then what counts.
            if let Some((_, bare)) = value.expose().trim().split_once(' ') {
                hidden.add(name, bare.trim());
            }
        }
        hidden.add("password", url.password().unwrap_or_default());
        for pair in url.query().unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or(("key", pair));
            hidden.add(name, value);
        }
        for (name, value) in url.query_pairs() {
            hidden.add(&name, &value);
        }
        for list in [&mut hidden.credentials, &mut hidden.values] {
            list.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        }
        hidden
    }

    fn add(&mut self, name: &str, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        let name = name.to_ascii_lowercase();
        if CREDENTIALS.iter().any(|word| name.contains(word)) {
            self.credentials.push(Secret::new(value));
        }
        self.values.push(Secret::new(value));
    }

    /// Notes a token that is sent.
    pub(crate) fn sent(&self, token: &Secret) {
        let mut tokens = self.tokens();
        if token.expose().len() < SHORTEST || tokens.contains(token) {
            return;
        }
        if tokens.len() >= TOKENS {
            tokens.remove(0);
        }
        tokens.push(token.clone());
    }

    fn tokens(&self) -> MutexGuard<'_, Vec<Secret>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words of an error without what must not be read.
    pub(crate) fn words(&self, said: &str) -> String {
        replaced(said, &self.tokens(), &self.values).into_owned()
    }

    /// An error without what must not be read.
    pub(crate) fn error(&self, error: &mut RpcError) {
        let tokens = self.tokens().clone();
        error.message = replaced(&error.message, &tokens, &self.values).into_owned();
        error.data.iter_mut().for_each(|data| walk(data, &tokens, &self.values));
    }

    /// Takes out of a message what must not be read.
    pub(crate) fn message(&self, message: &mut Message) {
        let tokens = self.tokens().clone();
        match message {
            Message::Response { outcome: Err(error), .. } => self.error(error),
            Message::Response { outcome: Ok(value), .. }
            | Message::Request { params: value, .. }
            | Message::Notification { params: value, .. } => walk(value, &tokens, &self.credentials),
        }
    }
}

fn walk(value: &mut Value, tokens: &[Secret], more: &[Secret]) {
    if tokens.is_empty() && more.is_empty() {
        return;
    }
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = replaced(text, tokens, more) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, tokens, more)),
        Value::Object(members) => {
            let holds = |key: &String| matches!(replaced(key, tokens, more), Cow::Owned(_));
            if members.keys().any(holds) {
                let named = std::mem::take(members).into_iter();
                *members =
                    named.map(|(key, value)| (replaced(&key, tokens, more).into_owned(), value)).collect();
            }
            members.values_mut().for_each(|value| walk(value, tokens, more));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replaced<'t>(text: &'t str, tokens: &[Secret], more: &[Secret]) -> Cow<'t, str> {
    let mut clean = Cow::Borrowed(text);
    for secret in more.iter().chain(tokens) {
        if clean.contains(secret.expose()) {
            clean = Cow::Owned(clean.replace(secret.expose(), SHOWN));
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::Id;
    use serde_json::json;

    #[test]
    fn credentials_are_hidden_everywhere_and_other_values_in_errors() {
        let url = Url::parse("https://me:hunter22@a.example/mcp?api_key=k%2Dquery&v=1").unwrap();
        let headers = [
            ("Authorization".to_owned(), Secret::new("Bearer sk-12345678")),
            ("X-Project".to_owned(), Secret::new("toolwright")),
            ("X-Key".to_owned(), Secret::new("1")),
        ];
        let hidden = Hidden::new(&url, &headers);
        hidden.sent(&Secret::new("token-of-oauth"));
        let said = "toolwright: Bearer sk-12345678, sk-12345678 hunter22 k%2Dquery k-query token-of-oauth 1";
        assert_eq!(hidden.words(said), "[secret]: [secret], [secret] [secret] [secret] [secret] [secret] 1");
        let result = json!({"a": [said], "sk-12345678": {"b": "toolwright"}});
        let mut message = Message::Response { id: Id::Number(1), outcome: Ok(result) };
        hidden.message(&mut message);
        let clean = "toolwright: [secret], [secret] [secret] [secret] [secret] [secret] 1";
        let wanted = json!({"a": [clean], "[secret]": {"b": "toolwright"}});
        assert_eq!(message, Message::Response { id: Id::Number(1), outcome: Ok(wanted) });
    }
}
