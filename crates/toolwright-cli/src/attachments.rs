//! Files that a person attaches to a question: text and pictures as they are, documents as `read` prints
//! them.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::time::Duration;

use toolwright::content::Content;
use toolwright::documents::{
    DocumentKind, DocumentSource, ReadLimits, ReadOptions, WorkerLimits, detect, read_in_worker, render,
};
use toolwright_core::text::clip;

use crate::console::Console;
use crate::prompt::printable;
use crate::report::Usage;

/// The longest text that goes into a question, from one file or from stdin: about a million tokens.
pub const MOST_TEXT: u64 = 4 << 20;

/// The largest picture.
const MOST_PICTURE: u64 = 20 << 20;

/// How long reading one document may take.
const TIME: Duration = Duration::from_secs(60);

/// The content of a file, with its name when it is text.
pub fn read(console: &Console, path: &Path) -> anyhow::Result<Content> {
    let shown = printable(&path.display().to_string());
    let unreadable = |why: &dyn std::fmt::Display| Usage::new(format!("cannot attach `{shown}`: {why}"));
    let found = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if found.is_dir() {
        return Err(unreadable(&"it is a folder").hint("attach files; tools can list the folder").into());
    }
    let mut file = File::open(path).map_err(|error| unreadable(&error))?;
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_PICTURE + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    match detect(&bytes, name.as_deref()) {
        DocumentKind::Image(kind @ ("image/png" | "image/jpeg" | "image/gif" | "image/webp")) => {
            match bytes.len() as u64 {
                0..=MOST_PICTURE => Ok(Content::image(kind, &bytes)),
                _ => Err(unreadable(&format!("the picture has more than {} MiB", MOST_PICTURE >> 20)).into()),
            }
        }
        DocumentKind::Image(kind) => {
            let error = unreadable(&format!("models do not take {kind}"));
            Err(error.hint("convert it to PNG or JPEG").into())
        }
        DocumentKind::Html
        | DocumentKind::Markdown
        | DocumentKind::Csv
        | DocumentKind::Tsv
        | DocumentKind::JsonLines
        | DocumentKind::Text
        | DocumentKind::Notebook => Ok(Content::text(named(&shown, &text(&shown, bytes)?))),
        _ => {
            file.rewind().map_err(|error| unreadable(&error))?;
            let document = document(console, &shown, &file, name)?;
            Ok(Content::text(named(&shown, &document)))
        }
    }
}

/// The text of a file or of stdin. What is not UTF-8, or too long, is an error: nothing is cut or replaced.
pub fn text(whose: &str, bytes: Vec<u8>) -> anyhow::Result<String> {
    if bytes.len() as u64 > MOST_TEXT {
        let error = Usage::new(format!("`{whose}` has more than {} MiB of text", MOST_TEXT >> 20));
        return Err(error
            .hint("attach a part of it, as with `head` or `grep`, or let a tool read it")
            .into());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Usage::new(format!("`{whose}` is not UTF-8 text (byte {at})")).into()
    })
}

/// Text in a question, with the place it comes from.
pub fn named(name: &str, text: &str) -> String {
    let name = name.replace('"', "'");
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("<file name=\"{name}\">\n{text}{end}</file>")
}

/// A document as Markdown, read in a process of its own.
fn document(console: &Console, shown: &str, file: &File, name: Option<String>) -> anyhow::Result<String> {
    let options = ReadOptions {
        name,
        limits: ReadLimits { time: TIME, ..ReadLimits::default() },
        ..ReadOptions::default()
    };
    // The reader ends by itself when its time is up; a little later it is killed.
    let limits = WorkerLimits {
        time: TIME + Duration::from_secs(5),
        processor: TIME + Duration::from_secs(2),
        ..WorkerLimits::default()
    };
    let failed = |why: &dyn std::fmt::Display| Usage::new(format!("cannot attach `{shown}`: {why}"));
    let (document, _) = read_in_worker(DocumentSource::File(file), &options, limits, None, &mut |_| {})
        .map_err(|error| {
            let usage = failed(&error);
            match error.hint() {
                Some(hint) => usage.hint(hint),
                None => usage,
            }
        })?;
    if let Some(stopped) = &document.stopped {
        let error = failed(stopped);
        return Err(error.hint(format!("`toolwright read --pages 1-20 {shown}` prints a part of it")).into());
    }
    for warning in &document.info.warnings {
        console.say(format_args!("warning: {shown}: {}", printable(&clip(warning, 500))));
    }
    let text = render::markdown(&document, &render::MarkdownOptions::default());
    match text.len() as u64 {
        0 => Err(failed(&"it has no text").hint("attach pictures of its pages").into()),
        1..=MOST_TEXT => Ok(text),
        _ => Err(failed(&format!("it has more than {} MiB of text", MOST_TEXT >> 20)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Output;

    #[test]
    fn text_and_pictures_are_attached_whole_and_all_else_is_refused_with_the_reason() -> anyhow::Result<()> {
        let console = Console::new(Output::Text);
        let folder = tempfile::tempdir()?;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).map(|()| path)
        };
        let notes = read(&console, &write("notes.txt", b"one\ntwo")?)?;
        let text = notes.as_text().unwrap_or_default().into_owned();
        assert!(
            text.starts_with("<file name=") && text.ends_with("notes.txt\">\none\ntwo\n</file>"),
            "{text}"
        );
        let picture = read(&console, &write("p.bin", b"\x89PNG\r\n\x1a\nrest")?)?;
        assert!(matches!(picture, Content::Image(media) if media.mime_type == "image/png"));
        for (name, bytes, reason) in [
            ("bad.txt", &b"abc\xff"[..], "byte 3"),
            ("pic.tiff", b"II*\0rest", "image/tiff"),
            ("big.txt", &vec![b'x'; usize::try_from(MOST_TEXT)? + 1], "4 MiB"),
        ] {
            let error = read(&console, &write(name, bytes)?).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(reason), "{name}: {error}");
        }
        let error = read(&console, folder.path()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("it is a folder"));
        Ok(())
    }
}
