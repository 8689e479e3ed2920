//! Keeping secrets out of everything that is written down.
//!
//! Two ways find them: known values wherever they stand (also in base64, in hexadecimal digits, with the
//! escapes of JSON and of addresses, and wrapped over several lines), and values under names that mean a
//! secret, such as `password` or `Authorization`. Of an event only what models, tools and people said is
//! looked at: the frame by which it is read again stays as it is.

mod stream;
mod view;

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use regex::Regex;
use serde_json::Value;
use toolwright_core::Secret;

pub(crate) use self::stream::EventRedactor;
pub use self::stream::StreamRedactor;
use self::view::View;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// Values shorter than this are not looked for across lines: a column of numbers holds many of those.
const SHORTEST_WRAPPED: usize = 16;

/// The shortest part of a secret that is looked for where text was cut.
const SHORTEST_PART: usize = 3;

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
#[derive(Debug, Clone)]
pub struct Redactor {
    known: Option<KnownSecrets>,
    /// Whether values under secret names go too.
    by_name: bool,
}

impl Default for Redactor {
    /// Looks for values under secret names.
    fn default() -> Self {
        Redactor { known: None, by_name: true }
    }
}

/// The known values, in all forms that are looked for.
#[derive(Clone)]
struct KnownSecrets {
    search: AhoCorasick,
    forms: Vec<Form>,
    /// The length of the longest form.
    longest: usize,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} forms", self.forms.len())
    }
}

impl KnownSecrets {
    /// Finds secrets in a text and in its joined lines; `back` says where in the original a place of the text
    /// is.
    fn look(&self, text: &str, back: &dyn Fn(Range<usize>) -> Range<usize>, found: &mut Vec<Range<usize>>) {
        found.extend(self.search.find_iter(text).map(|hit| back(self.whole(text, &hit))));
        if let Some(view) = View::of_lines(text) {
            let hits = self.search.find_iter(&view.text).filter(|hit| hit.len() >= SHORTEST_WRAPPED);
            found.extend(hits.map(|hit| back(view.range(&self.whole(&view.text, &hit)))));
        }
    }

    /// All that a hit hides.
    fn whole(&self, text: &str, hit: &aho_corasick::Match) -> Range<usize> {
        let base64 = self.forms.get(hit.pattern().as_usize()).is_some_and(|form| form.base64);
        if base64 { with_beside(text, hit.range()) } else { hit.range() }
    }
}

/// A way to write a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    text: String,
    /// True for the inner part of base64; the characters beside it may hold a few bits more.
    base64: bool,
}

impl Redactor {
    /// Values of fewer bytes are not looked for: they stand in other texts by chance, which would not be
    /// readable any more.
    pub const SHORTEST: usize = 6;

