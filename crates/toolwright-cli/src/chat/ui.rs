//! What is seen while the model works, and the reading of input between.

mod asking;

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;
use toolwright::approval::{Decision, Notice};
use toolwright::content::{Content, Message, ToolCall, ToolResult};
use toolwright::events::{EventKind, Redactor};
use toolwright_core::text::clip;

use self::asking::PromptOutcome;
use super::approval::Question;
use super::calls::{self, CallTree};
use super::display::Display;
use super::editor::{Done, Editor};
use super::form::FormEditor;
use super::history;
use super::input::{InputEvent, Inputs};
use super::markdown::Markdown;
use super::picture::{self, Protocol};
use super::screen::Screen;
use super::slash_commands;
use crate::console::Console;
use crate::lines::{BOLD, DIM, PLAIN, Style, StyledLine, YELLOW, cut, width};
use crate::prompt::printable;
use crate::report::counted;
use crate::spending::Spending;

/// What happens while the model works.
pub enum News {
    Event(Box<EventKind>),
    Text(String),
    Reasoning(String),
    Question(Question),
    Form(FormEditor),
    Notice(Notice),
}

/// What an input wants while the model works.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    /// The answer is to be stopped.
    Stop,
    /// The terminal is to be left to the shell.
    Suspend,
}

const SPINNER: &[char] = &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

pub struct Ui {
    pub display: Display,
    pub spending: Spending,
    screen: Screen,
    interactive: bool,
    pictures: Option<Protocol>,
    editor: Editor,
    /// What was typed in this session, for the next ones.
    typed: Vec<String>,
    /// Inputs that were ended while the model worked.
    waiting: VecDeque<String>,
    /// True while keys go to the editor although a question is open: it opened while somebody typed.
    typing_on: bool,
    answer: Markdown,
    reasoning: Markdown,
    reasons: bool,
    /// True when some of the answer was heard while it came.
    heard: bool,
    /// Answers of an earlier session, which are put on record but not shown again.
    pub known: usize,
    calls: CallTree,
    since: Option<Instant>,
    questions: VecDeque<Question>,
    forms: VecDeque<FormEditor>,
    asking: PromptOutcome,
    /// Calls that are approved for the rest of the session.
    always: HashSet<String>,
    /// True when a picture could not be saved.
    pub unsaved: bool,
}

impl Ui {
    pub fn new(console: &Console, interactive: bool, pictures: Option<Protocol>) -> Self {
        let mut editor = Editor::default();
        if interactive {
            history::read().iter().for_each(|input| editor.remember(input));
        }
        Ui {
            display: Display::default(),
            spending: Spending::default(),
            screen: Screen::new(console, interactive),
            interactive,
            pictures,
            editor,
            typed: Vec::new(),
            waiting: VecDeque::new(),
            typing_on: false,
            answer: Markdown::default(),
            reasoning: Markdown::new(true),
            reasons: false,
            heard: false,
            known: 0,
            calls: CallTree::default(),
            since: None,
            questions: VecDeque::new(),
            forms: VecDeque::new(),
            asking: PromptOutcome::Choice,
            always: HashSet::new(),
            unsaved: false,
        }
    }

    /// Whether Markdown is made readable; a pipe gets it as it is.
    fn styled(&self) -> bool {
        self.interactive && self.display.markdown_output
    }

    // ---- between answers

    /// Something beside the conversation: with a pipe it goes to stderr.
    pub fn line(&mut self, line: StyledLine) {
        if self.interactive { self.screen.commit(&[line]) } else { self.screen.console.say(line.text()) }
    }

    pub fn say(&mut self, style: Style, text: impl Into<String>) {
        self.line(StyledLine::new(style, text));
    }

    /// Something that happened beside the conversation, above what is being written.
    pub fn tell(&mut self, text: &str) {
        self.screen.commit_whole(YELLOW, text);
    }

    pub fn say_markdown(&mut self, text: &str) {
        // A pipe gets answers, not what was said before.
        if !self.interactive {
            return;
        }
        let mut markdown = Markdown::new(!self.styled());
        markdown.columns = Some(self.screen.width);
        let mut lines = markdown.push(text);
        lines.extend(markdown.finish());
        self.screen.commit(&lines);
    }

