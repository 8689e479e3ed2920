//! The first line of the script that enters the container: whether the command starts, and if not, why.

use std::path::Path;

use toolwright_core::{ErrorKind, ToolError};

use super::running::ContainerCommand;

/// How the entering script's first line was understood.
pub(super) enum Entered {
    /// Nothing heard yet.
    Waiting(Vec<u8>),
    Started,
    Refused(String),
}

impl Entered {
    /// Takes the first line out of what was read and hands the rest on.
    pub(super) fn take<'a>(&mut self, running: &ContainerCommand, bytes: &'a [u8]) -> &'a [u8] {
        let Entered::Waiting(heard) = self else { return bytes };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (line, rest) = match end {
            Some(end) => bytes.split_at(end + 1),
            None => (bytes, &[][..]),
        };
        // A client that has something to say says it in a few lines.
        let room = 4096usize.saturating_sub(heard.len()).min(line.len());
        heard.extend_from_slice(line.get(..room).unwrap_or_default());
        if end.is_none() {
            return rest;
        }
        let text = String::from_utf8_lossy(heard).into_owned();
        match text.trim_end().strip_prefix(running.word.as_str()).map(str::trim_start) {
            Some(answer) => match answer.strip_prefix("start ").map(|pid| pid.parse::<i32>()) {
                Some(Ok(pid)) => {
                    running.started(pid);
                    *self = Entered::Started;
                }
                _ => *self = Entered::Refused(answer.to_owned()),
            },
            // The client's own words; they are kept for the error.
            None => return rest_of_words(heard, rest),
        }
        rest
    }

    /// Why the command did not start, if it did not.
    pub(super) fn failure(self, subject: &str, folder: &Path, user: Option<&str>) -> Option<ToolError> {
        let (kind, message) = match self {
            Entered::Started => return None,
            Entered::Refused(word) => match word.as_str() {
                "folder" => (ErrorKind::FileNotFound, format!("`{}` does not exist", folder.display())),
                "missing" => (ErrorKind::FileNotFound, format!("{subject} does not exist")),
                "directory" => (ErrorKind::IsADirectory, format!("{subject} is a folder")),
                "special" => (ErrorKind::Permission, format!("{subject} is not a regular file")),
                _ => (ErrorKind::Permission, format!("{subject} is not permitted")),
            },
            Entered::Waiting(heard) => {
                let text = String::from_utf8_lossy(&heard).trim().to_owned();
                match user {
                    Some(user) if text.contains("user") => {
                        (ErrorKind::Permission, format!("cannot run as `{}`: {text}", user.escape_debug()))
                    }
                    _ => (
                        ErrorKind::SandboxUnavailable,
                        format!("the container did not take the command: {text}"),
                    ),
                }
            }
        };
        Some(ToolError::of(kind, message))
    }
}

fn rest_of_words<'a>(heard: &mut Vec<u8>, rest: &'a [u8]) -> &'a [u8] {
    let room = 4096usize.saturating_sub(heard.len()).min(rest.len());
    heard.extend_from_slice(rest.get(..room).unwrap_or_default());
    &[]
}
