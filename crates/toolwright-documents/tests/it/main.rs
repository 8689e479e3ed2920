//! Documents written here, with a known truth, and files damaged on purpose.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

mod damaged;
mod mail;
mod office;
mod paper;
mod pdf;
mod texts;

use toolwright_documents::{Content, Document, ReadOptions, read};

fn open(name: &str, bytes: impl Into<Vec<u8>>) -> Document {
    read(bytes.into(), &ReadOptions::named(name)).expect("the document is readable")
}

fn markdown(document: &Document) -> String {
    toolwright_documents::render::markdown(document, &Default::default())
}

fn paragraphs(document: &Document) -> Vec<String> {
    let texts = document.blocks.iter().filter_map(|block| match &block.content {
        Content::Paragraph { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

fn headings(document: &Document) -> Vec<(u8, String)> {
    let found = document.blocks.iter().filter_map(|block| match &block.content {
        Content::Heading { level, text } => Some((*level, text.clone())),
        _ => None,
    });
    found.collect()
}

fn tables(document: &Document) -> Vec<Vec<Vec<String>>> {
    let found = document.blocks.iter().filter_map(|block| match &block.content {
        Content::Table { rows, .. } => Some(rows.clone()),
        _ => None,
    });
    found.collect()
}

/// A small generator with a seed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }

    /// A sentence of words.
    fn sentence(&mut self, words: usize) -> String {
        const WORDS: [&str; 24] = [
            "river",
            "mountain",
            "light",
            "model",
            "paper",
            "result",
            "always",
            "under",
            "careful",
            "number",
            "language",
            "between",
            "structure",
            "small",
            "large",
            "people",
            "never",
            "order",
            "proof",
            "reader",
            "method",
            "system",
            "value",
            "open",
        ];
        let text: Vec<&str> = (0..words).map(|_| WORDS[self.below(WORDS.len())]).collect();
        let mut text = text.join(" ");
        text[..1].make_ascii_uppercase();
        text + "."
    }
}
