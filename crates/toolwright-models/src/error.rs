//! How failures of a vendor become a [`ModelError`]. Nothing here ever shows a key: whatever text comes from
//! outside is clipped, and known keys are taken out of it.

use serde_json::Value;
use toolwright_core::{ModelError, ModelErrorKind, Secret, text};

/// How much of a server's own message an error shows.
const SHOWN: usize = 500;

/// A reply that cannot be understood.
pub(crate) fn reply(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Reply, message)
}

/// A request that cannot be made.
pub(crate) fn request(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Request, message)
}

/// A server that failed, or could not be reached.
pub(crate) fn unavailable(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Unavailable, message)
}

/// Authentication failed.
pub(crate) fn auth(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Auth, message)
}

/// What an HTTP status means.
pub(crate) fn from_status(status: u16, body: &[u8], secrets: &[Secret]) -> ModelError {
    let kind = match status {
        401 | 403 => ModelErrorKind::Auth,
        429 => ModelErrorKind::RateLimit,
        // 424 is Bedrock's word for a model that failed.
        408 | 409 | 424 | 500.. => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Request,
    };
    let said = String::from_utf8_lossy(body.get(..body.len().min(64 * 1024)).unwrap_or_default());
    let body = serde_json::from_slice::<Value>(body).ok();
    let code = body.as_ref().and_then(code_in).unwrap_or_default();
    let said = match body.as_ref().and_then(message_in) {
        Some(message) => message,
        None => said.into_owned(),
    };
    let kind = or_overflow(kind, &format!("{code} {said}"));
    let (kind, hint) = match is_blind(&said) {
        true => (
            ModelErrorKind::Request,
            " (with `images: false` in the model's settings, pictures are described to it)",
        ),
        false => (kind, ""),
    };
    let said = shown(&said, secrets);
    let text = if said.is_empty() {
        format!("the server answered {status}")
    } else {
        format!("the server answered {status}: {said}{hint}")
    };
    ModelError::new(kind, text)
}

/// An error that a server reports inside an otherwise fine reply or stream, by its type or code.
pub(crate) fn from_event(error: &Value) -> ModelError {
    let word = |key| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_u64).unwrap_or_default();
    let kind = match (word("type"), word("code"), word("status"), code) {
        ("authentication_error" | "permission_error", ..) | (.., 401 | 403) => ModelErrorKind::Auth,
        ("rate_limit_error", ..) | (_, "rate_limit_exceeded", ..) | (.., 429) => ModelErrorKind::RateLimit,
        ("invalid_request_error" | "not_found_error" | "request_too_large", ..) | (.., 400 | 404 | 413) => {
            ModelErrorKind::Request
        }
        _ => ModelErrorKind::Unavailable,
    };
    let said = message_in(error).unwrap_or_else(|| error.to_string());
    let kind = or_overflow(kind, &format!("{} {said}", word("code")));
    ModelError::new(kind, format!("the server reported an error: {}", shown(&said, &[])))
}

/// The kind, unless the message says that the conversation is too long.
pub(crate) fn or_overflow(kind: ModelErrorKind, said: &str) -> ModelErrorKind {
    let said = said.to_ascii_lowercase();
    let overflow = match kind {
        ModelErrorKind::Request | ModelErrorKind::Unavailable => {
            OVERFLOW.iter().any(|words| words.split(" .. ").all(|part| said.contains(part)))
        }
        // Too much for any minute: waiting does not help.
        ModelErrorKind::RateLimit => said.contains("request too large for"),
        _ => false,
    };
    if overflow { ModelErrorKind::ContextLength } else { kind }
}

