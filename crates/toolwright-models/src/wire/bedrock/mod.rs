//! Amazon Bedrock: Converse, which is the same for all of its models, and InvokeModel, which wraps a model's
//! own format and is spoken here to Claude.

mod decode;
mod encode;
mod invoke;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
pub(super) use invoke::encode as encode_invoke;
