//! What a tool returns: content blocks, an optional structured value, and metadata.
//!
//! [`IntoToolOutput`] turns ordinary Rust values into a [`ToolOutput`]; the `#[tool]` macro also accepts any
//! value that serialises. Bounding and rendering for a model belong to the runtime.

use std::borrow::Cow;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::ToolContext;
use crate::error::{ErrorKind, ToolError};

/// One block of content, for a model or from one.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
        /// Where the text comes from, when a search or a document gave it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Citation>,
    },
    /// A JSON value.
    Json {
        /// The value.
        value: Value,
    },
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A moving picture.
    Video(Media),
    /// A document, for example a PDF.
    Document(Media),
    /// A pointer to something the reader can fetch.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: String,
        /// What it holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A model's reasoning, kept as it came so that it can be sent back unchanged.
    Reasoning {
        /// The readable part; empty when the vendor hides it.
        text: String,
        /// Everything the vendor needs to see again: signatures, encrypted content, ids.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        opaque: Value,
    },
}

/// Where a piece of text comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The address of the source.
    pub url: String,
    /// The title of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The passage itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// The bytes, or the address, of an image, sound, video or document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Where the bytes are.
    #[serde(flatten)]
    pub source: MediaSource,
    /// The media type, for example `image/png`.
    pub mime_type: String,
    /// A file name, for documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How closely a model should look at a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

/// Where the bytes of a [`Media`] are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// The bytes themselves, in base64.
    Data(String),
    /// An address they can be fetched from.
    Url(String),
}

/// How closely a model should look at a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// The model's choice.
    Auto,
    /// A small version is enough.
    Low,
    /// As much detail as the model takes.
    High,
    /// Unscaled.
    Original,
}

impl Media {
    /// Media from its bytes.
    pub fn from_bytes(mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        Media { source: MediaSource::Data(data), mime_type: mime_type.into(), name: None, detail: None }
    }

    /// Media that can be fetched from `url`.
    pub fn from_url(mime_type: impl Into<String>, url: impl Into<String>) -> Self {
        Media { source: MediaSource::Url(url.into()), mime_type: mime_type.into(), name: None, detail: None }
    }

    /// Media from a `data:` address such as `data:image/png;base64,AA==`.
    pub fn from_data_url(url: &str) -> Result<Self, ToolError> {
        let parsed = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let Some((mime_type, data)) = parsed else {
            return Err(ToolError::invalid("not a base64 `data:` address"));
        };
        let media = Media {
            source: MediaSource::Data(data.to_owned()),
            mime_type: mime_type.to_owned(),
            name: None,
            detail: None,
        };
        media.bytes().map(|_| media.clone())
    }

