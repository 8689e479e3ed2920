//! Vendors: who serves models, where, and what they do differently. Each is a constant; what they have in
//! common is in `wire`. Adding one means adding a file and a line in [`VENDORS`].

mod anthropic;
mod bedrock;
mod compatible;
mod deepseek;
mod google;
mod groq;
mod local;
mod mistral;
mod openai;
mod openrouter;
mod together;
mod xai;

use crate::dialect::Dialect;
use crate::wire::Wire;
use crate::wire::content::ContentKind;
pub use crate::wire::names::Ids;

/// All vendors, by name.
pub const VENDORS: &[&Vendor] = &[
    &anthropic::ANTHROPIC,
    &openai::OPENAI,
    &openai::OPENAI_CHAT,
    &google::GOOGLE,
    &bedrock::BEDROCK,
    &bedrock::BEDROCK_INVOKE,
    &openrouter::OPENROUTER,
    &mistral::MISTRAL,
    &deepseek::DEEPSEEK,
    &groq::GROQ,
    &together::TOGETHER,
    &xai::XAI,
    &local::OLLAMA,
    &local::VLLM,
    &local::LLAMA_CPP,
    &compatible::OPENAI_COMPATIBLE,
    &compatible::ANTHROPIC_COMPATIBLE,
];

/// Who serves models, and how.
#[derive(Debug)]
pub struct Vendor {
    /// The first half of `vendor/model`.
    pub name: &'static str,
    /// The format its API speaks.
    pub wire: Wire,
    /// Where its API is, with `{region}` where it has regions; `None` when only the user knows.
    pub base_url: Option<&'static str>,
    /// The environment variables that may say where it is instead.
    pub base_url_variables: &'static [&'static str],
    /// The environment variables that usually hold the key, first found first taken.
    pub key_variables: &'static [&'static str],
    /// Whether there is no talking to it without a key.
    pub key: KeyRequirement,
    /// How the key is shown.
    pub auth: Auth,
    /// Headers that every request carries.
    pub headers: &'static [(&'static str, &'static str)],
    /// What it does differently.
    pub quirks: Quirks,
}

/// Whether a key is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRequirement {
    /// Without one, requests are refused.
    Required,
    /// It is sent when there is one.
    Optional,
}

/// How a key is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer ...`
    Bearer,
    /// A header of its own.
    Header(&'static str),
    /// A bearer token, or else a signature with Amazon's keys.
    Aws {
        /// The service that is signed for.
        service: &'static str,
    },
}

/// How a request to a vendor demands that some tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Any {
    /// The word `required`.
    Required,
    /// The word `any`.
    Any,
    /// The word `required`, also for one tool by name: naming it is not honoured.
    RequiredOnly,
}

impl Any {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Any::Any => "any",
            Any::Required | Any::RequiredOnly => "required",
        }
    }
}

/// What the result of a tool may hold, in a format whose results are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// Text; media goes into the user message that follows.
    Text,
    /// Text and media: the vendor refuses a user message right after results.
    Parts,
}

/// The largest pictures that a vendor takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pictures {
    /// The most letters of base64.
    pub letters: usize,
    /// The most pixels of a side.
    pub side: u32,
    /// With more than this many pictures in one request ...
    pub many: usize,
    /// ... the most pixels of a side.
    pub side_of_many: u32,
}

impl Pictures {
    /// All pictures are taken.
    pub(crate) const ANY: Pictures =
        Pictures { letters: usize::MAX, side: u32::MAX, many: usize::MAX, side_of_many: u32::MAX };
}

impl Vendor {
    /// The pictures that it takes for this model. How many large ones is a rule of Claude; which model an
    /// ARN of Bedrock means, it need not say.
    pub(crate) fn pictures(&self, model: &str) -> Pictures {
        let may_be_claude = ["claude", "arn:"].iter().any(|name| model.contains(name));
        match self.wire == Wire::BedrockConverse && !may_be_claude {
            true => Pictures { many: usize::MAX, ..self.quirks.pictures },
            false => self.quirks.pictures,
        }
    }
}

/// What Claude was seen to take. A picture stays in the conversation, so one that is refused would be refused
/// each time.
pub(crate) const CLAUDE: Pictures = Pictures { letters: 10 << 20, side: 8000, many: 20, side_of_many: 2000 };

/// What a vendor does differently from others of its format.
#[derive(Debug)]
pub struct Quirks {
    /// What ids of calls look like.
    pub ids: Ids,
    /// The word for "call some tool".
    pub any: Any,
    /// The most tokens to write when the caller does not say and the API wants to know.
    pub max_tokens: u32,
    /// The field for the most tokens to write.
    pub max_tokens_field: &'static str,
    /// Whether a stream has to be asked for its token counts.
    pub stream_usage: bool,
    /// Whether results carry the name of the tool.
    pub named_results: bool,
    /// What results may hold, in a format whose results are text.
    pub results: Results,
    /// The media its models may be sent.
    pub media: &'static [ContentKind],
    /// The largest pictures it takes.
    pub pictures: Pictures,
    /// The dialect of its strict mode, when it has one that can be asked for.
    pub strict: Option<Dialect>,
    /// Whether an answer can be held to a schema, or only to being JSON.
    pub response_schemas: bool,
    /// Whether requests must mark what the vendor caches from turn to turn.
    pub caches: bool,
    /// The longest `retry-after`, in seconds, that is meant for this client.
    pub longest_after: Option<f64>,
}

impl Quirks {
    /// What most do.
    pub(crate) const USUAL: Quirks = Quirks {
        ids: Ids::Plain,
        any: Any::Required,
        max_tokens: 8192,
        max_tokens_field: "max_tokens",
        stream_usage: true,
        named_results: false,
        results: Results::Text,
        media: &[ContentKind::Image],
        pictures: Pictures::ANY,
        strict: None,
        response_schemas: true,
        caches: false,
        longest_after: None,
    };
}

/// The vendor of that name.
pub fn find(name: &str) -> Option<&'static Vendor> {
    VENDORS.iter().copied().find(|vendor| vendor.name == name)
}
