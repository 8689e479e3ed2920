//! What a server says when it refuses: `WWW-Authenticate`.

use toolwright_net::reqwest::StatusCode;
use toolwright_net::reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// A refusal that a token could answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Challenge {
    /// Where the server is described.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that are needed.
    pub(crate) scopes: Vec<String>,
    /// True when the token is good, but not for this.
    pub(crate) wants_more_scopes: bool,
}

impl Challenge {
    /// Reads a refusal; `None` when no token would help.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let said = values.map(parameters).find(Option::is_some).flatten();
        match status {
            StatusCode::UNAUTHORIZED => {
                Some(Challenge { wants_more_scopes: false, ..said.unwrap_or_default() })
            }
            StatusCode::FORBIDDEN => said.filter(|said| said.wants_more_scopes),
            _ => None,
        }
    }
}

/// The parameters of a `Bearer` challenge.
fn parameters(value: &str) -> Option<Challenge> {
    let (scheme, mut rest) = value.trim().split_once([' ', '\t']).unwrap_or((value.trim(), ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut challenge = Challenge::default();
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim().trim_start_matches(',').trim().to_ascii_lowercase();
        let (value, after) = quoted_or_word(after.trim_start());
        match name.as_str() {
            "resource_metadata" => challenge.resource_metadata = Some(value),
            "scope" => challenge.scopes = value.split_whitespace().map(str::to_owned).collect(),
            "error" => challenge.wants_more_scopes = value == "insufficient_scope",
            _ => {}
        }
        rest = after;
    }
    Some(challenge)
}

fn quoted_or_word(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, rest) = text.split_once(',').unwrap_or((text, ""));
        return (word.trim().to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: StatusCode, value: &str) -> Option<Challenge> {
        let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, value.parse().unwrap())]);
        Challenge::read(status, &headers)
    }

    #[test]
    fn a_challenge_says_where_and_what() {
        let value = r#"Bearer scope="a b", resource_metadata="https://x/y?z=1", error="insufficient_scope""#;
        let challenge = read(StatusCode::FORBIDDEN, value).unwrap();
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://x/y?z=1"));
        assert_eq!((challenge.scopes, challenge.wants_more_scopes), (vec!["a".into(), "b".into()], true));
        assert_eq!(read(StatusCode::UNAUTHORIZED, "Bearer"), Some(Challenge::default()));
        assert_eq!(read(StatusCode::UNAUTHORIZED, "Basic realm=\"x\""), Some(Challenge::default()));
        assert_eq!(read(StatusCode::FORBIDDEN, "Bearer"), None);
        assert_eq!(read(StatusCode::NOT_FOUND, "Bearer"), None);
    }

    #[test]
    fn malformed_challenges_are_read_as_far_as_they_go() {
        for value in ["Bearer =", "Bearer a", "Bearer a=\"", "Bearer a=\"\\", "Bearer ,,,=,="] {
            assert_eq!(read(StatusCode::UNAUTHORIZED, value), Some(Challenge::default()), "{value}");
        }
        for value in ["Bearer scope=x", "Bearer =,scope=x", "Bearer scope=\"x", "Bearer a=\"b\\\"\", scope=x"]
        {
            let challenge = read(StatusCode::UNAUTHORIZED, value).unwrap();
            assert_eq!(challenge.scopes, ["x"], "{value}");
        }
    }
}
