//! What the terminal says when it is asked which pictures it can show.
//!
//! Every terminal answers the question for its attributes; one that knows kitty's pictures answers that one
//! before. What was typed meanwhile is kept.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use regex::bytes::Regex;

use super::picture::{self, Protocol};
use crate::console::Console;

/// A picture of one pixel that is only asked about, then the attributes.
const QUESTION: &str = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c";

/// How long a terminal may take. One that never answers is not known; a line to the other end of the world
/// is.
const PATIENCE: Duration = Duration::from_secs(1);

/// How pictures are shown here, and the keys that came before the answer. The terminal is in raw mode.
pub fn pictures(console: &Console) -> (Option<Protocol>, Vec<KeyEvent>) {
    let known = picture::protocol(|name| std::env::var(name).ok());
    let term = std::env::var("TERM").unwrap_or_default();
    // These print what they do not know.
    if known.is_some() || matches!(term.as_str(), "" | "dumb" | "linux" | "cons25" | "emacs") {
        return (known, Vec::new());
    }
    let mut out = console.stdout();
    if out.write_all(QUESTION.as_bytes()).and_then(|()| out.flush()).is_err() {
        return (None, Vec::new());
    }
    let mut answer = Vec::new();
    let start = Instant::now();
    while !TerminalReply::read(&answer).whole {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if left.is_zero() || answer.len() > 1 << 16 || !more(console, &mut answer, left) {
            break;
        }
    }
    let answer = TerminalReply::read(&answer);
    (answer.protocol, keys(&answer.rest))
}

/// Reads what is there, or comes in time. False when nothing does.
#[cfg(unix)]
fn more(console: &Console, answer: &mut Vec<u8>, time: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = console.stdin();
    let Ok(time) = Timespec::try_from(time) else { return false };
    let mut waited = [PollFd::new(stdin, PollFlags::IN)];
    // An interrupted wait is begun again by the caller.
    match poll(&mut waited, Some(&time)) {
        Ok(0) => return false,
        Ok(_) => {}
        Err(error) => return error == rustix::io::Errno::INTR,
    }
    let mut buffer = [0; 1024];
    let read = rustix::io::read(stdin, &mut buffer).unwrap_or(0);
    answer.extend(buffer.iter().take(read));
    read > 0
}

#[cfg(not(unix))]
fn more(_: &Console, _: &mut Vec<u8>, _: Duration) -> bool {
    false
}

/// What came back.
#[derive(Debug, PartialEq)]
struct TerminalReply {
    protocol: Option<Protocol>,
    /// True when the last part is there.
    whole: bool,
    /// Bytes that are not part of a reply.
    rest: Vec<u8>,
}

impl TerminalReply {
    fn read(bytes: &[u8]) -> Self {
        let (kitty, attributes) = (r"\x1b_G([^\x1b]*)\x1b\\", r"\x1b\[\?([0-9;]*)c");
        let all = Regex::new(&format!("(?-u){kitty}|{attributes}"));
        let Ok(all) = all else { return TerminalReply { protocol: None, whole: true, rest: bytes.to_vec() } };
        let (mut kitty, mut sixel, mut whole) = (false, false, false);
        for found in all.captures_iter(bytes) {
            kitty |= found.get(1).is_some_and(|text| text.as_bytes().ends_with(b";OK"));
            if let Some(numbers) = found.get(2) {
                whole = true;
                sixel |= numbers.as_bytes().split(|byte| *byte == b';').skip(1).any(|number| number == b"4");
            }
        }
        let protocol = if kitty { Some(Protocol::Kitty) } else { sixel.then_some(Protocol::Sixel) };
        TerminalReply { protocol, whole, rest: all.replace_all(bytes, &b""[..]).into_owned() }
    }
}

/// Plain keys among bytes: what somebody types before the program asks for it.
fn keys(bytes: &[u8]) -> Vec<KeyEvent> {
    let text = String::from_utf8_lossy(bytes);
    let key = |c: char| match c {
        '\r' | '\n' => Some(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)),
        '\t' => Some(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE)),
        '\x7f' | '\x08' => Some(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE)),
        '\x03' => Some(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)),
        '\x04' => Some(KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL)),
        c if c.is_control() => None,
        c => Some(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)),
    };
    text.chars().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_answer_for_themselves() {
        let of = |bytes: &[u8]| {
            let TerminalReply { protocol, whole, rest } = TerminalReply::read(bytes);
            (protocol, whole, String::from_utf8_lossy(&rest).into_owned())
        };
        let none = String::new;
        // kitty, Konsole and Ghostty; xterm and foot with sixels; one without; half an answer; keys between.
        assert_eq!(of(b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c"), (Some(Protocol::Kitty), true, none()));
        assert_eq!(of(b"\x1b[?63;1;2;4;6;9;15;22c"), (Some(Protocol::Sixel), true, none()));
        assert_eq!(of(b"\x1b[?4c"), (None, true, none()));
        assert_eq!(of(b"\x1b_Gi=31;EINVAL:no\x1b\\\x1b[?1;2c"), (None, true, none()));
        assert_eq!(of(b"hi\x1b[?1;2cthere\r"), (None, true, "hithere\r".to_owned()));
        assert!(!TerminalReply::read(b"\x1b_Gi=31;OK\x1b\\\x1b[?62;").whole);
    }

    #[test]
    fn what_was_typed_is_not_lost() {
        let codes: Vec<KeyCode> = keys("hé\r\x1b\x03".as_bytes()).iter().map(|key| key.code).collect();
        assert_eq!(codes, [KeyCode::Char('h'), KeyCode::Char('é'), KeyCode::Enter, KeyCode::Char('c')]);
    }
}