    /// The decoded bytes. An error when they are elsewhere or are not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, ToolError> {
        match &self.source {
            MediaSource::Data(data) => base64::engine::general_purpose::STANDARD
                .decode(data)
                .map_err(|error| ToolError::invalid("the media data is not base64").with_source(error)),
            MediaSource::Url(_) => Err(ToolError::invalid("the media is an address, not data")),
        }
    }

    /// A `data:` address with the bytes, or the address where they are.
    pub fn to_url(&self) -> String {
        match &self.source {
            MediaSource::Data(data) => format!("data:{};base64,{data}", self.mime_type),
            MediaSource::Url(url) => url.clone(),
        }
    }

    /// The text of media that are text, below their name.
    pub fn as_text(&self) -> Option<String> {
        let is_text = self.mime_type.starts_with("text/") || self.mime_type == "application/json";
        let bytes = is_text.then(|| self.bytes().ok()).flatten()?;
        let text = String::from_utf8(bytes).ok()?;
        Some(match &self.name {
            Some(name) => format!("[document {name}]\n{text}"),
            None => text,
        })
    }

    /// How many bytes the media take, with their names.
    fn size(&self) -> usize {
        let (MediaSource::Data(source) | MediaSource::Url(source)) = &self.source;
        source.len() + self.mime_type.len() + self.name.as_ref().map_or(0, String::len)
    }

    /// The same media under a file name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text { text: text.into(), citations: Vec::new() }
    }

    /// A JSON block.
    pub fn json(value: impl Into<Value>) -> Self {
        Content::Json { value: value.into() }
    }

    /// A picture from its bytes.
    pub fn image(mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        Content::Image(Media::from_bytes(mime_type, bytes))
    }

    /// A picture in a file of the run's sandbox, under the rules that hold there. Its type is read from its
    /// bytes.
    pub async fn image_file(context: &ToolContext, path: &str) -> Result<Self, ToolError> {
        let bytes = context.sandbox()?.read_file(path).await?;
        let mime_type = picture_type(&bytes).ok_or_else(|| {
            let error = ToolError::of(ErrorKind::UnicodeDecode, format!("{path} is not a picture"));
            error.hint("PNG, JPEG, GIF, WebP, BMP and TIFF are pictures")
        })?;
        Ok(Content::image(mime_type, &bytes))
    }

    /// A sound from its bytes.
    pub fn audio(mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        Content::Audio(Media::from_bytes(mime_type, bytes))
    }

    /// A video from its bytes.
    pub fn video(mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        Content::Video(Media::from_bytes(mime_type, bytes))
    }

    /// A document from its bytes.
    pub fn document(mime_type: impl Into<String>, name: impl Into<String>, bytes: &[u8]) -> Self {
        Content::Document(Media::from_bytes(mime_type, bytes).named(name))
    }

    /// A link to something the reader can fetch.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Content::ResourceLink { uri: uri.into(), name: name.into(), description: None, mime_type: None }
    }

    /// The text of a text or JSON block, as a model would read it.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Content::Text { text, .. } => Some(text.as_str().into()),
            Content::Json { value } => Some(value.to_string().into()),
            _ => None,
        }
    }

    /// The block in words, when words can hold it: text, JSON, a link, a document that is text.
    pub fn in_words(&self) -> Option<Cow<'_, str>> {
        match self {
            Content::ResourceLink { uri, name, description, mime_type } => {
                let kind = mime_type.as_ref().map(|kind| format!(" {kind}")).unwrap_or_default();
                let about = description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
                Some(format!("[link: {name} <{uri}>{kind}{about}]").into())
            }
            Content::Document(media) => media.as_text().map(Cow::Owned),
            other => other.as_text(),
        }
    }

    /// How many bytes the block takes, with all its parts: what it is bounded by.
    pub fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Content::Text { text, citations } => {
                let cited = citations
                    .iter()
                    .map(|citation| citation.url.len() + length(&citation.title) + length(&citation.quote));
                text.len() + cited.sum::<usize>()
            }
            Content::Reasoning { text, opaque: Value::Null } => text.len(),
            Content::Reasoning { text, opaque } => text.len() + json_size(opaque),
            Content::Json { value } => json_size(value),
            Content::Image(media)
            | Content::Audio(media)
            | Content::Video(media)
            | Content::Document(media) => media.size(),
            Content::ResourceLink { uri, name, description, mime_type } => {
                uri.len() + name.len() + length(description) + length(mime_type)
            }
        }
    }
}

/// The media type of a picture, by its first bytes.
fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => "image/bmp",
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => "image/tiff",
        _ => return None,
    })
}

/// The length of the compact JSON text of `value`, without building it.
pub fn json_size(value: &Value) -> usize {
    let commas = |items: usize| items.saturating_sub(1);
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number.as_str_len(),
        Value::String(text) => quoted_size(text),
        Value::Array(items) => 2 + commas(items.len()) + items.iter().map(json_size).sum::<usize>(),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, item)| quoted_size(key) + 1 + json_size(item));
            2 + commas(map.len()) + entries.sum::<usize>()
        }
    }
}

