//! What comes from the person: keys of a terminal, or the lines of a pipe.

use std::io::{BufRead as _, IsTerminal as _};

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use tokio::sync::mpsc;

use super::asked;
use super::picture::Protocol;

/// One thing that came.
#[derive(Debug)]
pub enum Input {
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
    pub interactive: bool,
    /// How the terminal shows pictures.
    pub pictures: Option<Protocol>,
    receiver: mpsc::Receiver<Input>,
    raw: bool,
}

impl Inputs {
    pub fn open() -> anyhow::Result<Self> {
        let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let (sender, receiver) = mpsc::channel(256);
        let mut pictures = None;
        if interactive {
            crossterm::terminal::enable_raw_mode()?;
            crossterm::execute!(std::io::stdout(), event::EnableBracketedPaste)?;
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
            let (protocol, typed) = asked::pictures();
            pictures = protocol;
            // Reading keys blocks, so it has a thread of its own, which ends with the program.
            std::thread::spawn(move || keys(&sender, typed));
        } else {
            std::thread::spawn(move || lines(&sender));
        }
        Ok(Inputs { interactive, pictures, receiver, raw: interactive })
    }

    pub async fn next(&mut self) -> Input {
        if self.interactive {
            return self.receiver.recv().await.unwrap_or(Input::End);
        }
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Input::Interrupt,
            input = self.receiver.recv() => input.unwrap_or(Input::End),
        }
    }

    /// What comes while the model answers. The next lines of a pipe wait, and so does its end.
    pub async fn meanwhile(&mut self) -> Input {
        if self.interactive {
            return self.next().await;
        }
        match tokio::signal::ctrl_c().await {
            Ok(()) => Input::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives the terminal back.
    pub fn close(&mut self) {
        if std::mem::take(&mut self.raw) {
            restore();
        }
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.close();
    }
}

fn restore() {
    // A terminal that is gone needs no restoring.
    let _ = crossterm::execute!(std::io::stdout(), event::DisableBracketedPaste, crossterm::cursor::Show);
    let _ = crossterm::terminal::disable_raw_mode();
}

fn keys(sender: &mpsc::Sender<Input>, typed: Vec<KeyEvent>) {
    for key in typed {
        let _ = sender.blocking_send(Input::Key(key));
    }
    while let Ok(event) = event::read() {
        let input = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Input::Key(key),
            Event::Paste(text) => Input::Paste(text),
            Event::Resize(width, height) => Input::Resize(width, height),
            _ => continue,
        };
        if sender.blocking_send(input).is_err() {
            return;
        }
    }
    let _ = sender.blocking_send(Input::End);
}

fn lines(sender: &mpsc::Sender<Input>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if sender.blocking_send(Input::Line(line)).is_err() {
            return;
        }
    }
    let _ = sender.blocking_send(Input::End);
}
