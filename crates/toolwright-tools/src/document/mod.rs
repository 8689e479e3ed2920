//! Documents for the tools that read files: a worker turns the bytes into blocks, and nothing of a hostile
//! file is parsed in this process but pictures that are made smaller.

mod figures;
mod outline;
mod read;
mod reader;
mod selection;
mod view;

pub(crate) use figures::{MAX_SIDE, ScaledPicture, fit};
pub(crate) use read::{DocumentRequest, ImageDetail, read};
pub(crate) use reader::{is_document, open, options_for};
pub(crate) use view::{bytes_of_tokens, fitting, next_call};