    /// Looks for these values, besides secret names; not for those shorter than [`SHORTEST`](Self::SHORTEST).
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets.into_iter().filter(|secret| secret.expose().len() >= Self::SHORTEST) {
            let plain = secret.expose();
            let json = Value::String(plain.to_owned()).to_string();
            let json = json.get(1..json.len() - 1).unwrap_or(plain).to_owned();
            let hex = |upper: bool| plain.bytes().map(move |byte| hex_digits(byte, upper)).collect();
            let form = percent(plain, true).replace("%20", "+");
            let texts = [
                plain.to_owned(),
                json,
                percent(plain, false),
                percent(plain, true),
                form,
                hex(false),
                hex(true),
            ];
            forms.extend(texts.map(|text| Form { text, base64: false }));
            forms.extend(inside_base64(plain).map(|text| Form { text, base64: true }));
        }
        forms.sort();
        forms.dedup();
        // The longest form, so that a secret that contains another goes whole.
        let search = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(forms.iter().map(|form| &form.text));
        let known = search.ok().filter(|_| !forms.is_empty()).map(|search| {
            let longest = forms.iter().map(|form| form.text.len()).max().unwrap_or_default();
            KnownSecrets { search, forms, longest }
        });
        Redactor { known, by_name: true }
    }

    /// Looks for these values alone, whatever the names they are under.
    pub fn of_values(secrets: impl IntoIterator<Item = Secret>) -> Self {
        Redactor { by_name: false, ..Redactor::new(secrets) }
    }

    /// False when there is nothing to look for.
    pub(crate) fn is_needed(&self) -> bool {
        self.known.is_some() || self.by_name
    }

    /// Whether the text holds a known secret.
    pub fn finds(&self, text: &str) -> bool {
        !self.known_in(text).is_empty()
    }

    /// How much of a text is certain when more of it may follow: what comes after may be the beginning of a
    /// secret.
    fn certain(&self, text: &str) -> usize {
        let Some(KnownSecrets { search, forms, longest }) = &self.known else { return text.len() };
        let from = text.len().saturating_sub(longest.saturating_sub(1));
        let starts = (from..text.len()).filter(|place| text.is_char_boundary(*place));
        let begins =
            |rest: &str| forms.iter().any(|form| form.text.len() > rest.len() && form.text.starts_with(rest));
        let certain = starts.into_iter().find(|place| text.get(*place..).is_some_and(begins));
        let certain = certain.unwrap_or(text.len());
        // A secret that was found is not cut.
        let found = search.find_iter(text).find(|hit| hit.start() < certain && certain < hit.end());
        found.map_or(certain, |hit| hit.start())
    }

    /// Takes secrets out of an event in its written form; pieces of output are not looked at.
    fn redact_event(&self, event: &mut Value) {
        let Value::Object(event) = event else { return };
        let noted = event.get("event").is_some_and(|kind| kind == "call_noted");
        for (key, item) in event {
            match (key.as_str(), item) {
                ("arguments" | "labels", item) => self.redact(item),
                ("value", item) if noted => self.redact(item),
                ("message" | "reason" | "error" | "result" | "text" | "name" | "tool" | "call_id", item) => {
                    self.redact_said(item)
                }
                _ => {}
            }
        }
    }

    /// Takes secrets out of a message, a result or an error, and leaves the words by which it is read.
    fn redact_said(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_said(item)),
            Value::Object(map) => {
                for (key, item) in map {
                    match key.as_str() {
                        "arguments" | "structured" | "metadata" | "extras" | "value" | "opaque" => {
                            self.redact(item)
                        }
                        "role" | "type" | "mime_type" | "detail" => {}
                        _ => self.redact_said(item),
                    }
                }
            }
            _ => {}
        }
    }

    /// Replaces every secret in the value.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_string(text),
            Value::Number(number) => {
                if let Some(clean) = self.without_known(&number.to_string()) {
                    *value = Value::String(clean);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(map) => {
                let clean = |key: &String| Some((key.clone(), self.without_known(key)?));
                let leaking: Vec<(String, String)> = map.keys().filter_map(clean).collect();
                for (key, clean) in leaking {
                    if let Some(item) = map.shift_remove(&key) {
                        map.insert(clean, item);
                    }
                }
                for (key, item) in map.iter_mut() {
                    if self.by_name && is_secret_name(key) && (item.is_string() || item.is_number()) {
                        *item = Value::String(REDACTED.to_owned());
                    } else {
                        self.redact(item);
                    }
                }
            }
            _ => {}
        }
    }

    pub(crate) fn redact_string(&self, text: &mut String) {
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
        if let Some(clean) = self.without_known(text) {
            *text = clean;
        }
        if text.contains(" bytes left out") {
            *text = self.redact_at_cuts(text);
        }
        if self.by_name && (text.contains("\":") || text.contains("\" :")) {
            *text = redact_pairs(text);
        }
    }

    /// The text without known secrets.
    pub fn redact_text(&self, text: &str) -> String {
        self.without_known(text).unwrap_or_else(|| text.to_owned())
    }

    /// The text without known secrets; `None` when it holds none.
    fn without_known(&self, text: &str) -> Option<String> {
        let places = self.known_in(text);
        let (mut out, mut done) = (String::new(), 0);
        for found in &places {
            out.push_str(text.get(done..found.start).unwrap_or_default());
            out.push_str(REDACTED);
            done = found.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        (!places.is_empty()).then_some(out)
    }

    /// Where known secrets stand in the text, however they are written; the places do not overlap.
    fn known_in(&self, text: &str) -> Vec<Range<usize>> {
        let Some(known) = &self.known else { return Vec::new() };
        let mut found = Vec::new();
        known.look(text, &|range| range, &mut found);
        if let Some(view) = View::of_percent(text) {
            known.look(&view.text, &|range| view.range(&range), &mut found);
        }
        if let Some(view) = View::of_backslashes(text) {
            known.look(&view.text, &|range| view.range(&range), &mut found);
            // JSON inside JSON is common: an argument that holds a file, a result that holds a reply.
            if let Some(inner) = View::of_backslashes(&view.text) {
                known.look(&inner.text, &|range| view.range(&inner.range(&range)), &mut found);
            }
        }
        found.sort_by_key(|range| range.start);
        found.dedup_by(|next, last| {
            let same = next.start < last.end;
            last.end = if same { last.end.max(next.end) } else { last.end };
            same
        });
        found
    }

    /// Text that was cut to fit, without the parts of secrets on both sides of each cut.
    fn redact_at_cuts(&self, text: &str) -> String {
        static CUT: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"\n\[(?:…|\.\.\.) \d[^\n]* bytes left out[^\n]*(?:…|\.\.\.)\]\n").ok()
        });
        let Some(cut) = &*CUT else { return text.to_owned() };
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for found in cut.find_iter(text) {
            let before = text.get(done..found.start()).unwrap_or_default();
            out.push_str(&self.redact_ends(before, done > 0, true));
            out.push_str(found.as_str());
            done = found.end();
        }
        out.push_str(&self.redact_ends(text.get(done..).unwrap_or_default(), done > 0, false));
        out
    }

    /// A piece of text without the end of a secret at its start, and the start of one at its end.
    fn redact_ends(&self, piece: &str, at_start: bool, at_end: bool) -> String {
        let Some(known) = &self.known else { return piece.to_owned() };
        let (mut from, mut to) = (0, piece.len());
        for Form { text, .. } in &known.forms {
            let places = text.char_indices().map(|(place, _)| place);
            for (head, tail) in places.filter_map(|place| text.split_at_checked(place)) {
                if at_start && (SHORTEST_PART..text.len()).contains(&tail.len()) && piece.starts_with(tail) {
                    from = from.max(tail.len());
                }
                if at_end && head.len() >= SHORTEST_PART && piece.ends_with(head) {
                    to = to.min(piece.len() - head.len());
                }
            }
        }
        let mark = |cut: bool| if cut { REDACTED } else { "" };
        let inner = piece.get(from..to).unwrap_or_default();
        format!("{}{inner}{}", mark(from > 0), mark(to < piece.len()))
    }
}