fn quoted_size(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    2 + text.bytes().map(escaped).sum::<usize>()
}

trait NumberLength {
    fn as_str_len(&self) -> usize;
}

impl NumberLength for serde_json::Number {
    fn as_str_len(&self) -> usize {
        match self.as_i64() {
            Some(small) if (0..10).contains(&small) => 1,
            _ => self.to_string().len(),
        }
    }
}

/// The fact that is an explanation in plain words.
pub(crate) const NOTE: &str = "note";

/// What a tool returns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What the model sees, in order.
    pub content: Vec<Content>,
    /// The value a program sees, when it differs from the only JSON block of `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Facts beside the content: they go to the model as a note, to programs as data.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What else came with the output, for programs alone: a model is not sent it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extras: Map<String, Value>,
    /// For the user alone: no model may be shown it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confidential: bool,
}

impl ToolOutput {
    /// An output of one block.
    pub fn block(content: Content) -> Self {
        ToolOutput { content: vec![content], ..ToolOutput::default() }
    }

    /// An output of several blocks.
    pub fn blocks(content: impl IntoIterator<Item = Content>) -> Self {
        ToolOutput { content: content.into_iter().collect(), ..ToolOutput::default() }
    }

    /// An output of one piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::block(Content::text(text))
    }

    /// An output from a JSON value: text for a string, nothing for null, a JSON block for the rest.
    pub fn json(value: Value) -> Self {
        match value {
            Value::Null => ToolOutput::default(),
            Value::String(text) => Self::text(text),
            value => Self::block(Content::Json { value }),
        }
    }

    /// An output from any value that serialises.
    pub fn serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        match serde_json::to_value(value) {
            Ok(value) => Ok(Self::json(value)),
            Err(error) => {
                Err(ToolError::fatal("the tool's result does not serialise to JSON").with_source(error))
            }
        }
    }

    /// Adds one block.
    #[must_use]
    pub fn with(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// Sets the value a program sees.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Adds one fact beside the content.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Explains the content in plain words. Where no other facts stand beside it, the model reads them as
    /// they are.
    ///
    /// ```
    /// use toolwright_core::ToolOutput;
    ///
    /// let output = ToolOutput::text("72 F").with_note("Weather data for Boston");
    /// assert_eq!(output.metadata["note"], "Weather data for Boston");
    /// ```
    #[must_use]
    pub fn with_note(self, text: impl Into<String>) -> Self {
        self.with_metadata(NOTE, text.into())
    }

    /// The value a program sees: the structured value, else the only JSON block, else the joined text.
    pub fn value(&self) -> Value {
        if let Some(value) = &self.structured {
            return value.clone();
        }
        match self.content.as_slice() {
            [] => Value::Null,
            [Content::Json { value }] => value.clone(),
            blocks if blocks.iter().all(|block| block.as_text().is_some()) => Value::String(self.to_text()),
            blocks => serde_json::to_value(blocks).unwrap_or(Value::Null),
        }
    }

    /// All text and JSON blocks, joined by newlines.
    pub fn to_text(&self) -> String {
        let parts: Vec<_> = self.content.iter().filter_map(Content::as_text).collect();
        parts.join("\n")
    }
}

/// Values a tool may return without further ado. For any other value that serialises, wrap it in [`Json`].
pub trait IntoToolOutput {
    /// The output, or the error to report.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;

    /// JSON Schema of the output, for values that promise one.
    fn output_schema() -> Option<Value>
    where
        Self: Sized,
    {
        None
    }
}

/// Makes an output from any value that serialises.
///
/// ```
/// use toolwright_core::{IntoToolOutput, Json};
///
/// let output = Json(vec![1, 2, 3]).into_tool_output().unwrap();
/// assert_eq!(output.to_text(), "[1,2,3]");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::serialize(&self.0)
    }
}

