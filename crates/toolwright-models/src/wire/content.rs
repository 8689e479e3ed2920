//! Where each kind of content goes in each wire format, as a table that the encoders follow and the
//! documentation prints. Nothing a tool returns is dropped: what an API cannot take is described in words.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolwright_core::{Content, Media, MediaSource, Message, ToolResult};

use super::Wire;
use crate::tokens::image_size;
use crate::vendor::{Pictures, VENDORS, Vendor};

/// A kind of content, as the rules tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ContentKind {
    Text,
    Json,
    Image,
    Audio,
    Video,
    Document,
    Link,
    Error,
    Metadata,
}

/// Where a kind of content of a tool's result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Inside the result, as a block of its kind.
    Native,
    /// Inside the result, as text.
    Text,
    /// In the user message after the results; the result says so.
    Follow,
    /// Nowhere: the result says what it was.
    Described,
}

/// The rule for one kind of content in one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRule {
    /// Where it goes.
    pub place: Placement,
    /// The form it takes there.
    pub form: &'static str,
}

impl ContentKind {
    /// All kinds.
    pub const ALL: [ContentKind; 9] = [
        ContentKind::Text,
        ContentKind::Json,
        ContentKind::Image,
        ContentKind::Audio,
        ContentKind::Video,
        ContentKind::Document,
        ContentKind::Link,
        ContentKind::Error,
        ContentKind::Metadata,
    ];

    /// The kind's name in documents.
    pub fn name(self) -> &'static str {
        match self {
            ContentKind::Text => "text",
            ContentKind::Json => "json",
            ContentKind::Image => "image",
            ContentKind::Audio => "audio",
            ContentKind::Video => "video",
            ContentKind::Document => "document",
            ContentKind::Link => "link",
            ContentKind::Error => "error",
            ContentKind::Metadata => "metadata",
        }
    }
}

/// The rule for one kind of content in one format.
pub fn rule(wire: Wire, kind: ContentKind) -> ContentRule {
    use Placement::{Described, Follow, Native, Text};
    let (place, form) = match (wire, kind) {
        (Wire::BedrockInvoke, kind) => return rule(Wire::AnthropicMessages, kind),

        (Wire::AnthropicMessages, ContentKind::Text) => (Native, "`text` block"),
        (Wire::AnthropicMessages, ContentKind::Image) => {
            (Native, "`image` block: JPEG, PNG, GIF, WebP, or an address")
        }
        (Wire::AnthropicMessages, ContentKind::Document) => {
            (Native, "`document` block: PDF, text, or an address")
        }
        (Wire::AnthropicMessages, ContentKind::Audio | ContentKind::Video) => {
            (Described, "the API has no such block")
        }
        (Wire::AnthropicMessages, ContentKind::Error) => {
            (Native, "`is_error`, and the error as JSON text; media beside it follows")
        }

        (Wire::OpenAiChat, ContentKind::Text) => (Native, "the message's text"),
        (Wire::OpenAiChat, ContentKind::Image) => {
            (Follow, "`image_url` part: JPEG, PNG, GIF, WebP, or an address")
        }
        (Wire::OpenAiChat, ContentKind::Audio) => (Follow, "`input_audio` part: WAV or MP3 data"),
        (Wire::OpenAiChat, ContentKind::Document) => {
            (Follow, "`file` part: PDF data; text documents as text")
        }
        (Wire::OpenAiChat, ContentKind::Video) => (Described, "the API has no such part"),
        (Wire::OpenAiChat, ContentKind::Error) => (Text, "the error as JSON"),

        (Wire::OpenAiResponses, ContentKind::Text) => (Native, "`input_text` item"),
        (Wire::OpenAiResponses, ContentKind::Image) => {
            (Native, "`input_image` item: JPEG, PNG, GIF, WebP, or an address")
        }
        (Wire::OpenAiResponses, ContentKind::Document) => {
            (Native, "`input_file` item: PDF data or an address")
        }
        (Wire::OpenAiResponses, ContentKind::Audio | ContentKind::Video) => {
            (Described, "the API has no such item")
        }
        (Wire::OpenAiResponses, ContentKind::Error) => (Text, "the error as JSON"),

        (Wire::Gemini, ContentKind::Text) => (Native, "`response.output`"),
        (Wire::Gemini, ContentKind::Json) => (Native, "`response.output`"),
        (Wire::Gemini, ContentKind::Image) => (
            Native,
            "`parts` of the `functionResponse`, for Gemini 3 and later: JPEG, PNG, WebP; for other models, and other types, it follows",
        ),
        (Wire::Gemini, ContentKind::Document) => (
            Native,
            "`parts` of the `functionResponse`, for Gemini 3 and later: PDF and plain text; for other models, and other types, it follows",
        ),
        (Wire::Gemini, ContentKind::Audio | ContentKind::Video) => {
            (Follow, "`inlineData` or `fileData` part")
        }
        (Wire::Gemini, ContentKind::Error) => (Native, "`response.error`"),
        (Wire::Gemini, ContentKind::Metadata) => (Native, "`response.metadata`"),

        (Wire::BedrockConverse, ContentKind::Text) => (Native, "`text` block"),
        (Wire::BedrockConverse, ContentKind::Json) => {
            (Native, "`json` block for objects; other values as text")
        }
        (Wire::BedrockConverse, ContentKind::Image) => (Native, "`image` block: JPEG, PNG, GIF, WebP"),
        (Wire::BedrockConverse, ContentKind::Document) => {
            (Native, "`document` block: PDF, Word, Excel, CSV, HTML, Markdown, text")
        }
        (Wire::BedrockConverse, ContentKind::Video) => {
            (Native, "`video` block, for the models that take one")
        }
        (Wire::BedrockConverse, ContentKind::Audio) => {
            (Follow, "`audio` block, for the models that take one")
        }
        (Wire::BedrockConverse, ContentKind::Error) => {
            (Native, "`status` for Claude and Nova, and the error as JSON text; media beside it follows")
        }

        (Wire::OpenAiChat, ContentKind::Metadata) => (
            Text,
            "`{\"metadata\": …}`, a note alone `Metadata: …`; beside content, the message holds the metadata and the content is in the user message \
             that follows",
        ),

        (_, ContentKind::Json) => (Text, "compact JSON"),
        (_, ContentKind::Link) => (Text, "name, address and description"),
        (_, ContentKind::Metadata) => (Text, "`{\"metadata\": …}`, a note alone `Metadata: …`"),
    };
    ContentRule { place, form }
}