/// What the base64 of a text that holds the secret has for it: one form for each of the three places it can
/// begin at, in both alphabets, without the characters that also depend on what stands beside it.
fn inside_base64(secret: &str) -> impl Iterator<Item = String> {
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    let inner = |before: usize, engine: &base64::engine::GeneralPurpose, secret: &str| {
        let padded = [&vec![0; before], secret.as_bytes()].concat();
        let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        engine.encode(&padded).get(first..end).unwrap_or_default().to_owned()
    };
    let secret = secret.to_owned();
    (0..3).flat_map(move |before| {
        [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD].map(|engine| inner(before, engine, &secret))
    })
}

/// The range with the characters of base64 beside it that hold bits of the same bytes, and the padding.
fn with_beside(text: &str, range: Range<usize>) -> Range<usize> {
    let part = |place: usize| {
        text.as_bytes().get(place).is_some_and(|c| c.is_ascii_alphanumeric() || b"+/-_".contains(c))
    };
    let start = range.start.checked_sub(1).filter(|&place| part(place)).unwrap_or(range.start);
    let mut end = if part(range.end) { range.end + 1 } else { range.end };
    end += text.as_bytes().iter().skip(end).take(2).take_while(|&&c| c == b'=').count();
    start..end
}

/// Text that holds pieces of JSON, as arguments that were cut off do: `"password": "..."` hides its value
/// there too.
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