    /// Stands above an input; what helps is left out where there is no room.
    pub fn heading(&mut self, text: &str, help: &str) {
        if self.interactive {
            let text = printable(text);
            let fits = width(&text) + width(help) <= self.screen.width;
            let line = StyledLine::new(DIM, text).and(DIM, if fits { help } else { "" });
            self.screen.commit(&[StyledLine::default(), line]);
        }
    }

    /// Reads one input; `None` at the end.
    pub async fn read(
        &mut self,
        inputs: &mut Inputs,
        told: &mut mpsc::Receiver<String>,
        prefill: &str,
        models: &[String],
    ) -> Option<String> {
        // What is typed already stays, unless a command brings a text.
        if !prefill.is_empty() {
            self.editor.prefill(prefill);
        }
        if let Some(text) = self.waiting.pop_front() {
            return Some(self.take(text));
        }
        let folder = std::env::current_dir().unwrap_or_default();
        let complete = |before: &str| slash_commands::complete(before, &folder, models);
        loop {
            if self.interactive {
                let (rows, cursor) = self.editor.rows("> ", self.screen.width);
                self.screen.live(&rows, Some(cursor));
            } else if inputs.plain {
                self.screen.prompt("> ");
            }
            let input = tokio::select! {
                input = inputs.next() => input,
                Some(text) = told.recv() => {
                    self.tell(&text);
                    continue;
                }
            };
            match input {
                InputEvent::Line(line) => return Some(line),
                InputEvent::End | InputEvent::Interrupt => return None,
                InputEvent::Resize(width, height) => self.screen.resize(width, height),
                InputEvent::Paste(text) => self.editor.paste(&text),
                InputEvent::Key(key) => match self.editor.key(key, &complete) {
                    Done::No => {}
                    Done::Redraw => self.screen.clear(),
                    Done::Suspend => self.suspend(inputs).await,
                    Done::Interrupt => {
                        self.say(DIM, "Ctrl-D or /exit leaves");
                    }
                    Done::Leave => return None,
                    Done::Submit(text) => return Some(self.take(text)),
                },
            }
        }
    }

    /// An input that was ended: it is remembered and goes up into the scrollback.
    fn take(&mut self, text: String) -> String {
        if self.interactive {
            self.editor.remember(&text);
            self.typed.push(text.clone());
        }
        self.said(&text);
        text
    }

    /// Leaves the terminal to the shell until the program is continued.
    pub async fn suspend(&mut self, inputs: &mut Inputs) {
        self.screen.clear_live();
        if let Err(error) = inputs.suspend().await {
            self.say(DIM, format!("not suspended: {error:#}"));
        }
    }

    /// Puts what waits into the editor, before what is there: who stopped an answer wants to see it first.
    /// Where there is no editor, it is said what was not sent.
    pub fn take_back(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if !self.interactive {
            waiting.iter().for_each(|line| self.say(DIM, format!("not sent: {}", printable(line))));
        } else if !waiting.is_empty() {
            let texts = waiting.into_iter().chain([self.editor.text()]).filter(|text| !text.is_empty());
            self.editor.prefill(&texts.collect::<Vec<_>>().join("\n"));
        }
    }

    pub fn close(&mut self, redactor: &Redactor) {
        self.screen.clear_live();
        if self.interactive {
            history::add(&self.typed, redactor);
        }
    }

    /// Begins with an empty screen; what was on it is in the scrollback.
    pub fn clear(&mut self) {
        self.screen.clear();
    }

    /// Shows an input of earlier, as it was typed.
    pub fn said(&mut self, text: &str) {
        if self.interactive {
            self.screen.commit(&typed(text));
        }
    }

    /// Shows a call of earlier, with its result.
    pub fn called(&mut self, call: &ToolCall, result: Option<&ToolResult>) {
        if self.interactive {
            self.screen.commit(&calls::earlier(call, result));
        }
    }

    // ---- while the model answers

    pub fn begin_answer(&mut self) {
        self.answer = Markdown::new(!self.styled());
        self.answer.columns = Some(self.screen.width);
        self.since = Some(Instant::now());
        self.heard = false;
    }

    pub fn end_answer(&mut self) {
        self.flush();
        self.calls.clear();
        self.since = None;
        // Questions of calls that are gone need no answer.
        self.questions.clear();
        self.forms.clear();
        self.asking = PromptOutcome::Choice;
        self.typing_on = false;
        self.screen.clear_live();
    }

