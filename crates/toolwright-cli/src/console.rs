//! The console: the program's three standard streams, and who reads the keyboard.
//!
//! `main` makes the only [`Console`] and passes it down, so a signature shows what may print or ask. Nothing
//! else opens stdin, stdout or stderr.

use std::fmt::Display;
use std::io::{IsTerminal as _, Stderr, Stdin, Stdout, StdoutLock, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Mutex, OwnedMutexGuard};
use toolwright::approval::DynPerson;
use toolwright_core::text::is_hidden;

use crate::lines;
use crate::prompt::Terminal;

/// How a command prints its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people.
    Text,
    /// For programs (`--json`).
    Json,
}

/// What became of a notice that was sent to the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The chat shows it, or left it out because too many wait already.
    Taken,
    /// The chat has ended, so stderr is free again.
    ChatEnded,
}

type NoticeSink = Box<dyn Fn(&str) -> Delivery + Send + Sync>;

/// Stdin, stdout and stderr. Clones are the same console.
#[derive(Clone)]
pub struct Console(Arc<ConsoleStreams>);

struct ConsoleStreams {
    output: Output,
    stdin: Stdin,
    stdout: Stdout,
    stderr: Stderr,
    /// Held while a question is open, so that questions of several calls do not mix.
    question: Arc<Mutex<()>>,
    chat_reads_keys: AtomicBool,
    /// The person at the chat, once one runs.
    chat_person: OnceLock<Arc<DynPerson>>,
    /// Where notices go while a chat draws the screen.
    notices: OnceLock<NoticeSink>,
}

/// JSON in which no character controls a terminal or hides itself: such characters stand in texts only, where
/// an escape means the same. Line ends between values stay.
pub fn visible_json(json: &str) -> std::borrow::Cow<'_, str> {
    let hides = |c: char| is_hidden(c) && c != '\n';
    if !json.contains(hides) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if hides(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out.into()
}

impl Console {
    /// The console of this process.
    #[expect(clippy::disallowed_methods, reason = "the streams are opened here, and nowhere else")]
    pub fn new(output: Output) -> Self {
        Console(Arc::new(ConsoleStreams {
            output,
            stdin: std::io::stdin(),
            stdout: std::io::stdout(),
            stderr: std::io::stderr(),
            question: Arc::default(),
            chat_reads_keys: AtomicBool::new(false),
            chat_person: OnceLock::new(),
            notices: OnceLock::new(),
        }))
    }

    /// True when results are printed as JSON, and nothing for people.
    pub fn is_json(&self) -> bool {
        self.0.output == Output::Json
    }

    /// True when a person can be asked: stdin and stderr are terminals.
    pub fn has_person(&self) -> bool {
        self.0.stdin.is_terminal() && self.0.stderr.is_terminal()
    }

    pub fn stdin(&self) -> &Stdin {
        &self.0.stdin
    }

    pub fn stderr(&self) -> &Stderr {
        &self.0.stderr
    }

    /// Stdout, locked: what others print meanwhile waits.
    pub fn stdout(&self) -> StdoutLock<'static> {
        self.0.stdout.lock()
    }

    /// Prints one line of a result on stdout. A reader that has gone away is an error here, not a panic.
    pub fn line(&self, text: impl Display) -> std::io::Result<()> {
        match self.is_json() {
            true => writeln!(self.stdout(), "{}", visible_json(&text.to_string())),
            false => writeln!(self.stdout(), "{text}"),
        }
    }

    /// Prints a message for people on stderr, wrapped to the terminal. A closed stderr does not stop
    /// or to fail.
    pub fn say(&self, text: impl Display) {
        let mut out = self.0.stderr.lock();
        let text = text.to_string();
        let text = match lines::columns(&out) {
            Some(columns) => lines::wrapped(&text, columns, 0),
            None => text,
        };
        let _ = writeln!(out, "{text}");
    }

    /// Prints something that may happen at any time, also in the middle of a chat.
    pub fn notice(&self, text: &str) {
        let delivery = self.0.notices.get().map_or(Delivery::ChatEnded, |send| send(text));
        if delivery == Delivery::ChatEnded {
            self.say(text);
        }
    }

    /// Sends notices to a chat, which draws the screen, in place of stderr. The first sink stays.
    pub fn send_notices_to(&self, sink: impl Fn(&str) -> Delivery + Send + Sync + 'static) {
        let _ = self.0.notices.set(Box::new(sink));
    }

    /// Gives the keyboard to a chat, for good: from now on no question is asked in lines.
    pub fn give_keys_to_chat(&self) {
        self.0.chat_reads_keys.store(true, Ordering::Relaxed);
    }

    /// The person at this console: at the terminal, and at the chat once one runs. `None` when nobody can be
    /// asked.
    pub fn person(&self) -> Option<Arc<DynPerson>> {
        self.has_person().then(|| Arc::new(Terminal::new(self)) as Arc<DynPerson>)
    }

    /// Has a chat ask the person from now on. The first chat stays.
    pub fn ask_in_chat(&self, person: Arc<DynPerson>) {
        let _ = self.0.chat_person.set(person);
    }

    /// The person at the chat, once one runs.
    pub fn chat_person(&self) -> Option<&DynPerson> {
        self.0.chat_person.get().map(|person| &**person)
    }

    /// True once a chat reads all keys.
    pub fn chat_reads_keys(&self) -> bool {
        self.0.chat_reads_keys.load(Ordering::Relaxed)
    }

    /// Waits until no other question is open.
    pub(super) async fn question_turn(&self) -> OwnedMutexGuard<()> {
        self.0.question.clone().lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F22: C1 and bidirectional characters reach no terminal, and the value stays the same.
    #[test]
    fn json_holds_no_character_that_controls_a_terminal() {
        let value = serde_json::json!({"a": "x\u{9b}31m\u{202e}y\u{1b}[2J\u{e0041}é日", "n": [1]});
        let shown = visible_json(&serde_json::to_string_pretty(&value).unwrap()).into_owned();
        assert!(!shown.contains(|c| is_hidden(c) && c != '\n'), "{shown}");
        assert!(shown.contains("é日") && shown.contains("\\u009b"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
