//! OpenAI's Responses API, used without state on the server.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