    pub fn news(&mut self, news: News) {
        match news {
            News::Text(text) => {
                self.end_reasoning();
                self.heard = true;
                if self.display.stream {
                    let lines = self.answer.push(&text);
                    self.screen.commit(&lines);
                }
            }
            News::Reasoning(text) if self.display.show_reasoning => {
                let mut lines = Vec::new();
                if !std::mem::replace(&mut self.reasons, true) {
                    lines.push(StyledLine::new(DIM, "Reasoning:"));
                }
                lines.extend(self.reasoning.push(&text).iter().map(dimmed));
                self.screen.commit(&lines);
            }
            News::Reasoning(_) => {}
            News::Event(event) => self.event(&event),
            News::Question(question) => {
                if self.is_always(&question) {
                    let _ = question.answer.send(Decision::Approve);
                    return;
                }
                self.typing_on |= !self.is_asking() && !self.editor.is_empty();
                self.questions.push_back(question);
                if self.questions.len() == 1 {
                    self.show_question();
                    self.ask_plainly();
                }
            }
            News::Form(form) => {
                self.typing_on |= !self.is_asking() && !self.editor.is_empty();
                self.forms.push_back(form);
                if self.forms.len() == 1 {
                    self.show_form();
                    self.ask_plainly();
                }
            }
            News::Notice(notice) => {
                self.flush();
                self.say(BOLD, printable(&notice.title));
                printable(&notice.message).lines().for_each(|line| self.say(PLAIN, format!("    {line}")));
            }
        }
        self.draw();
    }

    fn event(&mut self, event: &EventKind) {
        match event {
            EventKind::MessageAdded { message: Message::Assistant(_) } if self.known > 0 => self.known -= 1,
            EventKind::MessageAdded { message: Message::Assistant(message) } => {
                self.calls.ask_for(&message.tool_calls);
                self.end_reasoning();
                if message.confidential {
                    self.say(DIM, "[Message below is confidential, not shown to AI Assistant]");
                }
                if !self.heard || !self.display.stream {
                    let lines = self.answer.push(&message.text());
                    self.screen.commit(&lines);
                }
                self.flush();
                if message.confidential {
                    self.say(DIM, "[Message above is confidential, not shown to AI Assistant]");
                }
                self.heard = false;
                self.since = Some(Instant::now());
            }
            EventKind::ModelReplied { model, usage, cost, .. } => self.spending.add(model, *usage, *cost),
            EventKind::LimitHit { limit } => self.say(YELLOW, limit.to_string()),
            event => {
                self.flush();
                let lines = self.calls.take(event);
                if self.interactive {
                    self.screen.commit(&lines);
                } else {
                    lines.iter().for_each(|line| self.screen.console.say(line.text().trim_end()));
                }
                if let EventKind::CallFinished { result: Some(result), .. } = event {
                    self.pictures(result);
                }
            }
        }
    }

    /// Shows the pictures of a result, or saves them.
    fn pictures(&mut self, result: &ToolResult) {
        let window = self.screen.pixels();
        for block in &result.content {
            let Content::Image(media) = block else { continue };
            if let Some(sequence) =
                self.pictures.and_then(|protocol| picture::sequence(protocol, media, window))
            {
                self.screen.raw(&sequence);
                continue;
            }
            let name: String =
                result.name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            match picture::save(media, &name) {
                Ok(path) => self.say(DIM, format!("  a picture: {}", path.display())),
                Err(error) => {
                    self.unsaved = true;
                    self.say(YELLOW, format!("  a picture that cannot be saved: {error:#}"));
                }
            }
        }
    }

    fn end_reasoning(&mut self) {
        if std::mem::take(&mut self.reasons) {
            let lines: Vec<StyledLine> = self.reasoning.finish().iter().map(dimmed).collect();
            self.screen.commit(&lines);
        }
    }

    /// Puts what is left of an answer into the scrollback.
    fn flush(&mut self) {
        let lines = self.answer.finish();
        self.screen.commit(&lines);
    }

