//! Plain text: paragraphs are separated by empty lines, and their lines stay as they are.

use crate::error::DocumentError;
use crate::model::{Block, Info, Page};
use crate::options::ReadingState;

pub(crate) fn read(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let text = super::decode(bytes);
    super::single(Page { blocks: paragraphs(&text), ..Page::default() }, Info::default(), reading)
}

pub(crate) fn paragraphs(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            if !lines.is_empty() {
                blocks.push(Block::paragraph(lines.join("\n")));
                lines.clear();
            }
        } else {
            lines.push(line.trim_end());
        }
    }
    if !lines.is_empty() {
        blocks.push(Block::paragraph(lines.join("\n")));
    }
    blocks
}
