//! Removes secrets that a client sent to a server from what comes back: gateways repeat them in errors, and
//! they must not reach a model, a log or a transcript.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolwright_core::Secret;
use toolwright_net::reqwest::Url;
use toolwright_util::lock;

use crate::jsonrpc::{RpcError, RpcMessage};
/// Values shorter than this are too common to look for.
const SHORTEST: usize = 6;

/// How many tokens are remembered: an answer may come after the token that was sent for it was replaced.
const TOKENS: usize = 8;

/// What stands in place of a secret.
const SHOWN: &str = "[secret]";

/// The names of headers and of parts of a query that hold credentials have a word that ends so (`apikey`,
/// `X-Session-Token`)...
const ENDINGS: [&str; 7] = ["key", "token", "secret", "password", "cookie", "credential", "signature"];

/// ...or that is one of these.
const WORDS: [&str; 16] = [
    "authorization",
    "authentication",
    "bearer",
    "sig",
    "pass",
    "passwd",
    "pwd",
    "jwt",
    "keys",
    "apikeys",
    "tokens",
    "secrets",
    "passwords",
    "cookies",
    "credentials",
    "signatures",
];

/// The secrets that one server was sent.
#[derive(Default)]
pub(crate) struct SecretScrubber {
    /// Credentials, which are hidden wherever they come back. The longest are first, so that none is hidden
    /// in part.
    credentials: Vec<Secret>,
    /// Everything that was sent in headers and in the address. It may be a word that is common in results,
    /// such as the name of a project, so it is hidden in errors alone.
    values: Vec<Secret>,
    tokens: Mutex<Vec<Secret>>,
}

impl SecretScrubber {
    pub(crate) fn new(url: &Url, headers: &[(String, Secret)]) -> Self {
        let mut scrubber = SecretScrubber::default();
        for (name, value) in headers {
            scrubber.add(name, value.expose());
            // `Bearer` or `Basic`, and then what counts.
            if let Some((_, bare)) = value.expose().trim().split_once(' ') {
                scrubber.add(name, bare.trim());
            }
        }
        scrubber.add_person(url.username(), url.password().unwrap_or_default());
        for pair in url.query().unwrap_or_default().split('&') {
            // What has no name may be a token, and may be a word such as `readonly`.
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            scrubber.add(name, value);
        }
        for (name, value) in url.query_pairs() {
            scrubber.add(&name, &value);
        }
        for list in [&mut scrubber.credentials, &mut scrubber.values] {
            list.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        }
        scrubber
    }

    fn add(&mut self, name: &str, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        if holds_credentials(name) {
            self.credentials.push(Secret::new(value));
        }
        self.values.push(Secret::new(value));
    }

    /// Who we are in the address: as it stands there, as it is meant, and as it is sent. A name alone is a
    /// token; one beside a password may be any word.
    fn add_person(&mut self, name: &str, password: &str) {
        let what = if password.is_empty() { "token" } else { "" };
        let (clear_name, clear_password) = (decoded(name), decoded(password));
        for (what, value) in
            [(what, name), (what, &clear_name), ("password", password), ("password", &clear_password)]
        {
            self.add(what, value);
        }
        if !name.is_empty() || !password.is_empty() {
            self.add("password", &STANDARD.encode(format!("{clear_name}:{clear_password}")));
        }
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
        lock(&self.tokens)
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
    pub(crate) fn message(&self, message: &mut RpcMessage) {
        let tokens = self.tokens().clone();
        match message {
            RpcMessage::Response { outcome: Err(error), .. } => self.error(error),
            RpcMessage::Response { outcome: Ok(value), .. }
            | RpcMessage::Request { params: value, .. }
            | RpcMessage::Notification { params: value, .. } => walk(value, &tokens, &self.credentials),
        }
    }
}

/// Whether what has this name is a credential. A part of a word does not count (`keyspace`, `assignee`),
/// and `auth` counts only as the last word (`X-Auth-Provider`).
pub(crate) fn holds_credentials(name: &str) -> bool {
    let mut spaced = String::new();
    let mut small = false;
    for letter in name.chars() {
        if small && letter.is_ascii_uppercase() {
            spaced.push(' ');
        }
        small = letter.is_ascii_lowercase();
        spaced.push(if letter.is_ascii_alphabetic() { letter.to_ascii_lowercase() } else { ' ' });
    }
    let credential =
        |word: &str| WORDS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending));
    spaced.split_whitespace().any(credential)
        || spaced.split_whitespace().next_back().is_some_and(|last| last.ends_with("auth"))
}

