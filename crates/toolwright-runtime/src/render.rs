//! Bounding what goes back to a model.
//!
//! Text over the limit keeps its first and last halves, with a note between them. Several blocks share the
//! limit: small ones stay whole and large ones give way. Media are bounded apart, because a picture cut in
//! half is nothing.

use toolwright_core::{Content, ToolCall, ToolError, ToolOutput, ToolResult, Truncation, json_size, text};

/// The most bytes of text a model is given for one call, unless the run or the tool says otherwise.
pub const DEFAULT_MAX_OUTPUT: usize = 16 * 1024;

/// The most pictures, sounds, videos and documents that are passed on together, in bytes of base64.
const MAX_MEDIA: usize = 32 * 1024 * 1024;

/// The longest media type or file name.
const MAX_NAME: usize = 255;

/// The most blocks that are passed on.
const MAX_BLOCKS: usize = 256;

/// The result for a model. `limit` is in bytes; 0 means no limit.
pub(crate) fn result(call: &ToolCall, outcome: Result<ToolOutput, ToolError>, limit: usize) -> ToolResult {
    let (output, error, in_confidence) = match outcome {
        Ok(output) => (output, None, false),
        Err(mut error) => {
            let in_confidence = error.is_confidential();
            (error.take_partial().unwrap_or_default(), Some(error.info()), in_confidence)
        }
    };
    let mut result = ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: output.content,
        structured: output.structured,
        metadata: output.metadata,
        extras: (!output.extras.is_empty()).then(|| Box::new(output.extras)),
        error,
        truncated: None,
        confidential: output.confidential || in_confidence,
    };
    if limit > 0 {
        bound(&mut result, limit);
    }
    result
}

fn bound(result: &mut ToolResult, limit: usize) {
    let words_cut = bound_words(result, limit);
    // The common case: one small block.
    if !words_cut
        && let [only] = result.content.as_slice()
        && result.structured.is_none()
        && is_text(only)
        && only.size() <= limit
    {
        return;
    }
    let original = result.content.iter().filter(|block| is_text(block)).map(Content::size).sum::<usize>();
    let blocks_cut = bound_blocks(&mut result.content);
    let media_cut = bound_media(&mut result.content);
    if original > limit {
        let share = fair_share(&result.content, limit);
        for block in result.content.iter_mut().filter(|block| is_text(block) && block.size() > share) {
            cut(block, share, &result.name);
        }
    }
    let too_large = result.structured.as_ref().is_some_and(|value| json_size(value) > limit);
    if too_large {
        result.structured = None;
    }
    if original > limit || blocks_cut || media_cut || too_large || words_cut {
        result.truncated = Some(Truncation { original, limit });
    }
}

/// Bounds what a call says beside its output: its error, and what it tells about the output.
fn bound_words(result: &mut ToolResult, limit: usize) -> bool {
    let mut any = false;
    if let Some(error) = &mut result.error {
        for text in std::iter::once(&mut error.message).chain(&mut error.hint) {
            if text.len() > limit {
                *text = halves(text, limit, &result.name);
                any = true;
            }
        }
    }
    let too_large = |beside: &serde_json::Map<String, serde_json::Value>| {
        beside.iter().map(|(name, value)| name.len() + json_size(value)).sum::<usize>() > limit
    };
    if too_large(&result.metadata) {
        result.metadata.clear();
        any = true;
    }
    any |= result.extras.take_if(|extras| too_large(extras)).is_some();
    any
}

fn is_text(block: &Content) -> bool {
    !matches!(block, Content::Image(_) | Content::Audio(_) | Content::Video(_) | Content::Document(_))
}

/// The size that, given to every larger block, makes all blocks together fit the limit.
fn fair_share(blocks: &[Content], limit: usize) -> usize {
    let mut sizes: Vec<usize> = blocks.iter().filter(|block| is_text(block)).map(Content::size).collect();
    sizes.sort_unstable();
    let (mut left, mut count) = (limit, sizes.len());
    for size in sizes {
        let share = left / count.max(1);
        if size > share {
            return share;
        }
        left -= size;
        count -= 1;
    }
    left
}

