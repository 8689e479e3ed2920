//! The question of `ask`: the words of the command line, what is piped in, and attached files.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use toolwright::content::{Content, Message};

use crate::attachments;
use crate::console::Console;
use crate::report::Usage;

/// How long stdin may stay open and silent before the wait is reported.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a model is asked.
#[derive(Debug)]
pub struct PromptContent {
    content: Vec<Content>,
}

impl PromptContent {
    /// Reads the question: `words` of the command line, files to attach, and stdin.
    ///
    /// Without words, or with `-`, stdin is the question. With words, what is piped in comes before them.
    pub fn read(console: &Console, words: &[String], attach: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files: Vec<&Path> = attach.iter().map(PathBuf::as_path).collect();
        let mut asked = Vec::new();
        let mut from_stdin = false;
        for word in words {
            match word.strip_prefix('@').filter(|name| !name.is_empty()) {
                Some(name) => files.push(Path::new(name)),
                None if word == "-" => from_stdin = true,
                None => asked.push(word.as_str()),
            }
        }
        let asked = asked.join(" ");
        let is_piped = !console.stdin().is_terminal();
        let piped = match is_piped || from_stdin {
            true => stdin(console)?,
            false => String::new(),
        };
        let mut parts = Vec::new();
        let question = match (asked.trim().is_empty(), piped.trim().is_empty()) {
            (true, true) => {
                let error = Usage::new(match is_piped || from_stdin {
                    true => "there is no question: stdin is empty",
                    false => "there is no question",
                });
                let hint = "write it behind `ask`, or pipe it in: `echo 'What is 2 + 2?' | toolwright ask`";
                return Err(error.hint(hint).into());
            }
            (true, false) => piped.trim_end().to_owned(),
            (false, true) => asked,
            (false, false) if from_stdin => format!("{asked}\n\n{}", piped.trim_end()),
            (false, false) => {
                parts.push(Content::text(attachments::named("stdin", &piped)));
                asked
            }
        };
        for path in files {
            parts.push(attachments::read(console, path)?);
        }
        parts.push(Content::text(question));
        Ok(PromptContent { content: joined(parts) })
    }

    /// The question as a message.
    pub fn into_message(self) -> Message {
        Message::User { content: self.content }
    }
}

/// The same content with texts that follow each other in one block: small servers know only that form.
fn joined(parts: Vec<Content>) -> Vec<Content> {
    let mut content: Vec<Content> = Vec::new();
    for part in parts {
        match (content.last_mut(), part) {
            (Some(Content::Text { text, .. }), Content::Text { text: more, .. }) => {
                text.push_str("\n\n");
                text.push_str(&more);
            }
            (_, part) => content.push(part),
        }
    }
    content
}

/// All of stdin. Some programs start others with a pipe that is never closed, so waiting is reported.
fn stdin(console: &Console) -> anyhow::Result<String> {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let watch = console.clone();
    let is_terminal = console.stdin().is_terminal();
    std::thread::spawn(move || {
        use std::sync::mpsc::RecvTimeoutError::Timeout;
        if !is_terminal && is_done.recv_timeout(PATIENCE) == Err(Timeout) {
            watch.remark("reading stdin until it ends (`< /dev/null` gives none)");
        }
    });
    let mut bytes = Vec::new();
    console
        .stdin()
        .lock()
        .take(attachments::MOST_TEXT + 1)
        .read_to_end(&mut bytes)
        .context("cannot read stdin")?;
    drop(done);
    attachments::text("stdin", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_one_block_around_pictures() {
        let picture = || Content::image("image/png", b"x");
        let text = |text: &str| Content::text(text);
        assert_eq!(
            joined(vec![text("a"), text("b"), picture(), text("c")]),
            [text("a\n\nb"), picture(), text("c")]
        );
    }
}
