//! What comes from the person: keys of a terminal, or the lines of a pipe.

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::picture::Protocol;
use super::picture_support;
use crate::console::Console;
use crate::lines;

/// One thing that came.
#[derive(Debug)]
pub enum InputEvent {
    Key(KeyEvent),
    Paste(String),
    Resize(u16, u16),
    Line(String),
    /// Ctrl-C where there is no terminal to read keys from.
    Interrupt,
    End,
}

/// Where input comes from. A terminal is in raw mode for as long as this lives.
pub struct Inputs {
    console: Console,
    pub interactive: bool,
    /// A person types lines, at a terminal that can do nothing else.
    pub plain: bool,
    /// How the terminal shows pictures.
    pub pictures: Option<Protocol>,
    receiver: mpsc::Receiver<InputEvent>,
    raw: bool,
    /// Nothing comes any more.
    ended: bool,
}

impl Inputs {
    pub fn open(console: &Console) -> anyhow::Result<Self> {
        let terminal = console.stdin().is_terminal() && console.stdout().is_terminal();
        let (interactive, plain) = (terminal && !lines::is_dumb(), terminal && lines::is_dumb());
        // Also what is typed at a terminal while the answers go to a file is for the chat alone.
        console.give_keys_to_chat();
        let (sender, receiver) = mpsc::channel(256);
        let mut pictures = None;
        if interactive {
            take_over(console)?;
            let (before, of_panic) = (std::panic::take_hook(), console.clone());
            std::panic::set_hook(Box::new(move |panic| {
                restore(&of_panic);
                before(panic);
            }));
            let (protocol, typed) = picture_support::pictures(console);
            pictures = protocol;
            tokio::spawn(dismissed(console.clone(), sender.clone()));
            // Reading keys blocks, so it has a thread of its own, which ends with the program.
            std::thread::spawn(move || keys(&sender, typed));
        } else {
            let console = console.clone();
            std::thread::spawn(move || typed_lines(&console, &sender));
        }
        Ok(Inputs {
            console: console.clone(),
            interactive,
            plain,
            pictures,
            receiver,
            raw: interactive,
            ended: false,
        })
    }

    pub async fn next(&mut self) -> InputEvent {
        if self.ended {
            return InputEvent::End;
        }
        let input = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c(), if !self.interactive => InputEvent::Interrupt,
            input = self.receiver.recv() => input.unwrap_or(InputEvent::End),
        };
        self.ended = matches!(input, InputEvent::End);
        input
    }

    /// What comes while the model answers. The lines of a pipe wait, and so does the end of those a person
    /// types, unless something is asked.
    pub async fn meanwhile(&mut self, asked: bool) -> InputEvent {
        if self.interactive || (self.plain && (asked || !self.ended)) {
            match self.next().await {
                InputEvent::End if self.plain && !asked => {}
                input => return input,
            }
        }
        match tokio::signal::ctrl_c().await {
            Ok(()) => InputEvent::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }

    /// Leaves the terminal to the shell until the program is continued.
    pub async fn suspend(&mut self) -> anyhow::Result<()> {
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        restore(&self.console);
        rustix::process::kill_current_process_group(Signal::TSTP)?;
        // Without a shell to come back from there is no stop, and nothing to wait for.
        let _ = tokio::time::timeout(Duration::from_millis(200), continued.recv()).await;
        take_over(&self.console)
    }

    /// Gives the terminal back.
    pub fn close(&mut self) {
        if std::mem::take(&mut self.raw) {
            restore(&self.console);
        }
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.close();
    }
}

fn take_over(console: &Console) -> anyhow::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    Ok(crossterm::execute!(console.stdout(), event::EnableBracketedPaste)?)
}

fn restore(console: &Console) {
    // A terminal that is gone needs no restoring.
    let _ = crossterm::execute!(console.stdout(), event::DisableBracketedPaste, crossterm::cursor::Show);
    let _ = crossterm::terminal::disable_raw_mode();
}

/// Ends the conversation when the terminal is closed or the program is told to end, so that the session is
/// kept and the terminal is as it was.
async fn dismissed(console: Console, sender: mpsc::Sender<InputEvent>) {
    let (Ok(mut closed), Ok(mut told)) = (signal(SignalKind::hangup()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = closed.recv() => {}
        _ = told.recv() => {}
    }
    let _ = sender.send(InputEvent::End).await;
    // Whoever says it again does not want to wait.
    told.recv().await;
    restore(&console);
    std::process::exit(143);
}

fn keys(sender: &mpsc::Sender<InputEvent>, typed: Vec<KeyEvent>) {
    for key in typed {
        let _ = sender.blocking_send(InputEvent::Key(key));
    }
    while let Ok(event) = event::read() {
        let input = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => InputEvent::Key(key),
            Event::Paste(text) => InputEvent::Paste(text),
            Event::Resize(width, height) => InputEvent::Resize(width, height),
            _ => continue,
        };
        if sender.blocking_send(input).is_err() {
            return;
        }
    }
    let _ = sender.blocking_send(InputEvent::End);
}

/// The lines of stdin. What is no UTF-8 in them is replaced, as a line that is left out would not be
/// answered.
fn typed_lines(console: &Console, sender: &mpsc::Sender<InputEvent>) {
    let mut stdin = console.stdin().lock();
    let mut line = Vec::new();
    while let Ok(1..) = stdin.read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text));
        if sender.blocking_send(InputEvent::Line(text.to_owned())).is_err() {
            return;
        }
        line.clear();
    }
    let _ = sender.blocking_send(InputEvent::End);
}