/// A part of an address without its percent signs.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
        let scrubber = SecretScrubber::new(&url, &headers);
        scrubber.sent(&Secret::new("token-of-oauth"));
        let said = "toolwright: Bearer sk-12345678, sk-12345678 hunter22 k%2Dquery k-query token-of-oauth 1";
        assert_eq!(
            scrubber.words(said),
            "[secret]: [secret], [secret] [secret] [secret] [secret] [secret] 1"
        );
        let result = json!({"a": [said], "sk-12345678": {"b": "toolwright"}});
        let mut message = RpcMessage::Response { id: Id::Number(1), outcome: Ok(result) };
        scrubber.message(&mut message);
        let clean = "toolwright: [secret], [secret] [secret] [secret] [secret] [secret] 1";
        let wanted = json!({"a": [clean], "[secret]": {"b": "toolwright"}});
        assert_eq!(message, RpcMessage::Response { id: Id::Number(1), outcome: Ok(wanted) });
    }

    /// What is left of a result that says this.
    fn result(url: &str, headers: &[(&str, &str)], said: &str) -> String {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        let scrubber = SecretScrubber::new(&Url::parse(url).unwrap(), &headers);
        let mut message = RpcMessage::Response { id: Id::Number(1), outcome: Ok(said.into()) };
        scrubber.message(&mut message);
        let RpcMessage::Response { outcome: Ok(Value::String(left)), .. } = message else {
            panic!("{message:?}")
        };
        left
    }

    #[test]
    fn ordinary_words_stay_in_results() {
        let url = "https://a.example/?keyspace=production&assignee=somebody&readonly&design=classic";
        let headers = [("X-Auth-Provider", "github"), ("X-Author", "somebody else"), ("X-Monkeys", "gibbon")];
        let said = "production: somebody else uses github readonly, classic gibbon";
        assert_eq!(result(url, &headers, said), said);
        let several = [("X-Api-Keys", "k-111111"), ("X-Auth-Bearer", "b-222222"), ("X-Secrets", "s-333333")];
        let said = "k-111111 b-222222 s-333333";
        assert_eq!(result("https://a.example/", &several, said), "[secret] [secret] [secret]");
        // Nobody knows what it is, so it is hidden in errors.
        let scrubber = SecretScrubber::new(&Url::parse("https://a.example/?sk-12345678").unwrap(), &[]);
        assert_eq!(scrubber.words("no sk-12345678"), "no [secret]");
    }

    #[test]
    fn credentials_are_known_by_the_words_of_their_names() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "X-Auth",
            "X-Auth-Token",
            "X-API-Key",
            "apikey",
            "apiKey",
            "APIKey",
            "access_token",
            "accessToken",
            "client-secret",
            "Cookie",
            "sig",
            "X-Amz-Signature",
            "db_password",
            "api_key_2",
        ] {
            assert_eq!(
                result("https://a.example/", &[(name, "abcdef12")], "an abcdef12"),
                "an [secret]",
                "{name}"
            );
        }
    }

    #[test]
    fn the_person_in_an_address_is_hidden_in_every_form() {
        assert_eq!(result("https://tok%2Den1@a.example/", &[], "tok%2Den1, tok-en1"), "[secret], [secret]");
        // `user:pass word` in Base64, as it is sent.
        let said = "pass%20word, pass word, dXNlcjpwYXNzIHdvcmQ=; the user";
        let left = "[secret], [secret], [secret]; the user";
        assert_eq!(result("https://user:pass%20word@a.example/", &[], said), left);
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