/// True for names such as `api_key`, `Authorization`, `DB_PASSWORD`; false for `max_tokens` and
/// `context_key`.
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

fn percent(text: &str, upper: bool) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{}", hex_digits(byte, upper)),
    };
    text.bytes().map(one).collect()
}

fn hex_digits(byte: u8, upper: bool) -> String {
    if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }
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
    fn base64_of_a_text_with_a_secret_in_it_is_found() {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let redactor = Redactor::new([Secret::new("hunter2-hunter2"), Secret::new("s?s>~\u{ff}?s>~")]);
        assert_eq!(redactor.redact_text("Basic dXNlcjpodW50ZXIyLWh1bnRlcjI="), "Basic dXNlcj[redacted]");
        for secret in ["hunter2-hunter2", "s?s>~\u{ff}?s>~"] {
            let bare = redactor.redact_text(&STANDARD.encode(secret));
            assert_eq!(bare, REDACTED);
            for (before, after) in [("", "x"), ("u", ""), ("us", "xy"), ("use", "x"), ("user", "xyz")] {
                let text = format!("{before}{secret}{after}");
                for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    let clean = redactor.redact_text(&format!("k={encoded};"));
                    assert!(clean.contains(REDACTED) && clean.len() < 10 + REDACTED.len() + 8, "{clean}");
                }
            }
        }
        assert!(!format!("{redactor:?}").contains("hunter"));
    }

    #[test]
    fn no_way_of_writing_a_secret_hides_it() {
        use base64::engine::general_purpose::STANDARD;
        let secret =
            "Sup3r/S3cret \"key\"+value=\u{e9}-0123456789-abcdefghij-ABCDEFGHIJ-klmnopqrst-KLMNOPQRST";
        let redactor = Redactor::new([Secret::new(secret)]);
        let wrap = |text: &str, width: usize, between: &str| {
            let lines = text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned());
            lines.collect::<Vec<_>>().join(between)
        };
        let base64 = STANDARD.encode(format!("user:{secret}\n"));
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let json = Value::from(secret).to_string();
        let everything: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let texts = [
            wrap(&base64, 76, "\n"),
            wrap(&base64, 64, "\r\n"),
            wrap(&base64, 20, "\n    "),
            wrap(&base64, 76, "\\n"),
            hex.to_uppercase(),
            wrap(&hex, 60, "\n"),
            json.replace('/', "\\/"),
            Value::from(json.clone()).to_string(),
            json.replace('\u{e9}', "\\u00e9"),
            percent(secret, false),
            percent(secret, true).replace("%20", "+"),
            percent(secret, true).replace("%2F", "/").replace("%3D", "="),
            everything,
            wrap(&secret.replace('\u{e9}', "e"), 40, "\n"),
        ];
        let redactor_of_the_last = Redactor::new([Secret::new(secret.replace('\u{e9}', "e"))]);
        for text in texts {
            let text = format!("before {text} after");
            let mut clean = redactor.redact_text(&text);
            if clean == text {
                clean = redactor_of_the_last.redact_text(&text);
            }
            assert!(clean.starts_with("before ") && clean.ends_with(" after"), "{clean}");
            assert!(clean.contains(REDACTED) && clean.len() < 50, "{clean}");
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let redactor = Redactor::new([Secret::new("123456"), Secret::new("hunter2-hunter2-hunter2")]);
        for text in [
            "123\n456\n",
            "100 % of C:\\temp\\new, 50%20 and \\u12",
            "hunter2\nhunter2-\nhunter2",
            "a\r\n  b\n\n\tc",
            "{\"k\": \"v\\n\"}",
        ] {
            assert_eq!(redactor.redact_text(text), text);
        }
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