/// A tool's result, sorted by where its parts go.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// Inside the result, in order.
    pub(super) inside: Vec<ContentPart<'a>>,
    /// In the user message that follows.
    pub(super) follow: Vec<&'a Content>,
}

#[derive(Debug, PartialEq)]
pub(super) enum ContentPart<'a> {
    Text(Cow<'a, str>),
    Json(&'a serde_json::Value),
    Media(&'a Content),
}

/// What a model reads of a result that holds nothing. Told nothing at all, small models make the call again.
pub(super) const NOTHING: &str = "(done, no output)";

/// Sorts the content of a result. `takes` says whether the API can carry a piece of media at a place: what
/// the result cannot hold may still follow it.
pub(super) fn sort<'a>(
    wire: Wire,
    result: &'a ToolResult,
    takes: impl Fn(&Content, Placement) -> bool,
) -> Sorted<'a> {
    let mut sorted = Sorted::default();
    for content in &result.content {
        let Some(kind) = kind(content) else { continue };
        match (place(wire, kind, result), content) {
            (Placement::Native, Content::Json { value }) => sorted.inside.push(ContentPart::Json(value)),
            (_, Content::Text { .. } | Content::Json { .. } | Content::ResourceLink { .. }) => {
                sorted.inside.extend(in_words(content).map(ContentPart::Text));
            }
            (Placement::Native, _) if takes(content, Placement::Native) => {
                sorted.inside.push(ContentPart::Media(content))
            }
            (Placement::Native | Placement::Follow, _) if takes(content, Placement::Follow) => {
                let note = format!("[{}: included below]", label(content));
                sorted.inside.push(ContentPart::Text(note.into()));
                sorted.follow.push(content);
            }
            _ => sorted.inside.extend(in_words(content).map(ContentPart::Text)),
        }
    }
    if let (true, Some(value)) = (result.content.is_empty(), &result.structured) {
        sorted.inside.push(ContentPart::Text(value.to_string().into()));
    }
    let blank = |part: &ContentPart<'_>| matches!(part, ContentPart::Text(text) if text.trim().is_empty());
    if sorted.inside.iter().all(blank) && result.metadata.is_empty() && result.error.is_none() {
        sorted.inside = vec![ContentPart::Text(NOTHING.into())];
    }
    sorted
}

/// Where a kind of content of this result goes. Claude refuses a failed result that holds anything but text,
/// and with it the conversation.
fn place(wire: Wire, kind: ContentKind, result: &ToolResult) -> Placement {
    let text_only = result.is_error()
        && matches!(wire, Wire::AnthropicMessages | Wire::BedrockConverse | Wire::BedrockInvoke);
    match rule(wire, kind).place {
        Placement::Native
            if text_only
                && matches!(kind, ContentKind::Image | ContentKind::Video | ContentKind::Document) =>
        {
            Placement::Follow
        }
        place => place,
    }
}

