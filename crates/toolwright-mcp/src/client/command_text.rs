//! A command line without the values of secrets: for errors, and for locks, which are kept in git.

use toolwright_core::Secret;
use toolwright_net::reqwest::Url;

use crate::transport::secret_scrubber::holds_credentials;

/// What stands in place of a secret.
const SHOWN: &str = "[secret]";

/// Shorter values are too common to look for.
const SHORTEST: usize = 6;

/// How tokens of well-known services begin.
const TOKENS: [&str; 11] =
    ["sk-", "sk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza"];

/// A token is longer than its beginning.
const SHORTEST_TOKEN: usize = 16;

/// The words with blanks between. Values of options and variables whose names speak of secrets, tokens, who
/// logs in at an address and `secrets`, wherever they stand in a word, are replaced.
pub(crate) fn without_secrets(words: &[String], secrets: &[Secret]) -> String {
    let mut shown: Vec<String> = Vec::with_capacity(words.len());
    let mut value_of_secret = false;
    for (place, word) in words.iter().enumerate() {
        let hidden = std::mem::take(&mut value_of_secret) && !word.starts_with('-');
        let mut text = if hidden { SHOWN.to_owned() } else { of_word(word) };
        for secret in secrets.iter().filter(|secret| secret.expose().len() >= SHORTEST) {
            text = text.replace(secret.expose(), SHOWN);
        }
        value_of_secret =
            place > 0 && word.starts_with('-') && !word.contains('=') && holds_credentials(word);
        shown.push(text);
    }
    shown.join(" ")
}

fn of_word(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=') {
        let is_name = !name.is_empty() && !name.contains(['/', ':', '?', ' ']);
        if is_name {
            let value = if holds_credentials(name) { SHOWN.to_owned() } else { of_word(value) };
            return format!("{name}={value}");
        }
    }
    // A header: `Authorization: Bearer ...`.
    if let Some((name, value)) = word.split_once(':')
        && !value.starts_with("//")
        && holds_credentials(name)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return format!("{name}: {SHOWN}");
    }
    let is_token = TOKENS.iter().any(|start| word.starts_with(start)) && word.len() >= SHORTEST_TOKEN;
    if is_token {
        return SHOWN.to_owned();
    }
    match Url::parse(word) {
        Ok(url) if url.has_host() && (url.query().is_some() || has_login(&url)) => {
            super::target::HttpTarget::new(word).to_text()
        }
        _ => word.to_owned(),
    }
}

fn has_login(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_not_in_a_command_line() {
        let secrets = [Secret::new("s3cret-value")];
        for (words, shown) in [
            ("npx server --api-key=k1 --verbose", "npx server --api-key=[secret] --verbose"),
            ("srv --token k1 --port 80", "srv --token [secret] --port 80"),
            ("srv --token --port 80", "srv --token --port 80"),
            ("env API_KEY=k1 MODE=fast srv", "env API_KEY=[secret] MODE=fast srv"),
            ("srv sk-abcdefghijklmnopqrstuv sk-short", "srv [secret] sk-short"),
            ("srv pre:s3cret-value:post", "srv pre:[secret]:post"),
            ("srv postgres://me:pw@db.example/x", "srv postgres://db.example/x"),
            ("srv --url=https://a.example/?v=k1", "srv --url=https://a.example/?v=..."),
            ("srv X-Api-Key:k1 a:b", "srv X-Api-Key: [secret] a:b"),
            ("token-server run --keyspace=main a=b", "token-server run --keyspace=main a=b"),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(without_secrets(&words, &secrets), shown);
        }
    }
}
