//! Keeping secrets out of everything that is written down.
//!
//! Two ways find them: known values (and their base64 and URL forms) wherever they stand, and values under names that
//! mean a secret, such as `password` or `Authorization`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use regex::Regex;
use serde_json::Value;
use toolwright_core::Secret;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// Values shorter than this are too common to look for.
const SHORTEST: usize = 6;

/// Takes secrets out of values before they are written.
///
/// ```
/// use toolwright_core::Secret;
/// use toolwright_runtime::Redactor;
///
/// let redactor = Redactor::new([Secret::new("hunter2-hunter2")]);
/// let mut value = serde_json::json!({"url": "https://x/?k=hunter2-hunter2", "password": "p", "n": 1});
/// redactor.redact(&mut value);
/// assert_eq!(value, serde_json::json!({"url": "https://x/?k=[redacted]", "password": "[redacted]", "n": 1}));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
}

impl Redactor {
    /// Looks for these values, besides secret names.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut forms: Vec<String> = Vec::new();
        for secret in secrets.into_iter().filter(|secret| secret.expose().len() >= SHORTEST) {
            let plain = secret.expose();
            forms.push(plain.to_owned());
            forms.extend([base64::engine::general_purpose::STANDARD.encode(plain), percent(plain)]);
            let json = Value::String(plain.to_owned()).to_string();
            forms.push(json.trim_matches('"').to_owned());
        }
        // The longest form first, so that a secret that contains another goes whole.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let builder =
            AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostLongest).build(&forms).ok();
        Redactor { known: builder.filter(|_| !forms.is_empty()) }
    }

    /// Replaces every secret in the value.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_string(text),
            Value::Number(number) => {
                let text = number.to_string();
                if self.known.as_ref().is_some_and(|known| known.is_match(&text)) {
                    *value = Value::String(self.redact_text(&text));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(map) => {
                let leaking: Vec<String> = map
                    .keys()
                    .filter(|key| self.known.as_ref().is_some_and(|known| known.is_match(*key)))
                    .cloned()
                    .collect();
                for key in leaking {
                    if let Some(item) = map.shift_remove(&key) {
                        map.insert(self.redact_text(&key), item);
                    }
                }
                for (key, item) in map.iter_mut() {
                    if is_secret_name(key) && (item.is_string() || item.is_number()) {
                        *item = Value::String(REDACTED.to_owned());
                    } else {
                        self.redact(item);
                    }
                }
            }
            _ => {}
        }
    }

    fn redact_string(&self, text: &mut String) {
        // Arguments that could not be read, and results of tools that speak JSON, are objects inside text.
        if text.starts_with('{')
            && let Ok(mut inner) = serde_json::from_str::<Value>(text)
        {
            let before = inner.clone();
            self.redact(&mut inner);
            if inner != before {
                *text = inner.to_string();
            }
            // An object may say a name twice, and only the last is seen in it: the text is looked at as well.
        }
        if self.known.as_ref().is_some_and(|known| known.is_match(text.as_str())) {
            *text = self.redact_text(text);
        }
        if text.contains("\":") || text.contains("\" :") {
            *text = redact_pairs(text);
        }
    }

    /// The text without known secrets.
    pub fn redact_text(&self, text: &str) -> String {
        let Some(known) = &self.known else { return text.to_owned() };
        let mut out = String::with_capacity(text.len());
        known.replace_all_with(text, &mut out, |_, _, out| {
            out.push_str(REDACTED);
            true
        });
        out
    }
}

/// Text that holds pieces of JSON, as arguments that were cut off do: `"password": "..."` hides its value there too.
fn redact_pairs(text: &str) -> String {
    static PAIR: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#""([A-Za-z0-9_. -]{1,64})"(\s*:\s*)"((?:[^"\\]|\\.)*)"?"#).ok());
    let Some(pair) = &*PAIR else { return text.to_owned() };
    let replaced = pair.replace_all(text, |found: &regex::Captures<'_>| {
        let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
        if is_secret_name(part(1)) {
            format!("\"{}\"{}\"{REDACTED}\"", part(1), part(2))
        } else {
            part(0).to_owned()
        }
    });
    replaced.into_owned()
}

/// True for names such as `api_key`, `Authorization`, `DB_PASSWORD`; false for `max_tokens` and `context_key`.
pub fn is_secret_name(name: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "signingkey",
        "encryptionkey",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "authorization",
        "cookie",
        "credential",
        "credentials",
    ];
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    ENDINGS.iter().any(|ending| plain.ends_with(ending)) && plain != "stoptoken"
}

fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redacted(value: Value) -> Value {
        let redactor = Redactor::new([
            Secret::new("s3cr3t/value"),
            Secret::new("short"),
            Secret::new("98765432"),
            Secret::new("line\nbreak-secret"),
        ]);
        let mut value = value;
        redactor.redact(&mut value);
        value
    }

    #[test]
    fn known_values_go_in_every_form_and_place() {
        assert_eq!(
            redacted(json!(["a s3cr3t/value b", {"x": "s3cr3t/value"}])),
            json!(["a [redacted] b", {"x": REDACTED}])
        );
        assert_eq!(
            redacted(json!("czNjcjN0L3ZhbHVl and s3cr3t%2Fvalue")),
            json!("[redacted] and [redacted]")
        );
        assert_eq!(redacted(json!({"s3cr3t/value": 1})), json!({"[redacted]": 1}));
        assert_eq!(redacted(json!("{\"k\": \"line\\nbreak-secret\"}")), json!("{\"k\":\"[redacted]\"}"));
        assert_eq!(redacted(json!("a short text")), json!("a short text"));
        assert_eq!(
            redacted(json!(r#"{"k": "s3cr3t/value", "k": "x"}"#)),
            json!(r#"{"k": "[redacted]", "k": "x"}"#)
        );
        assert_eq!(redacted(json!({"pin": 98_765_432})), json!({"pin": REDACTED}));
    }

    #[test]
    fn secret_names_hide_their_values_and_other_names_do_not() {
        let value = json!({"API-Key": "x", "password": 1234, "nested": {"authToken": "y", "max_tokens": 5, "input_tokens": 1}});
        let want = json!({"API-Key": REDACTED, "password": REDACTED,
            "nested": {"authToken": REDACTED, "max_tokens": 5, "input_tokens": 1}});
        assert_eq!(redacted(value), want);
        assert_eq!(redacted(json!("{\"password\": \"p\"}")), json!("{\"password\":\"[redacted]\"}"));
        assert_eq!(
            redacted(json!("{\"user\": \"me\", \"db_password\" : \"p\\\"q\", \"token\": \"cut off he")),
            json!("{\"user\": \"me\", \"db_password\" : \"[redacted]\", \"token\": \"[redacted]\"")
        );
        assert!(!is_secret_name("context_key") && !is_secret_name("tokens"));
    }
}