/// The notes that end a result in formats without a place for them: metadata, then the error.
pub(crate) fn notes(result: &ToolResult) -> Vec<String> {
    let metadata = result.explanation().map(|facts| match facts {
        serde_json::Value::String(note) => format!("Metadata: {note}"),
        facts => serde_json::json!({ "metadata": facts }).to_string(),
    });
    metadata.into_iter().chain(result.error.as_ref().map(|error| error.to_json().to_string())).collect()
}

/// What stands before content that follows a batch of results: whose it is.
pub(super) fn tag(name: &str, id: &str) -> String {
    format!("[content of the result of `{name}`, call {id}]")
}

/// The kind of a block; reasoning is not content of a result.
pub(crate) fn kind(content: &Content) -> Option<ContentKind> {
    Some(match content {
        Content::Text { .. } => ContentKind::Text,
        Content::Json { .. } => ContentKind::Json,
        Content::Image(_) => ContentKind::Image,
        Content::Audio(_) => ContentKind::Audio,
        Content::Video(_) => ContentKind::Video,
        Content::Document(_) => ContentKind::Document,
        Content::ResourceLink { .. } => ContentKind::Link,
        _ => return None,
    })
}

/// Whether a picture is an address, or of a type that every vendor takes.
pub(super) fn common_image(media: &Media) -> bool {
    matches!(media.source, MediaSource::Url(_)) || COMMON.contains(&&*media.mime_type)
}

/// The types of pictures that every vendor takes.
const COMMON: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The media of a block.
pub(super) fn media(content: &Content) -> Option<&Media> {
    match content {
        Content::Image(media) | Content::Audio(media) | Content::Video(media) | Content::Document(media) => {
            Some(media)
        }
        _ => None,
    }
}

/// A block as text: its own text, or a description when it cannot be sent. `None` for blocks that are not
/// sent at all.
pub(crate) fn in_words(content: &Content) -> Option<Cow<'_, str>> {
    let described = || {
        let media = media(content)?;
        Some(match &media.source {
            MediaSource::Url(url) => format!("[{}: {url}]", label(content)).into(),
            MediaSource::Data(data) => {
                let bytes = data.len() / 4 * 3;
                format!("[{}, about {bytes} bytes: cannot be shown to this model]", label(content)).into()
            }
        })
    };
    content.in_words().or_else(described)
}

/// Messages in which every picture is described in words.
pub(crate) fn without_images(messages: &[Message]) -> Vec<Message> {
    replaced(messages, |block| Some(Content::text(in_words(block).filter(|_| is_picture(block))?)))
}

/// The messages as a vendor takes them: a picture or PDF that it would refuse is described, and a picture
/// that goes by the name of another type gets its own. What is refused stays in the conversation, and would
/// end it.
pub(crate) fn within<'a>(messages: &'a [Message], most: &Pictures) -> Cow<'a, [Message]> {
    let blocks = || messages.iter().flat_map(Message::content);
    let pictures: Vec<&Content> = blocks().filter(|block| is_picture(block)).collect();
    let (mut old, side) = most.room_for(&pictures);
    if old == 0 && !blocks().any(|block| instead(block, most, side).is_some()) {
        return messages.into();
    }
    let shown = |block: &Content| {
        if old > 0 && is_picture(block) {
            old -= 1;
            return Some(left_out(block, &format!("{} later pictures are shown", most.many)));
        }
        instead(block, most, side)
    };
    replaced(messages, shown).into()
}

impl Pictures {
    /// How many of the first pictures have to go, and how large the others may be. A large picture among the
    /// latest is worth more than old ones; a large one that is old is not.
    fn room_for(&self, pictures: &[&Content]) -> (usize, u32) {
        let Some(old) = pictures.len().checked_sub(self.many).filter(|old| *old > 0) else {
            return (0, self.side);
        };
        let is_large = |picture: &&Content| {
            longest_side(picture).is_some_and(|side| side > self.side_of_many && side <= self.side)
        };
        match pictures.iter().skip(old).any(is_large) {
            true => (old, self.side),
            false => (0, self.side_of_many),
        }
    }
}

fn longest_side(picture: &Content) -> Option<u32> {
    let MediaSource::Data(data) = &media(picture)?.source else { return None };
    image_size(&head(data)?).map(|(width, height)| width.max(height))
}

/// The first bytes: what a file is stands there, and the rest need not be read for it.
fn head(data: &str) -> Option<Vec<u8>> {
    STANDARD.decode(data.get(..data.len().min(1 << 19) / 4 * 4)?).ok()
}