    /// The rows below the scrollback: an unfinished line, calls under way, a question.
    pub fn draw(&mut self) {
        if !self.interactive {
            return;
        }
        self.drop_forms();
        let width = self.screen.width;
        let elapsed = self.since.map(|since| since.elapsed()).unwrap_or_default();
        let frame = usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % SPINNER.len();
        let spinner = SPINNER.get(frame).copied().unwrap_or('*');
        let mut rows: Vec<StyledLine> =
            self.answer.unfinished().iter().flat_map(|line| line.wrap(width)).collect();
        if self.reasons {
            rows.extend(self.reasoning.unfinished().iter().flat_map(|line| dimmed(line).wrap(width)));
        }
        rows.extend(self.calls.rows(spinner, width));
        let (asking, cursor) = self.asking_rows(width);
        let mut cursor = cursor.map(|(row, column)| (rows.len() + row, column));
        rows.extend(asking);
        if rows.is_empty() {
            rows.push(StyledLine::new(DIM, format!("{spinner} Thinking… {:.0}s", elapsed.as_secs_f64())));
        }
        for text in &self.waiting {
            let first = printable(text.lines().next().unwrap_or_default());
            rows.push(StyledLine::new(DIM, cut(&format!("> {first} (waits)"), width)));
        }
        if self.typing_on {
            let keys = "Enter or Esc ends what you are typing; then the question can be answered";
            rows.extend(StyledLine::new(YELLOW, keys).wrap(width));
        }
        if !self.editor.is_empty() {
            let (typed, (row, column)) = self.editor.rows("> ", width);
            if self.typing_on || !self.is_asking() {
                cursor = Some((rows.len() + row, column));
            }
            rows.extend(typed);
        }
        self.screen.live(&rows, cursor);
    }

    /// Takes input while the model works.
    pub fn key(&mut self, input: InputEvent) -> Wish {
        match input {
            InputEvent::Resize(width, height) => {
                self.screen.resize(width, height);
                self.answer.columns = Some(self.screen.width);
            }
            InputEvent::Interrupt | InputEvent::End => return Wish::Stop,
            InputEvent::Key(key) => {
                let is = |c| key.code == KeyCode::Char(c) && key.modifiers.contains(KeyModifiers::CONTROL);
                if is('z') {
                    return Wish::Suspend;
                }
                if self.typing_on || !self.is_asking() {
                    if is('c') {
                        return Wish::Stop;
                    }
                    self.type_ahead(key);
                } else if self.questions.is_empty() {
                    self.form_key(key);
                } else if is('c') && matches!(self.asking, PromptOutcome::Choice) {
                    return Wish::Stop;
                } else {
                    self.question_key(key);
                }
            }
            InputEvent::Paste(text) if self.typing_on || !self.is_asking() => self.editor.paste(&text),
            InputEvent::Paste(text) => match &mut self.asking {
                PromptOutcome::Editing(editor, _) | PromptOutcome::Reason(editor) => editor.paste(&text),
                // Text does not choose an option; it is kept for the next input.
                PromptOutcome::Choice if !self.questions.is_empty() => self.editor.paste(&text),
                PromptOutcome::Choice => self.forms.iter_mut().take(1).for_each(|form| form.paste(&text)),
            },
            InputEvent::Line(line) if self.is_asking() => self.typed_answer(&line),
            InputEvent::Line(line) => self.waiting.push_back(line),
        }
        self.draw();
        Wish::Nothing
    }

    /// A key for the next input. One that is ended waits until the answer is there.
    fn type_ahead(&mut self, key: KeyEvent) {
        if key.code == KeyCode::Esc {
            self.typing_on = false;
            return;
        }
        match self.editor.key(key, &|_: &str| None) {
            Done::Submit(text) if !text.trim().is_empty() => self.waiting.push_back(text),
            Done::Redraw => self.screen.clear(),
            Done::No | Done::Submit(_) | Done::Interrupt | Done::Leave | Done::Suspend => {}
        }
        self.typing_on &= !self.editor.is_empty();
    }
}

/// An input as it stands in the scrollback.
fn typed(text: &str) -> Vec<StyledLine> {
    const MOST: usize = 20;
    let lines = text.lines().take(MOST).enumerate().map(|(number, line)| {
        let mark = if number == 0 { "> " } else { "  " };
        StyledLine::new(DIM, mark).and(BOLD, printable(&clip(line, 2000))).hanging(2)
    });
    let mut lines: Vec<StyledLine> = lines.collect();
    let more = text.lines().count().saturating_sub(MOST);
    if more > 0 {
        lines.push(StyledLine::new(DIM, format!("  … {}", counted(more as u64, "more line"))));
    }
    lines
}

fn dimmed(line: &StyledLine) -> StyledLine {
    StyledLine::new(Style { dim: true, italic: true, ..PLAIN }, line.text())
}
