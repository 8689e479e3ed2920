//! Amazon Bedrock: Converse for each model, InvokeModel for Claude.

use super::{Auth, CLAUDE, KeyRequirement, Pictures, Quirks, Vendor};
use crate::dialect::Dialect;
use crate::wire::Wire;
use crate::wire::content::ContentKind;

/// 3.75 MB, and otherwise what Claude takes.
const PICTURES: Pictures = Pictures { letters: 5 << 20, ..CLAUDE };

pub(super) const BEDROCK: Vendor = Vendor {
    name: "bedrock",
    wire: Wire::BedrockConverse,
    base_url: Some("https://bedrock-runtime.{region}.amazonaws.com"),
    base_url_variables: &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"],
    key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
    key: KeyRequirement::Required,
    auth: Auth::Aws { service: "bedrock" },
    headers: &[],
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Audio, ContentKind::Video, ContentKind::Document],
        pictures: PICTURES,
        strict: Some(Dialect::AnthropicStrict),
        caches: true,
        ..Quirks::USUAL
    },
};

pub(super) const BEDROCK_INVOKE: Vendor = Vendor {
    name: "bedrock-invoke",
    wire: Wire::BedrockInvoke,
    quirks: Quirks {
        media: &[ContentKind::Image, ContentKind::Document],
        pictures: PICTURES,
        strict: Some(Dialect::AnthropicStrict),
        caches: true,
        ..Quirks::USUAL
    },
    ..BEDROCK
};
