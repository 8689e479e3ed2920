//! What is typed on a terminal. The kernel cuts lines of more than 4095 bytes while a terminal collects whole
//! lines; here they are handed to the reader in pieces before that.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::spawn::Terminal;
use crate::sys;

/// So long a piece of a line is handed over at once. It is prime, so that no reader's buffer ends where a
/// piece does.
const PIECE: usize = 4001;
/// The key that submits a partial line; on an empty line it is EOF (VEOF).
const END: u8 = 4;

/// The typing side of a terminal.
pub(crate) struct Keyboard {
    terminal: Terminal,
    /// Behind the terminal is another one, whose mode is not known; such collect lines unless told otherwise.
    relayed: bool,
    /// How many bytes were typed since the line began or a piece of it was handed over, and the last of them.
    typed: usize,
    last: u8,
}

impl Keyboard {
    pub(crate) fn new(terminal: Terminal, relayed: bool) -> Self {
        Keyboard { terminal, relayed, typed: 0, last: b'\n' }
    }

    fn type_byte(&mut self, byte: u8) {
        self.typed = if matches!(byte, b'\n' | b'\r') { 0 } else { self.typed + 1 };
        self.last = byte;
    }

    /// Whether the line must be handed over before the next byte. Never after a key that may have emptied the
    /// line.
    fn is_due(&self, next: u8) -> bool {
        let ends = matches!(next, b'\n' | b'\r') || (0x80..0xc0).contains(&next);
        self.typed >= PIECE && !self.last.is_ascii_control() && !ends
    }

    /// The key that hands a line over, in a terminal that collects lines.
    fn end_key(&self) -> Option<u8> {
        if self.relayed { Some(END) } else { sys::terminal_end_key(self.terminal.as_fd()).ok().flatten() }
    }
}

impl AsyncWrite for Keyboard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.first().is_some_and(|next| self.is_due(*next)) {
            if let Some(key) = self.end_key() {
                ready!(Pin::new(&mut self.terminal).poll_write(cx, &[key]))?;
            }
            self.typed = 0;
        }
        let (typed, last) = (self.typed, self.last);
        let mut fits = 0;
        for byte in bytes {
            if self.is_due(*byte) {
                break;
            }
            self.type_byte(*byte);
            fits += 1;
        }
        (self.typed, self.last) = (typed, last);
        let written =
            ready!(Pin::new(&mut self.terminal).poll_write(cx, bytes.get(..fits).unwrap_or(bytes)))?;
        bytes.iter().take(written).for_each(|byte| self.type_byte(*byte));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.terminal).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.terminal).poll_shutdown(cx)
    }
}