fn cut(block: &mut Content, share: usize, tool: &str) {
    let Some(whole) = (match block {
        Content::Text { text, .. } | Content::Reasoning { text, .. } => Some(text.clone()),
        Content::Json { value } => Some(value.to_string()),
        // A link is small unless somebody made it large on purpose.
        Content::ResourceLink { uri, name, .. } => Some(format!("{name}: {uri}")),
        _ => None,
    }) else {
        return;
    };
    // A block may be too large for what is beside its text.
    *block = Content::text(if whole.len() > share { halves(&whole, share, tool) } else { whole });
}

/// The first and last halves of a text, and what is missing between them.
fn halves(whole: &str, limit: usize, tool: &str) -> String {
    let (head, tail) = (text::head(whole, limit / 2), text::tail(whole, limit.div_ceil(2)));
    let left_out = whole.len().saturating_sub(head.len() + tail.len());
    format!(
        "{head}\n[… {left_out} of {} bytes left out: the output of `{tool}` is cut to {limit} bytes …]\n{tail}",
        whole.len()
    )
}

fn bound_blocks(content: &mut Vec<Content>) -> bool {
    if content.len() <= MAX_BLOCKS {
        return false;
    }
    let left_out = content.len() - MAX_BLOCKS;
    content.truncate(MAX_BLOCKS);
    content.push(Content::text(format!("[… {left_out} more blocks left out …]")));
    true
}