/// How vendors say that a conversation is too long: there is no common code for it. ` .. ` stands for
/// anything.
const OVERFLOW: &[&str] = &[
    // OpenAI, and most who speak its formats.
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context_window",
    "request too large for",
    // Anthropic.
    "prompt is too long",
    "exceed context limit",
    "prompt: length",
    "request_too_large",
    // Bedrock.
    "input is too long",
    "too many input tokens",
    "expected maxlength:",
    "prompt tokens .. exceed model maximum",
    // Gemini.
    "input token count",
    "exceeds the maximum number of tokens",
    "payload size exceeds the limit",
    // Mistral, xAI, Groq.
    "too many tokens in",
    "input too large",
    "input_too_large",
    "maximum prompt length",
    "reduce the length",
    // vLLM, SGLang, llama.cpp, Ollama, LM Studio.
    "longer than the maximum model length",
    "longer than the model's context length",
    "max_tokens must be at least 1",
    "exceeds the available context size",
    "exceed_context_size_error",
    "exceeded max context length",
    "exceeds the context length",
    "when context the overflows",
    // Together and others that serve many models.
    "tokens + `max_new_tokens` must be",
    "maximum context limit",
    "input tokens exceed the configured limit",
    "maximum input length .. token",
    "too many tokens: ",
    "current length is .. while limit is",
    "exceeded model token limit",
    "prompt exceeds max length",
    "tokens_limit_reached",
    "contextwindowexceeded",
];

/// Whether a server says that its model sees no pictures.
fn is_blind(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "image input is not supported",
        "support image input",
        "not support image",
        "not support vision",
        "not a multimodal model",
        "unknown variant `image_url`",
        "image_url is only supported",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// The code in an error body. Some vendors say only there what is wrong.
fn code_in(body: &Value) -> Option<String> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let inner = body.get("error").filter(|inner| inner.is_object()).unwrap_or(body);
    inner.get("code").and_then(Value::as_str).map(str::to_owned)
}

/// What the name of one of Amazon's exceptions means.
pub(crate) fn aws_kind(name: &str) -> Option<ModelErrorKind> {
    Some(match name.to_ascii_lowercase().trim_end_matches("exception") {
        "throttling" | "servicequotaexceeded" | "modelnotready" => ModelErrorKind::RateLimit,
        "accessdenied" | "unrecognizedclient" | "expiredtoken" => ModelErrorKind::Auth,
        "validation" | "resourcenotfound" => ModelErrorKind::Request,
        "internalserver" | "serviceunavailable" | "modelstreamerror" | "modeltimeout" | "modelerror" => {
            ModelErrorKind::Unavailable
        }
        _ => return None,
    })
}

/// The message in the error bodies vendors send: `{error: {message}}`, `{error: text}`, `{message}`,
/// `{Message}` or `{detail}`.
fn message_in(body: &Value) -> Option<String> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let inner = body.get("error").filter(|inner| !inner.is_null()).unwrap_or(body);
    let message = inner
        .get("message")
        .or_else(|| inner.get("Message"))
        .or_else(|| inner.get("detail"))
        .unwrap_or(inner);
    let message = match message {
        Value::String(message) => message.clone(),
        other => other.to_string(),
    };
    let kind = inner.get("type").and_then(Value::as_str);
    Some(match kind {
        Some(kind) if kind != "error" && !message.contains(kind) => format!("{message} ({kind})"),
        _ => message,
    })
}

/// Text from outside, fit to be shown: one line, clipped, without control characters and without keys.
pub(crate) fn shown(said: &str, secrets: &[Secret]) -> String {
    let mut said = said.trim().to_owned();
    for secret in secrets.iter().filter(|secret| !secret.expose().is_empty()) {
        said = said.replace(secret.expose(), HIDDEN);
    }
    let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text::clip(&said, SHOWN)
}

/// The same error without keys, should any have found their way into its text, also one whose end was clipped
/// away.
pub(crate) fn scrub(error: ModelError, secrets: &[Secret]) -> ModelError {
    let text = error.to_string();
    let scrubbed = secrets.iter().fold(text.clone(), |text, secret| without(text, secret.expose()));
    if scrubbed == text { error } else { ModelError::new(error.kind(), shown(&scrubbed, &[])) }
}