/// What is sent in place of a block that would be refused, or that goes by a wrong type.
fn instead(block: &Content, most: &Pictures, side: u32) -> Option<Content> {
    let Media { source: MediaSource::Data(data), mime_type, .. } = media(block)? else { return None };
    if !is_picture(block) {
        let is_pdf = |head: Vec<u8>| head.windows(5).take(1024).any(|start| start == b"%PDF-");
        let wrong = mime_type == "application/pdf" && !head(data).is_none_or(is_pdf);
        return wrong.then(|| left_out(block, "its data is not a PDF"));
    }
    if data.len() > most.letters {
        let (bytes, most) = (data.len() / 4 * 3, most.letters / 4 * 3);
        let why = format!("it has about {bytes} bytes, and this model takes at most {most}");
        return Some(left_out(block, &why));
    }
    let head = head(data)?;
    match (image_type(&head), image_size(&head)) {
        (None, _) if COMMON.contains(&&**mime_type) => Some(left_out(block, "its data is not a picture")),
        (Some(_), Some((width, height))) if width.max(height) > side => {
            let why =
                format!("it has {width} by {height} pixels, and this model takes at most {side} a side here");
            Some(left_out(block, &why))
        }
        (Some(real), _) if real != mime_type => {
            Some(Content::Image(Media { mime_type: real.to_owned(), ..media(block)?.clone() }))
        }
        _ => None,
    }
}

fn left_out(block: &Content, why: &str) -> Content {
    Content::text(format!("[{} left out: {why}]", label(block)))
}

fn is_picture(block: &Content) -> bool {
    matches!(block, Content::Image(_))
}

/// The type of a picture, of those that are common, from its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The messages, with something else in place of those blocks for which there is something.
fn replaced(messages: &[Message], mut instead: impl FnMut(&Content) -> Option<Content>) -> Vec<Message> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        let blocks = match message {
            Message::System { content } | Message::User { content } => content,
            Message::Assistant(message) => &mut message.content,
            Message::Tool(result) => &mut result.content,
        };
        for block in blocks {
            if let Some(instead) = instead(block) {
                *block = instead;
            }
        }
    }
    messages
}

fn label(content: &Content) -> String {
    let kind = kind(content).map_or("content", ContentKind::name);
    match media(content) {
        Some(Media { mime_type, name: Some(name), .. }) => format!("{kind} {name} ({mime_type})"),
        Some(Media { mime_type, .. }) => format!("{kind} ({mime_type})"),
        None => kind.to_owned(),
    }
}