fn bound_media(content: &mut [Content]) -> bool {
    let mut any = false;
    let mut left = MAX_MEDIA;
    for block in content {
        let (kind, media) = match block {
            Content::Image(media) => ("image", media),
            Content::Audio(media) => ("audio", media),
            Content::Video(media) => ("video", media),
            Content::Document(media) => ("document", media),
            _ => continue,
        };
        for name in std::iter::once(&mut media.mime_type).chain(&mut media.name) {
            if name.len() > MAX_NAME {
                *name = text::head(name, MAX_NAME).to_owned();
                any = true;
            }
        }
        let size = block.size();
        if size > left {
            *block = Content::text(format!(
                "[{kind} of {size} bytes left out: the most for one call is {MAX_MEDIA} bytes]"
            ));
            any = true;
        } else {
            left -= size;
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwright_core::{Citation, Media};

    fn render(output: ToolOutput, limit: usize) -> ToolResult {
        result(&ToolCall::new("1", "big", json!({})), Ok(output), limit)
    }

    fn alphabet(length: usize) -> String {
        ('a'..='z').cycle().take(length).collect()
    }

    #[test]
    fn text_over_the_limit_keeps_both_halves() {
        let cut = render(ToolOutput::text(alphabet(100)), 10);
        assert_eq!(
            cut.to_text(),
            "abcde\n[… 90 of 100 bytes left out: the output of `big` is cut to 10 bytes …]\nrstuv"
        );
        assert_eq!(cut.truncated, Some(Truncation { original: 100, limit: 10 }));
        assert!(render(ToolOutput::text(alphabet(11)), 7).to_text().starts_with("abc\n"));
        assert!(render(ToolOutput::text(alphabet(11)), 7).to_text().ends_with("\nhijk"));
    }

    #[test]
    fn text_within_the_limit_and_unlimited_text_stay_whole() {
        assert_eq!(render(ToolOutput::text(alphabet(10)), 10).truncated, None);
        assert_eq!(render(ToolOutput::text(alphabet(100_000)), 0).to_text().len(), 100_000);
    }

    #[test]
    fn characters_are_not_split() {
        let cut = render(ToolOutput::text("é".repeat(20)), 9).to_text();
        assert_eq!(cut.matches('é').count(), 4);
    }

    #[test]
    fn blocks_share_the_limit_and_small_ones_stay_whole() {
        let output = ToolOutput::text("small")
            .with(Content::text(alphabet(500)))
            .with(Content::json(json!(alphabet(500))));
        let cut = render(output, 105);
        assert_eq!(cut.content[0], Content::text("small"));
        for block in &cut.content[1..] {
            assert!(block.as_text().unwrap().contains("cut to 50 bytes"), "{block:?}");
        }
    }

    #[test]
    fn a_structured_value_over_the_limit_is_left_out_and_said_so() {
        let output = ToolOutput::text("x").with_structured(json!({"all": alphabet(500)}));
        let cut = render(output, 100);
        assert_eq!((cut.structured, cut.truncated.is_some()), (None, true));
    }

    #[test]
    fn pictures_pass_whole_and_monsters_do_not() {
        let picture = Content::image("image/png", &[0; 100_000]);
        assert_eq!(render(ToolOutput::block(picture.clone()), 100).content, [picture]);
        let monster = Content::Image(Media::from_url("image/png", "x".repeat(MAX_MEDIA + 1)));
        assert!(render(ToolOutput::block(monster), 100).to_text().contains("left out"));
    }

    #[test]
    fn media_share_one_limit() {
        let half = || Content::Image(Media::from_url("image/png", "x".repeat(MAX_MEDIA / 2)));
        let cut = render(ToolOutput::blocks([half(), half(), Content::image("image/png", b"x")]), 100);
        assert!(matches!(
            cut.content.as_slice(),
            [Content::Image(_), Content::Text { .. }, Content::Image(_)]
        ));
        assert!(cut.truncated.is_some());
    }

    #[test]
    fn nothing_beside_the_text_goes_past_the_limit() {
        let long = alphabet(1_000_000);
        let mut media = Media::from_bytes(long.clone(), b"x");
        media.name = Some(long.clone());
        let citation = Citation { url: "u".into(), title: Some(long.clone()), quote: None };
        let link = |mime_type: String| Content::ResourceLink {
            uri: "file:///a".into(),
            name: "a".into(),
            description: None,
            mime_type: Some(mime_type),
        };
        for block in [
            Content::Image(media),
            Content::Text { text: "short".into(), citations: vec![citation] },
            link(long.clone()),
            Content::Reasoning { text: "short".into(), opaque: json!(long) },
        ] {
            let cut = render(ToolOutput::block(block), 1000);
            assert!(serde_json::to_string(&cut.content).unwrap().len() < 2000);
            assert!(cut.truncated.is_some());
        }
        let fine = link("text/plain".into());
        assert_eq!(render(ToolOutput::block(fine.clone()), 1000).content, [fine]);
    }

    #[test]
    fn partial_output_travels_with_the_error() {
        let error = ToolError::of(toolwright_core::ErrorKind::Timeout, "too slow")
            .with_partial(ToolOutput::text("so far"));
        let result = result(&ToolCall::new("1", "t", json!({})), Err(error), 100);
        assert_eq!(result.content, [Content::text("so far")]);
        assert_eq!(result.error.unwrap().message, "too slow");
    }

    #[test]
    fn errors_and_metadata_are_bounded_too() {
        let error = ToolError::new(alphabet(1000)).hint(alphabet(1000));
        let cut = result(&ToolCall::new("1", "t", json!({})), Err(error), 100);
        let error = cut.error.unwrap();
        assert!(error.message.len() < 300 && error.hint.unwrap().len() < 300 && cut.truncated.is_some());
        let mut output = ToolOutput::text("fine");
        output.metadata.insert("all".into(), json!(alphabet(500)));
        output.extras.clone_from(&output.metadata);
        let cut = render(output, 100);
        assert!(cut.metadata.is_empty() && cut.extras.is_none() && cut.truncated.is_some());
        assert_eq!(cut.content, [Content::text("fine")]);
    }

    #[test]
    fn too_many_blocks_are_counted() {
        let output = ToolOutput::blocks((0..1000).map(|_| Content::text("")));
        let cut = render(output, 100);
        assert_eq!(cut.content.len(), MAX_BLOCKS + 1);
        assert!(cut.truncated.is_some());
    }
}