/// What stands in place of a key.
const HIDDEN: &str = "[secret]";

/// The shortest prefix of a key that is treated as a leak.
const TELLING: usize = 8;

fn without(mut text: String, secret: &str) -> String {
    if secret.is_empty() {
        return text;
    }
    text = text.replace(secret, HIDDEN);
    let Some(start) = secret.get(..TELLING) else { return text };
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(start)).map(|at| at + from) {
        let rest = text.get(at..).unwrap_or_default();
        let same = rest.chars().zip(secret.chars()).take_while(|(one, other)| one == other);
        let end = at + same.map(|(letter, _)| letter.len_utf8()).sum::<usize>();
        // Clipped texts end so; a different continuation is a different text.
        let cut = matches!(text.get(end..).and_then(|rest| rest.chars().next()), None | Some('…' | '"'));
        from = end;
        if cut {
            text.replace_range(at..end, HIDDEN);
            from = at + HIDDEN.len();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_the_key_does_not_make_us_repeat_it() {
        let key = Secret::new("sk-very-secret");
        let body = br#"{"error": {"message": "bad key sk-very-secret", "type": "authentication_error"}}"#;
        let error = from_status(401, body, &[key]);
        assert_eq!(error.kind(), ModelErrorKind::Auth);
        assert_eq!(error.to_string(), "the server answered 401: bad key [secret] (authentication_error)");
    }

    #[test]
    fn a_key_that_reads_like_what_hides_keys_is_hidden_too() {
        for key in ["[secret]", "[secret]-and-more"] {
            let error = ModelError::new(ModelErrorKind::Auth, format!("the key is {key}"));
            assert_eq!(scrub(error, &[Secret::new(key)]).to_string(), "the key is [secret]");
        }
    }

    #[test]
    fn a_key_that_was_clipped_is_not_shown_either() {
        let key = "sk-0123456789abcdefghij";
        for kept in 0..=key.len() {
            let before = "x".repeat(SHOWN - kept);
            let error = from_event(&serde_json::json!({"message": format!("{before}{key} and more")}));
            let text = scrub(error, &[Secret::new(key)]).to_string();
            let shown = text.len() - text.trim_end_matches('…').trim_end_matches("[secret]").len();
            assert!(!text.contains("sk-01234"), "{kept}: {text}");
            assert!(kept < TELLING || shown > 0, "{kept}: {text}");
        }
        let other =
            ModelError::new(ModelErrorKind::Request, "keys begin with sk-01234, not sk-0123456789abcdefghik");
        let text = other.to_string();
        assert_eq!(scrub(other, &[Secret::new(key)]).to_string(), text);
    }

    #[test]
    fn every_known_shape_of_error_gives_its_message() {
        for (body, wanted) in [
            (r#"{"error": "plain"}"#, "the server answered 400: plain"),
            (r#"{"message": "m"}"#, "the server answered 400: m"),
            (r#"{"detail": "d"}"#, "the server answered 400: d"),
            (r#"[{"error": {"message": "listed", "code": 400}}]"#, "the server answered 400: listed"),
            ("<html>\nno</html>", "the server answered 400: <html> no</html>"),
            ("", "the server answered 400"),
        ] {
            assert_eq!(from_status(400, body.as_bytes(), &[]).to_string(), wanted);
        }
    }

    #[test]
    fn a_picture_that_a_model_cannot_see_names_the_setting() {
        let body = br#"{"error": {"code": 500, "message": "image input is not supported - hint: provide the mmproj", "type": "server_error"}}"#;
        let error = from_status(500, body, &[]);
        assert_eq!(error.kind(), ModelErrorKind::Request);
        assert_eq!(
            error.to_string(),
            "the server answered 500: image input is not supported - hint: provide the mmproj (server_error) (with `images: \
             false` in the model's settings, pictures are described to it)"
        );
    }

    /// What vendors were seen to answer.
    #[test]
    fn a_conversation_that_is_too_long_is_known_in_every_vendors_words() {
        let inner = |message: &str, code: &str| serde_json::json!({"error": {"message": message, "type": "invalid_request_error", "code": code}});
        let message = |message: &str| inner(message, "");
        let plain = |message: &str| serde_json::json!({"message": message});
        for (who, status, body) in [
            (
                "openai",
                400,
                inner("Your input exceeds the context window of this model.", "context_length_exceeded"),
            ),
            (
                "openai",
                429,
                inner(
                    "Request too large for gpt-4.1 in organization org-x on tokens per min (TPM): Limit 30000, Requested 70000. \
                 The input or output tokens must be reduced in order to run successfully.",
                    "rate_limit_exceeded",
                ),
            ),
            ("anthropic", 400, message("prompt is too long: 210000 tokens > 200000 maximum")),
            (
                "anthropic",
                400,
                message(
                    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length or `max_tokens` and try again",
                ),
            ),
            (
                "anthropic",
                413,
                serde_json::json!({"type": "error", "error":
                {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
            ),
            (
                "google",
                400,
                serde_json::json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message":
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}),
            ),
            ("bedrock", 400, plain("Input is too long for requested model.")),
            (
                "bedrock",
                400,
                plain("Too many input tokens. Max input tokens: 8192, request input token count: 9000"),
            ),
            ("bedrock", 400, plain("prompt tokens (9000) exceed model maximum (8192)")),
            (
                "groq",
                400,
                inner("Please reduce the length of the messages or completion.", "context_length_exceeded"),
            ),
            ("groq", 400, inner("It does not fit.", "context_length_exceeded")),
            (
                "groq",
                413,
                inner(
                    "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 9000",
                    "rate_limit_exceeded",
                ),
            ),
            (
                "xai",
                400,
                serde_json::json!({"code": "Client specified an invalid argument", "error":
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
            ),
            (
                "mistral",
                400,
                plain(
                    "Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                ),
            ),
            (
                "deepseek",
                400,
                message(
                    "This model's maximum context length is 131072 tokens. However, you requested 150000 tokens",
                ),
            ),
            (
                "openrouter",
                400,
                message(
                    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens",
                ),
            ),
            (
                "together",
                422,
                message(
                    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
                ),
            ),
            (
                "vllm",
                400,
                serde_json::json!({"object": "error", "code": 400, "message":
                "The decoder prompt (length 9000) is longer than the maximum model length of 4096."}),
            ),
            (
                "llama.cpp",
                400,
                serde_json::json!({"error": {"code": 400, "type": "exceed_context_size_error", "message":
                "the request exceeds the available context size, try increasing it", "n_ctx": 512}}),
            ),
            ("llama.cpp", 500, message("the request exceeds the available context size, try increasing it")),
            (
                "ollama",
                400,
                serde_json::json!({"error": "prompt too long; exceeded max context length by 12 tokens"}),
            ),
            ("a proxy", 400, message("litellm.ContextWindowExceededError: it is too much")),
        ] {
            let error = from_status(status, body.to_string().as_bytes(), &[]);
            assert_eq!(error.kind(), ModelErrorKind::ContextLength, "{who}: {error}");
        }
        for (status, said, kind) in [
            (
                400,
                "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens",
                ModelErrorKind::Request,
            ),
            (
                400,
                "Invalid 'input[2].id': string too long. Expected a string with maximum length 64",
                ModelErrorKind::Request,
            ),
            (
                429,
                "Rate limit reached for tokens per min (TPM): Limit 30000, Used 29000",
                ModelErrorKind::RateLimit,
            ),
            (429, "Too many tokens, please wait before trying again.", ModelErrorKind::RateLimit),
            (500, "internal error", ModelErrorKind::Unavailable),
        ] {
            let error = from_status(status, message(said).to_string().as_bytes(), &[]);
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
