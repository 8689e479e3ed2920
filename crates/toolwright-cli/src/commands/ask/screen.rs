//! The run of `ask` as it happens: the model's words on stdout while they come, when that is a terminal;
//! calls, what is under way and what was spent on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use toolwright::content::Message;
use toolwright::events::{Event, EventKind};
use toolwright::model::ModelDelta;
use toolwright::run::RunBuilder;
use toolwright_util::lock;

use crate::chat::calls::CallTree;
use crate::chat::ui::spinner;
use crate::console::Console;
use crate::lines::{self, DIM, StyledLine, WordWrapper};
use crate::prompt::printable;
use crate::spending::Spending;

/// How often the line of what is under way is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// What is quicker than this shows no such line.
const QUIET: Duration = Duration::from_millis(300);

pub struct Screen {
    console: Console,
    /// The model's words on their way to a terminal.
    words: Option<Mutex<WordWrapper>>,
    state: Mutex<ScreenState>,
    begun: Instant,
}

struct ScreenState {
    calls: CallTree,
    spending: Spending,
    /// Since when the model is waited for; `None` while it speaks, or calls are under way.
    waiting: Option<Instant>,
}

impl Screen {
    /// With `whole` the model's answer is printed at its end; `verbose` shows calls with all that is in them.
    pub fn new(console: &Console, whole: bool, verbose: bool) -> Arc<Self> {
        let columns = match whole || console.is_json() {
            true => None,
            false => lines::columns(&console.stdout()),
        };
        let calls = if verbose { CallTree::in_full() } else { CallTree::default() };
        Arc::new(Screen {
            console: console.clone(),
            words: columns.map(|columns| Mutex::new(WordWrapper::new(columns))),
            state: Mutex::new(ScreenState { calls, spending: Spending::default(), waiting: None }),
            begun: Instant::now(),
        })
    }

    /// True when the answer is printed while it comes.
    pub fn streams(&self) -> bool {
        self.words.is_some()
    }

    /// Shows what happens in a run.
    pub fn watch(self: &Arc<Self>, mut builder: RunBuilder) -> RunBuilder {
        let shown = self.clone();
        builder = builder.on_event(move |event: &Event| shown.event(&event.kind));
        if self.streams() {
            let shown = self.clone();
            builder = builder.on_delta(move |delta| shown.piece(delta));
        }
        builder
    }

    /// Draws what is under way until the result is dropped. Nothing where stderr is not a terminal.
    pub fn draw(self: &Arc<Self>) -> Drawing {
        lock(&self.state).waiting = Some(Instant::now());
        let is_drawn = self.console.stderr().is_terminal() && !self.console.is_silent() && !lines::is_dumb();
        let task = is_drawn.then(|| {
            let screen = self.clone();
            tokio::spawn(async move {
                let mut frames = tokio::time::interval(FRAME);
                loop {
                    frames.tick().await;
                    screen.frame();
                }
            })
        });
        Drawing { console: self.console.clone(), task }
    }

    fn frame(&self) {
        let Some(columns) = lines::columns(self.console.stderr()) else { return };
        let mark = spinner(self.begun.elapsed());
        let state = lock(&self.state);
        let line = match (state.calls.rows(mark, columns, false).pop(), state.waiting) {
            (Some(row), _) => Some(row),
            (None, Some(since)) if since.elapsed() > QUIET => {
                Some(StyledLine::new(DIM, format!("{mark} {:.0}s", since.elapsed().as_secs_f64())))
            }
            (None, _) => None,
        };
        drop(state);
        if let Some(line) = line {
            self.console.status(&line.ansi(lines::has_colours(self.console.stderr())));
        }
    }

    fn piece(&self, delta: ModelDelta<'_>) {
        let Some(words) = &self.words else { return };
        if let ModelDelta::Text(text) = delta {
            lock(&self.state).waiting = None;
            self.console.clear_status();
            let (mut shown, mut out) = (String::new(), self.console.stdout());
            lock(words).push(&printable(text), &mut shown);
            // A terminal that went away is noticed when the run writes its end.
            let _ = write!(out, "{shown}").and_then(|()| out.flush());
        }
    }

    /// Ends the line of the model's words, if there is one.
    pub fn end_line(&self) {
        let Some(words) = &self.words else { return };
        let (mut rest, mut out) = (String::new(), self.console.stdout());
        if lock(words).end(&mut rest) {
            self.console.clear_status();
            let _ = writeln!(out, "{rest}").and_then(|()| out.flush());
        }
    }

    /// Reports what was spent; true when there was something.
    pub fn tell_spending(&self) -> bool {
        let line = match &lock(&self.state).spending {
            spending if spending.is_empty() => return false,
            spending => spending.line(),
        };
        self.console.remark(format_args!("\n{}", self.styled(&StyledLine::new(DIM, line))));
        true
    }

    fn event(&self, event: &EventKind) {
        if !matches!(event, EventKind::MessageAdded { .. } | EventKind::ModelReplied { .. }) {
            self.end_line();
        }
        let mut state = lock(&self.state);
        match event {
            EventKind::ModelReplied { model, usage, cost, .. } => {
                state.waiting = None;
                state.spending.add(model, *usage, *cost);
            }
            EventKind::MessageAdded { message: Message::Assistant(message) } => {
                let said = message.text();
                if !(said.is_empty() || message.tool_calls.is_empty() || self.streams()) {
                    self.console.remark(format_args!("\n{}", printable(&said)));
                }
                state.calls.ask_for(&message.tool_calls);
            }
            EventKind::MessageAdded { message: Message::Tool(_) } => state.waiting = Some(Instant::now()),
            EventKind::LimitHit { limit } => self.console.say(limit),
            _ => {}
        }
        let lines = state.calls.take(event);
        drop(state);
        for line in lines {
            self.show(&line);
        }
    }

    /// Shows a line about a call, moved in beside the answer.
    fn show(&self, line: &StyledLine) {
        let mut line = StyledLine::new(lines::PLAIN, "  ").then(line.clone()).hanging(line.hang + 2);
        if let Some(columns) = lines::columns(self.console.stderr()) {
            let rows = line.wrap(columns);
            for row in rows {
                self.console.remark(self.styled(&row));
            }
            return;
        }
        line.hang = 0;
        self.console.remark(line.text());
    }

    fn styled(&self, line: &StyledLine) -> String {
        line.ansi(lines::has_colours(self.console.stderr()))
    }
}

/// The line of what is under way; it goes when this is dropped.
pub struct Drawing {
    console: Console,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Drawing {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        self.console.clear_status();
    }
}
