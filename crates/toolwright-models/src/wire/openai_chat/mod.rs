//! OpenAI's Chat Completions API, which most servers speak in one way or another.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
