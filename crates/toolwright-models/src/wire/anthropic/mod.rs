//! Anthropic's Messages API.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