/// Like [`Json`], for a type that has a schema: a tool made with [`ToolDef::typed`](crate::ToolDef::typed)
/// promises it.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use toolwright_core::{Structured, ToolContext, ToolDef};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Place {
///     /// The city.
///     city: String,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Weather {
///     degrees: f64,
/// }
///
/// let tool = ToolDef::typed("weather", "Tells the weather.", |_: ToolContext, _: Place| async {
///     Structured(Weather { degrees: 21.5 })
/// });
/// assert_eq!(tool.spec().output_schema.as_ref().unwrap()["required"][0], "degrees");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Structured<T>(pub T);

impl<T: Serialize + schemars::JsonSchema> IntoToolOutput for Structured<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::serialize(&self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(crate::schema::output_schema_of::<T>())
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for Content {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::block(self))
    }
}

impl IntoToolOutput for Vec<Content> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::blocks(self))
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for &str {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::json(self))
    }
}

macro_rules! scalar_outputs {
    ($($kind:ty)*) => {$(
        impl IntoToolOutput for $kind {
            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::json(self.into()))
            }
        }
    )*};
}
scalar_outputs!(bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

impl<T: IntoToolOutput> IntoToolOutput for Option<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_or_else(|| Ok(ToolOutput::default()), T::into_tool_output)
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into).and_then(T::into_tool_output)
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_round_trips_through_json() {
        let blocks = vec![
            Content::text("hi"),
            Content::json(serde_json::json!({"a": 1})),
            Content::image("image/png", b"\x89PNG"),
            Content::document("application/pdf", "a.pdf", b"%PDF"),
            Content::link("file:///a", "a"),
            Content::Reasoning { text: "hm".into(), opaque: serde_json::json!({"signature": "x"}) },
        ];
        let text = serde_json::to_string(&blocks).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Content>>(&text).unwrap(), blocks);
    }

    #[test]
    fn a_data_address_becomes_media_and_back() {
        let media = Media::from_data_url("data:image/png;base64,AA==").unwrap();
        assert_eq!(media.bytes().unwrap(), [0]);
        assert_eq!(media.to_url(), "data:image/png;base64,AA==");
        assert!(Media::from_data_url("data:image/png;base64,???").is_err());
    }

    #[test]
    fn the_size_of_json_is_that_of_its_text() {
        let odd: String = (0..=0x2f_u8).map(char::from).chain("\u{7f}\u{2028}ä😀\\".chars()).collect();
        for value in [
            serde_json::json!({"a": [1, 22, null], "b": "x"}),
            serde_json::json!([]),
            serde_json::json!({}),
            serde_json::json!([[true, false], -7, 9, 10, 1.5e300, u64::MAX, {"": ""}]),
            serde_json::json!({odd.clone(): odd}),
        ] {
            assert_eq!(json_size(&value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn the_size_of_a_block_counts_all_its_parts() {
        let long = "x".repeat(1000);
        let citation = Citation { url: long.clone(), title: Some(long.clone()), quote: Some(long.clone()) };
        let mut media = Media::from_url(long.clone(), long.clone());
        media.name = Some(long.clone());
        let link = Content::ResourceLink {
            uri: long.clone(),
            name: long.clone(),
            description: Some(long.clone()),
            mime_type: Some(long.clone()),
        };
        for (block, size) in [
            (Content::Text { text: long.clone(), citations: vec![citation] }, 4000),
            (Content::Image(media), 3000),
            (link, 4000),
            (Content::Reasoning { text: long.clone(), opaque: long.into() }, 2002),
        ] {
            assert_eq!(block.size(), size, "{block:?}");
        }
    }

    #[test]
    fn plain_values_become_what_a_reader_expects() {
        assert_eq!("x".into_tool_output().unwrap(), ToolOutput::text("x"));
        assert_eq!(5_i64.into_tool_output().unwrap().to_text(), "5");
        assert_eq!(().into_tool_output().unwrap(), ToolOutput::default());
        assert_eq!(None::<String>.into_tool_output().unwrap().value(), Value::Null);
    }
}
