//! Prints a document as a model would get it: `cargo run --example read -- FILE`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use toolwright_documents::{ReadOptions, read, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        let bytes = std::fs::read(&name)?;
        match read(bytes, &ReadOptions::named(name.as_str())) {
            Ok(document) => print!("{}", render::markdown(&document, &render::MarkdownOptions::default())),
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    Ok(())
}