/// The reference page about content, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Where content goes\n\n\
         What a tool returns reaches every model. Each API has its own idea of what a tool's result may hold, so each\n\
         kind of content has a place in each wire format:\n\n\
         - **native**: inside the result, as a block of its kind;\n\
         - **text**: inside the result, as text;\n\
         - **follows**: in a user message right after the results of the whole batch; the result says so;\n\
         - **described**: the API has no place for it, so the result says what it was.\n\n\
         Media of a type that an API does not take is described too, or given as its address. So is what would make a\n\
         vendor refuse the conversation: data that is not a picture or not a PDF, and for Anthropic and Bedrock pictures over 8000\n\
         pixels a side or over 7.5 MB (Bedrock: 3.75 MB). Claude takes more than 20 pictures only when none has more than 2000\n\
         pixels a side: when one of the latest 20 has, the older ones are described, and else those that have. This page is\n\
         generated from the table that the encoders use.\n",
    );
    for wire in Wire::ALL {
        let _ = write!(page, "\n## {}\n\n| content | place | as |\n| --- | --- | --- |\n", wire.title());
        for kind in ContentKind::ALL {
            let ContentRule { place, form } = rule(wire, kind);
            let place = match place {
                Placement::Native => "native",
                Placement::Text => "text",
                Placement::Follow => "follows",
                Placement::Described => "described",
            };
            let _ = writeln!(page, "| {} | {place} | {form} |", kind.name());
        }
    }
    page.push_str(
        "\n## Vendors\n\nMedia that a vendor's servers are known to take; the rest is described.\n\n\
         | vendor | wire format | media |\n| --- | --- | --- |\n",
    );
    for Vendor { name, wire, quirks, .. } in VENDORS {
        let media: Vec<_> = quirks.media.iter().map(|kind| kind.name()).collect();
        let media = if media.is_empty() { "none".to_owned() } else { media.join(", ") };
        let _ = writeln!(page, "| `{name}` | {} | {media} |", wire.title());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::ToolCall;

    /// A picture of that many pixels, as far as its first bytes say.
    fn png(width: u32, height: u32) -> Content {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        Content::image("image/png", &bytes)
    }

    fn shown(vendor: &str, pictures: Vec<Content>) -> Vec<Content> {
        let (vendor, model) = vendor.split_once('/').unwrap_or((vendor, "claude"));
        let most = crate::vendor::find(vendor).unwrap().pictures(model);
        let mut result = ToolResult::text(&ToolCall::new("1", "look", serde_json::json!({})), "seen");
        result.content = pictures;
        let messages = [Message::user("go"), Message::Tool(result)];
        within(&messages, &most)[1].content().to_vec()
    }

    /// It stays in the conversation, so it would end it.
    #[test]
    fn a_picture_that_would_be_refused_is_told_in_words() {
        let most = vec![png(8000, 8000), png(1, 1)];
        assert_eq!(shown("anthropic", most.clone()), most);
        let told = shown("bedrock", vec![png(1440, 8570), png(1, 1)]);
        let words = "[image (image/png) left out: it has 1440 by 8570 pixels, and this model takes at most 8000 a side here]";
        assert_eq!(told, [Content::text(words), png(1, 1)]);

        let mut many = vec![png(2000, 2000); 20];
        many.push(png(2001, 10));
        let old = Content::text("[image (image/png) left out: 20 later pictures are shown]");
        assert_eq!(shown("anthropic", many.clone())[1..], many[1..], "the latest can be seen");
        assert_eq!(shown("anthropic", many.clone())[0], old);
        let screens = shown("anthropic", vec![png(1280, 5000); 50]);
        assert_eq!((&screens[..30], &screens[30..]), (&*vec![old; 30], &*vec![png(1280, 5000); 20]));
        let profile = "bedrock/arn:aws:bedrock:us-east-1:1:application-inference-profile/x";
        for (model, all) in [
            ("bedrock/us.anthropic.claude-x", false),
            (profile, false),
            ("bedrock/amazon.nova-pro-v1:0", true),
        ] {
            assert_eq!(shown(model, many.clone()) == many, all, "{model}");
        }
        let mut later = vec![png(2001, 10)];
        later.extend(vec![png(10, 10); 20]);
        assert!(shown("anthropic", later.clone())[0].as_text().unwrap().contains("at most 2000 a side"));
        assert_eq!(shown("anthropic", later.clone())[1..], later[1..]);
        many.pop();
        many[0] = png(2001, 10);
        assert_eq!(shown("anthropic", many.clone()), many, "twenty are not many");

        let mut bytes = b"\x89PNG".to_vec();
        bytes.resize(4 << 20, 0);
        let large = vec![Content::image("image/png", &bytes)];
        assert_eq!(shown("anthropic", large.clone()), large);
        let told = shown("bedrock-invoke", large);
        assert!(
            told[0].as_text().unwrap().contains("bytes, and this model takes at most 3932160"),
            "{told:?}"
        );
        let address = Content::Image(Media::from_url("image/png", "https://x.example/a.png"));
        assert_eq!(shown("anthropic", vec![address.clone()]), [address]);
    }

    #[test]
    fn a_picture_goes_by_the_type_it_has_and_what_is_none_is_told_in_words() {
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x02\x58\x03\x20\x03";
        let right = vec![Content::image("image/jpeg", jpeg)];
        assert_eq!(shown("anthropic", vec![Content::image("image/png", jpeg)]), right);
        assert_eq!(shown("anthropic", right.clone()), right);
        for none in [b"<html>not found</html>".as_slice(), b"", b"\x89P"] {
            let told = shown("bedrock", vec![Content::image("image/png", none)]);
            assert_eq!(told, [Content::text("[image (image/png) left out: its data is not a picture]")]);
        }
        for (kind, vendor) in [("image/jpg", "openai"), ("image/*", "llama.cpp"), ("image/png", "google")] {
            assert_eq!(shown(vendor, vec![Content::image(kind, jpeg)]), right);
        }
        // Other types cannot be checked here; the rules of the formats apply.
        let other = vec![Content::image("image/heic", b"ftypheic"), Content::audio("audio/wav", b"?")];
        assert_eq!(shown("google", other.clone()), other);
        let pdf = |bytes: &[u8]| Content::document("application/pdf", "a.pdf", bytes);
        let told = shown("anthropic", vec![pdf(b"\n%PDF-1.7"), pdf(b"<html>")]);
        let words = "[document a.pdf (application/pdf) left out: its data is not a PDF]";
        assert_eq!(told, [pdf(b"\n%PDF-1.7"), Content::text(words)]);
    }
}
